//! How often a subject's starts went wrong through its own doing.
//!
//! What the machine or the client spoilt may be repeated. What the subject caused (errors, timeouts,
//! wrong answers, a server that ended or did not start) is an outcome, also where a later attempt
//! went well.

use readings::{FailureCause, Outcome};
use serde::Serialize;
use statrs::function::factorial::ln_binomial;

use crate::trial::cells::{Attempts, Cell};
use crate::{Reason, TrialFlaw};

/// A p value below this counts as a difference.
const ALPHA: f64 = 0.05;

/// The starts of one side, each attempt of each block counted, if it says something about the side.
/// What something else spoilt is in neither figure: it would make the share of failed starts smaller.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Starts {
    /// Attempts that went well, and those of `failed`.
    pub all: usize,
    /// Those that failed or are invalid through the subject's doing.
    pub failed: usize,
    #[serde(skip)]
    pub reason: Option<Reason>,
}

impl Starts {
    pub(crate) fn of(attempts: &Attempts<'_, '_>) -> Self {
        let mut starts = Starts::default();
        for cell in attempts.values().flatten() {
            match outcome(cell) {
                StartOutcome::Good => starts.all += 1,
                StartOutcome::Spoilt => {}
                StartOutcome::Bad(reason) => {
                    starts.all += 1;
                    starts.failed += 1;
                    starts.reason.get_or_insert(reason);
                }
            }
        }
        starts
    }

    pub(crate) fn plus(self, other: Starts) -> Starts {
        Starts {
            all: self.all + other.all,
            failed: self.failed + other.failed,
            reason: self.reason.or(other.reason),
        }
    }

    /// Whether these fail more often than the others do, beyond chance: Fisher's exact test,
    /// one-sided.
    pub(crate) fn exceed(&self, other: &Starts) -> bool {
        self.failed > 0 && chance_of_more(self, other) < ALPHA
    }
}

enum StartOutcome {
    Good,
    /// Something other than the subject spoilt it.
    Spoilt,
    Bad(Reason),
}

fn outcome(cell: &Cell<'_>) -> StartOutcome {
    match &cell.trial.outcome {
        Outcome::Failed { reason, cause } => match cause {
            FailureCause::Subject => StartOutcome::Bad(Reason::Failed(reason.clone())),
            FailureCause::Other => StartOutcome::Spoilt,
        },
        Outcome::Done(_) => match (cell.caused_by_subject(), cell.reasons.is_empty()) {
            (Some(flaw), _) => StartOutcome::Bad(TrialFlaw::from(flaw.clone()).into()),
            (None, true) => StartOutcome::Good,
            (None, false) => StartOutcome::Spoilt,
        },
    }
}

/// The probability of at least as many failures among `ours`, given the failures of both sides
/// together, if all starts were alike.
fn chance_of_more(ours: &Starts, theirs: &Starts) -> f64 {
    let (n, m) = (ours.all as u64, theirs.all as u64);
    let failed = (ours.failed + theirs.failed) as u64;
    let most = failed.min(n);
    let of = |k: u64| {
        (ln_binomial(n, k) + ln_binomial(m, failed - k) - ln_binomial(n + m, failed)).exp()
    };
    let least = (ours.failed as u64).max(failed.saturating_sub(m));
    (least..=most).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(failed: usize, all: usize) -> Starts {
        Starts {
            all,
            failed,
            reason: None,
        }
    }

    #[test]
    fn failures_exceed_others_only_beyond_chance() {
        assert!(starts(8, 16).exceed(&starts(0, 8)));
        assert!(!starts(8, 16).exceed(&starts(4, 8)));
        assert!(!starts(1, 9).exceed(&starts(0, 8)));
        assert!(!starts(0, 8).exceed(&starts(0, 8)));
        // Lady tasting tea: all four of four, 1 / 70.
        let p = chance_of_more(&starts(4, 4), &starts(0, 4));
        assert!((p - 1.0 / 70.0).abs() < 1e-12, "{p}");
    }
}
