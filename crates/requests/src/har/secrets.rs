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
    const WORDS: [&str; 19] = [
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
        "credentials",
        "passphrase",
        "otp",
        "totp",
        "csrf",
    ];
    const JOINED: [&str; 6] = ["token", "secret", "password", "apikey", "session", "sessid"];
    // `author` is none.
    const BEGIN: [&str; 3] = ["authoriz", "authentic", "sess"];
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let is_word =
        |word: &str| WORDS.contains(&word) || BEGIN.iter().any(|begin| word.starts_with(begin));
    // The code of OAuth stands alone; `country_code` is none.
    lower == "code" || words.any(is_word) || JOINED.iter().any(|one| lower.contains(one))
}

/// Whether a body has a parameter or a key of JSON with the name of a secret.
pub(super) fn has_secret(body: &str) -> bool {
    let quoted = body.split('"').skip(1).step_by(2);
    let pairs = body
        .split('&')
        .filter_map(|pair| Some(pair.split_once('=')?.0));
    let mut names = quoted.chain(pairs).filter(|name| name.len() <= 64);
    names.any(is_secret)
}

/// A path, with its parameters (`;name=value`), without those of secrets.
fn without_parameters(path: &str, found: &mut Counts) -> String {
    let segments = path.split('/').map(|segment| {
        let mut parts = segment.split(';');
        let mut kept = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match is_secret(part.split('=').next().unwrap_or_default()) {
                true => found.add("parameters of paths"),
                false => kept = format!("{kept};{part}"),
            }
        }
        kept
    });
    segments.collect::<Vec<String>>().join("/")
}

/// A path and query without the values of secrets.
pub(super) fn without(path: &str, found: &mut Counts) -> String {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let path = without_parameters(path, found);
    let Some(query) = query else {
        return path;
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
        true => path,
        false => format!("{path}?{}", pairs.join("&")),
    }
}
