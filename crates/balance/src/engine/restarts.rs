//! Workers that fail are started again, a limited number of times.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// How often a worker is started again within [`WINDOW`].
pub(super) const RESTARTS_MAX: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Pause before a worker is started again: the kernel releases the resources of an event loop with
/// some delay.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Why a worker ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkerError {
    #[error("cannot open an event loop: {0}")]
    Open(#[source] io::Error),
    #[error("the event loop failed: {0}")]
    Loop(#[source] io::Error),
    #[error("it panicked, which is a bug in weigh: {0}")]
    Panic(String),
}

impl WorkerError {
    pub fn of_panic(payload: &(dyn Any + Send)) -> WorkerError {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        WorkerError::Panic(
            text.unwrap_or("without a message")
                .escape_debug()
                .to_string(),
        )
    }
}

/// A worker failed too often and is not started again. Its listening sockets are closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "worker {worker} failed {} times within {} s and is not restarted; the last failure: {last}",
    RESTARTS_MAX + 1,
    WINDOW.as_secs()
)]
pub struct WorkerFailed {
    /// Number of the worker, from 1.
    pub worker: usize,
    /// The last failure.
    pub last: String,
}

/// The recent failures of a worker.
#[derive(Default)]
pub(super) struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// Records a failure; returns whether the worker is to be started again.
    pub fn allow(&mut self, now: Instant) -> bool {
        let old = |at: &Instant| now.duration_since(*at) > WINDOW;
        while self.0.front().is_some_and(old) {
            self.0.pop_front();
        }
        self.0.push_back(now);
        self.0.len() <= RESTARTS_MAX
    }
}

#[cfg(test)]
mod tests;
