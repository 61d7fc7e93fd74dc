//! What a load sends: requests with places to fill, their data, sessions of users, and logs to
//! repeat. Plain data: `requests` reads it from files, `load` sends it.
//!
//! Every request of a target has a number, from 0 over all threads and hosts; of N threads the one
//! with number t sends the requests t, t + N, t + 2N. What is filled in is a function of the seed
//! and of that number alone, so each subject gets the same sequence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Text with places that are filled for each request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Template(pub Vec<Piece>);

impl Template {
    /// Text without places.
    pub fn fixed(text: impl Into<Vec<u8>>) -> Self {
        Self(vec![Piece::Text(text.into())])
    }

    /// The text, if it has no places.
    pub fn as_fixed(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    Text(#[serde(with = "base64_bytes")] Vec<u8>),
    Place {
        fill: Fill,
        /// Whether what is filled in is percent-encoded, as in a URL: all but the unreserved
        /// characters of RFC 3986.
        is_encoded: bool,
    },
}

/// What a place is filled with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// A column of the request's row in a feed, both by number.
    Column { feed: usize, column: usize },
    /// The number of the request, from 1.
    Seq,
    /// A UUID of version 4, by the seed.
    Uuid,
    /// A whole number, uniformly distributed; both ends are included.
    Int { from: i64, to: i64 },
    /// A key from 1 to `keys`: key k with a probability in proportion to k^-exponent.
    Zipf { keys: u64, exponent: f64 },
    /// So many random hexadecimal digits.
    Hex { digits: u32 },
    /// Milliseconds since 1970, when the request is written.
    Now,
    /// What an earlier answer to the same user had, by its number in [`RequestSet::captured`].
    Captured { name: usize },
}

/// Rows of data for requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feed {
    pub name: String,
    pub columns: Vec<String>,
    /// Rows, each with a value per column.
    pub rows: Vec<Vec<String>>,
    pub order: FeedOrder,
}

/// The most hexadecimal digits of a [`Fill::Hex`].
pub const DIGITS_MAX: u32 = 65_536;

/// Which row of a feed a request has. In a session it is the user's: all of its requests have the
/// same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedOrder {
    /// By its number, round and round.
    #[default]
    InTurn,
    Random,
    /// By its number; no request is sent once all rows are used.
    Once,
}

/// A request as files say it, without its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSpec {
    pub name: String,
    pub method: String,
    pub path: Template,
    /// Header fields, besides `Host` and `Content-Length`.
    pub fields: Vec<(String, Template)>,
    pub body: Option<Template>,
    /// How often it is sent, relative to the others; at least 1.
    pub weight: u32,
    pub expect: AnswerSpec,
    /// In a session: the user's pause before it.
    pub pause: Duration,
    /// In a session: what the user keeps of its answer.
    pub captures: Vec<Capture>,
    /// In a session: only in a user's first round, such as a login.
    pub is_once: bool,
}

/// A GET without anything else, as often as others.
impl Default for RequestSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            method: "GET".to_owned(),
            path: Template::default(),
            fields: Vec::new(),
            body: None,
            weight: 1,
            expect: AnswerSpec::default(),
            pause: Duration::ZERO,
            captures: Vec::new(),
            is_once: false,
        }
    }
}

/// Which answer is good; what is not given is not checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerSpec {
    /// `None`: 200 to 399.
    pub status: Option<u16>,
    /// Text that the body contains.
    pub contains: Option<String>,
    /// Bytes of the body.
    pub length: Option<u64>,
    /// SHA-256 of the body, in lower-case hexadecimal digits.
    pub sha256: Option<String>,
    /// Values in the body, which is JSON: pointer (RFC 6901) and value.
    pub json: Vec<(String, serde_json::Value)>,
    /// Header fields: name in lower case, and value.
    pub fields: Vec<(String, String)>,
}

/// What is kept of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// Its number in [`RequestSet::captured`].
    pub name: usize,
    pub from: CaptureFrom,
}

/// Where in an answer it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureFrom {
    /// At a JSON pointer (RFC 6901) in the body; a string without its quotes.
    Json(String),
    /// A header field, by its name in lower case.
    Field(String),
    /// The first text in the body between two others.
    Between { before: String, after: String },
}

/// All that is sent to a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestSet {
    pub requests: Vec<RequestSpec>,
    pub feeds: Vec<Feed>,
    /// Names of what is kept of answers.
    pub captured: Vec<String>,
    /// Whether the requests are sent in order; otherwise at random by weight.
    pub in_order: bool,
    /// Requests are the steps of a user's session.
    pub users: Option<Users>,
    /// Requests have the times of a log.
    pub replay: Option<Replay>,
}

impl RequestSet {
    /// Gives a header field to each request that has none of its name.
    pub fn add_field(&mut self, name: &str, value: &Template) {
        for request in &mut self.requests {
            let mut own = request.fields.iter();
            if !own.any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                request.fields.push((name.to_owned(), value.clone()));
            }
        }
    }

    /// Expects a status, and a text in the body, of each request that does not say its own.
    pub fn expect(&mut self, status: Option<u16>, contains: Option<&str>) {
        for request in &mut self.requests {
            let expect = &mut request.expect;
            expect.status = expect.status.or(status);
            if expect.contains.is_none() {
                expect.contains = contains.map(str::to_owned);
            }
        }
    }
}

/// Users, each of whom holds a connection and makes the requests in order. A user of an open loop
/// arrives, makes one round, and leaves. In a closed loop a new user starts each round; if a step
/// is only in the first round, the same user repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    pub keeps_cookies: bool,
}

/// The requests of a log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// When each is due, ns since the first; ascending.
    pub due_ns: Vec<u64>,
    /// The number of each in [`RequestSet::requests`].
    pub requests: Vec<u32>,
    /// Lines that are not replayed: why, and how many.
    pub left_out: Vec<(String, u64)>,
}

impl Replay {
    /// From the first request to just after the last; a log of one request has no length of its own.
    pub fn length(&self) -> Duration {
        let last = self.due_ns.last().copied().unwrap_or_default();
        Duration::from_nanos(last.saturating_add(1)).max(Duration::from_millis(1))
    }

    /// The mean rate, requests per second.
    pub fn rate_per_s(&self) -> f64 {
        self.due_ns.len() as f64 / self.length().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_itself_stays() {
        let request = |fields: &[&str], status| RequestSpec {
            name: "a".into(),
            path: Template::fixed("/"),
            fields: fields
                .iter()
                .map(|name| ((*name).to_owned(), Template::fixed("own")))
                .collect(),
            expect: AnswerSpec {
                status,
                ..AnswerSpec::default()
            },
            ..RequestSpec::default()
        };
        let mut set = RequestSet {
            requests: vec![request(&["accept"], Some(404)), request(&[], None)],
            ..RequestSet::default()
        };
        set.add_field("Accept", &Template::fixed("all"));
        set.expect(Some(201), Some("x"));
        let fields = |at: usize| set.requests[at].fields.clone();
        assert_eq!(fields(0), [("accept".into(), Template::fixed("own"))]);
        assert_eq!(fields(1), [("Accept".into(), Template::fixed("all"))]);
        let expect = |at: usize| set.requests[at].expect.clone();
        assert_eq!((expect(0).status, expect(1).status), (Some(404), Some(201)));
        assert_eq!(expect(0).contains.as_deref(), Some("x"));
    }
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(input)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
