//! Values in queries.

use std::fmt::Display;

/// The longest time of a query, ns.
const TIME_MAX_NS: f64 = 3600e9;

/// Passes each key of a query, with its value, to `take`, which returns false if it does not know the
/// key.
///
/// # Errors
/// What `take` returns, and keys that are unknown or have no value; `keys` says what is known.
pub(super) fn each_value(
    query: &str,
    keys: &str,
    mut take: impl FnMut(&str, &str) -> Result<bool, String>,
) -> Result<(), String> {
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(format!("{part}: expected KEY=VALUE with {keys}"));
        };
        // The only character of a value here that clients may escape.
        let value = value.replace("%40", "@");
        if !take(key, &value)? {
            return Err(format!("{key}: no such key; expected {keys}"));
        }
    }
    Ok(())
}

/// A number up to `most`.
///
/// # Errors
/// If it is none.
pub(super) fn number(key: &str, text: &str, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| wrong(key, text, format!("a whole number up to {most}")))
}

/// `1ms`, `250us` or `2s` in nanoseconds.
///
/// # Errors
/// If it is no time, or one of more than an hour.
pub(super) fn time_ns(key: &str, text: &str) -> Result<u64, String> {
    parse_time(text, TIME_MAX_NS)
        .ok_or_else(|| wrong(key, text, "a time up to an hour, such as 250us, 20ms or 1s"))
}

/// As [`time_ns`]; 0 is refused too.
pub(super) fn positive_time_ns(key: &str, text: &str) -> Result<u64, String> {
    match time_ns(key, text)? {
        0 => Err(wrong(key, text, "a time above 0")),
        ns => Ok(ns),
    }
}

pub(super) fn wrong(key: &str, text: &str, expected: impl Display) -> String {
    format!("{key}={text}: expected {expected}")
}

/// `1ms`, `250us` or `2s` in nanoseconds, up to `most_ns`.
pub(crate) fn parse_time(text: &str, most_ns: f64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = digits.parse::<f64>().ok()? * unit;
    (0.0..=most_ns).contains(&ns).then_some(ns as u64)
}
