//! HAProxy's HTTP log.

use super::clf::quoted;
use super::line::{Entry, Unusable, byte_of, request_line, unescaped};
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
        target: unescaped(target, b'#', escape),
        status: status.parse().ok(),
    })
}

/// What `#HH` stands for.
fn escape(after: &[u8]) -> Option<(u8, &[u8])> {
    match after {
        [high, low, rest @ ..] => Some((byte_of(*high, *low)?, rest)),
        _ => None,
    }
}
