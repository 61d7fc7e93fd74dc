//! Threads that fail are started again, a limited number of times.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::engine::error::{RESTARTS_MAX, ThreadFailed, WINDOW};
use crate::engine::shared::ProcessState;

/// Pause before a thread is started again: the kernel releases the resources of an event loop with
/// some delay.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Why a thread ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum ThreadError {
    #[error("cannot open an event loop: {0}")]
    Open(#[source] io::Error),
    #[error("the event loop failed: {0}")]
    Loop(#[source] io::Error),
    #[error("it panicked, which is a bug in weigh: {0}")]
    Panic(String),
}

impl ThreadError {
    pub fn of_panic(payload: &(dyn Any + Send)) -> ThreadError {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        ThreadError::Panic(
            text.unwrap_or("without a message")
                .escape_debug()
                .to_string(),
        )
    }
}

/// The recent failures of a thread.
#[derive(Default)]
pub(super) struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// Records a failure; returns whether the thread is to be started again.
    pub fn allow(&mut self, now: Instant) -> bool {
        let old = |at: &Instant| now.duration_since(*at) > WINDOW;
        while self.0.front().is_some_and(old) {
            self.0.pop_front();
        }
        self.0.push_back(now);
        self.0.len() <= RESTARTS_MAX
    }
}

/// Does the work of a thread that serves no clients, until it returns. If it panics, it is called
/// again, as often as a worker would be started again.
pub(crate) fn restart_on_panic(thread: &str, process: &ProcessState, mut work: impl FnMut()) {
    let mut restarts = Restarts::default();
    // Unwind safety: such a thread shares counters, channels, and values that are valid at any time.
    while let Err(payload) = catch_unwind(AssertUnwindSafe(&mut work)) {
        let failure = ThreadError::of_panic(&*payload);
        if !restarts.allow(Instant::now()) {
            let (thread, last) = (thread.to_owned(), failure.to_string());
            return process.set_failure(ThreadFailed { thread, last });
        }
        let notice = format!("{thread} failed and is restarted: {failure}");
        process.notices.push(notice);
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests;
