//! Listeners that are paused because an accept failed for lack of descriptors or memory.
//!
//! Trying again at once would fail in a busy loop. So a loop tries again when one of its
//! connections closes, and every [`RETRY_NS`], as descriptors may also be released elsewhere.

use crate::os;

#[cfg(test)]
pub(crate) mod faults;

/// Time between attempts while no connection of this loop closes.
pub(crate) const RETRY_NS: u64 = 100_000_000;

/// Whether an accept error concerns only one client, so that the next accept may succeed at once.
pub(crate) fn is_of_one_client(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::ECONNABORTED | libc::EPROTO)
}

/// The paused listeners of a loop.
#[derive(Default)]
pub(crate) struct Pausing {
    listeners: Vec<usize>,
    /// Time of the next attempt.
    retry_ns: u64,
    /// Whether a failure was reported since the last successful accept.
    reported: bool,
}

impl Pausing {
    /// Pauses a listener. Returns whether to report the failure: it is the first one since the last
    /// successful accept.
    pub(crate) fn pause(&mut self, listener: usize) -> bool {
        if !self.listeners.contains(&listener) {
            self.listeners.push(listener);
        }
        self.retry_ns = os::now_ns() + RETRY_NS;
        !std::mem::replace(&mut self.reported, true)
    }

    /// Records a successful accept.
    pub(crate) fn accepted(&mut self) {
        self.reported = false;
    }

    pub(crate) fn is_paused(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Time until the next attempt; `None` if no listener is paused.
    pub(crate) fn left_ns(&self) -> Option<u64> {
        self.is_paused()
            .then(|| self.retry_ns.saturating_sub(os::now_ns()))
    }

    /// Ends the pause; returns the listeners that were paused.
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
