//! Answers that wait for their delay.

use std::cmp::Reverse;

use net::{ConnId, Io, os};

use super::Worker;
use crate::pages::{ConnectionReuse, Delay};

/// Where a delayed answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerTo {
    Http1(ConnId),
    Http2(ConnId, u32),
    Http3 {
        number: usize,
        id: u64,
        stream: quic::StreamId,
    },
}

impl AnswerTo {
    fn number(self) -> usize {
        match self {
            AnswerTo::Http1(conn) | AnswerTo::Http2(conn, _) => conn.slot(),
            AnswerTo::Http3 { number, .. } => number,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerKey {
    pub(super) to: AnswerTo,
    pub(super) persist: ConnectionReuse,
    /// Whether only the head is sent: the request was HEAD.
    pub(super) head_only: bool,
}

/// An arbitrary order, for the heap.
impl PartialOrd for AnswerKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AnswerKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.to.number().cmp(&other.to.number())
    }
}

impl<I: Io> Worker<I> {
    /// Delays an answer. The delay begins at the kernel timestamp of the request, or now if there is
    /// none.
    pub(super) fn hold(&mut self, key: AnswerKey, delay: Delay, arrived_ns: Option<u64>) {
        let now = os::now_ns();
        let came = arrived_ns.map_or(now, |at| at.min(now));
        let due = came + delay.draw(&mut self.random);
        self.held.push(Reverse((due, came, key)));
    }
}
