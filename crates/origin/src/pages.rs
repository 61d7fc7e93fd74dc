//! What the origin answers to which path.

use net::http::Request;

/// The body of `/`: 13 bytes.
pub(crate) const HELLO: &[u8] = b"Hello, world!";

/// Largest body that `/bytes/N` makes.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// An answer to a request.
pub(crate) enum Page {
    /// Bytes that are the same for every such request.
    Fixed(Vec<u8>),
    /// Bytes for this request alone.
    Own(Vec<u8>),
    /// The counters.
    Stats,
}

/// Finds the page of a request.
pub(crate) fn page(request: &Request) -> Page {
    let head_only = request.method == "HEAD";
    let path = request
        .target
        .split_once('?')
        .map_or(request.target.as_str(), |(path, _)| path);
    let fixed = |status, kind, body: &[u8]| {
        Page::Fixed(answer(status, kind, body, head_only, request.keep_alive))
    };
    if path == "/" {
        return fixed(200, "text/plain", HELLO);
    }
    if path == "/.weigh/stats" {
        return Page::Stats;
    }
    if path == "/env" || path.starts_with("/cgi-bin/") {
        let body = environment(request, path);
        return Page::Own(answer(
            200,
            "text/html",
            body.as_bytes(),
            head_only,
            request.keep_alive,
        ));
    }
    if let Some(size) = path.strip_prefix("/bytes/") {
        return match size.parse::<usize>() {
            Ok(size) if size <= BYTES_MAX => {
                fixed(200, "application/octet-stream", &sized_body(size))
            }
            _ => fixed(
                400,
                "text/plain",
                b"expected /bytes/N with N at most 67108864\n",
            ),
        };
    }
    if let Some(status) = path.strip_prefix("/status/")
        && let Ok(status @ 200..=599) = status.parse::<u16>()
    {
        let body: &[u8] = if status == 204 || status == 304 {
            b""
        } else {
            b"as you asked\n"
        };
        return fixed(status, "text/plain", body);
    }
    fixed(404, "text/plain", b"no such page\n")
}

/// A body of readable text that differs from position to position.
fn sized_body(size: usize) -> Vec<u8> {
    (0..size)
        .map(|i| {
            if i % 64 == 63 {
                b'\n'
            } else {
                b'a' + ((i / 64 + i) % 26) as u8
            }
        })
        .collect()
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

/// The bytes of an answer.
pub(crate) fn answer(
    status: u16,
    kind: &str,
    body: &[u8],
    head_only: bool,
    keep_alive: bool,
) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Other",
    };
    let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
    if status != 204 && status != 304 {
        bytes.extend(
            format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()).into_bytes(),
        );
    }
    if !keep_alive {
        bytes.extend_from_slice(b"Connection: close\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    if !head_only {
        bytes.extend_from_slice(body);
    }
    bytes
}
