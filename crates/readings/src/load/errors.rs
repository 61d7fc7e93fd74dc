//! Failures of requests, by kind.

use serde::{Deserialize, Serialize};

use crate::sums::{add_count, is_none};

/// Requests that did not end in a good answer, by the step that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Connections that broke, or answers that could not be parsed, while an answer was awaited.
    pub read: u64,
    /// Requests that could not be sent.
    pub write: u64,
    /// Requests (or connection attempts) that took longer than their time limit.
    pub timeout: u64,
    /// Complete answers with a status other than the expected one.
    pub status: u64,
    /// Complete answers whose length or content was not the expected one.
    pub verify: u64,
    /// Requests that failed in a way that an outside tool does not tell. Our own load always tells.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unexplained: u64,
}

impl ErrorCounts {
    /// All errors together.
    pub fn total(&self) -> u64 {
        [
            self.connect,
            self.read,
            self.write,
            self.timeout,
            self.status,
            self.verify,
            self.unexplained,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Answers that came, but were not the expected ones.
    pub fn wrong_answers(&self) -> u64 {
        self.status.saturating_add(self.verify)
    }

    /// Adds the counts of another worker or slice.
    pub fn add(&mut self, other: &ErrorCounts) {
        add_count(&mut self.connect, other.connect);
        add_count(&mut self.read, other.read);
        add_count(&mut self.write, other.write);
        add_count(&mut self.timeout, other.timeout);
        add_count(&mut self.status, other.status);
        add_count(&mut self.verify, other.verify);
        add_count(&mut self.unexplained, other.unexplained);
    }
}
