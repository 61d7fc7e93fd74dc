//! How old answers from a cache say that they are.

use serde::{Deserialize, Serialize};

use crate::sums::add_count;

/// The `Age` fields (RFC 9111, 5.1) of good answers inside the measured windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgeReading {
    /// Answers with an `Age`.
    pub answers: u64,
    /// The sum of their ages, s.
    pub sum_s: u64,
    /// The greatest of them, s.
    pub highest_s: u64,
    /// Of these answers, those with a `max-age`.
    pub limited: u64,
    /// Of those, the ones that are older than it.
    pub stale: u64,
}

impl AgeReading {
    /// Records an answer of this age, which may say how old it may get, s.
    pub fn record(&mut self, age_s: u64, max_age_s: Option<u64>) {
        self.add(&Self {
            answers: 1,
            sum_s: age_s,
            highest_s: age_s,
            limited: u64::from(max_age_s.is_some()),
            stale: u64::from(max_age_s.is_some_and(|max| age_s > max)),
        });
    }

    /// Adds what another thread or host measured.
    pub fn add(&mut self, part: &Self) {
        add_count(&mut self.answers, part.answers);
        add_count(&mut self.sum_s, part.sum_s);
        self.highest_s = self.highest_s.max(part.highest_s);
        add_count(&mut self.limited, part.limited);
        add_count(&mut self.stale, part.stale);
    }
}
