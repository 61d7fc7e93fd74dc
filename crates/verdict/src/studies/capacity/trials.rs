//! The trials of a search at one rate.

use serde::Serialize;

use super::Judgement;

/// Trials of one rate by which those that held must outnumber those that did not, or the other
/// way, before a bound counts as confirmed.
const LEAD: u32 = 3;
/// Trials of one rate after which a rate without such a lead counts as one that does not hold:
/// the objective is not kept reliably there.
const TRIALS_PER_RATE: u32 = 9;
/// Trials that the client may spoil before a rate counts as beyond the client.
const SPOILT: u32 = 2;
/// What a trial came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The objective was kept.
    Met,
    Missed,
    /// The client could not offer the rate, or too few requests stand behind a quantile.
    Unusable,
}

impl From<&Judgement> for Outcome {
    fn from(judgement: &Judgement) -> Self {
        match judgement {
            Judgement::Met => Outcome::Met,
            Judgement::Missed(_) => Outcome::Missed,
            Judgement::Unusable(_) => Outcome::Unusable,
        }
    }
}

/// The trials at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateTrials {
    pub rate_per_s: f64,
    pub held: u32,
    pub missed: u32,
    /// Trials that say nothing.
    pub unusable: u32,
}

/// What the trials at a rate come to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Met,
    Missed,
    /// The client is what cannot do more.
    Client,
    Open,
}

impl RateTrials {
    /// The share of all trials that hold at this rate, at least, with 95% confidence (Clopper and
    /// Pearson).
    pub fn holds_at_least(&self) -> f64 {
        let (held, judged) = (self.held, self.held + self.missed);
        // The chance of as many that hold, or more.
        let chance = |share: f64| -> f64 {
            let mut term = (1.0 - share).powi(judged as i32);
            let mut below = 0.0;
            for k in 0..held {
                below += term;
                term *= f64::from(judged - k) / f64::from(k + 1) * share / (1.0 - share);
            }
            1.0 - below
        };
        let (mut low, mut high) = (0.0, 1.0 - 1e-9);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if chance(middle) < 0.05 {
                low = middle;
            } else {
                high = middle;
            }
        }
        if held == 0 { 0.0 } else { low }
    }

    fn lead(&self) -> i64 {
        i64::from(self.held) - i64::from(self.missed)
    }

    pub(super) fn class(&self) -> Class {
        let judged = self.held + self.missed;
        match self.lead() {
            _ if judged == 0 && self.unusable >= SPOILT => Class::Client,
            _ if judged == 0 => Class::Open,
            _ if judged >= TRIALS_PER_RATE && self.lead() < i64::from(LEAD) => Class::Missed,
            lead if lead > 0 => Class::Met,
            lead if lead < 0 => Class::Missed,
            // The client spoils what would decide it.
            _ if self.unusable > judged + SPOILT => Class::Missed,
            _ => Class::Open,
        }
    }

    /// Whether further trials would not be asked for.
    pub(super) fn is_confirmed(&self) -> bool {
        self.lead().unsigned_abs() >= u64::from(LEAD)
            || self.held + self.missed >= TRIALS_PER_RATE
            || self.unusable >= SPOILT
    }
}
