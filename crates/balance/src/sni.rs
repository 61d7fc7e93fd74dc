//! The server name in a TLS ClientHello (RFC 8446 4.1.2, RFC 6066 3), read without terminating TLS,
//! and the patterns that it is matched with to choose back ends.

/// The most bytes of a ClientHello with its records. With post-quantum keys it has about 2 KiB.
pub(crate) const HELLO_BYTES_MAX: usize = 16 * 1024;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// What the bytes of a client are so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// More bytes are needed.
    More,
    /// A complete ClientHello, and its server name in lower case if it has one.
    Complete(Option<String>),
    /// Not a ClientHello, or one that is too long.
    Malformed,
}

/// Reads what a client has sent so far.
pub(crate) fn read_hello(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        // Records may split the message anywhere.
        let needed = match message.get(..4) {
            Some([CLIENT_HELLO, length @ ..]) => {
                let [a, b, c] = [length[0], length[1], length[2]].map(usize::from);
                4 + (a << 16 | b << 8 | c)
            }
            Some(_) => return Hello::Malformed,
            None => 4,
        };
        if needed > HELLO_BYTES_MAX {
            return Hello::Malformed;
        }
        if needed > 4 && message.len() >= needed {
            return match name(&message[4..needed]) {
                Some(name) => Hello::Complete(name),
                None => Hello::Malformed,
            };
        }
        let is_record = |head: &[u8]| {
            head.first().is_none_or(|kind| *kind == HANDSHAKE)
                && head.get(1).is_none_or(|major| *major == 3)
        };
        if !is_record(rest) || bytes.len() > HELLO_BYTES_MAX {
            return Hello::Malformed;
        }
        let Some((head, behind)) = rest.split_first_chunk::<5>() else {
            return Hello::More;
        };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length == 0 || length > HELLO_BYTES_MAX {
            return Hello::Malformed;
        }
        let taken = behind.len().min(length);
        message.extend_from_slice(&behind[..taken]);
        if taken < length {
            // The type shows already.
            let is_other = message.first().is_some_and(|kind| *kind != CLIENT_HELLO);
            return match is_other {
                true => Hello::Malformed,
                false => Hello::More,
            };
        }
        rest = &behind[length..];
    }
}

/// Reads fields with their lengths.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

/// The name in the body of a ClientHello; the outer `None` if it is malformed.
fn name(body: &[u8]) -> Option<Option<String>> {
    let mut fields = Fields(body);
    // Version and random.
    fields.take(34)?;
    let _session = fields.short()?;
    let _suites = fields.long()?;
    let _compression = fields.short()?;
    if fields.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Fields(fields.long()?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.number()?, extensions.long()?);
        if kind != SERVER_NAME {
            continue;
        }
        let mut list = Fields(Fields(data).long()?);
        let (kind, name) = (list.take(1)?[0], list.long()?);
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        // Only a single name is accepted: of several, a back end might take another one.
        let is_plain = kind == HOST_NAME
            && list.0.is_empty()
            && !name.is_empty()
            && name.iter().all(is_name)
            && found.is_none();
        if !is_plain {
            return None;
        }
        found = Some(String::from_utf8_lossy(name).to_ascii_lowercase());
    }
    Some(found)
}

/// Whether a pattern matches. A pattern is a name, `*.` and a domain for one label in front of that
/// domain, as in certificates, or `*` for everything.
pub(crate) fn matches(pattern: &str, name: Option<&str>) -> bool {
    match (pattern, name) {
        ("*", _) => true,
        (_, None) => false,
        (pattern, Some(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            match pattern.strip_prefix("*.") {
                Some(domain) => name
                    .split_once('.')
                    .is_some_and(|(label, rest)| !label.is_empty() && rest == domain),
                None => name == pattern,
            }
        }
    }
}

pub(crate) fn is_pattern(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text == "*" || (name.len() <= 253 && name.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello in records of this size.
    pub fn hello(name: Option<&str>, size: usize) -> Vec<u8> {
        let mut extensions = vec![0, 16, 0, 5, 0, 3, 2, b'h', b'2'];
        if let Some(name) = name {
            let length = name.len() as u16;
            extensions.extend([0, 0]);
            extensions.extend((length + 5).to_be_bytes());
            extensions.extend((length + 3).to_be_bytes());
            extensions.push(0);
            extensions.extend(length.to_be_bytes());
            extensions.extend(name.bytes());
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut message = vec![1, 0];
        message.extend((body.len() as u16).to_be_bytes());
        message.extend(body);
        let mut records = Vec::new();
        for part in message.chunks(size) {
            records.extend([22, 3, 1]);
            records.extend((part.len() as u16).to_be_bytes());
            records.extend(part);
        }
        records
    }

    #[test]
    fn a_name_is_found_however_the_hello_is_split() {
        for size in [1, 3, 50, 16_384] {
            let bytes = hello(Some("A.Example"), size);
            for end in 0..bytes.len() {
                assert_eq!(read_hello(&bytes[..end]), Hello::More, "{size} {end}");
            }
            let found = Hello::Complete(Some("a.example".into()));
            assert_eq!(read_hello(&bytes), found);
        }
        assert_eq!(read_hello(&hello(None, 100)), Hello::Complete(None));
    }

    #[test]
    fn what_is_no_hello_is_refused_early() {
        for bytes in [
            &b"GET / HTTP/1.1"[..],
            &[22, 2],
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 0, 5, 2],
            // A message of 16 MiB.
            &[22, 3, 1, 0, 5, 1, 255, 255, 255, 0],
        ] {
            assert_eq!(read_hello(bytes), Hello::Malformed, "{bytes:?}");
        }
        // Names that another reader may take for two.
        for name in ["a\0b", "a b", "", "a\r\nb", "a/b"] {
            assert_eq!(read_hello(&hello(Some(name), 100)), Hello::Malformed);
        }
        // Empty or tiny records without end.
        let endless = [22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 0];
        assert_eq!(read_hello(&endless), Hello::Malformed);
    }

    #[test]
    fn any_bytes_are_read() {
        let good = hello(Some("a.example"), 100);
        for at in 0..good.len() {
            for value in [0, 1, 127, 255] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let _ = read_hello(&bytes);
            }
        }
    }

    #[test]
    fn patterns_match_as_in_certificates() {
        for (pattern, name, fits) in [
            ("a.example", Some("a.example"), true),
            ("a.example", Some("a.example."), true),
            ("a.example", Some("b.a.example"), false),
            ("*.example", Some("a.example"), true),
            ("*.example", Some("b.a.example"), false),
            ("*.example", Some("example"), false),
            ("*.example", Some(".example"), false),
            ("*", Some("any"), true),
            ("*", None, true),
            ("a.example", None, false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name:?}");
        }
        assert!(is_pattern("*") && is_pattern("*.a-b.example") && is_pattern("a"));
        assert!(!is_pattern("a.*") && !is_pattern("") && !is_pattern("a..b") && !is_pattern("**"));
    }
}
