//! URLs: one rule for all that are given, whether on a command line, in a file or as a link (RFC 3986).

use std::borrow::Cow;
use std::fmt::Write as _;

/// Why the authority of a URL, its host with or without a port, names no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityFault {
    /// There is none.
    #[error("the URL has no host")]
    Empty,
    /// It has user information, which HTTP does not send (RFC 9110, 4.2.4).
    #[error(
        "a user in a URL is not supported, as HTTP does not send it; send the field Authorization \
         instead"
    )]
    User,
    /// It has a zone identifier (RFC 6874).
    #[error(
        "a zone identifier (`%`) is not supported; give the address a name in /etc/hosts, or one that \
         needs no zone"
    )]
    Zone,
    #[error(
        "a host name outside ASCII is not supported; write its encoded form, which begins with xn--"
    )]
    NotAscii,
    #[error("the URL has no valid host")]
    Character,
}

/// Checks an authority, and gives it without an empty port, which stands for the usual one (RFC 3986,
/// 3.2.3 and 6.2.3).
///
/// # Errors
/// When no server can be found or asked by it.
pub fn authority(text: &str) -> Result<&str, AuthorityFault> {
    let text = text.strip_suffix(':').unwrap_or(text);
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || "\"<>\\^`{|}".contains(c);
    match text {
        "" => Err(AuthorityFault::Empty),
        _ if text.contains('@') => Err(AuthorityFault::User),
        _ if text.starts_with('[') && text.contains('%') => Err(AuthorityFault::Zone),
        _ if text.contains(is_bad) => Err(AuthorityFault::Character),
        _ if !text.is_ascii() => Err(AuthorityFault::NotAscii),
        _ => Ok(text),
    }
}

/// A path and query in which characters that may not stand there are percent-encoded, as UTF-8 (RFC
/// 3986, 2.1 and 2.5). What is encoded already stays, and so does what browsers send as it is although
/// RFC 3986 does not allow it: `[`, `]` and `|`, and in a query `\`, `^`, `` ` ``, `{` and `}`.
pub fn encoded_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut in_query = false;
    for byte in path.bytes() {
        in_query |= byte == b'?';
        let is_bad = match byte {
            b'"' | b'<' | b'>' => true,
            b'\\' | b'^' | b'`' | b'{' | b'}' => !in_query,
            _ => !byte.is_ascii_graphic(),
        };
        match is_bad {
            // Writing to a string cannot fail.
            true => drop(write!(out, "%{byte:02X}")),
            false => out.push(char::from(byte)),
        }
    }
    out
}

/// A text whose URLs show `*` for each character of their user information: it may hold a password,
/// and messages end up in logs.
pub fn without_users(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + "://".len());
        let user = &behind[..user_end(behind)];
        shown.push_str(before);
        shown.extend(user.chars().map(|_| '*'));
        rest = &behind[user.len()..];
    }
    match shown.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(shown + rest),
    }
}

/// Where the user information ends in what follows `://`; 0 if there is none.
fn user_end(text: &str) -> usize {
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'<>`".contains(c);
    let word = &text[..text.find(is_end).unwrap_or(text.len())];
    let authority = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
    if let Some(at) = authority.rfind('@') {
        return at;
    }
    // A password may have characters that belong encoded. What comes before them is no port then.
    match authority.rsplit_once(':') {
        Some((host, port))
            if !host.starts_with('[') && !port.bytes().all(|b| b.is_ascii_digit()) =>
        {
            word.rfind('@').unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_accepted_or_refused_with_the_reason() {
        for (given, found) in [
            ("h", Ok("h")),
            ("h:80", Ok("h:80")),
            ("h:", Ok("h")),
            ("[::1]:", Ok("[::1]")),
            ("[::1]:8", Ok("[::1]:8")),
            ("xn--bcher-kva.example", Ok("xn--bcher-kva.example")),
            ("", Err(AuthorityFault::Empty)),
            (":", Err(AuthorityFault::Empty)),
            ("u:p@h", Err(AuthorityFault::User)),
            ("[fe80::1%25eth0]", Err(AuthorityFault::Zone)),
            ("[fe80::1%2]:80", Err(AuthorityFault::Zone)),
            ("b\u{fc}cher.example", Err(AuthorityFault::NotAscii)),
            ("a b", Err(AuthorityFault::Character)),
        ] {
            assert_eq!(authority(given), found, "{given}");
        }
    }

    #[test]
    fn what_may_not_stand_in_a_path_is_encoded_once() {
        for (given, found) in [
            ("/caf\u{e9}?\u{20ac}", "/caf%C3%A9?%E2%82%AC"),
            ("/%C3%A9%zz", "/%C3%A9%zz"),
            ("/a b\u{1}", "/a%20b%01"),
            ("/\"<>\\^`{}[|]", "/%22%3C%3E%5C%5E%60%7B%7D[|]"),
            ("/?\"<>\\^`{}[|]?", "/?%22%3C%3E\\^`{}[|]?"),
            ("/~!$&'()*+,;=:@-._", "/~!$&'()*+,;=:@-._"),
        ] {
            assert_eq!(encoded_path(given), found);
            assert_eq!(encoded_path(found), found);
        }
    }

    #[test]
    fn user_information_is_never_shown() {
        for (given, shown) in [
            ("http://u:p@h/", "http://***@h/"),
            ("http://token@h", "http://*****@h"),
            (
                "no http://u:p@h/ and\nHTTPS://v:\u{fc}@i:1/, x",
                "no http://***@h/ and\nHTTPS://***@i:1/, x",
            ),
            ("http://u:p@q@h/", "http://*****@h/"),
            ("http://u:p/q@h/", "http://*****@h/"),
            ("http://u:p?#@h/", "http://*****@h/"),
            // Nothing to hide.
            ("http://h:1/@a", "http://h:1/@a"),
            ("http://[::1]/@a", "http://[::1]/@a"),
            ("http://h/?a=b@c", "http://h/?a=b@c"),
            ("a@b and http://h", "a@b and http://h"),
            ("\"http://h\" @", "\"http://h\" @"),
        ] {
            assert_eq!(without_users(given), shown);
        }
    }
}
