//! The cookies of a user (RFC 6265). There is one host, so domains do not matter.

use std::time::{Duration, SystemTime};

use cookie::Cookie;
use memchr::memmem;
use net::h2::hpack;
use net::h3::qpack;
use readings::HttpVersion;

use crate::template::request::Rendered;

/// Cookies that a user keeps; the oldest one makes room. RFC 6265, 6.1 asks for 50 at least.
const COOKIES_MAX: usize = 100;
/// Longer cookies are ignored. RFC 6265, 6.1 asks for 4096 bytes at least.
const COOKIE_BYTES_MAX: usize = 8 << 10;

#[derive(Debug)]
struct Kept {
    name: String,
    value: String,
    path: String,
    is_secure: bool,
    /// ns of the worker's clock; `None` for as long as the user stays.
    expires: Option<u64>,
}

/// In the order in which they were first set.
#[derive(Debug, Default)]
pub(crate) struct Cookies(Vec<Kept>);

impl Cookies {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the value of a `Set-Cookie` field in the answer to a request of this path, at this time of
    /// the worker's clock, ns. A value that is no cookie is ignored, as browsers do.
    pub(crate) fn set(&mut self, field: &[u8], request_path: &str, now: u64) {
        if field.len() > COOKIE_BYTES_MAX {
            return;
        }
        let Ok(text) = std::str::from_utf8(field) else {
            return;
        };
        if text.chars().any(char::is_control) {
            return;
        }
        let Ok(cookie) = Cookie::parse(text) else {
            return;
        };
        let path = match cookie.path() {
            Some(path) if path.starts_with('/') => path,
            _ => default_path(request_path),
        };
        let lasts = lasts(&cookie);
        let is_same = |one: &Kept| one.name == cookie.name() && one.path == path;
        let known = self.0.iter().position(is_same);
        if lasts.is_some_and(|time| time.is_zero()) {
            if let Some(at) = known {
                self.0.remove(at);
            }
            return;
        }
        let kept = Kept {
            name: cookie.name().to_owned(),
            value: cookie.value().to_owned(),
            path: path.to_owned(),
            is_secure: cookie.secure() == Some(true),
            expires: lasts.map(|time| now.saturating_add(crate::ns(time))),
        };
        match known {
            Some(at) => self.0[at] = kept,
            None => {
                if self.0.len() >= COOKIES_MAX {
                    self.0.remove(0);
                }
                self.0.push(kept);
            }
        }
    }

    /// Writes the value of the `Cookie` field of a request of this path (RFC 6265, 5.4); nothing if no
    /// cookie belongs to it.
    pub(crate) fn write(&self, path: &[u8], is_secure: bool, now: u64, out: &mut Vec<u8>) {
        let is_sent = |one: &&Kept| {
            matches(path, one.path.as_bytes())
                && (is_secure || !one.is_secure)
                && one.expires.is_none_or(|at| now < at)
        };
        let mut sent: Vec<&Kept> = self.0.iter().filter(is_sent).collect();
        // Longer paths first; stable, so that of paths of one length the older cookie comes first.
        sent.sort_by_key(|one| std::cmp::Reverse(one.path.len()));
        for (at, one) in sent.into_iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(one.name.as_bytes());
            out.push(b'=');
            out.extend_from_slice(one.value.as_bytes());
        }
    }
}

/// Adds a `Cookie` field with this value to a request.
pub(crate) fn add_field(request: &mut Rendered, http: HttpVersion, value: &[u8]) {
    let end = request.body_at;
    let (at, field) = match http {
        HttpVersion::Http1 => {
            let head = &request.bytes[..end];
            // There is one such field (RFC 6265, 5.4): the user's cookies stand behind its own.
            match own_field(head) {
                Some(at) => (at, [b"; ", value].concat()),
                None => (
                    end.saturating_sub(2),
                    [b"Cookie: ", value, b"\r\n"].concat(),
                ),
            }
        }
        HttpVersion::Http2 => {
            let mut field = Vec::new();
            hpack::encode(&mut field, b"cookie", value);
            (end, field)
        }
        HttpVersion::Http3 => {
            let mut field = Vec::new();
            qpack::encode(&mut field, b"cookie", value);
            (end, field)
        }
    };
    request.body_at += field.len();
    request.bytes.splice(at..at, field);
}

/// Where the `Cookie` field ends that a head of HTTP/1.1 has of its own.
fn own_field(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"cookie:";
    let mut line = 0;
    while let Some(length) = memmem::find(&head[line..], b"\r\n") {
        let own = &head[line..line + length];
        if own
            .get(..NAME.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
        {
            return Some(line + length);
        }
        line += length + 2;
    }
    None
}

/// How long a cookie lasts, zero if it is over; `None` for as long as the user stays.
fn lasts(cookie: &Cookie<'_>) -> Option<Duration> {
    if let Some(age) = cookie.max_age() {
        return Some(Duration::try_from(age).unwrap_or_default());
    }
    let expires = SystemTime::from(cookie.expires_datetime()?);
    let left = expires.duration_since(SystemTime::now());
    Some(left.unwrap_or_default())
}

/// RFC 6265, 5.1.4: the folder of a request's path.
fn default_path(request: &str) -> &str {
    match request.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &request[..end],
    }
}

/// Whether a request's path lies in that of a cookie (RFC 6265, 5.1.4).
fn matches(request: &[u8], cookie: &[u8]) -> bool {
    request
        .strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(cookies: &Cookies, path: &str, is_secure: bool, now: u64) -> String {
        let mut out = Vec::new();
        cookies.write(path.as_bytes(), is_secure, now, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn of(fields: &[&str], path: &str) -> Cookies {
        let mut cookies = Cookies::default();
        for field in fields {
            cookies.set(field.as_bytes(), path, 0);
        }
        cookies
    }

    #[test]
    fn longer_paths_and_older_cookies_come_first() {
        let fields = [
            "root=1; Path=/",
            "deep=2; Path=/a/b",
            "middle=3; Path=/a",
            "other=4; Path=/c",
            "root=5; Path=/",
            "late=6; Path=/",
        ];
        let cookies = of(&fields, "/");
        let all = sent(&cookies, "/a/b/c", false, 0);
        assert_eq!(all, "deep=2; middle=3; root=5; late=6");
        assert_eq!(sent(&cookies, "/ab", false, 0), "root=5; late=6");
    }

    #[test]
    fn a_cookie_without_a_path_belongs_to_the_folder_of_its_request() {
        for (path, sent_to, not_to) in [
            ("/shop/login", "/shop", "/shopping"),
            ("/shop/login", "/shop/cart", "/"),
        ] {
            let cookies = of(&["a=1; Path=relative"], path);
            assert_eq!(sent(&cookies, sent_to, false, 0), "a=1");
            assert_eq!(sent(&cookies, not_to, false, 0), "");
        }
        assert_eq!(sent(&of(&["a=1"], "/login"), "/any", false, 0), "a=1");
    }

    #[test]
    fn cookies_that_are_over_are_deleted() {
        for over in [
            "a=; Max-Age=0; Path=/",
            "a=; Max-Age=-5; Path=/",
            "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/",
        ] {
            let cookies = of(&["a=1; Path=/", "b=2; Path=/", over], "/");
            assert_eq!(sent(&cookies, "/", false, 0), "b=2", "{over}");
        }
        // That of another path stays.
        let cookies = of(&["a=1; Path=/x", "a=; Max-Age=0; Path=/"], "/");
        assert_eq!(sent(&cookies, "/x", false, 0), "a=1");
        // The age says more than the date.
        let both = "a=1; Max-Age=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/";
        let cookies = of(&[both], "/");
        assert_eq!(sent(&cookies, "/", false, 1_999_999_999), "a=1");
        assert_eq!(sent(&cookies, "/", false, 2_000_000_000), "");
        let late = "a=1; Expires=Fri, 31 Dec 2999 23:59:59 GMT; Path=/";
        assert_eq!(sent(&of(&[late], "/"), "/", false, 0), "a=1");
    }

    #[test]
    fn secure_cookies_need_tls_and_domains_do_not_matter() {
        let cookies = of(&["a=\"x y\"; Secure; Domain=other.test; HttpOnly"], "/");
        assert_eq!(sent(&cookies, "/", false, 0), "");
        assert_eq!(sent(&cookies, "/", true, 0), "a=\"x y\"");
    }

    #[test]
    fn what_is_no_cookie_is_ignored_and_many_make_room() {
        let cookies = of(&["", "=x", "no pair", "a=1\r\n b: c", "b=\u{7f}"], "/");
        assert_eq!(sent(&cookies, "/", true, 0), "");
        let mut cookies = Cookies::default();
        for number in 0..=COOKIES_MAX {
            cookies.set(format!("c{number}=1").as_bytes(), "/", 0);
        }
        let all = sent(&cookies, "/", true, 0);
        assert_eq!(all.split("; ").count(), COOKIES_MAX);
        assert!(all.starts_with("c1=1; "), "{all}");
    }

    #[test]
    fn a_request_has_one_cookie_field() {
        let added = |text: &str| {
            let body_at = text.find("\r\n\r\n").unwrap() + 4;
            let bytes = text.as_bytes().to_vec();
            let mut request = Rendered {
                bytes,
                body_at,
                shared: None,
            };
            add_field(&mut request, HttpVersion::Http1, b"a=1");
            let (head, body) = request.parts();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(head), text(body))
        };
        let (head, body) = added("GET / HTTP/1.1\r\nHost: x\r\n\r\nbody");
        assert_eq!(head, "GET / HTTP/1.1\r\nHost: x\r\nCookie: a=1\r\n\r\n");
        assert_eq!(body, "body");
        let (head, _) = added("GET / HTTP/1.1\r\ncookie: own=2\r\nHost: x\r\n\r\n");
        assert_eq!(
            head,
            "GET / HTTP/1.1\r\ncookie: own=2; a=1\r\nHost: x\r\n\r\n"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(fields in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..8), path in "/[a-c/]{0,6}") {
            let mut cookies = Cookies::default();
            for field in &fields {
                cookies.set(field, &path, 7);
            }
            let mut out = Vec::new();
            cookies.write(path.as_bytes(), true, 8, &mut out);
            prop_assert!(!out.iter().any(u8::is_ascii_control));
        }

        #[test]
        fn any_attributes_are_taken(
            name in "[ -~]{0,5}",
            rest in "(; ?(Path|Max-Age|Expires|Secure|Domain)=?[ -~]{0,40}){0,4}",
        ) {
            let mut cookies = Cookies::default();
            cookies.set(format!("{name}=v{rest}").as_bytes(), "/a/b", 7);
            let mut out = Vec::new();
            cookies.write(b"/a/b", true, 8, &mut out);
            prop_assert!(out.is_empty() || out.contains(&b'='));
        }
    }
}
