//! The words of a decision.

use serde::Serialize;

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The subject is better than the baseline by more than the margin.
    Faster,
    /// The subject is worse than the baseline by more than the margin.
    Slower,
    /// There is no difference that matters.
    Same,
    /// The blocks measured do not settle it.
    Inconclusive,
    /// What was measured cannot be compared.
    Invalid,
}

impl Verdict {
    /// The word, as in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Invalid => "invalid",
        }
    }
}
