//! The common format of nginx and Apache, and what begins like it.

use std::borrow::Cow;

use super::line::{Entry, Unusable, byte_of, push_byte, request_line};
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
        target: unescaped(target),
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

/// `\xHH`, `\"` and `\\` as the characters that they stand for.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'\\', [b'x', high, low, after @ ..]) => match byte_of(*high, *low) {
                Some(code) => {
                    push_byte(&mut out, code);
                    rest = after;
                }
                None => out.push(byte),
            },
            (b'\\', [next @ (b'"' | b'\\'), after @ ..]) => {
                out.push(*next);
                rest = after;
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}
