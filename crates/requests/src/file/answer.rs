//! Which answer to a request is good, and what is captured from it.

use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Node, Tree};
use config::units::shown;
use readings::requests::{AnswerSpec, Capture, CaptureFrom};

use super::json::value;
use super::one_of;
use super::request::is_token;

/// `expect`
pub(super) fn expect(reader: &mut Reader, request: &Section<'_>, has_users: bool) -> AnswerSpec {
    let Some(section) = request.section(reader, "expect") else {
        return AnswerSpec::default();
    };
    section.only(
        reader,
        &["status", "contains", "length", "sha256", "json", "headers"],
    );
    let status = section.integer(reader, "status", 100..=999);
    let length = section.integer(reader, "length", 0..=i64::MAX);
    for key in ["json", "headers"] {
        if let Some(entry) = section.table.get(key).filter(|_| !has_users) {
            let message = format!("`expect.{key}` needs [users]");
            let problem = Problem::at(entry.place, message, "for users only");
            reader.report(problem.help(
                "add [users] above the requests, or check `status`, `contains`, `length` or `sha256`",
            ));
        }
    }
    AnswerSpec {
        status: status.and_then(|status| u16::try_from(status).ok()),
        contains: section.text(reader, "contains"),
        length: length.and_then(|length| u64::try_from(length).ok()),
        sha256: sha256(reader, &section),
        json: json(reader, &section),
        fields: fields(reader, &section),
    }
}

fn sha256(reader: &mut Reader, section: &Section<'_>) -> Option<String> {
    let text = section.text(reader, "sha256")?;
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Some(text.to_ascii_lowercase());
    }
    let place = section.value_place("sha256");
    let message = format!(
        "`expect.sha256` is not a SHA-256 checksum: `{}`",
        shown(&text)
    );
    let problem = Problem::at(place, message, "expected 64 hexadecimal digits");
    reader.report(problem.help("`sha256sum FILE` prints it"));
    None
}

fn json(reader: &mut Reader, section: &Section<'_>) -> Vec<(String, serde_json::Value)> {
    let Some(table) = section.section(reader, "json") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for entry in &table.table.entries {
        if is_pointer(reader, &entry.name, entry.place) {
            all.push((entry.name.clone(), value(&entry.node.tree)));
        }
    }
    all
}

/// Whether a text is a JSON pointer; reports it if not.
fn is_pointer(reader: &mut Reader, text: &str, place: config::tree::Place) -> bool {
    if text.is_empty() || text.starts_with('/') {
        return true;
    }
    let message = format!("`{}` is not a JSON pointer", shown(text));
    let problem = Problem::at(place, message, "expected a slash first");
    reader.report(problem.help(format!("such as \"/{}\" (RFC 6901)", shown(text))));
    false
}

fn fields(reader: &mut Reader, section: &Section<'_>) -> Vec<(String, String)> {
    let Some(table) = section.section(reader, "headers") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for entry in &table.table.entries {
        let path = table.name_of(&entry.name);
        if let (Some(name), Some(value)) = (
            field_name(reader, &entry.name, entry.place),
            reader.text(&entry.node, &path),
        ) {
            all.push((name, value));
        }
    }
    all
}

fn field_name(reader: &mut Reader, name: &str, place: config::tree::Place) -> Option<String> {
    if is_token(name) {
        return Some(name.to_ascii_lowercase());
    }
    let message = format!("`{}` is not the name of a header", shown(name));
    reader.report(Problem::at(place, message, "expected a name such as ETag"));
    None
}

/// `capture`
pub(super) fn captures(
    reader: &mut Reader,
    request: &Section<'_>,
    names: &[String],
) -> Vec<Capture> {
    let Some(section) = request.section(reader, "capture") else {
        return Vec::new();
    };
    let mut captures = Vec::new();
    for entry in &section.table.entries {
        let name = names.iter().position(|one| *one == entry.name);
        let from = from(reader, &section, entry);
        if let (Some(name), Some(from)) = (name, from) {
            captures.push(Capture { name, from });
        }
    }
    captures
}

fn from(reader: &mut Reader, section: &Section<'_>, entry: &Entry) -> Option<CaptureFrom> {
    const WORDS: [&str; 3] = ["json", "header", "between"];
    let table = reader.section(entry, section.name_of(&entry.name))?;
    table.only(reader, &WORDS);
    let [only] = table.table.entries.as_slice() else {
        one_of(reader, &table, &WORDS);
        return None;
    };
    let path = table.name_of(&only.name);
    match only.name.as_str() {
        "json" => {
            let pointer = reader.text(&only.node, &path)?;
            is_pointer(reader, &pointer, only.node.place).then_some(CaptureFrom::Json(pointer))
        }
        "header" => {
            let name = reader.text(&only.node, &path)?;
            field_name(reader, &name, only.node.place).map(CaptureFrom::Field)
        }
        "between" => between(reader, &only.node, &path),
        _ => None,
    }
}

fn between(reader: &mut Reader, node: &Node, path: &str) -> Option<CaptureFrom> {
    if let Tree::Array(items) = &node.tree
        && let [before, after] = items.as_slice()
    {
        let before = reader.text(before, path)?;
        let after = reader.text(after, path)?;
        if !before.is_empty() && !after.is_empty() {
            return Some(CaptureFrom::Between { before, after });
        }
    }
    let message = format!("`{path}` is not two texts");
    let problem = Problem::at(node.place, message, "expected two texts that are not empty");
    reader.report(problem.help("such as between = [\"token=\", \"&\"]"));
    None
}
