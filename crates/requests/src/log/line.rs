//! What a line of a log says.

use std::borrow::Cow;

use super::time::Time;
use super::{clf, haproxy, json};

/// A format of access logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A JSON object per line, with the names of nginx's variables or as Caddy writes it.
    Json,
    /// HAProxy's HTTP log, with or without what syslog puts before it.
    HaProxy,
    /// The common format, and what begins like it, such as the combined one.
    Common,
}

impl LogFormat {
    pub const ALL: [LogFormat; 3] = [LogFormat::Json, LogFormat::HaProxy, LogFormat::Common];

    /// Reads a line.
    ///
    /// # Errors
    /// Why it cannot be replayed.
    pub fn read(self, line: &str) -> Result<Entry<'_>, Unusable> {
        match self {
            LogFormat::Json => json::read(line),
            LogFormat::HaProxy => haproxy::read(line),
            LogFormat::Common => clf::read(line),
        }
    }
}

/// A request in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'t> {
    /// The time of the line.
    pub time: Time,
    /// How long before this time the request began, µs; 0 where that is not known.
    pub before_us: u32,
    pub method: Cow<'t, str>,
    /// As in the request line: mostly path and query.
    pub target: Cow<'t, str>,
    pub status: Option<u16>,
}

/// Why a line is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unusable {
    /// It does not have the log's format.
    Format,
    /// It ends too early.
    Cut,
    /// It has no request: a connection that was closed, or something that is not HTTP.
    NoRequest,
}

/// Method and target of a request line.
///
/// # Errors
/// When it is none.
pub(super) fn request_line(text: &str) -> Result<(&str, &str), Unusable> {
    let mut words = text.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(Unusable::NoRequest);
    };
    let is_method =
        !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    let is_http = words
        .next()
        .is_none_or(|version| version.starts_with("HTTP/"));
    match is_method && is_http && !target.is_empty() && words.next().is_none() {
        true => Ok((method, target)),
        false => Err(Unusable::NoRequest),
    }
}

/// A target without a log's escapes. `escape` reads what follows a `mark`: the byte that it stands for,
/// and the rest.
pub(super) fn unescaped(
    text: &str,
    mark: u8,
    escape: impl Fn(&[u8]) -> Option<(u8, &[u8])>,
) -> Cow<'_, str> {
    if !text.as_bytes().contains(&mark) {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match escape(after).filter(|_| byte == mark) {
            Some((escaped, after)) => {
                push_byte(&mut out, escaped);
                rest = after;
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

/// Appends a byte that a log has escaped; one that stands in no target is percent-encoded.
fn push_byte(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'!'..=b'~' => out.push(byte),
        _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
    }
}

/// The byte of two hexadecimal digits.
pub(super) fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Seconds as microseconds, 0 for what is no time.
pub(super) fn micros(seconds: f64) -> u32 {
    // Beyond 71 minutes it stays there.
    (seconds * 1e6).clamp(0.0, f64::from(u32::MAX)) as u32
}
