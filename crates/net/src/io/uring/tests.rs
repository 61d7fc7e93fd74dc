use std::collections::VecDeque;

use super::Uring;
use crate::io::accepting::faults::FailAccepts;
use crate::io::{Event, Io};

/// Errors to inject into accepts.
#[derive(Default)]
pub(super) struct AcceptErrors {
    to_inject: VecDeque<i32>,
    /// Errors of accepts of these listeners, whose completions are still to be reported.
    injected: VecDeque<(usize, i32)>,
}

impl AcceptErrors {
    /// Takes the next error; returns whether an accept fails instead of being submitted.
    pub(super) fn inject(&mut self, listener: usize) -> bool {
        let errno = self.to_inject.pop_front();
        self.injected.extend(errno.map(|errno| (listener, errno)));
        errno.is_some()
    }
}

impl Uring {
    /// The event of the next injected failure, if it has one.
    pub(super) fn injected_error(&mut self) -> Option<Event> {
        while let Some((listener, errno)) = self.accept_errors.injected.pop_front() {
            if let Some(event) = self.accepted(listener, -errno, 0) {
                return Some(event);
            }
        }
        None
    }
}

impl FailAccepts for Uring {
    fn fail_accepts(&mut self, errnos: &[i32]) {
        // The accept under way was submitted before the errors were injected.
        self.cancel_accepts();
        while self.relisten.is_empty() {
            self.poll(Some(1_000_000)).unwrap();
            while self.next_event().is_some() {}
        }
        self.accept_errors.to_inject.extend(errnos);
    }
}
