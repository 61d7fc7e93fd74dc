use std::collections::VecDeque;

use super::Uring;
use crate::accepting::faults::FailAccepts;
use crate::io::{Event, Io};

/// Errors that accepting meets next.
#[derive(Default)]
pub(super) struct AcceptErrors {
    coming: VecDeque<i32>,
    /// Met by accepts of these listeners; their completions are due.
    met: VecDeque<(usize, i32)>,
}

impl AcceptErrors {
    /// Whether an accept fails instead of being submitted.
    pub(super) fn meet(&mut self, listener: usize) -> bool {
        let errno = self.coming.pop_front();
        self.met.extend(errno.map(|errno| (listener, errno)));
        errno.is_some()
    }
}

impl Uring {
    /// The event of the next failed accept, if it has one.
    pub(super) fn met_error(&mut self) -> Option<Event> {
        while let Some((listener, errno)) = self.accept_errors.met.pop_front() {
            if let Some(event) = self.accepted(listener, -errno, 0) {
                return Some(event);
            }
        }
        None
    }
}

impl FailAccepts for Uring {
    fn fail_accepts(&mut self, errnos: &[i32]) {
        // The accept under way was submitted before.
        self.cancel_accepts();
        while self.relisten.is_empty() {
            self.poll(Some(1_000_000)).unwrap();
            while self.next_event().is_some() {}
        }
        self.accept_errors.coming.extend(errnos);
    }
}
