//! Where something was seen.

pub(crate) mod words;

use readings::Condition;
use serde::Serialize;

/// A subject under a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    pub subject: String,
    pub condition: Condition,
}
