//! HTTP services: each request is dispatched on its own.
//!
//! A client's connection reads a request's head, chooses a back end, and sends the request on a
//! connection that was kept from an earlier one, or on a new one. Both then belong to this
//! *exchange* until the answer is complete; after it the back end's connection goes back to the
//! pool of its thread. What the bytes mean is told by [`crate::http`]; here is what is done about
//! it, and when.
//!
//! A head that nothing has to be changed in is sent on from the buffer that it was received in,
//! with what of the body came with it. A copy of the request is kept until its answer begins, as
//! long as it is short, so that it can be sent again.

mod backend_slot;
mod close;
mod edits;
mod exchange;
mod limits;
mod plan;
mod pool;
mod request;
mod response;
mod switch;

use std::net::SocketAddr;

use net::{ConnId, Io};

use crate::engine::events::RequestLine;
use crate::http::{BodyPass, BodyTracker, Direction, Framing, HeadScan, Method, RequestContext};

pub(super) use backend_slot::{HttpServiceWorker, IDLE_MAX};
pub(super) use edits::check;

/// A side stops being read when its peer has this many buffers still to send.
const QUEUE_MAX: usize = 8;
/// A client that sends more than this before its turn stops being read, bytes.
const INPUT_MAX: usize = 64 * 1024;
/// The longest request, with what has been sent of its body, that is kept to be sent again, bytes.
const KEPT_MAX: usize = 64 * 1024;
/// Room that a connection keeps between messages, bytes.
const ROOM_MAX: usize = 4 * 1024;
/// Up to this length the body behind a changed head is copied, so that one send does, bytes.
const COPY_MAX: usize = 4 * 1024;

/// How many it may have: fewer when buffers are scarce.
fn queue_max<I: Io>(io: &I) -> usize {
    match io.scarce() {
        true => 1,
        false => QUEUE_MAX,
    }
}

/// How far a client's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The next request has not come, or not its whole head.
    Reading,
    /// A request waits for a connection to a back end.
    Seeking,
    /// A request is being sent, or answered.
    Exchanging,
}

/// A client of an HTTP service.
pub(super) struct Downstream {
    pub phase: Phase,
    scan: HeadScan,
    /// What was received and could not be used yet: the beginning of a head, a body whose back end
    /// is not connected, requests that wait for their turn.
    input: Vec<u8>,
    /// The request under way as it came, with what has been sent of its body.
    request: Vec<u8>,
    /// Whether [`Downstream::request`] is all that has been sent.
    whole: bool,
    method: Method,
    minor_version: u8,
    /// Whether the connection is used again behind the request, then behind the answer.
    keep_alive: bool,
    context: RequestContext,
    /// The end of the request's body.
    body: BodyTracker,
    /// Only the first head was looked at: all that comes is passed on.
    raw: bool,
    /// The back end that its cookie binds the request to.
    sticky: Option<u32>,
    /// A back end has failed to answer it.
    failed: bool,
    /// The head of the final answer was sent.
    response_sent: bool,
    /// Answers that were begun on this connection.
    responses: u64,
    status: u16,
    response_bytes: u64,
    /// When the request's first bytes came, ns.
    began_ns: u64,
    /// What is logged of its head.
    line: Option<Box<RequestLine>>,
    /// As of the last scan: bytes of both sides, and since when no more, ns.
    moved: u64,
    moved_ns: u64,
}

impl Downstream {
    pub fn new(now_ns: u64) -> Downstream {
        Downstream {
            phase: Phase::Reading,
            scan: HeadScan::default(),
            input: Vec::new(),
            request: Vec::new(),
            whole: true,
            method: Method::Other,
            minor_version: 1,
            keep_alive: true,
            context: RequestContext::default(),
            body: BodyTracker::new(Direction::Request, Framing::None),
            raw: false,
            sticky: None,
            failed: false,
            response_sent: false,
            responses: 0,
            status: 0,
            response_bytes: 0,
            began_ns: now_ns,
            line: None,
            moved: 0,
            moved_ns: now_ns,
        }
    }

    /// Whether the request can be sent to a back end again, or to another one.
    fn can_repeat(&self) -> bool {
        self.whole && self.method.is_idempotent() && !self.response_sent
    }

    /// Keeps bytes of the body that are being sent, in case they have to be sent again.
    fn keep(&mut self, bytes: &[u8]) {
        if !self.whole {
            return;
        }
        // Nobody would send them again.
        if !self.method.is_idempotent() || self.request.len() + bytes.len() > KEPT_MAX {
            self.whole = false;
            self.request = Vec::new();
            return;
        }
        self.request.extend_from_slice(bytes);
    }
}

/// A connection to a back end of an HTTP service.
pub(super) struct Upstream {
    /// The beginning of an answer's head.
    head: Vec<u8>,
    scan: HeadScan,
    /// The end of the answer's body, once its head has come.
    body: Option<BodyTracker>,
    pass: BodyPass,
    interims: u8,
    /// It was used for an earlier request.
    reused: bool,
    /// Something of the answer has come.
    response_begun: bool,
    /// It can be used again when the answer is complete.
    keep: bool,
    /// When the request was sent, ns.
    sent_ns: u64,
    /// For whom it was opened, and when, ns.
    opened_for: SocketAddr,
    opened_ns: u64,
    /// How often the back end had been moved when it was opened.
    address_version: u32,
    /// Bytes sent to it, and how many of them the counters have.
    sent: u64,
    sent_counted: u64,
}

impl Upstream {
    fn new(address_version: u32, opened_for: SocketAddr, opened_ns: u64) -> Upstream {
        Upstream {
            opened_for,
            opened_ns,
            address_version,
            head: Vec::new(),
            scan: HeadScan::default(),
            body: None,
            pass: BodyPass::AsIs,
            interims: 0,
            reused: false,
            response_begun: false,
            keep: false,
            sent_ns: 0,
            sent: 0,
            sent_counted: 0,
        }
    }

    /// Makes it ready for the answer to a request that is sent now.
    fn begin(&mut self, now_ns: u64) {
        self.head.clear();
        self.scan.reset();
        (self.body, self.pass) = (None, BodyPass::AsIs);
        (self.interims, self.response_begun, self.keep) = (0, false, false);
        self.sent_ns = now_ns;
    }
}

/// A pair of an exchange.
#[derive(Clone, Copy)]
struct Pair {
    client: ConnId,
    server: ConnId,
}

/// Empties a vector, and lets go of its room where that is large.
fn empty(bytes: &mut Vec<u8>) {
    if bytes.capacity() > ROOM_MAX {
        *bytes = Vec::new();
    } else {
        bytes.clear();
    }
}
