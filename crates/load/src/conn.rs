//! One connection's state.

use net::ConnId;
use net::http::ResponseParser;

use crate::expect::BodyCheck;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not open.
    Closed,
    /// Being opened, with a request to follow.
    Connecting,
    /// Open, nothing asked.
    Idle,
    /// Open, an answer is awaited.
    Waiting,
    /// Could not be opened; tried again at `since`.
    Resting,
}

/// A connection that the load holds, open or not; its times in ns of the monotonic clock.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) id: Option<ConnId>,
    pub(crate) state: State,
    /// When the request was due.
    pub(crate) intended: u64,
    /// When opening began, or when to try again.
    pub(crate) since: u64,
    /// When the request was handed to the kernel.
    pub(crate) sent: u64,
    /// When the answer's first byte came; 0 before.
    pub(crate) first_byte: u64,
    /// Bytes of the answer so far.
    pub(crate) bytes: u64,
    /// Requests on this opening of the connection.
    pub(crate) requests: u64,
    /// Which of the target's requests was sent.
    pub(crate) request: u32,
    /// Requests that it may still send in this segment.
    pub(crate) quota: u64,
    /// Good answers inside the window.
    pub(crate) answers: u64,
    pub(crate) parser: ResponseParser,
    pub(crate) check: BodyCheck,
}

impl Conn {
    pub(crate) fn new() -> Self {
        Self {
            id: None,
            state: State::Closed,
            intended: 0,
            since: 0,
            sent: 0,
            first_byte: 0,
            bytes: 0,
            requests: 0,
            request: 0,
            quota: u64::MAX,
            answers: 0,
            parser: ResponseParser::new(false),
            check: BodyCheck::default(),
        }
    }

    /// Ready for the next answer.
    pub(crate) fn begin(&mut self, intended: u64) {
        self.intended = intended;
        self.first_byte = 0;
        self.bytes = 0;
        self.check.reset();
    }

    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state, State::Connecting | State::Waiting)
    }
}
