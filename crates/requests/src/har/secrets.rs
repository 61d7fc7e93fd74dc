//! What of a recording only concerns the person who made it.

use super::Counts;

/// What becomes of a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Kept,
    /// It says who somebody is.
    Secret(&'static str),
    /// It belongs to the connection, to the browser's cache, or is written by the load.
    Left,
}

/// Fields that a load does not repeat. A conditional request would be answered by a 304.
const LEFT: [&str; 15] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "upgrade",
    "upgrade-insecure-requests",
    "proxy-connection",
    "if-none-match",
    "if-modified-since",
    "if-range",
    "priority",
    "expect",
    "http2-settings",
];

pub(super) fn kind_of(name: &str) -> Kind {
    let lower = name.to_ascii_lowercase();
    // HTTP/2's pseudo-fields, as Chrome writes them.
    let is_token = crate::file::is_token(name);
    match lower.as_str() {
        _ if !is_token || LEFT.contains(&lower.as_str()) => Kind::Left,
        "cookie" | "set-cookie" => Kind::Secret("cookies"),
        "authorization" | "proxy-authorization" => Kind::Secret("authorizations"),
        name if is_secret(name) => Kind::Secret("headers with keys or tokens"),
        _ => Kind::Kept,
    }
}

/// Whether a name is that of a secret, such as `x-api-key` or `access_token`.
fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 14] = [
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "apikey",
        "key",
        "auth",
        "session",
        "sid",
        "jwt",
        "signature",
        "sig",
        "credential",
    ];
    const JOINED: [&str; 5] = ["token", "secret", "password", "apikey", "sessionid"];
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| WORDS.contains(&word)) || JOINED.iter().any(|one| lower.contains(one))
}

/// A path and query without the values of secrets.
pub(super) fn without(path: &str, found: &mut Counts) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let query = query.split('#').next().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
        let is_secret = is_secret(&name);
        if is_secret {
            found.add("parameters of queries");
        }
        !is_secret
    });
    let pairs: Vec<&str> = pairs.collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}
