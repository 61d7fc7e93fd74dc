//! The common format of nginx and Apache, and what begins like it.

use super::line::{Entry, Unusable, byte_of, request_line, unescaped};
use super::time::Time;

/// `ADDRESS - USER [27/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5`, and anything behind it.
pub(super) fn read(line: &str) -> Result<Entry<'_>, Unusable> {
    let (_, rest) = line.split_once('[').ok_or(Unusable::Format)?;
    let Some((time, rest)) = rest.split_once(']') else {
        // Cut in the time, if that is one.
        return Err(
            match rest.len() < 26 && rest.starts_with(|c: char| c.is_ascii_digit()) {
                true => Unusable::Cut,
                false => Unusable::Format,
            },
        );
    };
    let time = Time::of_clf(time).ok_or(Unusable::Format)?;
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Err(Unusable::Cut);
    }
    let rest = rest.strip_prefix('"').ok_or(Unusable::Format)?;
    let (request, rest) = quoted(rest).ok_or(Unusable::Cut)?;
    let status = rest.split_whitespace().next().ok_or(Unusable::Cut)?;
    let status = match status {
        "-" => None,
        digits => Some(digits.parse().map_err(|_| Unusable::Format)?),
    };
    let (method, target) = request_line(request)?;
    Ok(Entry {
        time,
        before_us: 0,
        method: method.into(),
        target: unescaped(target, b'\\', escape),
        status,
    })
}

/// The text up to the closing quote, and what follows it.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// What `\xHH`, `\"` and `\\` stand for.
fn escape(after: &[u8]) -> Option<(u8, &[u8])> {
    match after {
        [b'x', high, low, rest @ ..] => Some((byte_of(*high, *low)?, rest)),
        [next @ (b'"' | b'\\'), rest @ ..] => Some((*next, rest)),
        _ => None,
    }
}
