//! Whole requests with places, made ready for a version of HTTP.

use std::sync::Arc;

use net::h2::hpack;
use net::h3::qpack;
use readings::HttpVersion;
use readings::requests::{Piece, Template};
use serde::{Deserialize, Serialize};

use super::{Filler, Values, text};
use crate::job::fields;

/// A request with places. `Content-Length` is added to one with a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestTemplate {
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Header fields, `Host` among them.
    pub fields: Vec<(String, Template)>,
    pub body: Option<Template>,
}

/// The bytes of a filled request: of HTTP/1.1 as they are sent; of HTTP/2 the header block, and of
/// HTTP/3 the field section, with the body behind it.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub(crate) bytes: Vec<u8>,
    /// Where the body begins.
    pub(crate) body_at: usize,
    /// A long body without places, which is not in `bytes`.
    pub(crate) shared: Option<Arc<[u8]>>,
}

/// Bodies without places that are at least so long are not copied.
const SHARED_MIN: usize = 16 * 1024;

impl Rendered {
    /// Head and body.
    #[inline]
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        match &self.shared {
            Some(body) => (&self.bytes, body),
            None => self.bytes.split_at(self.body_at),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Has no request. The memory stays.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.body_at = 0;
        self.shared = None;
    }
}

/// Memory for a value and a body.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    value: Vec<u8>,
    body: Vec<u8>,
}

/// A [`RequestTemplate`] that can be filled in.
#[derive(Clone, Debug)]
pub(crate) struct RequestFiller {
    head: Head,
    body: Body,
    uses_now: bool,
}

#[derive(Clone, Debug)]
enum Head {
    /// Of HTTP/1.1; without the end if the body has places.
    Text(Filler),
    Fields(Vec<Field>, Encode),
}

/// Encodes a field.
type Encode = fn(&mut Vec<u8>, &[u8], &[u8]);

#[derive(Clone, Debug)]
enum Field {
    /// One or more that have no places.
    Encoded(Vec<u8>),
    Filled {
        name: Vec<u8>,
        value: Filler,
    },
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Fixed(Arc<[u8]>),
    Filled(Filler),
}

impl RequestTemplate {
    /// Its templates, in the order in which their places are numbered.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let fields = self.fields.iter().map(|(_, value)| value);
        std::iter::once(&self.path).chain(fields).chain(&self.body)
    }
}

impl RequestTemplate {
    /// Bytes of its body's fixed text that each connection has for itself: twice, filled in and as
    /// the copy that is being sent.
    pub(crate) fn fixed_bytes(&self) -> usize {
        let is_copied =
            |body: &&Template| body.as_fixed().is_none_or(|body| body.len() < SHARED_MIN);
        let pieces = self.body.iter().filter(is_copied).flat_map(|body| &body.0);
        let bytes = pieces.map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Place { .. } => 0,
        });
        2 * bytes.sum::<usize>()
    }
}

impl RequestFiller {
    /// For a version of HTTP.
    pub(crate) fn new(request: &RequestTemplate, http: HttpVersion, scheme: &str) -> Self {
        let (path, mut place) = Filler::new(&request.path, 0);
        let mut uses_now = path.uses_now();
        let mut values = Vec::new();
        for (name, value) in &request.fields {
            let (value, next) = Filler::new(value, place);
            uses_now |= value.uses_now();
            values.push((name.as_str(), value));
            place = next;
        }
        let body = match &request.body {
            // They have one, of no bytes (RFC 9110, 8.6).
            None if takes_body(&request.method) && !has_length(&request.fields) => {
                Body::Fixed(Arc::default())
            }
            None => Body::None,
            Some(body) => {
                let body = Filler::new(body, place).0;
                uses_now |= body.uses_now();
                match body.as_fixed() {
                    Some(fixed) => Body::Fixed(fixed.into()),
                    None => Body::Filled(body),
                }
            }
        };
        let head = match http {
            HttpVersion::Http1 => text_head(&request.method, path, values, &body),
            HttpVersion::Http2 => {
                let head = pseudo_fields(&request.method, scheme, path, &values);
                Head::Fields(
                    encoded(Vec::new(), head, values, &body, hpack::encode),
                    hpack::encode,
                )
            }
            HttpVersion::Http3 => {
                let mut prefix = Vec::new();
                qpack::begin(&mut prefix);
                let head = pseudo_fields(&request.method, scheme, path, &values);
                Head::Fields(
                    encoded(prefix, head, values, &body, qpack::encode),
                    qpack::encode,
                )
            }
        };
        Self {
            head,
            body,
            uses_now,
        }
    }

    /// Whether it holds the time at which it is filled in.
    pub(crate) fn uses_now(&self) -> bool {
        self.uses_now
    }

    /// Its body, if that is sent without being copied.
    pub(crate) fn shared(&self) -> Option<&Arc<[u8]>> {
        match &self.body {
            Body::Fixed(body) if body.len() >= SHARED_MIN => Some(body),
            _ => None,
        }
    }

    /// Fills it in, in place of what was there.
    pub(crate) fn render(&self, values: &Values<'_>, scratch: &mut Scratch, out: &mut Rendered) {
        out.bytes.clear();
        let body: &[u8] = match &self.body {
            Body::None => b"",
            Body::Fixed(body) => body,
            Body::Filled(body) => {
                scratch.body.clear();
                body.append(values, &mut scratch.body);
                &scratch.body
            }
        };
        let has_filled_body = matches!(self.body, Body::Filled(_));
        match &self.head {
            Head::Text(head) => {
                head.append(values, &mut out.bytes);
                if has_filled_body {
                    text::decimal(body.len() as u64, &mut out.bytes);
                    out.bytes.extend_from_slice(b"\r\n\r\n");
                }
            }
            Head::Fields(fields, encode) => {
                let value = &mut scratch.value;
                for field in fields {
                    match field {
                        Field::Encoded(bytes) => out.bytes.extend_from_slice(bytes),
                        Field::Filled {
                            name,
                            value: filler,
                        } => {
                            value.clear();
                            filler.append(values, value);
                            encode(&mut out.bytes, name, value);
                        }
                    }
                }
                if has_filled_body {
                    value.clear();
                    text::decimal(body.len() as u64, value);
                    encode(&mut out.bytes, CONTENT_LENGTH, value);
                }
            }
        }
        out.body_at = out.bytes.len();
        out.shared = self.shared().cloned();
        if out.shared.is_none() {
            out.bytes.extend_from_slice(body);
        }
    }
}

const CONTENT_LENGTH: &[u8] = b"content-length";

/// Whether a request of this method mostly has a body.
fn takes_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

fn has_length(fields: &[(String, Template)]) -> bool {
    let names = ["content-length", "transfer-encoding"];
    let is_one =
        |(name, _): &(String, Template)| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    fields.iter().any(is_one)
}

/// The head of HTTP/1.1.
fn text_head(method: &str, path: Filler, values: Vec<(&str, Filler)>, body: &Body) -> Head {
    let mut head = Filler::default();
    head.push_text(format!("{method} ").as_bytes());
    head.extend(path);
    head.push_text(b" HTTP/1.1\r\n");
    for (name, value) in values {
        head.push_text(format!("{name}: ").as_bytes());
        head.extend(value);
        head.push_text(b"\r\n");
    }
    match body {
        Body::None => head.push_text(b"\r\n"),
        Body::Fixed(body) => {
            head.push_text(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        }
        Body::Filled(_) => head.push_text(b"Content-Length: "),
    }
    Head::Text(head)
}

/// The pseudo-fields, which come first.
fn pseudo_fields(
    method: &str,
    scheme: &str,
    path: Filler,
    values: &[(&str, Filler)],
) -> Vec<(Vec<u8>, Filler)> {
    let fixed = |text: &str| {
        let mut filler = Filler::default();
        filler.push_text(text.as_bytes());
        filler
    };
    let host = values
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let mut fields = vec![
        (b":method".to_vec(), fixed(method)),
        (b":scheme".to_vec(), fixed(scheme)),
    ];
    fields.extend(host.map(|(_, host)| (b":authority".to_vec(), host.clone())));
    fields.push((b":path".to_vec(), path));
    fields
}

/// All fields, those without places encoded once.
fn encoded(
    prefix: Vec<u8>,
    mut all: Vec<(Vec<u8>, Filler)>,
    values: Vec<(&str, Filler)>,
    body: &Body,
    encode: Encode,
) -> Vec<Field> {
    for (name, value) in values {
        let name = name.to_ascii_lowercase();
        let text = value.as_fixed().unwrap_or_default();
        if name != "host" && fields::is_kept(&name, text) {
            all.push((name.into_bytes(), value));
        }
    }
    if let Body::Fixed(body) = body {
        let mut length = Filler::default();
        length.push_text(body.len().to_string().as_bytes());
        all.push((CONTENT_LENGTH.to_vec(), length));
    }
    let mut fields = vec![Field::Encoded(prefix)];
    for (name, value) in all {
        match (value.as_fixed(), fields.last_mut()) {
            (Some(text), Some(Field::Encoded(bytes))) => encode(bytes, &name, text),
            (Some(text), _) => {
                let mut bytes = Vec::new();
                encode(&mut bytes, &name, text);
                fields.push(Field::Encoded(bytes));
            }
            (None, _) => fields.push(Field::Filled { name, value }),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use readings::requests::Fill;

    use super::*;
    use crate::http::{h2, h3};

    fn template(parts: &[&str]) -> Template {
        let fill = |text: &&str| match *text {
            "{seq}" => Piece::Place {
                fill: Fill::Seq,
                is_encoded: false,
            },
            text => Piece::Text(text.into()),
        };
        Template(parts.iter().map(fill).collect())
    }

    fn rendered(request: &RequestTemplate, http: HttpVersion, number: u64) -> Rendered {
        let values = Values {
            number,
            row: number,
            seed: 1,
            first: 0,
            feeds: &[],
            captured: &[],
            now_ms: 0,
        };
        let (mut scratch, mut out) = (Scratch::default(), Rendered::default());
        let filler = RequestFiller::new(request, http, "https");
        // What was there before is gone.
        for number in [number + 1_000_000, number] {
            filler.render(&Values { number, ..values }, &mut scratch, &mut out);
        }
        out
    }

    fn requests() -> [RequestTemplate; 3] {
        let one = |path: &[&str], body: Option<&[&str]>| RequestTemplate {
            method: "POST".into(),
            path: template(path),
            fields: vec![
                ("Host".into(), template(&["x:1"])),
                ("X-Fixed".into(), template(&["a"])),
                ("Connection".into(), template(&["close"])),
                ("X-Number".into(), template(&["n", "{seq}"])),
                ("accept-encoding".into(), template(&["gzip, deflate"])),
            ],
            body: body.map(template),
        };
        [
            one(&["/a/", "{seq}", "?b=", "{seq}"], None),
            one(&["/"], Some(&["fixed"])),
            one(&["/", "{seq}"], Some(&["{", "{seq}", "}"])),
        ]
    }

    /// What a request is that has no places, and the same text.
    fn by_hand(request: usize, number: u64) -> String {
        let n = number + 1;
        let body = ["", "fixed", &format!("{{{n}}}")][request].to_owned();
        let path = [format!("/a/{n}?b={n}"), "/".to_owned(), format!("/{n}")];
        let length = format!("Content-Length: {}\r\n", body.len());
        format!(
            "POST {} HTTP/1.1\r\nHost: x:1\r\nX-Fixed: a\r\nConnection: close\r\nX-Number: n{n}\r\n\
             accept-encoding: gzip, deflate\r\n{length}\r\n{body}",
            path[request]
        )
    }

    #[test]
    fn each_version_sends_what_a_fixed_request_of_the_same_text_is() {
        for (at, request) in requests().iter().enumerate() {
            for number in [0, 9, 123_456] {
                let text = by_hand(at, number);
                let own = rendered(request, HttpVersion::Http1, number);
                assert_eq!(String::from_utf8_lossy(&own.bytes), text);
                let own = rendered(request, HttpVersion::Http2, number);
                let fixed = h2::EncodedRequest::of(text.as_bytes(), "https").unwrap();
                assert_eq!(own.parts(), (fixed.block.as_slice(), &*fixed.body));
                let own = rendered(request, HttpVersion::Http3, number);
                let fixed = h3::EncodedRequest::of(text.as_bytes()).unwrap();
                let (section, body) = own.parts();
                assert_eq!(h3::frames(section, body), fixed.frames);
            }
        }
    }
}
