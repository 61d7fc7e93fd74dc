//! What was wrong with an answer.

use serde::{Deserialize, Serialize};

/// A wrong answer, kept for the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    pub kind: WrongKind,
    pub expected: String,
    pub found: String,
}

impl Wrong {
    /// Whether it is an answer with another length or content than the first one.
    pub fn differs_from_first(&self) -> bool {
        matches!(self.kind, WrongKind::Length | WrongKind::Content)
            && self.expected.contains(FIRST_ANSWER)
    }
}

/// What an answer is compared with where all answers of a target should be the same.
pub const FIRST_ANSWER: &str = "the first answer";

/// What the text about a connection says for which there was no port: EADDRNOTAVAIL.
pub const NO_PORT: &str = "no local port is free";

/// The check that an answer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrongKind {
    Status,
    Length,
    Content,
    /// Not HTTP, or cut short.
    Protocol,
    /// The connection failed: refused, reset, no free port.
    Connection,
}
