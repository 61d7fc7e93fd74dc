//! The server side of one HTTP/2 connection, without I/O.

use std::collections::BTreeMap;
use std::ops::Range;

use net::FieldSection;
use net::grpc;
use net::h2::{ErrorCode, H2Error, Incoming, Session, SessionLimits, hpack};
use net::http::Request;

use crate::body::Body;
use crate::fields::{answer_fields, request};
use crate::pages::StreamPage;
use crate::server::LastingId;

const LIMITS: SessionLimits = SessionLimits {
    streams_max: 256,
    overhead_max: 10_000,
    reset_cost: 1,
};
/// How many bytes of content a client may send ahead. Content is discarded at once, so a small window
/// would only make uploads wait for round trips.
const WINDOW: u32 = 1 << 30;
/// How much of the answers is encoded while the socket still has unsent bytes.
const OUT_MAX: usize = 64 * 1024;

/// An answer as HTTP/2 sends it.
#[derive(Clone, Debug)]
pub(crate) struct H2Page {
    block: Vec<u8>,
    body: Body,
}

impl StreamPage for H2Page {
    fn with_body(head: &[u8], body: Body) -> Self {
        let mut block = Vec::new();
        answer_fields(head, |name, value| {
            hpack::encode(&mut block, name, value);
        });
        Self { block, body }
    }
}

/// A body that is being sent.
#[derive(Debug)]
struct Answer {
    body: Body,
    sent: usize,
}

/// A request that is complete.
#[derive(Debug)]
pub(crate) struct H2Request {
    pub(crate) stream: u32,
    pub(crate) request: Request,
}

/// What came from the client.
#[derive(Debug)]
pub(crate) enum H2Incoming {
    Request(H2Request),
    /// Content that belongs to an exchange.
    Content {
        stream: u32,
        /// Where it lies in [`H2Server::take_contents`].
        range: Range<usize>,
        /// Whether nothing follows.
        ends: bool,
    },
    /// The stream of an exchange was reset.
    Gone(LastingId),
}

pub(crate) struct H2Server {
    session: Session,
    /// The exchanges that last, by stream, `None` until they begin; and those that wait until the
    /// client reads.
    pub(crate) exchanges: BTreeMap<u32, Option<LastingId>>,
    pub(crate) blocked: Vec<LastingId>,
    /// Content of exchanges that came last.
    contents: Vec<u8>,
    /// Requests whose content has not ended, by stream.
    open: BTreeMap<u32, Request>,
    /// By stream.
    answers: BTreeMap<u32, Answer>,
}

impl H2Server {
    /// A new session; its settings are in the output.
    pub(crate) fn new() -> Self {
        Self {
            session: Session::of_server(LIMITS)
                .with_windows(WINDOW)
                .with_extended_connect(),
            exchanges: BTreeMap::new(),
            blocked: Vec::new(),
            contents: Vec::new(),
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    /// What has to be sent; the caller empties it.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.session.out
    }

    /// Takes received bytes; what came goes to `arrived`.
    ///
    /// # Errors
    /// When the client breaks a rule of the connection; a GOAWAY with the reason is in `out`.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        arrived: &mut Vec<H2Incoming>,
    ) -> Result<(), H2Error> {
        let (open, answers) = (&mut self.open, &mut self.answers);
        let (exchanges, contents) = (&mut self.exchanges, &mut self.contents);
        contents.clear();
        // Content is not kept, so the windows are opened at once.
        let mut released = Vec::new();
        let fed = self.session.feed(input, |incoming| match incoming {
            Incoming::Head {
                stream,
                head,
                is_complete,
            } if takes_content(head) => {
                exchanges.insert(stream, None);
                arrived.push(H2Incoming::Request(H2Request {
                    stream,
                    request: request(head),
                }));
                if is_complete {
                    arrived.push(content(contents, stream, &[], true));
                }
            }
            Incoming::Head {
                stream,
                head,
                is_complete,
            } => match is_complete {
                true => arrived.push(H2Incoming::Request(H2Request {
                    stream,
                    request: request(head),
                })),
                false => drop(open.insert(stream, request(head))),
            },
            Incoming::Data {
                stream,
                bytes,
                flow,
                is_complete,
            } if exchanges.contains_key(&stream) => {
                arrived.push(content(contents, stream, bytes, is_complete));
                if !is_complete {
                    released.push((stream, flow));
                }
            }
            Incoming::Data {
                stream,
                bytes,
                flow,
                is_complete,
            } => {
                if let Some(request) = open.get_mut(&stream) {
                    request.take_body(bytes);
                }
                match is_complete {
                    true => arrived.extend(complete(open, stream)),
                    false => released.push((stream, flow)),
                }
            }
            Incoming::Trailers { stream, .. } if exchanges.contains_key(&stream) => {
                arrived.push(content(contents, stream, &[], true));
            }
            Incoming::Trailers { stream, .. } => arrived.extend(complete(open, stream)),
            Incoming::Reset { stream, .. } => {
                open.remove(&stream);
                answers.remove(&stream);
                arrived.extend(exchanges.remove(&stream).flatten().map(H2Incoming::Gone));
            }
            Incoming::Malformed => {}
        });
        for (stream, flow) in released {
            self.session.release(stream, flow);
        }
        fed
    }

    /// Answers a request, unless its stream has been reset meanwhile.
    pub(crate) fn answer(&mut self, stream: u32, page: &H2Page) {
        let is_empty = page.body.size() == 0;
        if !self.session.is_open(stream) {
            return;
        }
        self.session.send_headers(stream, &page.block, is_empty);
        if !is_empty {
            let body = page.body.clone();
            self.answers.insert(stream, Answer { body, sent: 0 });
        }
    }

    /// Sends the head of an answer that lasts, unless its stream has been reset meanwhile: returns
    /// whether it did.
    pub(crate) fn open_answer(&mut self, stream: u32, page: &H2Page, is_tunnel: bool) -> bool {
        let is_open = self.session.is_open(stream);
        self.session.send_headers(stream, &page.block, false);
        if is_tunnel {
            self.session.accept_tunnel(stream);
        }
        is_open
    }

    /// Sends as much of the content of an answer that lasts as the windows allow; returns how much.
    pub(crate) fn send_content(&mut self, stream: u32, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            match self.session.send_data(stream, &bytes[at..], false) {
                0 => break,
                sent => at += sent,
            }
        }
        at
    }

    /// Ends an answer that lasts; with an error code, the stream is reset.
    pub(crate) fn end_answer(&mut self, stream: u32, error: Option<ErrorCode>) {
        self.exchanges.remove(&stream);
        match error {
            None => _ = self.session.send_data(stream, &[], true),
            Some(code) => self.session.reset(stream, code),
        }
    }

    /// Ends an answer that lasts with these fields.
    pub(crate) fn end_with_trailers(&mut self, stream: u32, fields: &[(&str, String)]) {
        self.exchanges.remove(&stream);
        let mut block = Vec::new();
        for (name, value) in fields {
            hpack::encode(&mut block, name.as_bytes(), value.as_bytes());
        }
        self.session.send_headers(stream, &block, true);
    }

    /// Takes the content of exchanges that came last, until [`H2Server::keep_contents`].
    pub(crate) fn take_contents(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.contents)
    }

    /// Keeps the memory of contents that were taken.
    pub(crate) fn keep_contents(&mut self, contents: Vec<u8>) {
        self.contents = contents;
    }

    /// How many bytes wait to be taken from [`Self::out`].
    pub(crate) fn out_len(&self) -> usize {
        self.session.out.len()
    }

    /// Moves as much of the answers' bodies to `out` as the windows allow.
    pub(crate) fn send_bodies(&mut self) {
        let session = &mut self.session;
        self.answers.retain(|&stream, answer| {
            while session.out.len() < OUT_MAX {
                let piece = answer.body.piece(answer.sent);
                let is_last = answer.sent + piece.len() == answer.body.size();
                let sent = session.send_data(stream, &piece, is_last);
                answer.sent += sent;
                if answer.sent == answer.body.size() {
                    return false;
                }
                if sent == 0 {
                    break;
                }
            }
            true
        });
    }
}

/// Whether the content of a request belongs to an exchange that lasts.
fn takes_content(head: &FieldSection) -> bool {
    let is_call =
        |(name, value): (&[u8], &[u8])| name == b"content-type" && grpc::is_content_type(value);
    head.protocol().is_some() || (head.method() == b"POST" && head.fields().any(is_call))
}

fn content(contents: &mut Vec<u8>, stream: u32, bytes: &[u8], ends: bool) -> H2Incoming {
    let start = contents.len();
    contents.extend_from_slice(bytes);
    H2Incoming::Content {
        stream,
        range: start..contents.len(),
        ends,
    }
}

fn complete(open: &mut BTreeMap<u32, Request>, stream: u32) -> Option<H2Incoming> {
    let request = open.remove(&stream)?;
    Some(H2Incoming::Request(H2Request { stream, request }))
}
