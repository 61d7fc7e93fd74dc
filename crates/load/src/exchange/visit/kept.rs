//! What is kept of an answer, and what is looked for in it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::{self, Formatter};

use memchr::memmem;
use readings::requests::CaptureFrom;
use readings::{Wrong, WrongKind};
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::AnswerAge;
use crate::http::session::Fields;
use crate::job::target::Target;
use crate::job::traffic::{Step, Users};

/// The most of a body that is kept.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The most of header fields that is kept, names and values.
const FIELD_BYTES_MAX: usize = 256 << 10;
/// A captured value that is longer is not kept.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// So much of a value stands in a message.
const SHOWN_CHARS: usize = 80;

/// The parts of an answer that its step looks into.
#[derive(Debug, Default)]
pub(super) struct Kept {
    keeps_fields: bool,
    keeps_body: bool,
    pub(super) fields: Fields,
    field_bytes: usize,
    body: Vec<u8>,
    is_too_long: bool,
    /// `None` where it is not read.
    pub(super) age: Option<AnswerAge>,
}

impl Kept {
    pub(super) fn of(target: &Target) -> Self {
        Self {
            age: target.traffic.reads_ages().then(AnswerAge::default),
            ..Self::default()
        }
    }

    /// The next answer is to the request of this step.
    pub(super) fn begin(&mut self, step: &Step, keeps_cookies: bool) {
        let of_field = |from: &CaptureFrom| matches!(from, CaptureFrom::Field(_));
        let mut from = step.captures.iter().map(|one| &one.from);
        self.keeps_fields = keeps_cookies || !step.fields.is_empty() || from.clone().any(of_field);
        self.keeps_body = !step.json.is_empty() || from.any(|from| !of_field(from));
    }

    /// Nothing has come yet.
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.body.clear();
        (self.field_bytes, self.is_too_long) = (0, false);
        self.age = self.age.map(|_| AnswerAge::default());
    }

    pub(super) fn wants_fields(&self) -> bool {
        self.keeps_fields || self.age.is_some()
    }

    pub(super) fn take_field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(age) = &mut self.age {
            age.take_field(name, value);
        }
        let bytes = name.len() + value.len();
        if self.keeps_fields && self.field_bytes + bytes <= FIELD_BYTES_MAX {
            self.field_bytes += bytes;
            self.fields.push(&name.to_ascii_lowercase(), value);
        }
    }

    #[inline]
    pub(super) fn take_content(&mut self, bytes: &[u8]) {
        if !self.keeps_body || self.is_too_long {
            return;
        }
        self.is_too_long = self.body.len() + bytes.len() > BODY_BYTES_MAX;
        match self.is_too_long {
            true => self.body.clear(),
            false => self.body.extend_from_slice(bytes),
        }
    }

    /// Looks for what a step expects, and captures what its user keeps.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn look(
        &self,
        users: &Users,
        step: &Step,
        captured: &mut Vec<Vec<u8>>,
    ) -> Result<(), Wrong> {
        let parsed = OnceCell::new();
        let json = || parsed.get_or_init(|| self.json()).as_ref();
        for (name, wanted) in &step.fields {
            let expected = || format!("`{name}: {wanted}` in the head");
            match self.field(name) {
                Some(value) if value == wanted.as_bytes() => {}
                Some(value) => {
                    let found = format!("`{name}: {}`", shown(value));
                    return Err(wrong(expected(), found));
                }
                None => return Err(wrong(expected(), "a head without that field")),
            }
        }
        for (pointer, wanted) in &step.json {
            let expected = || format!("{wanted} at `{pointer}` in the JSON body");
            let body = json().map_err(|why| wrong(expected(), why.clone()))?;
            match body.pointer(pointer) {
                Some(value) if is_same(value, wanted) => {}
                Some(value) => {
                    let text = value.to_string();
                    return Err(wrong(expected(), shown(text.as_bytes())));
                }
                None => return Err(wrong(expected(), "nothing there")),
            }
        }
        captured.resize(users.captured.len(), Vec::new());
        for capture in &step.captures {
            let value = match &capture.from {
                CaptureFrom::Field(name) => match self.field(name) {
                    Some(value) => Ok(value.to_vec()),
                    None => Err("a head without that field".to_owned()),
                },
                CaptureFrom::Json(pointer) => match self.body() {
                    Ok(body) => value_at(body, pointer),
                    Err(why) => Err(why),
                },
                CaptureFrom::Between { before, after } => self.between(before, after),
            };
            let kept = value.and_then(usable);
            match (kept, captured.get_mut(capture.name)) {
                (Ok(value), Some(place)) => *place = value,
                (Ok(_), None) => {}
                (Err(found), _) => {
                    let name = users.captured.get(capture.name);
                    let name = name.map_or("", String::as_str);
                    let place = place(&capture.from);
                    return Err(wrong(format!("a value for `{name}` {place}"), found));
                }
            }
        }
        Ok(())
    }

    /// The last field of this name: those of an interim answer come before.
    fn field(&self, name: &str) -> Option<&[u8]> {
        let own = |(field, _): &(&[u8], &[u8])| *field == name.as_bytes();
        self.fields
            .iter()
            .filter(own)
            .last()
            .map(|(_, value)| value)
    }

    fn body(&self) -> Result<&[u8], String> {
        match self.is_too_long {
            false => Ok(&self.body),
            true => Err("a body of more than 1 MiB, which is not kept".to_owned()),
        }
    }

    fn json(&self) -> Result<Value, String> {
        let body = self.body()?;
        serde_json::from_slice(body).map_err(|why| format!("a body that is not JSON: {why}"))
    }

    fn between(&self, before: &str, after: &str) -> Result<Vec<u8>, String> {
        let body = self.body()?;
        let from = memmem::find(body, before.as_bytes())
            .ok_or_else(|| format!("a body without `{before}`"))?;
        let rest = &body[from + before.len()..];
        let end = memmem::find(rest, after.as_bytes())
            .ok_or_else(|| format!("a body without `{after}` behind `{before}`"))?;
        Ok(rest[..end].to_vec())
    }
}

fn wrong(expected: String, found: impl Into<String>) -> Wrong {
    Wrong {
        kind: WrongKind::Content,
        expected,
        found: found.into(),
    }
}

/// A value as text, cut if it is long.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

/// Where a value is captured.
fn place(from: &CaptureFrom) -> String {
    match from {
        CaptureFrom::Json(pointer) => format!("at `{pointer}` in the JSON body"),
        CaptureFrom::Field(name) => format!("in the header field `{name}`"),
        CaptureFrom::Between { before, after } => format!("between `{before}` and `{after}`"),
    }
}

/// A string without its quotes, anything else as the body has it, without white space: numbers keep
/// their digits.
fn value_at(body: &[u8], pointer: &str) -> Result<Vec<u8>, String> {
    let not_json = |why| format!("a body that is not JSON: {why}");
    let mut value: &RawValue = serde_json::from_slice(body).map_err(not_json)?;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        value = member(value, &name).ok_or("nothing there")?;
    }
    match value.get() {
        "null" => Err("null".to_owned()),
        text if text.starts_with('"') => {
            let text: String = serde_json::from_str(text).map_err(not_json)?;
            Ok(text.into_bytes())
        }
        text => Ok(compact(text)),
    }
}

/// The value of this name, or of this number, in another one.
fn member<'b>(of: &'b RawValue, name: &str) -> Option<&'b RawValue> {
    if of.get().starts_with('{') {
        let mut json = serde_json::Deserializer::from_str(of.get());
        return json.deserialize_map(Named(name)).ok()?;
    }
    let is_number = name == "0" || !name.starts_with(['0', '+']);
    let all: Vec<&RawValue> = serde_json::from_str(of.get()).ok()?;
    let number: usize = name.parse().ok().filter(|_| is_number)?;
    all.get(number).copied()
}

/// Finds the last value of this name in an object. Other names and values are not decoded: they may
/// hold what is no text, such as one half of a surrogate pair.
struct Named<'n>(&'n str);

impl<'b> Visitor<'b> for Named<'_> {
    type Value = Option<&'b RawValue>;

    fn expecting(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<M: MapAccess<'b>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let is_it =
                serde_json::from_str(name.get()).is_ok_and(|name: Cow<'_, str>| name == self.0);
            if is_it {
                found = Some(value);
            }
        }
        Ok(found)
    }
}

/// JSON without the white space between its parts.
fn compact(json: &str) -> Vec<u8> {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |byte: &u8| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = is_text && *byte == b'\\' && !is_escaped;
        is_text ^= is_end;
        is_text || !byte.is_ascii_whitespace()
    };
    json.bytes().filter(is_kept).collect()
}

/// A value that requests can carry: a line break in a head would end it.
fn usable(value: Vec<u8>) -> Result<Vec<u8>, String> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!(
            "{} bytes, of which at most 64 KiB are kept",
            value.len()
        ));
    }
    match value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        true => Err("a value with a line break, which no request can carry".to_owned()),
        false => Ok(value),
    }
}

/// Numbers count by their value: `1` is `1.0`. Whole numbers are compared exactly.
fn is_same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| is_same(a, b));
            a.len() == b.len() && a.iter().all(is_in)
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use readings::requests::Capture;
    use serde_json::json;

    use super::*;

    fn users() -> Users {
        Users {
            captured: vec!["token".to_owned(), "id".to_owned()],
            ..Users::default()
        }
    }

    fn capturing(from: CaptureFrom) -> Step {
        Step {
            captures: vec![Capture { name: 1, from }],
            ..Step::default()
        }
    }

    /// What a step captures from an answer, or what is wrong: expected and found.
    fn looked(
        step: &Step,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<String>, (String, String)> {
        let mut kept = Kept::default();
        kept.begin(step, false);
        kept.clear();
        for (name, value) in fields {
            kept.take_field(name.as_bytes(), value.as_bytes());
        }
        body.chunks(1 << 16)
            .for_each(|piece| kept.take_content(piece));
        let mut captured = Vec::new();
        let found = kept.look(&users(), step, &mut captured);
        let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
        match found {
            Ok(()) => Ok(captured.into_iter().map(text).collect()),
            Err(wrong) => Err((wrong.expected, wrong.found)),
        }
    }

    #[test]
    fn values_are_captured_from_bodies_and_heads() {
        let json = CaptureFrom::Json("/auth/ids/1".to_owned());
        let body = br#"{"auth":{"ids":["x",{"a":[1, 2]}]}}"#;
        let found = looked(&capturing(json), &[], body);
        assert_eq!(found.unwrap(), ["", r#"{"a":[1,2]}"#]);
        let json = CaptureFrom::Json("/a~1b".to_owned());
        let found = looked(&capturing(json), &[], br#"{"a/b":"q\"uote"}"#);
        assert_eq!(found.unwrap(), ["", "q\"uote"]);
        for (body, kept) in [
            (
                "{\"n\": 12345678901234567890123}",
                "12345678901234567890123",
            ),
            ("{\"n\": 1.10}", "1.10"),
            ("{\"n\": -1e400 }", "-1e400"),
            (
                "{\"n\": [1.0,\n \" a \\\" b\\\\\", {\"z\": 0.10}]}",
                "[1.0,\" a \\\" b\\\\\",{\"z\":0.10}]",
            ),
            ("{\"n\": 1, \"n\": 2}", "2"),
            (r#"{"\ud800": "\udc00", "\u006e": 3, "\ud800": 4}"#, "3"),
        ] {
            let number = capturing(CaptureFrom::Json("/n".to_owned()));
            let found = looked(&number, &[], body.as_bytes());
            assert_eq!(found.unwrap(), ["", kept]);
        }
        let field = capturing(CaptureFrom::Field("location".to_owned()));
        let found = looked(&field, &[("Location", "/old"), ("LOCATION", "/new")], b"");
        assert_eq!(found.unwrap(), ["", "/new"]);
        let between = capturing(CaptureFrom::Between {
            before: "csrf\" value=\"".to_owned(),
            after: "\"".to_owned(),
        });
        let found = looked(&between, &[], br#"<input name="csrf" value="s3cret"/>"#);
        assert_eq!(found.unwrap(), ["", "s3cret"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let json = capturing(CaptureFrom::Json("/id".to_owned()));
        let expected = "a value for `id` at `/id` in the JSON body";
        let long = vec![b' '; BODY_BYTES_MAX + 1];
        for (body, found) in [
            (&b"{\"no\":1}"[..], "nothing there"),
            (b"{\"id\":null}", "null"),
            (b"<html>", "a body that is not JSON"),
            (b"", "a body that is not JSON"),
            (br#"{"id":"a\nb"}"#, "a value with a line break"),
            (&long, "a body of more than 1 MiB"),
        ] {
            let (said, why) = looked(&json, &[], body).unwrap_err();
            assert_eq!(said, expected);
            assert!(why.starts_with(found), "{why}");
        }
        let between = capturing(CaptureFrom::Between {
            before: "[".to_owned(),
            after: "]".to_owned(),
        });
        let (said, why) = looked(&between, &[], b"x[y").unwrap_err();
        assert_eq!(said, "a value for `id` between `[` and `]`");
        assert_eq!(why, "a body without `]` behind `[`");
        let field = capturing(CaptureFrom::Field("x-id".to_owned()));
        let (said, why) = looked(&field, &[("y", "z")], b"").unwrap_err();
        assert_eq!(said, "a value for `id` in the header field `x-id`");
        assert_eq!(why, "a head without that field");
    }

    #[test]
    fn numbers_are_the_same_by_their_value() {
        let of = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (a, b, expected) in [
            ("1", "1.0", true),
            ("9007199254740993", "9007199254740992", false),
            ("[1, {\"a\": 2}]", "[1.0, {\"a\": 2.0}]", true),
            ("[1, 2]", "[1]", false),
            ("{\"a\": 1}", "{\"b\": 1}", false),
            ("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}", true),
        ] {
            assert_eq!(is_same(&of(a), &of(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn json_and_fields_are_checked() {
        let step = Step {
            json: vec![
                ("/n".to_owned(), json!(1)),
                ("/s".to_owned(), json!({"a": [true]})),
            ],
            fields: vec![("x-cache".to_owned(), "HIT".to_owned())],
            ..Step::default()
        };
        let good = br#"{"n":1.0,"s":{"a":[true]}}"#;
        let hit = [("X-Cache", "HIT")];
        assert!(looked(&step, &hit, good).is_ok());
        let (expected, found) = looked(&step, &hit, br#"{"n":2}"#).unwrap_err();
        assert_eq!((&*expected, &*found), ("1 at `/n` in the JSON body", "2"));
        let (expected, found) = looked(&step, &[("x-cache", "MISS")], good).unwrap_err();
        assert_eq!(
            (&*expected, &*found),
            ("`x-cache: HIT` in the head", "`x-cache: MISS`")
        );
        let (_, found) = looked(&step, &[], good).unwrap_err();
        assert_eq!(found, "a head without that field");
    }
}
