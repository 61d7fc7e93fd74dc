//! A request's fields as HTTP/2 and HTTP/3 send them.

/// Fields that belong to one HTTP/1.1 connection; later versions have none of them (RFC 9113 8.2.2,
/// RFC 9114 4.2), except `te` for trailers.
const OF_A_CONNECTION: [&str; 6] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "transfer-encoding",
    "upgrade",
    "te",
];

/// Whether the bytes of an HTTP/1.1 request are a HEAD request.
pub(crate) fn is_head(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HEAD ")
}

/// Whether later versions have a field, whose name is in lower case.
pub(crate) fn is_kept(name: &str, value: &[u8]) -> bool {
    let is_te = name == "te" && value.eq_ignore_ascii_case(b"trailers");
    is_te || !OF_A_CONNECTION.contains(&name)
}

/// Reads an HTTP/1.1 request, whose fields go to `each`, pseudo-fields first and names in lower case.
/// Returns its body; `None` if the bytes are no such request.
pub(crate) fn read<'r>(
    bytes: &'r [u8],
    scheme: &str,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Option<&'r [u8]> {
    let mut fields = [httparse::EMPTY_HEADER; 256];
    let mut head = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(len)) = head.parse(bytes) else {
        return None;
    };
    let (method, path) = (head.method?, head.path?);
    let host = head
        .headers
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("host"));
    each(b":method", method.as_bytes());
    each(b":scheme", scheme.as_bytes());
    if let Some(host) = host {
        each(b":authority", host.value);
    }
    each(b":path", path.as_bytes());
    for field in head.headers.iter() {
        let name = field.name.to_ascii_lowercase();
        if name != "host" && is_kept(&name, field.value) {
            each(name.as_bytes(), field.value);
        }
    }
    Some(&bytes[len..])
}
