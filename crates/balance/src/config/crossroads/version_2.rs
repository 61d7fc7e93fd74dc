//! Crossroads 2.x, which has no configuration file: options of its program `xr`, or the XML of `xrctl`,
//! which starts `xr`. A command line is translated into the native form and read as such; the XML is
//! refused.
//!
//! Source: the usage of `xr` 2.65 (`xr/etc/usage.txt`), `xr(1)`.

use std::fmt::Write as _;

use ::config::reader::{Problem, Reader};
use ::config::tree::Place;

mod options;

use crate::config::model::Config;
use crate::config::native;
use crate::config::warning::Warning;
use options::{Becomes, MODES, OPTIONS};

/// Reads a text if it belongs to version 2: a configuration, or `None` after reporting an error.
pub(super) fn parse(reader: &mut Reader, warnings: &mut Vec<Warning>) -> Option<Option<Config>> {
    let text = &reader.source(0)?.1.to_owned();
    let is_of_1 = |line: &str| line.trim_start().starts_with("service ");
    if text.contains('{') && text.lines().any(is_of_1) {
        return None;
    }
    if let Some(at) = xml_start(text) {
        let message = "of Crossroads 2.x only command lines of `xr` are read";
        let problem = Problem::at(
            place(at, 1),
            message,
            "expected a command line, found XML of `xrctl`",
        );
        reader.report(problem.help(
            "`xrctl` starts a command `xr` per service, which `ps` shows: put one into this file",
        ));
        return Some(None);
    }
    let (at, words) = command(text)?;
    let native = Native::of(&words, reader);
    if !reader.is_clean() {
        return Some(None);
    }
    let name = "the command line of `xr`, translated";
    let mut translated = Reader::new(name, &native);
    let config = native::parse(&mut translated, &native, warnings);
    warnings.iter_mut().for_each(|one| {
        // Lines of the translation are nobody's.
        let own = Warning::at(reader, place(at, 2), one.kind.clone());
        *one = own;
    });
    if let Some(mistakes) = translated.finish() {
        for mistake in mistakes.all() {
            let problem = Problem::at(place(at, 2), mistake.message(), "in this command line");
            reader.report(match mistake.help_text() {
                Some(help) => problem.help(help),
                None => problem,
            });
        }
        return Some(None);
    }
    Some(config)
}

fn place(start: usize, bytes: usize) -> Place {
    Place {
        source: 0,
        start,
        end: start + bytes,
    }
}

/// Where the XML of `xrctl` begins.
fn xml_start(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches('\u{feff}').trim_start();
    let is_xml =
        rest.starts_with('<') && rest.contains("<configuration") && rest.contains("<backend");
    is_xml.then_some(text.len() - rest.len())
}

/// The first command `xr` with options: where it begins, and its words.
fn command(text: &str) -> Option<(usize, Vec<(usize, String)>)> {
    let mut start = 0;
    while start < text.len() {
        let end = end_of_command(text, start);
        let line = &text[start..end];
        let words = words(line);
        // Behind `exec`, `nohup` or the like.
        let is_xr = |(_, word): &(usize, String)| word == "xr" || word.ends_with("/xr");
        if let Some(position) = words.iter().take(4).position(is_xr)
            && words[position + 1..]
                .iter()
                .any(|(_, word)| word.starts_with('-'))
        {
            let (at, name) = &words[position];
            let at = start + at + name.len() - "xr".len();
            let rest = words[position + 1..].iter();
            return Some((
                at,
                rest.map(|(at, word)| (start + at, word.clone())).collect(),
            ));
        }
        start = end + 1;
    }
    None
}

/// The end of the line that begins here, with those that a backslash continues.
fn end_of_command(text: &str, start: usize) -> usize {
    let mut at = start;
    loop {
        let Some(end) = text[at..].find('\n') else {
            return text.len();
        };
        let line = text[at..at + end].trim_end_matches('\r');
        if !line.ends_with('\\') {
            return at + end;
        }
        at += end + 1;
    }
}

/// The words of a command line of a shell, with where each begins. Variables stay as they are.
fn words(line: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let (mut quote, mut is_in_word) = (None, false);
    let mut characters = line.char_indices().peekable();
    while let Some((at, one)) = characters.next() {
        let is_space = quote.is_none() && (one.is_whitespace() || one == ';' || one == '&');
        if is_space || (one == '#' && !is_in_word && quote.is_none()) {
            if !one.is_whitespace() {
                break;
            }
            is_in_word = false;
            continue;
        }
        if one == '\\' && quote != Some('\'') {
            match characters.next() {
                // The line goes on.
                Some((_, '\n' | '\r')) | None => is_in_word = false,
                Some((_, next)) => push(&mut words, &mut is_in_word, at, Some(next)),
            }
            continue;
        }
        match quote {
            Some(end) if one == end => quote = None,
            None if one == '\'' || one == '"' => {
                quote = Some(one);
                push(&mut words, &mut is_in_word, at, None);
            }
            _ => push(&mut words, &mut is_in_word, at, Some(one)),
        }
    }
    words
}

fn push(words: &mut Vec<(usize, String)>, is_in_word: &mut bool, at: usize, one: Option<char>) {
    if !std::mem::replace(is_in_word, true) {
        words.push((at, String::new()));
    }
    if let Some((_, word)) = words.last_mut() {
        word.extend(one);
    }
}

/// The settings so far.
#[derive(Default)]
struct Native {
    listen: Vec<String>,
    is_http: bool,
    backends: Vec<String>,
    is_sticky: bool,
    allow: Vec<String>,
    deny: Vec<String>,
    headers: Vec<String>,
    /// Keys with values.
    lines: Vec<(&'static str, String)>,
}

impl Native {
    /// The same settings in the native form. Options without an equivalent are reported.
    fn of(words: &[(usize, String)], reader: &mut Reader) -> String {
        let mut native = Self::default();
        let mut words = words.iter().peekable();
        while let Some((at, word)) = words.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word.as_str(), None),
            };
            // A redirection.
            if name.contains('>') {
                continue;
            }
            let mut fail = |message: String, label: &str, help: &str| {
                reader.report(Problem::at(place(*at, word.len()), message, label).help(help));
            };
            let Some(option) = OPTIONS.iter().find(|one| one.is_called(name)) else {
                let message =
                    format!("expected an option of `xr` that is known here, found `{name}`");
                fail(
                    message,
                    "unknown",
                    "leave it out, if the balancer can do without",
                );
                words.next_if(|(_, next)| !next.starts_with('-'));
                continue;
            };
            let mut value = "";
            if option.takes_value {
                let next = || words.next().map(|(_, next)| next.as_str());
                value = attached.or_else(next).unwrap_or_default();
            }
            if let Becomes::Different(instead) = option.becomes {
                let message = format!("`{name}` has no equivalent that can be translated");
                fail(message, "leave it out", instead);
            } else if !native.take(option.becomes, value) {
                let message = format!("the value of `{name}` is not understood: `{value}`");
                fail(message, "this option", "see the usage of `xr`");
            }
        }
        native.text()
    }

    /// Takes an option; whether its value is understood.
    fn take(&mut self, becomes: Becomes, value: &str) -> bool {
        match becomes {
            Becomes::Server => {
                let Some((kind, rest)) = value.split_once(':') else {
                    return false;
                };
                self.is_http |= kind == "http";
                let (host, port) = rest.rsplit_once(':').unwrap_or(("0", rest));
                let host = if host == "0" { "0.0.0.0" } else { host };
                self.listen.push(quoted(&format!("{host}:{port}")));
                ["tcp", "http"].contains(&kind)
            }
            Becomes::Backend => {
                let mut parts = value.split(':');
                let (Some(host), Some(port)) = (parts.next(), parts.next()) else {
                    return false;
                };
                let mut table = format!("address = {}", quoted(&format!("{host}:{port}")));
                for (key, part) in ["connections_max", "weight"].into_iter().zip(parts) {
                    if part.parse::<u32>().is_ok_and(|number| number > 0) {
                        let _ = write!(table, ", {key} = {part}");
                    }
                }
                self.backends.push(table);
                true
            }
            Becomes::Dispatch => {
                let mode = MODES
                    .iter()
                    .find(|(long, short, _)| value == *long || value == *short);
                self.lines
                    .extend(mode.map(|(_, _, mode)| ("dispatch", quoted(mode))));
                mode.is_some()
            }
            Becomes::Allow | Becomes::Deny => {
                let wild = value.trim_end_matches(".255");
                let more = value.len() - wild.len();
                let prefix = format!("{wild}{}", ".*".repeat(more / ".255".len()));
                match becomes {
                    Becomes::Allow => self.allow.push(quoted(&prefix)),
                    _ => self.deny.push(quoted(&prefix)),
                }
                true
            }
            Becomes::Number(key) => {
                self.lines.push((key, value.to_owned()));
                value.parse::<u32>().is_ok()
            }
            Becomes::Seconds(key) => {
                let first = value.split(':').next().unwrap_or_default();
                if first.parse::<u32>().is_err() {
                    return false;
                }
                self.lines.push((key, format!("\"{first}s\"")));
                true
            }
            Becomes::Header => {
                let Some((name, value)) = value.split_once(':') else {
                    return false;
                };
                self.header(name.trim(), value.trim());
                true
            }
            Becomes::ForwardedFor => {
                self.header("X-Forwarded-For", "%r");
                true
            }
            Becomes::Sticky => {
                self.is_sticky = true;
                true
            }
            Becomes::Nothing => true,
            Becomes::Different(_) => false,
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        self.headers.push(format!(
            "{{ towards = \"server\", how = \"append\", name = {}, value = {} }}",
            quoted(name),
            quoted(value)
        ));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        line("[services.xr]");
        line(&format!("listen = [{}]", self.listen.join(", ")));
        if self.is_http {
            line("kind = \"http\"");
        }
        // The default of `xr`.
        if !self.lines.iter().any(|(key, _)| *key == "dispatch") {
            line("dispatch = \"by-connections\"");
        }
        for (key, value) in &self.lines {
            line(&format!("{key} = {value}"));
        }
        for (key, prefixes) in [("access.allow", &self.allow), ("access.deny", &self.deny)] {
            if !prefixes.is_empty() {
                line(&format!("{key} = [{}]", prefixes.join(", ")));
            }
        }
        if !self.headers.is_empty() {
            line("headers = [");
            self.headers
                .iter()
                .for_each(|one| line(&format!("    {one},")));
            line("]");
        }
        line("\n[services.xr.backends]");
        for (number, table) in (1..).zip(&self.backends) {
            let cookie = match self.is_sticky {
                true => format!(
                    ", sticky_cookie = {{ name = \"XRTarget\", value = \"{number}\", set = true }}"
                ),
                false => String::new(),
            };
            line(&format!("back{number} = {{ {table}{cookie} }}"));
        }
        text
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => quoted.extend(['\\', one]),
            one if one.is_control() => quoted.push(' '),
            one => quoted.push(one),
        }
    }
    quoted.push('"');
    quoted
}
