//! Listeners whose accepts failed for want of descriptors or memory.
//!
//! An attempt at once would fail again, as often as it is made. The loops try again when one of
//! their connections has closed, and after [`RETRY_NS`]: descriptors are also released elsewhere.

use crate::os;

#[cfg(test)]
pub(crate) mod faults;

/// Time between attempts while nothing of this loop closes.
pub(crate) const RETRY_NS: u64 = 100_000_000;

/// Whether only the client failed that would have been accepted, so that the next may be accepted
/// at once.
pub(crate) fn is_of_one_client(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::ECONNABORTED | libc::EPROTO)
}

/// The listeners of a loop that are not accepted from for now.
#[derive(Default)]
pub(crate) struct Pausing {
    listeners: Vec<usize>,
    /// When they are tried again.
    retry_ns: u64,
    /// A failure was reported, and nothing was accepted since.
    reported: bool,
}

impl Pausing {
    /// Pauses a listener. Whether the failure is to be reported: the first since something was
    /// accepted.
    pub(crate) fn pause(&mut self, listener: usize) -> bool {
        if !self.listeners.contains(&listener) {
            self.listeners.push(listener);
        }
        self.retry_ns = os::now_ns() + RETRY_NS;
        !std::mem::replace(&mut self.reported, true)
    }

    /// Something was accepted.
    pub(crate) fn accepted(&mut self) {
        self.reported = false;
    }

    pub(crate) fn is_paused(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Time until they are tried again; `None` if none is paused.
    pub(crate) fn left_ns(&self) -> Option<u64> {
        self.is_paused()
            .then(|| self.retry_ns.saturating_sub(os::now_ns()))
    }

    /// Ends the pause; returns the listeners to accept from.
    pub(crate) fn resume(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.listeners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_once_until_something_was_accepted() {
        let mut pausing = Pausing::default();
        assert_eq!(pausing.left_ns(), None);
        assert!(pausing.pause(1));
        assert!(!pausing.pause(1) && !pausing.pause(0));
        assert!(pausing.left_ns().is_some_and(|ns| ns <= RETRY_NS));
        assert_eq!(pausing.resume(), [1, 0]);
        assert!(!pausing.is_paused() && !pausing.pause(1), "not yet");
        pausing.accepted();
        assert!(pausing.pause(1));
    }
}
