//! JSON lines: the names of nginx's variables, as logs are mostly configured, and Caddy's.

use serde_json::{Map, Value};

use super::line::{Entry, Unusable, micros, request_line};
use super::time::Time;

/// Names of the time at which a line was written.
const TIMES: [&str; 8] = [
    "msec",
    "ts",
    "time_iso8601",
    "time_local",
    "@timestamp",
    "timestamp",
    "time",
    "date",
];
/// Names of how long the request took until then, s.
const DURATIONS: [&str; 2] = ["request_time", "duration"];

pub(super) fn read(line: &str) -> Result<Entry<'_>, Unusable> {
    if !line.starts_with('{') {
        return Err(Unusable::Format);
    }
    let object: Map<String, Value> = match serde_json::from_str(line) {
        Ok(object) => object,
        Err(error) if error.is_eof() => return Err(Unusable::Cut),
        Err(_) => return Err(Unusable::Format),
    };
    let times = TIMES.iter().filter_map(|name| object.get(*name));
    let time = times.filter_map(time_of).next().ok_or(Unusable::Format)?;
    let took = DURATIONS.iter().filter_map(|name| object.get(*name));
    let before_us = took.filter_map(number).next().map_or(0, micros);
    let (method, target) = request(&object)?;
    Ok(Entry {
        time,
        before_us,
        method: method.into(),
        target: target.into(),
        status: object
            .get("status")
            .and_then(number)
            .map(|status| status as u16),
    })
}

/// Method and target, from a request line or from names of their own.
fn request(object: &Map<String, Value>) -> Result<(String, String), Unusable> {
    let text = |object: &Map<String, Value>, names: &[&str]| {
        let mut values = names.iter().filter_map(|name| object.get(*name)?.as_str());
        values.next().map(str::to_owned)
    };
    let (inner, line) = match object.get("request") {
        Some(Value::Object(inner)) => (inner, None),
        Some(Value::String(line)) => (object, Some(line)),
        _ => (object, None),
    };
    if let Some(line) = line.filter(|line| line.contains(' ')) {
        let (method, target) = request_line(line)?;
        return Ok((method.to_owned(), target.to_owned()));
    }
    let method = text(inner, &["request_method", "method"]);
    let target = text(inner, &["request_uri", "uri", "path", "url"]);
    let has_line = line.is_some();
    match (method, target) {
        (Some(method), Some(mut target)) => {
            if let Some(query) = text(inner, &["args", "query_string"])
                && !query.is_empty()
                && !target.contains('?')
            {
                target.push('?');
                target.push_str(&query);
            }
            // Only the checks of it.
            request_line(&format!("{method} {target}")).map(|_| ())?;
            Ok((method, target))
        }
        _ if has_line => Err(Unusable::NoRequest),
        _ => Err(Unusable::Format),
    }
}

/// nginx writes numbers as strings.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn time_of(value: &Value) -> Option<Time> {
    match value {
        Value::String(text) => Time::of_iso(text).or_else(|| Time::of_clf(text)),
        _ => None,
    }
    .or_else(|| number(value).and_then(Time::of_epoch))
}
