//! A JSON object per line.

use std::ops::Range;

use config::units::shown;
use serde_json::{Map, Value};

use super::{FAULTS_MAX, Rows};
use crate::fault::Fault;

pub(super) fn parse(text: &str) -> Result<Rows, Vec<Fault>> {
    let mut rows = Rows::default();
    let mut faults = Vec::new();
    for (at, line) in json_lines(text) {
        if faults.len() == FAULTS_MAX {
            break;
        }
        let object = match object(line, &at) {
            Ok(object) => object,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        if rows.columns.is_empty() {
            rows.columns = object.keys().cloned().collect();
            if rows.columns.is_empty() {
                faults.push(Fault::new(at, "an object without keys", "expected columns"));
                break;
            }
        }
        match row(&rows.columns, &object, &at) {
            Ok(row) => rows.rows.push(row),
            Err(fault) => faults.push(fault),
        }
    }
    if rows.rows.is_empty() && faults.is_empty() {
        faults.push(
            Fault::new(0..0, "the file is empty", "expected an object")
                .help("each line is an object, such as: {\"id\": 1, \"name\": \"A\"}"),
        );
    }
    match faults.is_empty() {
        true => Ok(rows),
        false => Err(faults),
    }
}

/// The lines that are not empty, each with its place.
pub(crate) fn json_lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let from = match at {
            0 => line.trim_start_matches('\u{feff}'),
            _ => line,
        };
        let content = from.trim();
        let before = line.len() - from.trim_start().len();
        let at = at + before..at + before + content.len();
        (!content.is_empty()).then_some((at, content))
    })
}

/// The object of a line.
pub(crate) fn object(line: &str, at: &Range<usize>) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_str(line) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Fault::new(
            at.clone(),
            "a line that is not a JSON object",
            "expected {\"key\": \"value\"}",
        )),
        Err(error) => {
            let within = line.char_indices().map(|(byte, _)| byte);
            let column = error.column().saturating_sub(1);
            let byte = within.take_while(|byte| *byte <= column).last();
            let start = at.start + byte.unwrap_or_default();
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            let end = start + text_width(line, start - at.start);
            Err(Fault::new(
                start..end,
                format!("not JSON: {said}"),
                "expected one object in this line",
            ))
        }
    }
}

/// Bytes of the character at a place.
fn text_width(line: &str, at: usize) -> usize {
    let next = line.get(at..).and_then(|rest| rest.chars().next());
    next.map_or(0, char::len_utf8)
}

fn row(
    columns: &[String],
    object: &Map<String, Value>,
    at: &Range<usize>,
) -> Result<Vec<String>, Fault> {
    if let Some(more) = object.keys().find(|key| !columns.contains(key)) {
        let message = format!("key `{}` is not in the first line", shown(more));
        return Err(Fault::new(
            at.clone(),
            message,
            "every line has the same keys",
        ));
    }
    let value = |column: &String| match object.get(column) {
        Some(value) => Ok(text_of(value)),
        None => {
            let message = format!("key `{}` is missing", shown(column));
            let fault = Fault::new(at.clone(), message, "every line has the same keys");
            Err(fault.help("null is an empty value"))
        }
    };
    columns.iter().map(value).collect()
}

/// A string without quotes, nothing for null, and anything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
