//! HTTP services: each request is dispatched separately.
//!
//! A worker reads the head of a request, chooses a back end, and sends the request on an idle
//! connection or a new one. Client and back end then form an *exchange* until the response is
//! complete; after it, the connection to the back end goes to the pool of the thread.
//! [`crate::http`] parses and rewrites; this module acts.
//!
//! A head that needs no change is forwarded from its receive buffer, with the part of the body
//! behind it. A short request is kept until its response begins, so that it can be sent again.

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

use crate::engine::shared::events::RequestLine;
use crate::http::{BodyPass, BodyTracker, Direction, Framing, HeadScan, Method, RequestContext};

pub(super) use backend_slot::{HttpServiceWorker, IDLE_MAX};
pub(super) use edits::check;
pub(super) use plan::choose_held;

/// Buffers queued to a peer before the sender is paused.
const QUEUE_MAX: usize = 8;
/// Bytes held for a client before it is paused.
const INPUT_MAX: usize = 64 * 1024;
/// Largest request, with the part of its body that was sent, that is kept for sending again, bytes.
const KEPT_MAX: usize = 64 * 1024;
/// Buffer capacity that a connection keeps between messages, bytes.
const ROOM_MAX: usize = 4 * 1024;
/// Up to this length, the body behind a rewritten head is copied, to save a send.
const COPY_MAX: usize = 4 * 1024;

/// 1 while buffers are scarce.
fn queue_max<I: Io>(io: &I) -> usize {
    match io.scarce() {
        true => 1,
        false => QUEUE_MAX,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for the next request, or the rest of its head.
    Reading,
    /// A request waits for a connection to a back end.
    Seeking,
    /// A request is being sent or answered.
    Exchanging,
}

/// State of a client of an HTTP service.
pub(super) struct Downstream {
    pub phase: Phase,
    scan: HeadScan,
    /// Received and not yet used: part of a head, a body whose back end is not connected, or
    /// pipelined requests.
    input: Vec<u8>,
    /// The current request as received, with the part of its body that was sent.
    request: Vec<u8>,
    /// Whether [`Downstream::request`] is all that was sent.
    whole: bool,
    method: Method,
    minor_version: u8,
    /// Whether the connection persists after the request, later after the response.
    keep_alive: bool,
    context: RequestContext,
    /// Tracks the end of the request's body.
    body: BodyTracker,
    has_body: bool,
    /// Only the first head was inspected; everything else is relayed.
    raw: bool,
    /// The back end that the cookie names.
    sticky: Option<u32>,
    /// A back end failed to answer the request.
    failed: bool,
    /// How often the request may be sent again.
    resends_left: u32,
    /// The head of the final response was sent.
    response_sent: bool,
    /// Responses on this connection so far.
    responses: u64,
    status: u16,
    /// The time limit that truncates the response.
    cut: Option<&'static str>,
    response_bytes: u64,
    /// For the logs: when the request began, ns. A pipelined one begins when the one before it
    /// ends.
    began_ns: u64,
    /// For the logs: bytes received from the client up to the end of the request before.
    logged: u64,
    /// For the access log.
    line: Option<Box<RequestLine>>,
    /// Bytes in both directions at the last scan.
    moved: u64,
    /// Since when `moved` has not changed, ns.
    moved_ns: u64,
    /// The wait for the rest of the body. It begins with the first scan that finds the body
    /// incomplete.
    body_wait: Option<BodyWait>,
}

/// How long the rest of a client's request body has been waited for.
#[derive(Clone, Copy)]
struct BodyWait {
    /// Bytes received from the client when the wait began.
    bytes: u64,
    /// Time in which the balancer waited for nothing but the client, ns.
    waited_ns: u64,
    /// Time of the last scan, ns.
    scanned_ns: u64,
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
            has_body: false,
            raw: false,
            sticky: None,
            failed: false,
            resends_left: 0,
            response_sent: false,
            responses: 0,
            status: 0,
            cut: None,
            response_bytes: 0,
            began_ns: now_ns,
            logged: 0,
            line: None,
            moved: 0,
            moved_ns: now_ns,
            body_wait: None,
        }
    }

    /// Begins with bytes that were received before.
    pub fn hold(&mut self, bytes: Vec<u8>) {
        self.input = bytes;
    }

    /// Whether no byte has come since the last response, or since the client connected.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Reading && self.input.is_empty()
    }

    /// Whether a request like this may be sent again.
    fn may_repeat(&self) -> bool {
        self.resends_left > 0 && self.method.is_idempotent()
    }

    /// Whether the request can be sent again, to this or another back end.
    fn can_repeat(&self) -> bool {
        self.may_repeat() && self.can_send_again()
    }

    /// Whether a request that the back end has not processed can be sent again, whatever its
    /// method.
    fn can_send_again(&self) -> bool {
        self.resends_left > 0 && self.whole && !self.response_sent
    }

    /// Keeps body bytes that are being sent, in case they have to be sent again.
    fn keep(&mut self, bytes: &[u8]) {
        if !self.whole {
            return;
        }
        // It will not be sent again.
        if !self.method.is_idempotent() || self.request.len() + bytes.len() > KEPT_MAX {
            self.whole = false;
            self.request = Vec::new();
            return;
        }
        make_room(&mut self.request, bytes.len());
        self.request.extend_from_slice(bytes);
    }
}

/// State of a connection to a back end of an HTTP service.
pub(super) struct Upstream {
    /// The head of the response so far.
    head: Vec<u8>,
    scan: HeadScan,
    /// Tracks the end of the response's body, once its head is complete.
    body: Option<BodyTracker>,
    pass: BodyPass,
    interims: u8,
    /// It has served an earlier request, or is a stream on a connection that has.
    reused: bool,
    /// Any byte of the response was received.
    response_begun: bool,
    /// It can be reused after the response.
    keep: bool,
    /// When the request was sent, ns.
    sent_ns: u64,
    /// The client it was opened for, and when, ns.
    opened_for: SocketAddr,
    opened_ns: u64,
    /// The back end's address version when it was opened.
    address_version: u32,
    /// Bytes sent, and how many of them are in the counters.
    sent: u64,
    sent_counted: u64,
}

impl Upstream {
    fn new(address_version: u32, opened_for: SocketAddr, opened_ns: u64, reused: bool) -> Upstream {
        Upstream {
            opened_for,
            opened_ns,
            address_version,
            head: Vec::new(),
            scan: HeadScan::default(),
            body: None,
            pass: BodyPass::AsIs,
            interims: 0,
            reused,
            response_begun: false,
            keep: false,
            sent_ns: 0,
            sent: 0,
            sent_counted: 0,
        }
    }

    /// Resets it for the response to a new request.
    fn begin(&mut self, now_ns: u64) {
        self.head.clear();
        self.scan.reset();
        (self.body, self.pass) = (None, BodyPass::AsIs);
        (self.interims, self.response_begun, self.keep) = (0, false, false);
        self.sent_ns = now_ns;
    }
}

/// The two connections of an exchange.
#[derive(Clone, Copy)]
struct Pair {
    client: ConnId,
    server: ConnId,
}

/// Makes room at the end of a vector. A long one does not double, but grows by a quarter of what may
/// be held.
pub(in crate::engine) fn make_room(bytes: &mut Vec<u8>, more: usize) {
    const STEP: usize = INPUT_MAX / 4;
    if bytes.len() + more > bytes.capacity().max(STEP) {
        bytes.reserve_exact(more.max(STEP));
    }
}

/// Clears a vector, and frees a large one.
fn empty(bytes: &mut Vec<u8>) {
    if bytes.capacity() > ROOM_MAX {
        *bytes = Vec::new();
    } else {
        bytes.clear();
    }
}
