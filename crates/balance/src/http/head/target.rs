//! Request targets (RFC 9112 section 3.2) and authorities.

use memchr::{memchr, memchr2};

use crate::http::Refusal;

/// A request target in a form that a reverse proxy serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Target<'a> {
    /// Path and query; empty or without a path only in absolute form.
    pub(in crate::http) path_and_query: &'a [u8],
    /// The authority of the absolute form.
    pub(in crate::http) authority: Option<&'a [u8]>,
}

/// The class of characters that are refused before a query.
const IN_QUERY: u8 = 1;
/// The class of those that are refused anywhere.
const NOWHERE: u8 = 2;

/// The class of each byte; 0 for one that may stand anywhere.
static CLASSES: [u8; 256] = {
    let mut classes = [NOWHERE; 256];
    // Visible ASCII without `#`, at which only some servers cut.
    let mut byte = b'!';
    while byte <= b'~' {
        classes[byte as usize] = match byte {
            b'#' | b'"' | b'<' | b'>' => NOWHERE,
            b'\\' | b'^' | b'`' | b'{' | b'}' => IN_QUERY,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// Whether each byte may stand in the name of a host.
static IN_NAMES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < allowed.len() {
        allowed[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut marks: &[u8] = b"-._~%!$&'()*+;=";
    while let [mark, rest @ ..] = marks {
        allowed[*mark as usize] = true;
        marks = rest;
    }
    allowed
};

impl<'a> Target<'a> {
    /// Parses a target; `options`: the method is OPTIONS, which allows `*`.
    ///
    /// Invalid characters are refused (RFC 9112 3.2), but for those that browsers send as they are
    /// (the URL standard's percent-encode sets): `[`, `]` and `|`, and in the query `\\`, `^`, `` ` ``,
    /// `{` and `}` too.
    pub(in crate::http) fn read(target: &'a [u8], options: bool) -> Result<Self, Refusal> {
        let seen = |bytes: &[u8]| {
            let classes = bytes.iter().map(|byte| CLASSES[usize::from(*byte)]);
            classes.fold(0, |seen, class| seen | class)
        };
        let bad = match seen(target) {
            0 => false,
            IN_QUERY => {
                let end = memchr(b'?', target).unwrap_or(target.len());
                seen(&target[..end]) != 0
            }
            _ => true,
        };
        if bad {
            return Err(Refusal::Target);
        }
        match target {
            [b'/', ..] => Ok(Target {
                path_and_query: target,
                authority: None,
            }),
            b"*" if options => Ok(Target {
                path_and_query: target,
                authority: None,
            }),
            _ => Self::absolute(target, options),
        }
    }

    fn absolute(target: &'a [u8], options: bool) -> Result<Self, Refusal> {
        let behind = memchr(b':', target).and_then(|colon| {
            let scheme = &target[..colon];
            let known = [&b"http"[..], b"https"];
            let known = known.iter().any(|name| scheme.eq_ignore_ascii_case(name));
            known.then(|| target[colon..].strip_prefix(b"://"))?
        });
        let Some(behind) = behind else {
            return Err(Refusal::Target);
        };
        let end = memchr2(b'/', b'?', behind).unwrap_or(behind.len());
        let (authority, path_and_query) = behind.split_at(end);
        if authority.is_empty() || !is_authority(authority) {
            return Err(Refusal::Target);
        }
        Ok(Target {
            // RFC 9112 3.2.4: OPTIONS of the server becomes `*` for the last hop.
            path_and_query: match path_and_query {
                b"" if options => b"*",
                other => other,
            },
            authority: Some(authority),
        })
    }

    /// The path without the query.
    pub(in crate::http) fn path(&self) -> &'a [u8] {
        let end = memchr(b'?', self.path_and_query).unwrap_or(self.path_and_query.len());
        match &self.path_and_query[..end] {
            b"" => b"/",
            path => path,
        }
    }

    /// Whether a `/` has to be put before [`Target::path_and_query`].
    pub(in crate::http) fn lacks_path(&self) -> bool {
        !matches!(self.path_and_query, [b'/', ..] | b"*")
    }
}

/// Whether these bytes are a host with or without a port (RFC 3986 3.2.2 and 3.2.3).
///
/// No comma, though a name may contain one: two joined Host fields look like that.
pub(in crate::http) fn is_authority(bytes: &[u8]) -> bool {
    let (host_is_good, behind) = match bytes {
        [b'[', inner @ ..] => {
            let Some(end) = memchr(b']', inner) else {
                return false;
            };
            let good = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
            (end >= 2 && inner[..end].iter().all(good), &inner[end + 1..])
        }
        name => {
            let end = memchr(b':', name).unwrap_or(name.len());
            let good = name[..end].iter().all(|byte| IN_NAMES[usize::from(*byte)]);
            (end > 0 && good, &name[end..])
        }
    };
    let port_is_good = match behind {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    host_is_good && port_is_good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        for good in "a a:1 a.b-c_d:80 127.0.0.1 [::1] [::1]:80 a: xn--a".split(' ') {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "", ":80", "a b", "a,b", "a/b", "u@a", "a:b", "a:1:2", "[::1", "::1", "[]", "[::1]x",
            "a:-1", "a\\b", "a?b", "a#b", "a\"", "a:+1", "[g::]",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn the_forms_of_targets() {
        let read = |text: &'static str| {
            let target = Target::read(text.as_bytes(), false).ok()?;
            Some((
                target.authority,
                target.path_and_query,
                target.path(),
                target.lacks_path(),
            ))
        };
        let plain: (Option<&[u8]>, &[u8], &[u8], bool) = (None, b"/a?b", b"/a", false);
        assert_eq!(read("/a?b"), Some(plain));
        assert_eq!(
            read("http://h:8/a?b"),
            Some((Some(b"h:8".as_slice()), plain.1, plain.2, false))
        );
        let bare = (Some(b"h".as_slice()), b"".as_slice(), b"/".as_slice(), true);
        assert_eq!(read("HTTP://h"), Some(bare));
        assert_eq!(
            read("https://h?q=/"),
            Some((bare.0, b"?q=/".as_slice(), b"/".as_slice(), true))
        );
        for bad in "~*~a~a:80~h/a~http:/a~http://~http:///a~http://u@h/~ftp://h/~/a#b~/a b~\
            /\u{7f}~/ä~http://h#~?a"
            .split('~')
        {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert!(Target::read(b"*", true).is_ok());
        assert_eq!(
            Target::read(b"http://h", true).unwrap().path_and_query,
            b"*"
        );
    }
}
