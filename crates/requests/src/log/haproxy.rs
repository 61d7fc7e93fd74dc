//! HAProxy's HTTP log.

use std::borrow::Cow;

use super::clf::quoted;
use super::line::{Entry, Unusable, byte_of, push_byte, request_line};
use super::time::Time;

/// `CLIENT:PORT [27/Nov/2026:10:00:00.123] frontend backend/server TR/Tw/Tc/Tr/Ta STATUS BYTES … "GET /
/// HTTP/1.1"`, behind anything of syslog's. The time is that of the request's first byte.
pub(super) fn read(line: &str) -> Result<Entry<'_>, Unusable> {
    // A name that syslog puts before it may have brackets too, as in `haproxy[12]:`.
    let found = line.match_indices('[').find_map(|(at, _)| {
        let (time, behind) = line[at + 1..].split_once(']')?;
        Some((Time::of_haproxy(time)?, behind))
    });
    let (time, rest) = found.ok_or(Unusable::Format)?;
    let mut words = rest.split_whitespace();
    let (_frontend, _server) = (words.next(), words.next());
    let timers = words.next().ok_or(Unusable::Cut)?;
    if !timers.contains('/') {
        return Err(Unusable::Format);
    }
    let status = words.next().ok_or(Unusable::Cut)?;
    let (_, request) = rest.split_once('"').ok_or(Unusable::Cut)?;
    // Long lines are cut, mostly within the path.
    let (request, _) = quoted(request).ok_or(Unusable::Cut)?;
    let (method, target) = request_line(request)?;
    Ok(Entry {
        time,
        before_us: 0,
        method: method.into(),
        target: unescaped(target),
        status: status.parse().ok(),
    })
}

/// `#HH` as the byte that it stands for.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('#') {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match after {
            [high, low, after @ ..] if byte == b'#' => match byte_of(*high, *low) {
                Some(code) => {
                    push_byte(&mut out, code);
                    rest = after;
                }
                None => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}
