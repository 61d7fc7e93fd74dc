//! When a segment ends.

use std::time::Duration;

use readings::Pacing;

use crate::job::{Job, Segment, Stop};
use crate::ns;

/// A segment waits for its last answers for the longest of three times: its window divided by this,
const WAIT_WINDOW_DIVISOR: u32 = 2;
/// this many times its ramp-up, which is derived from the time of an answer,
const WAIT_RAMP_UPS: u32 = 2;
/// and this.
const WAIT_MIN: Duration = Duration::from_millis(20);

/// A stop rule, for one thread's share of a segment.
pub(crate) trait StopRule {
    /// Whether the segment ends after a number of requests. These are the first that are sent in
    /// its window, which ends with the last answer.
    const COUNTS: bool;

    /// The end of a window that starts at `from_ns`; `u64::MAX` while it is not known.
    fn end_ns(&self, from_ns: u64) -> u64;

    /// Whether requests are left to send.
    fn is_open(&self) -> bool;

    /// Whether a connection has requests left to send.
    fn is_open_for(&self, conn: usize) -> bool;

    /// Counts a request that a connection sends in the window.
    fn count(&mut self, conn: usize);

    /// Leaves no more requests, except to those who have begun, as far as [`Self::is_left`].
    fn stop(&mut self);

    /// Whether the time or the number leaves requests, also after [`Self::stop`].
    fn is_left(&self) -> bool;
}

#[derive(Debug)]
pub(crate) struct AfterTime {
    pub(crate) time: Duration,
    pub(crate) stopped: bool,
}

impl StopRule for AfterTime {
    const COUNTS: bool = false;

    fn end_ns(&self, from_ns: u64) -> u64 {
        from_ns.saturating_add(ns(self.time))
    }

    #[inline]
    fn is_open(&self) -> bool {
        !self.stopped
    }

    #[inline]
    fn is_open_for(&self, _: usize) -> bool {
        !self.stopped
    }

    #[inline]
    fn count(&mut self, _: usize) {}

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn is_left(&self) -> bool {
        true
    }
}

/// After a number of requests.
#[derive(Debug)]
pub(crate) struct AfterRequests {
    pub(crate) left: u64,
    pub(crate) stopped: bool,
}

impl StopRule for AfterRequests {
    const COUNTS: bool = true;

    fn end_ns(&self, _: u64) -> u64 {
        u64::MAX
    }

    fn is_open(&self) -> bool {
        self.left > 0 && !self.stopped
    }

    fn is_open_for(&self, _: usize) -> bool {
        self.is_open()
    }

    fn count(&mut self, _: usize) {
        self.left -= 1;
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn is_left(&self) -> bool {
        self.left > 0
    }
}

/// After a number of requests of each connection.
#[derive(Debug)]
pub(crate) struct AfterEach {
    /// The number of the first connection.
    first: usize,
    /// Requests left, by connection and in sum.
    left: Vec<u64>,
    sum: u64,
}

impl AfterEach {
    pub(crate) fn new(conns: std::ops::Range<usize>, each: u64) -> Self {
        Self {
            first: conns.start,
            left: vec![each; conns.len()],
            sum: each.saturating_mul(conns.len() as u64),
        }
    }
}

impl StopRule for AfterEach {
    const COUNTS: bool = true;

    fn end_ns(&self, _: u64) -> u64 {
        u64::MAX
    }

    fn is_open(&self) -> bool {
        self.sum > 0
    }

    fn is_open_for(&self, conn: usize) -> bool {
        self.sum > 0 && self.left[conn - self.first] > 0
    }

    fn count(&mut self, conn: usize) {
        self.left[conn - self.first] -= 1;
        self.sum -= 1;
    }

    fn stop(&mut self) {
        self.sum = 0;
    }

    fn is_left(&self) -> bool {
        self.sum > 0
    }
}

/// How long a segment waits for its last answers, ns; `None` until all have come.
///
/// All are awaited in an open loop, whose latency needs them, in a segment that ends after a number of
/// requests, and in the segments that open connections, which are not measured. With a [`Part`], the
/// machines agree on the time for the last answers.
///
/// [`Part`]: crate::Part
pub(crate) fn last_answers_wait_ns(job: &Job, number: usize) -> Option<u64> {
    let is_slice = |segment: &Segment| {
        segment.pacing == Pacing::Closed
            && segment.reading.is_some()
            && matches!(segment.stop, Stop::After(_))
    };
    let segment = &job.segments[number];
    let Stop::After(window) = segment.stop else {
        return None;
    };
    let is_last = number + 1 == job.segments.len();
    let has_streams = job.targets[segment.target].places().is_some();
    if is_last || has_streams || job.part.is_some() || !job.segments[number..].iter().all(is_slice)
    {
        return None;
    }
    let wait = (window / WAIT_WINDOW_DIVISOR).max(segment.ramp_up * WAIT_RAMP_UPS);
    Some(ns(wait.max(WAIT_MIN)))
}
