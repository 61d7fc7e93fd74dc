//! Requests as the text of a file.

use readings::requests::{CaptureFrom, RequestSet, RequestSpec};
use serde_json::Value;

use crate::placeholder::{Names, written};

/// Why requests have no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// Rows of data, which are in files of their own.
    #[error("a file of requests names the files of its feeds, and these are not known here")]
    Feeds,
    /// A body that is no text.
    #[error("the body of `{0}` is not UTF-8 text")]
    Body(String),
    /// A path or header that is no text, or `null` as an expected value.
    #[error("`{0}` has a value that a file of requests cannot have")]
    Value(String),
}

/// The text of a file that is read as these requests.
///
/// # Errors
/// When they have feeds, or bytes that are no text.
pub fn write(set: &RequestSet) -> Result<String, Unwritable> {
    if !set.feeds.is_empty() {
        return Err(Unwritable::Feeds);
    }
    let mut out = String::new();
    match set.users {
        Some(users) => {
            out.push_str("[users]\n");
            if users.keeps_cookies {
                out.push_str("cookies = true\n");
            }
            out.push('\n');
        }
        None if set.in_order => out.push_str("order = \"in_turn\"\n\n"),
        None => {}
    }
    let names = Names {
        feeds: &[],
        captured: &set.captured,
        known: set.captured.len(),
    };
    for (number, request) in set.requests.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        write_request(request, names, &mut out)?;
    }
    Ok(out)
}

fn write_request(
    request: &RequestSpec,
    names: Names<'_>,
    out: &mut String,
) -> Result<(), Unwritable> {
    let wrong = || Unwritable::Value(request.name.clone());
    let mut line = |key: &str, value: String| out.push_str(&format!("{key} = {value}\n"));
    line("[[request]]\nname", text(&request.name));
    if request.is_once {
        line("first_round", "true".to_owned());
    }
    if request.method != "GET" {
        line("method", text(&request.method));
    }
    let path = written(&request.path, names).ok_or_else(wrong)?;
    line("path", text(&path));
    if !request.fields.is_empty() {
        let fields = request.fields.iter().map(|(name, value)| {
            let value = written(value, names).ok_or_else(wrong)?;
            Ok(format!("{} = {}", key(name), text(&value)))
        });
        let fields = fields.collect::<Result<Vec<String>, Unwritable>>()?;
        line("headers", table(&fields));
    }
    if let Some(body) = &request.body {
        let body = written(body, names).ok_or_else(|| Unwritable::Body(request.name.clone()))?;
        line("body", text(&body));
    }
    let expect = expect(request)?;
    if !expect.is_empty() {
        line("expect", table(&expect));
    }
    if !request.captures.is_empty() {
        let captures = request.captures.iter().map(|capture| {
            let name = names.captured.get(capture.name).ok_or_else(wrong)?;
            let from = match &capture.from {
                CaptureFrom::Json(pointer) => format!("json = {}", text(pointer)),
                CaptureFrom::Field(name) => format!("header = {}", text(name)),
                CaptureFrom::Between { before, after } => {
                    format!("between = [{}, {}]", text(before), text(after))
                }
            };
            Ok(format!("{} = {{ {from} }}", key(name)))
        });
        let captures = captures.collect::<Result<Vec<String>, Unwritable>>()?;
        line("capture", table(&captures));
    }
    if !request.pause.is_zero() {
        line("pause", text(&config::units::duration_text(request.pause)));
    }
    if request.weight != 1 {
        line("weight", request.weight.to_string());
    }
    Ok(())
}

fn expect(request: &RequestSpec) -> Result<Vec<String>, Unwritable> {
    let spec = &request.expect;
    let mut all = Vec::new();
    all.extend(spec.status.map(|status| format!("status = {status}")));
    let contains = spec.contains.as_deref();
    all.extend(contains.map(|wanted| format!("contains = {}", text(wanted))));
    all.extend(spec.length.map(|length| format!("length = {length}")));
    let sha256 = spec.sha256.as_deref();
    all.extend(sha256.map(|sum| format!("sha256 = {}", text(sum))));
    if !spec.json.is_empty() {
        let pairs = spec.json.iter().map(|(pointer, value)| {
            let wrong = || Unwritable::Value(request.name.clone());
            let value = json(value).ok_or_else(wrong)?;
            Ok(format!("{} = {value}", key(pointer)))
        });
        let pairs = pairs.collect::<Result<Vec<String>, Unwritable>>()?;
        all.push(format!("json = {}", table(&pairs)));
    }
    if !spec.fields.is_empty() {
        let fields = spec.fields.iter();
        let fields: Vec<String> = fields
            .map(|(name, value)| format!("{} = {}", key(name), text(value)))
            .collect();
        all.push(format!("headers = {}", table(&fields)));
    }
    Ok(all)
}

fn table(entries: &[String]) -> String {
    format!("{{ {} }}", entries.join(", "))
}

/// A value in TOML, which has no `null`.
fn json(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(value) => text(value),
        Value::Array(all) => {
            let all = all.iter().map(json).collect::<Option<Vec<String>>>()?;
            format!("[{}]", all.join(", "))
        }
        Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Object(entries) => {
            let pair = |(name, value): (&String, &Value)| {
                Some(format!("{} = {}", key(name), json(value)?))
            };
            table(&entries.iter().map(pair).collect::<Option<Vec<String>>>()?)
        }
    })
}

fn key(name: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => text(name),
    }
}

/// A string; with many quotes in it, as in JSON, one without escapes.
fn text(text: &str) -> String {
    let is_literal = text.contains(['"', '\\']) && !text.contains('\'');
    if is_literal && !text.chars().any(char::is_control) {
        return format!("'{text}'");
    }
    // JSON's escapes are TOML's, which wants one more character escaped.
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
