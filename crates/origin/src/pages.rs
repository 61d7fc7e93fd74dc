//! The origin's pages.

use net::http::{Request, may_have_content};

use crate::Always;
use crate::body::Body;
use crate::lasting::{Plan, Refusal, parse_time};
use crate::text::{noise, prose};

/// The body of `/`: 13 bytes.
pub(crate) const HELLO: &[u8] = b"Hello, world!";

/// Largest body that `/bytes/N` makes.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// Largest body that `/text/N` and `/noise/N` make: it is made at once.
const TEXT_MAX: usize = 1 << 20;

/// The longest delay, ns.
const DELAY_MAX_NS: f64 = 60e9;
/// Most iterations of `/burn/N`.
const BURN_MAX: u64 = 1_000_000_000;
/// Bytes after which the text of bodies repeats: 26 lines.
const PERIOD: usize = 26 * 64;
/// Bytes of the text that are sent at a time, so that long bodies take no memory of their own.
pub(crate) const BLOCK: usize = 600 * PERIOD;

/// What makes a body of a size.
type MakeBody = fn(usize) -> Vec<u8>;

/// Bodies for compressors: the path, and what makes the body. Both are text by their type, as servers
/// leave others alone.
const TEXTS: [(&str, MakeBody); 2] = [("/text/", prose), ("/noise/", noise)];

/// An answer to a request.
pub(crate) enum Page {
    /// Bytes that are the same for every such request, and cached.
    Fixed(Vec<u8>),
    /// A head, and so many bytes of the text that [`sized_body`] has.
    Long(Vec<u8>, usize),
    /// Bytes for this request alone.
    Own(Vec<u8>),
    /// What the thread that answers has to find out, or to do, for this request alone.
    Asked(Asked),
    /// The small body after a delay.
    Delayed(Delay),
    /// An exchange that lasts.
    Lasting(Plan),
}

/// What a request asks a thread for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The counters.
    Stats,
    /// The histogram of actual delays, as the origin recorded them.
    Delays,
    /// The histogram of how late messages were written.
    Lateness,
    /// To block for so many milliseconds, and then answer.
    Stall(u64),
}

/// The distribution of a delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delay {
    /// Constant, ns.
    Constant(u64),
    /// Exponential with this mean, ns.
    Exponential(f64),
    /// The first, or with this probability the second, ns.
    Bimodal(u64, u64, f64),
}

impl Delay {
    /// The path's words after `/delay/`: `constant/1ms`, `exponential/2ms`, `bimodal/1ms/50ms/2`
    /// with a percentage at the end.
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split('/').collect();
        match words.as_slice() {
            ["constant", time] => Some(Delay::Constant(delay_ns(time)?)),
            ["exponential", mean] => Some(Delay::Exponential(delay_ns(mean)? as f64)),
            ["bimodal", most, some, percent] => {
                let share = percent.parse::<f64>().ok()? / 100.0;
                let fits = (0.0..=1.0).contains(&share);
                fits.then_some(Delay::Bimodal(delay_ns(most)?, delay_ns(some)?, share))
            }
            _ => None,
        }
    }

    /// One delay, ns.
    pub(crate) fn draw(self, random: &mut fastrand::Rng) -> u64 {
        match self {
            Delay::Constant(ns) => ns,
            Delay::Exponential(mean) => (-(1.0 - random.f64()).ln() * mean) as u64,
            Delay::Bimodal(most, some, share) => {
                if random.f64() < share {
                    some
                } else {
                    most
                }
            }
        }
    }
}

fn delay_ns(text: &str) -> Option<u64> {
    parse_time(text, DELAY_MAX_NS)
}

/// Finds the page of a request at an origin that may answer every request alike.
pub(crate) fn page_with(always: Option<Always>, request: &Request) -> Page {
    let Some(always) = always.filter(|_| !request.target.starts_with("/.weigh/")) else {
        return page(request);
    };
    match always {
        Always {
            delay_ns: 0,
            status: Some(status),
        } => {
            let head_only = request.method == "HEAD";
            let persist = ConnectionReuse::of(request);
            Page::Fixed(answer(status, "text/plain", HELLO, head_only, persist))
        }
        Always {
            delay_ns: 0,
            status: None,
        } => page(request),
        // The status comes with the answer.
        Always { delay_ns, .. } => Page::Delayed(Delay::Constant(delay_ns)),
    }
}

/// Finds the page of a request.
fn page(request: &Request) -> Page {
    let head_only = request.method == "HEAD";
    let path = request
        .target
        .split_once('?')
        .map_or(request.target.as_str(), |(path, _)| path);
    let fixed = |status, kind, body: &[u8]| {
        Page::Fixed(answer(
            status,
            kind,
            body,
            head_only,
            ConnectionReuse::of(request),
        ))
    };
    // A tunnel that there is not; an ordinary page is no answer to that.
    if request.method == "CONNECT"
        && let Some(Err(refusal)) = Plan::of(request)
    {
        return Page::Own(refused(&refusal, head_only, ConnectionReuse::of(request)));
    }
    if path == "/" {
        return fixed(200, "text/plain", HELLO);
    }
    if path == "/.weigh/stats" {
        return Page::Asked(Asked::Stats);
    }
    if path == "/.weigh/delays" {
        return Page::Asked(Asked::Delays);
    }
    if path == "/.weigh/lateness" {
        return Page::Asked(Asked::Lateness);
    }
    if let Some(plan) = Plan::of(request) {
        return match plan {
            Ok(Plan::Call(_)) => fixed(505, "text/plain", b"expected a gRPC call over HTTP/2\n"),
            Ok(plan) => Page::Lasting(plan),
            Err(refusal) => Page::Own(refused(&refusal, head_only, ConnectionReuse::of(request))),
        };
    }
    if let Some(ms) = path.strip_prefix("/.weigh/stall/") {
        return match ms.parse() {
            Ok(ms @ 0..=60_000) => Page::Asked(Asked::Stall(ms)),
            _ => fixed(400, "text/plain", b"expected /.weigh/stall/MILLISECONDS\n"),
        };
    }
    if let Some(words) = path.strip_prefix("/delay/") {
        return match Delay::parse(words) {
            Some(delay) => Page::Delayed(delay),
            None => fixed(
                400,
                "text/plain",
                b"expected /delay/constant/1ms, /delay/exponential/2ms or /delay/bimodal/1ms/50ms/2\n",
            ),
        };
    }
    if path == "/env" || path.starts_with("/cgi-bin/") {
        let body = environment(request, path);
        return Page::Own(answer(
            200,
            "text/html",
            body.as_bytes(),
            head_only,
            ConnectionReuse::of(request),
        ));
    }
    if let Some(size) = path.strip_prefix("/bytes/") {
        let kind = "application/octet-stream";
        let head = |size| head(200, kind, size, ConnectionReuse::of(request));
        return match size.parse::<usize>() {
            Ok(size @ ..=BYTES_MAX) if head_only => Page::Fixed(head(size)),
            Ok(size @ BLOCK..=BYTES_MAX) => Page::Long(head(size), size),
            Ok(size @ ..BLOCK) => fixed(200, kind, &sized_body(size)),
            _ => fixed(
                400,
                "text/plain",
                b"expected /bytes/N with N at most 67108864\n",
            ),
        };
    }
    for (prefix, body) in TEXTS {
        if let Some(size) = path.strip_prefix(prefix) {
            return match size.parse::<usize>() {
                Ok(size @ ..=TEXT_MAX) => fixed(200, "text/plain", &body(size)),
                _ => fixed(
                    400,
                    "text/plain",
                    b"expected /text/N or /noise/N with N at most 1048576\n",
                ),
            };
        }
    }
    if let Some(turns) = path.strip_prefix("/burn/") {
        return match turns.parse() {
            Ok(turns @ 0..=BURN_MAX) => {
                burn(turns);
                // Not cached: each request has to burn.
                Page::Own(answer(
                    200,
                    "text/plain",
                    HELLO,
                    head_only,
                    ConnectionReuse::of(request),
                ))
            }
            _ => fixed(
                400,
                "text/plain",
                b"expected /burn/N with N at most 1000000000\n",
            ),
        };
    }
    if let Some(status) = path.strip_prefix("/status/")
        && let Ok(status @ 200..=599) = status.parse::<u16>()
    {
        let body: &[u8] = match may_have_content(status, false) {
            true => b"as you asked\n",
            false => b"",
        };
        return fixed(status, "text/plain", body);
    }
    fixed(404, "text/plain", b"no such page\n")
}

/// Burns CPU time for so many iterations of Marsaglia's xorshift, each of which needs the result of
/// the one before.
fn burn(turns: u64) {
    let mut state = std::hint::black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..turns {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    std::hint::black_box(state);
}

/// A body of readable text that differs from position to position, and repeats after [`PERIOD`].
pub(crate) fn sized_body(size: usize) -> Vec<u8> {
    let byte = |i: usize| match i % 64 {
        63 => b'\n',
        _ => b'a' + ((i / 64 + i) % 26) as u8,
    };
    let mut body: Vec<u8> = (0..size.min(PERIOD)).map(byte).collect();
    while body.len() < size {
        let more = body.len().min(size - body.len());
        body.extend_from_within(..more);
    }
    body
}

/// The request as a CGI program would see it, a variable a line, in the form that the write-up's
/// Perl script printed.
fn environment(request: &Request, path: &str) -> String {
    let mut lines = vec![
        ("GATEWAY_INTERFACE".to_string(), "CGI/1.1".to_string()),
        ("SERVER_PROTOCOL".to_string(), "HTTP/1.1".to_string()),
        ("SERVER_SOFTWARE".to_string(), "weigh origin".to_string()),
        ("REQUEST_METHOD".to_string(), request.method.clone()),
        ("REQUEST_URI".to_string(), request.target.clone()),
        ("SCRIPT_NAME".to_string(), path.to_string()),
        (
            "QUERY_STRING".to_string(),
            request
                .target
                .split_once('?')
                .map_or(String::new(), |(_, query)| query.to_string()),
        ),
    ];
    for (name, value) in &request.fields {
        let name = name.to_ascii_uppercase().replace('-', "_");
        lines.push((format!("HTTP_{name}"), value.clone()));
    }
    lines
        .into_iter()
        .map(|(name, value)| format!("{} --> {}<br>", escape(&name), escape(&value)))
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// An answer in the form in which HTTP/2 or HTTP/3 sends it on a stream.
pub(crate) trait StreamPage: Clone {
    /// Converts the bytes of an HTTP/1.1 answer.
    fn of(answer: &[u8]) -> Self {
        let end = memchr::memmem::find(answer, b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        Self::with_body(&answer[..end], Body::of(&answer[end..]))
    }

    /// Converts the head of an HTTP/1.1 answer, with `body` as its content.
    fn with_body(head: &[u8], body: Body) -> Self;
}

/// Whether a connection is kept after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionReuse {
    /// It is closed, and the answer says so.
    Closed,
    /// It stays open, the default of HTTP/1.1.
    Kept,
    /// It stays open and the answer says so: otherwise a client of HTTP/1.0 would wait for its end.
    KeptExplicitly,
}

impl ConnectionReuse {
    /// What a request asks for.
    pub fn of(request: &Request) -> Self {
        let asked = || {
            request
                .field("Connection")
                .is_some_and(|value| value.to_ascii_lowercase().contains("keep-alive"))
        };
        match request.keep_alive {
            false => Self::Closed,
            true if asked() => Self::KeptExplicitly,
            true => Self::Kept,
        }
    }

    /// Whether the connection is closed.
    pub fn closes(self) -> bool {
        self == Self::Closed
    }
}

/// The answer to a request that is refused.
fn refused(refusal: &Refusal, head_only: bool, persist: ConnectionReuse) -> Vec<u8> {
    let body = format!("{}\n", refusal.text);
    let mut bytes = answer(
        refusal.status,
        "text/plain",
        body.as_bytes(),
        head_only,
        persist,
    );
    if refusal.status == 426 {
        // Which versions there are (RFC 6455 4.4).
        let first = memchr::memmem::find(&bytes, b"\r\n").map_or(0, |at| at + 2);
        let field = *b"Sec-WebSocket-Version: 13\r\n";
        bytes.splice(first..first, field);
    }
    bytes
}

/// The bytes of an answer.
pub(crate) fn answer(
    status: u16,
    kind: &str,
    body: &[u8],
    head_only: bool,
    persist: ConnectionReuse,
) -> Vec<u8> {
    let mut bytes = head(status, kind, body.len(), persist);
    if !head_only {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// The head of an answer whose body has this length.
fn head(status: u16, kind: &str, length: usize, persist: ConnectionReuse) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Other",
    };
    let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
    if may_have_content(status, false) {
        let fields = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
        bytes.extend_from_slice(fields.as_bytes());
    }
    match persist {
        ConnectionReuse::Closed => bytes.extend_from_slice(b"Connection: close\r\n"),
        ConnectionReuse::Kept => {}
        ConnectionReuse::KeptExplicitly => bytes.extend_from_slice(b"Connection: keep-alive\r\n"),
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_any_size_has_the_same_text() {
        let long = sized_body(10_000);
        for size in [0, 1, 63, 64, 1663, 1664, 1665, 5000] {
            assert_eq!(sized_body(size), long[..size], "{size}");
        }
        for (i, byte) in long.into_iter().enumerate() {
            let expected = match i % 64 {
                63 => b'\n',
                _ => b'a' + ((i / 64 + i) % 26) as u8,
            };
            assert_eq!(byte, expected, "{i}");
        }
    }
}
