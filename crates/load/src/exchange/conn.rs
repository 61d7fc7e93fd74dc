//! The state of a place, which has one exchange at a time: a connection, or a stream of one.

use net::ConnId;

use super::{Kind, Times};
use crate::job::target::{Request, Target};
use crate::template::request::Rendered;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    /// Being opened, for a request.
    Connecting,
    /// Open, without a request.
    Idle,
    /// Open, with a request that is not answered yet.
    Waiting,
    /// It could not be opened; the next attempt is at `since`.
    Resting,
}

/// A connection of the load, open or not, or one of the streams that a connection of HTTP/2 or HTTP/3
/// may have open; times in ns of the worker's clock.
#[derive(Debug)]
pub(crate) struct Conn<K> {
    pub(crate) id: Option<ConnId>,
    pub(crate) state: State,
    /// When the request was due.
    pub(crate) intended: u64,
    /// When opening began, or when the next attempt is.
    pub(crate) since: u64,
    /// When the request was handed to the kernel, for the first time.
    pub(crate) sent: u64,
    /// How often the request was sent again.
    pub(crate) again: u8,
    /// Connections opened since the last complete answer, of one that is not a stream.
    pub(crate) fruitless: u8,
    /// When the first byte of the final answer arrived; 0 before.
    pub(crate) first_byte: u64,
    /// When the last complete answer was read, possibly on an earlier connection; 0 before the first
    /// one.
    pub(crate) completed: u64,
    /// Bytes of the answer so far.
    pub(crate) bytes: u64,
    /// Requests since it was opened.
    pub(crate) requests: u64,
    /// The part of the time since the request was sent that lies in the windows of earlier segments,
    /// ns.
    pub(crate) counted: u64,
    /// Number of the request that was sent.
    pub(crate) request: u32,
    /// The bytes of that request, if it was filled in: what is sent again is the same.
    pub(crate) rendered: Rendered,
    /// Good answers in the window.
    pub(crate) answers: u64,
    /// Of a stream: the number of the link that carries it.
    pub(crate) link: Option<u32>,
    /// What has been said in the exchange.
    pub(crate) exchange: K,
}

impl<K: Kind> Conn<K> {
    pub(crate) fn new(target: &Target, link: Option<u32>) -> Self {
        Self {
            id: None,
            state: State::Closed,
            intended: 0,
            since: 0,
            sent: 0,
            again: 0,
            fruitless: 0,
            first_byte: 0,
            completed: 0,
            bytes: 0,
            counted: 0,
            requests: 0,
            request: 0,
            rendered: Rendered::default(),
            answers: 0,
            link,
            exchange: K::new(target),
        }
    }

    /// Resets what belongs to one request.
    #[inline]
    pub(crate) fn begin(&mut self, intended: u64, request: &Request) {
        self.intended = intended;
        self.first_byte = 0;
        self.bytes = 0;
        self.counted = 0;
        self.again = 0;
        self.exchange.begin(request);
    }

    /// The request leaves. If it is sent again, its latency and time limit still count from the first
    /// time: otherwise a server that refuses requests could put both off for ever.
    #[inline]
    pub(crate) fn leaves(&mut self, now: u64) {
        self.state = State::Waiting;
        if self.again == 0 {
            self.sent = now;
        }
    }

    /// The times of what arrived on it at this one.
    #[inline]
    pub(crate) fn times(&self, arrived: u64) -> Times {
        Times {
            intended: self.intended,
            sent: self.sent,
            arrived,
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state, State::Connecting | State::Waiting)
    }
}
