//! `[[request]]`.

use std::path::Path;
use std::time::Duration;

use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Node, Place, Tree};
use config::units::shown;
use readings::requests::{Piece, RequestSet, RequestSpec, Template};

use super::{answer, bytes_of};
use crate::placeholder::{self, Names, Part};

const KEYS: [&str; 11] = [
    "name",
    "method",
    "path",
    "headers",
    "body",
    "body_file",
    "weight",
    "expect",
    "capture",
    "pause",
    "first_round",
];
/// Keys that only make sense in the session of a user.
const OF_USERS: [&str; 3] = ["capture", "pause", "first_round"];
/// Headers that the load writes.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

const PAUSE_MAX: Duration = Duration::from_secs(3600);
const WEIGHT_MAX: i64 = 1_000_000;

/// Reads a request of a file; `known` of what is captured is captured before it.
pub(super) fn read(
    reader: &mut Reader,
    section: &Section<'_>,
    set: &RequestSet,
    known: usize,
    folder: &Path,
) -> RequestSpec {
    section.only(reader, &KEYS);
    let texts = Texts {
        names: Names {
            feeds: &set.feeds,
            captured: &set.captured,
            known,
        },
    };
    if set.users.is_none() {
        for key in OF_USERS {
            if let Some(entry) = section.table.get(key) {
                let message = format!("`{key}` needs [users]");
                let problem = Problem::at(entry.place, message, "for users only");
                reader.report(problem.help("add [users] above the requests"));
            }
        }
    }
    if let Some(entry) = section.table.get("weight").filter(|_| set.in_order) {
        let problem = Problem::at(
            entry.place,
            "`weight` where requests are sent in order",
            "each is sent once in a round",
        );
        reader.report(problem.help("leave it out, or leave out `order` and [users]"));
    }
    let method = match section.entry("method") {
        Some((entry, path)) => method(reader, &entry.node, &path),
        None => "GET".to_owned(),
    };
    let written = section.required_text(reader, "path", "\"/\"");
    let path = match (written.as_deref(), section.table.get("path")) {
        (Some(text), Some(entry)) => path(reader, &texts, text, &entry.node),
        _ => Template::fixed("/"),
    };
    let name = section
        .text(reader, "name")
        .unwrap_or_else(|| format!("{method} {}", written.as_deref().unwrap_or("/")));
    let weight = section.integer(reader, "weight", 1..=WEIGHT_MAX);
    let pause = section
        .entry("pause")
        .and_then(|(entry, path)| reader.duration(&entry.node, &path, Duration::ZERO..=PAUSE_MAX));
    RequestSpec {
        name,
        path,
        fields: headers(reader, &texts, section),
        body: body(reader, &texts, section, folder),
        // The range fits.
        weight: weight.map_or(1, |weight| weight as u32),
        expect: answer::expect(reader, section, set.users.is_some()),
        pause: pause.unwrap_or_default(),
        captures: answer::captures(reader, section, &set.captured),
        is_once: section.boolean(reader, "first_round").unwrap_or_default(),
        method,
    }
}

/// Reads texts with placeholders.
struct Texts<'a> {
    names: Names<'a>,
}

impl Texts<'_> {
    /// The template of a value that stands at `place` of a file.
    fn of_value(&self, reader: &mut Reader, text: &str, place: Place, part: Part) -> Template {
        crate::template_of_value(reader, place, text, self.names, part).unwrap_or_default()
    }
}

fn method(reader: &mut Reader, node: &Node, path: &str) -> String {
    let Some(method) = reader.text(node, path) else {
        return "GET".to_owned();
    };
    if !is_method(&method) {
        reader.report(Problem::at(
            node.place,
            format!("`{path}` is not an HTTP method: `{}`", shown(&method)),
            "expected capital letters, such as \"GET\" or \"POST\"",
        ));
    }
    method
}

/// Whether a load sends such a method: CONNECT opens a tunnel.
pub(crate) fn is_method(method: &str) -> bool {
    let is_word = (1..=32).contains(&method.len())
        && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    is_word && method != "CONNECT"
}

fn path(reader: &mut Reader, texts: &Texts<'_>, text: &str, node: &Node) -> Template {
    if !text.starts_with('/') {
        let problem = Problem::at(
            node.place,
            format!(
                "`request.path` does not begin with a slash: `{}`",
                shown(text)
            ),
            "expected a path, such as \"/\"",
        );
        reader.report(problem.help("all requests go to one server, which is given with the load"));
        return Template::default();
    }
    texts.of_value(reader, text, node.place, Part::Path)
}

fn headers(
    reader: &mut Reader,
    texts: &Texts<'_>,
    section: &Section<'_>,
) -> Vec<(String, Template)> {
    let Some(table) = section.section(reader, "headers") else {
        return Vec::new();
    };
    let mut fields = Vec::new();
    for entry in &table.table.entries {
        let path = table.name_of(&entry.name);
        let Some(value) = reader.text(&entry.node, &path) else {
            continue;
        };
        if !is_header(reader, entry, &value) {
            continue;
        }
        let value = texts.of_value(reader, &value, entry.node.place, Part::Text);
        fields.push((entry.name.clone(), value));
    }
    fields
}

/// Whether a header can be sent; reports what is wrong.
fn is_header(reader: &mut Reader, entry: &Entry, value: &str) -> bool {
    let name = &entry.name;
    if !is_token(name) {
        let message = format!("`{}` is not the name of a header", shown(name));
        reader.report(Problem::at(
            entry.place,
            message,
            "expected a name such as Accept",
        ));
        return false;
    }
    if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        let message = format!("`{name}` is set by the load, not per request");
        let problem = Problem::at(entry.place, message, "remove it");
        reader.report(problem.help(
            "the host, and how long connections are kept, are those of the whole load; lengths are \
             the bodies'",
        ));
        return false;
    }
    if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
        let message = format!("`{name}` has more than one line");
        reader.report(Problem::at(entry.node.place, message, "expected one line"));
        return false;
    }
    true
}

/// Whether a text is a token, as names of headers are (RFC 9110, 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_part)
}

fn body(
    reader: &mut Reader,
    texts: &Texts<'_>,
    section: &Section<'_>,
    folder: &Path,
) -> Option<Template> {
    let file = section.table.get("body_file");
    let Some((entry, path)) = section.entry("body") else {
        let entry = file?;
        let file = section.text(reader, "body_file")?;
        return body_file(reader, texts, &file, entry, folder);
    };
    if let Some(file) = file {
        let problem = Problem::at(entry.place, "two bodies", "a text");
        reader.report(
            problem
                .and(file.place, "a file")
                .help("keep one of the two"),
        );
    }
    let text = match &entry.node.tree {
        Tree::Text(text) => text.clone(),
        _ => reader.text(&entry.node, &path)?,
    };
    Some(texts.of_value(reader, &text, entry.node.place, Part::Text))
}

/// The body in a file: with placeholders if it is text.
fn body_file(
    reader: &mut Reader,
    texts: &Texts<'_>,
    file: &str,
    entry: &Entry,
    folder: &Path,
) -> Option<Template> {
    let (name, bytes) = bytes_of(reader, folder, file, entry.node.place)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(Template(vec![Piece::Text(error.into_bytes())])),
    };
    match placeholder::parse(&text, texts.names, Part::Text) {
        Ok(template) => Some(template),
        Err(faults) => {
            let source = reader.add_source(&name, text);
            for fault in faults {
                reader.report(fault.in_source(source));
            }
            None
        }
    }
}
