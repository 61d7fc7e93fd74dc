//! HAR files, as browsers save them: what was recorded becomes a set of requests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use readings::requests::{AnswerSpec, RequestSet, RequestSpec, Template, Users};

use crate::error::RequestsError;
use crate::feed::read_text;
use crate::file::is_method;
use crate::log::Time;
use crate::placeholder::{Names, Part, braces_escaped, parse};

mod entry;
mod secrets;
#[cfg(test)]
mod tests;

use entry::{Entry, Recording};

/// Most bytes of a file.
const LARGEST_BYTES: u64 = 256 * 1024 * 1024;
/// Longest pause between two requests: a recording may have gone on unattended.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// What is taken from a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarOptions {
    /// Whether cookies, authorization and secrets in queries are kept.
    pub keeps_secrets: bool,
    /// Whether requests have their pauses, as steps of a user's session.
    pub keeps_pauses: bool,
}

/// A recording that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    pub set: RequestSet,
    /// The server that the requests went to: scheme, host and port.
    pub origin: String,
    /// Requests that are left out: why, and how many.
    pub left_out: Vec<(String, u64)>,
    /// Secrets that are left out: what, and how many.
    pub secrets: Vec<(String, u64)>,
    /// Requests whose bodies have what may be secrets, such as passwords: bodies stay as they are.
    pub secret_bodies: u64,
}

impl Recorded {
    /// What a user should know of it, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let count = self.set.requests.len();
        let requests = if count == 1 { "request" } else { "requests" };
        let mut notes = vec![format!("{count} {requests} to {}", self.origin)];
        let list = |all: &[(String, u64)]| {
            let all = all.iter().map(|(what, count)| format!("{count} {what}"));
            all.collect::<Vec<String>>().join(", ")
        };
        if !self.left_out.is_empty() {
            notes.push(format!("requests left out: {}", list(&self.left_out)));
        }
        if !self.secrets.is_empty() {
            let secrets = list(&self.secrets);
            notes.push(format!(
                "secrets left out: {secrets}; --har-secrets keeps them"
            ));
        }
        if self.secret_bodies > 0 {
            notes.push(format!(
                "bodies stay as they are; {} may hold passwords or tokens",
                self.secret_bodies
            ));
        }
        notes
    }
}

/// Reads a recording from a file.
///
/// # Errors
/// When it cannot be read, or has no request.
pub fn open(path: &Path, options: &HarOptions) -> Result<Recorded, RequestsError> {
    let text = read_text(path, LARGEST_BYTES)?;
    read(&text, options).map_err(|why| RequestsError::Unusable {
        path: path.to_owned(),
        why,
    })
}

/// Reads a recording.
///
/// # Errors
/// Why it has no request.
pub fn read(text: &str, options: &HarOptions) -> Result<Recorded, String> {
    let text = text.trim_start_matches('\u{feff}');
    let recording: Recording = serde_json::from_str(text).map_err(|error| {
        format!("this is not a HAR file: {error}; a browser saves one from its network tools")
    })?;
    let mut entries = recording.log.entries;
    // Some programs write them as they end.
    let start = |entry: &Entry| Time::of_iso(&entry.started).map_or(i64::MIN, |time| time.ns);
    entries.sort_by_key(start);
    let Some(origin) = main_origin(&entries) else {
        return Err("it has no request to an http or https URL".to_owned());
    };
    let mut left_out = Counts::default();
    let mut secrets = Counts::default();
    let mut secret_bodies = 0;
    let mut requests: Vec<RequestSpec> = Vec::new();
    let mut before: Option<i64> = None;
    for entry in &entries {
        let path = match entry.request.origin_and_path() {
            Some((own, path)) if own == origin => path,
            Some(_) => {
                left_out.add("to other servers");
                continue;
            }
            None => {
                left_out.add("without an http URL");
                continue;
            }
        };
        let method = entry.request.method.to_ascii_uppercase();
        if !is_method(&method) {
            left_out.add("with a method that is not sent");
            continue;
        }
        let Ok(body) = entry.request.body() else {
            left_out.add("with a body that is not in the file");
            continue;
        };
        let path = match options.keeps_secrets {
            true => path.into_owned(),
            false => secrets::without(&path, &mut secrets),
        };
        if body.as_deref().is_some_and(secrets::has_secret) {
            secret_bodies += 1;
        }
        let name = unused_name(&requests, format!("{method} {path}"));
        let started = start(entry);
        requests.push(RequestSpec {
            name,
            path: template(&path, Part::Path),
            fields: fields(entry, options, &mut secrets),
            body: body.map(Template::fixed),
            expect: AnswerSpec {
                status: expected(entry.response.status),
                ..AnswerSpec::default()
            },
            pause: match before.filter(|_| options.keeps_pauses) {
                None => Duration::ZERO,
                Some(before) => pause(started.saturating_sub(before)),
            },
            method,
            ..RequestSpec::default()
        });
        // A person pauses after the page has come.
        let took_ns = (entry.took_ms.max(0.0) * 1e6) as i64;
        before = Some(
            started
                .saturating_add(took_ns)
                .max(before.unwrap_or(i64::MIN)),
        );
    }
    match requests.is_empty() {
        true => Err(format!(
            "no request to {origin} can be sent ({})",
            left_out.text()
        )),
        false => Ok(Recorded {
            set: RequestSet {
                requests,
                in_order: true,
                users: options.keeps_pauses.then(Users::default),
                ..RequestSet::default()
            },
            origin,
            left_out: left_out.into_list(),
            secret_bodies,
            secrets: secrets.into_list(),
        }),
    }
}

/// The server with the most requests; of several the one asked first.
fn main_origin(entries: &[Entry]) -> Option<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for entry in entries {
        let Some((origin, _)) = entry.request.origin_and_path() else {
            continue;
        };
        match counts.iter_mut().find(|(one, _)| *one == origin) {
            Some((_, count)) => *count += 1,
            None => counts.push((origin, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    let found = counts.into_iter().find(|(_, count)| *count == most);
    found.map(|(origin, _)| origin)
}

/// A text without placeholders.
fn template(text: &str, part: Part) -> Template {
    let parsed = parse(&braces_escaped(text), Names::default(), part);
    // No placeholder is left in it.
    parsed.unwrap_or_else(|_| Template::fixed(text))
}

/// The header fields that a server may answer by.
fn fields(entry: &Entry, options: &HarOptions, secrets: &mut Counts) -> Vec<(String, Template)> {
    let mut fields = Vec::new();
    for field in &entry.request.headers {
        match secrets::kind_of(&field.name) {
            secrets::Kind::Left => {}
            secrets::Kind::Secret(what) if !options.keeps_secrets => secrets.add(what),
            secrets::Kind::Secret(_) | secrets::Kind::Kept => {
                if !field.value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
                    let is_referer = field.name.eq_ignore_ascii_case("referer");
                    let value = match is_referer && !options.keeps_secrets {
                        true => secrets::without(&field.value, secrets).into(),
                        false => Cow::from(field.value.as_str()),
                    };
                    fields.push((field.name.clone(), Template::fixed(&*value)));
                }
            }
        }
    }
    for (_, value) in &mut fields {
        value
            .0
            .retain(|piece| *piece != readings::requests::Piece::Text(Vec::new()));
    }
    let body_type = entry.request.body_type();
    let has_type = |(name, _): &(String, Template)| name.eq_ignore_ascii_case("content-type");
    if let Some(body_type) = body_type.filter(|_| !fields.iter().any(has_type)) {
        fields.push(("Content-Type".to_owned(), Template::fixed(body_type)));
    }
    fields
}

/// What a server without the browser's cache answers: 304 needs that cache.
fn expected(status: f64) -> Option<u16> {
    match status as u16 {
        304 => None,
        status @ 200..=599 => Some(status),
        _ => None,
    }
}

fn pause(ns: i64) -> Duration {
    // Recordings have milliseconds.
    let ms = u64::try_from(ns).unwrap_or_default() / 1_000_000;
    Duration::from_millis(ms).min(PAUSE_MAX)
}

/// A name that no request has yet.
fn unused_name(requests: &[RequestSpec], name: String) -> String {
    let is_used = |name: &str| requests.iter().any(|one| one.name == name);
    if !is_used(&name) {
        return name;
    }
    let mut numbers = 2..;
    numbers
        .find_map(|number| Some(format!("{name} ({number})")).filter(|name| !is_used(name)))
        .unwrap_or(name)
}

/// How often something was found.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn text(&self) -> String {
        let all = self.0.iter().map(|(what, count)| format!("{count} {what}"));
        all.collect::<Vec<String>>().join(", ")
    }

    fn into_list(self) -> Vec<(String, u64)> {
        self.0.into_iter().collect()
    }
}
