//! The search for the highest rate that meets an objective.

use serde::Serialize;

use super::estimate::Estimate;
use super::trials::{Class, Outcome, RateTrials};

mod simulate;

pub use simulate::{SearchScenario, SimulatedSearch};

/// The factor by which the search goes up or down before it has two bounds.
const STRIDE: f64 = 2.0;
/// Trials near the rate that holds in nine of ten, once the bounds stand.
const REFINING: u32 = 20;
/// Significant digits of the rates that are offered.
const DIGITS: i32 = 4;

/// Between which rates a search looks, and how closely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// The first rate, requests per second.
    pub start_per_s: f64,
    /// The lowest rate worth offering.
    pub min_per_s: f64,
    /// The highest rate worth offering.
    pub max_per_s: f64,
    /// How close the bounds have to come, as a fraction: at 0.02 the rate that did not hold is at
    /// most 2% above the one that did.
    pub precision: f64,
    /// Trials after which the search ends with what it knows.
    pub max_trials: u32,
    /// Whether only whole numbers can be offered: of streams, of which there is no half.
    pub whole: bool,
}

impl SearchOptions {
    /// From a first guess: from a thousandth to a thousand times of it, to 2%, with at most 60
    /// trials.
    pub fn around(start_per_s: f64) -> Self {
        Self {
            start_per_s,
            min_per_s: (start_per_s / 1000.0).max(1.0).min(start_per_s),
            max_per_s: start_per_s * 1000.0,
            precision: 0.02,
            max_trials: 60,
            whole: false,
        }
    }
}

/// Options that leave nothing to search.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SearchOptionsError {
    /// The rates are not in order.
    #[error(
        "expected rates above 0 with the lowest <= the first <= the highest, found {min_per_s}, {start_per_s} and {max_per_s} requests/s"
    )]
    Rates {
        min_per_s: f64,
        start_per_s: f64,
        max_per_s: f64,
    },
    /// Only whole numbers can be offered.
    #[error("expected whole numbers, found {min_per_s}, {start_per_s} and {max_per_s}")]
    Fractions {
        min_per_s: f64,
        start_per_s: f64,
        max_per_s: f64,
    },
    /// The precision is out of range.
    #[error("expected a precision from 0.1% to 100%, found {}%", precision * 100.0)]
    Precision { precision: f64 },
    #[error("expected at least one trial to be allowed, found none")]
    Trials,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a trial at this rate, and [`Search::record`] its outcome.
    Offer {
        /// Requests per second.
        rate_per_s: f64,
    },
    /// Enough is known.
    Done(Capacity),
}

/// What the upper bound of a capacity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// A rate at which the objective was not kept.
    Missed,
    /// A rate that the client could not offer: only the lower bound of the capacity is known.
    Client,
    /// There is none: the highest rate that the search was allowed to offer held. Only
    /// the lower bound of the capacity is known.
    Range,
}

/// The highest rate under an objective, as far as trials can tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// The rate at which [`HOLDS`](super::HOLDS) of the trials hold, at most `lower_per_s`; absent
    /// where no trial held, or none missed.
    pub holds_per_s: Option<f64>,
    /// Lower end of its 95% interval.
    pub low_per_s: Option<f64>,
    /// Upper end of its 95% interval.
    pub high_per_s: Option<f64>,
    /// The correlation of successive trials' outcomes, by which the interval was widened.
    pub correlation: f64,
    /// The highest rate that mostly held below every rate that mostly did not; absent when none
    /// held.
    pub lower_per_s: Option<f64>,
    /// The lowest rate that mostly did not hold; absent when none was found.
    pub upper_per_s: Option<f64>,
    pub upper_is: Bound,
    /// Whether the bounds came as close as they should and were confirmed, and the rate that holds
    /// was refined, before the trials that were allowed ran out.
    pub complete: bool,
    /// All trials, by rate in ascending order.
    pub trials: Vec<RateTrials>,
}

/// A search for the highest rate that keeps an objective.
///
/// Up (or down) by doubling until one rate held and a higher one did not, then by halving the
/// distance on the logarithmic scale, with one trial per rate; when the bounds are close enough,
/// each is tried again until its outcomes lead by three. A bound that falls opens the search again.
/// So a trial that was disturbed costs time, and not the answer.
///
/// The bounds enclose the rate at which about half of the trials hold. What is wanted is one at
/// which nearly all do, so trials follow at the rate that holds in nine of ten by what is known so
/// far, on a grid as fine as the precision.
///
/// The same outcomes give the same steps.
#[derive(Clone, Debug)]
pub struct Search {
    options: SearchOptions,
    trials: Vec<RateTrials>,
    /// The judged trials as they were made: rate, and whether it held.
    order: Vec<(f64, bool)>,
    /// The lower bound when the bounds stood first.
    anchor_per_s: Option<f64>,
    /// Trials of the search since.
    refined: u32,
}

impl Search {
    /// A search that has not tried anything.
    ///
    /// # Errors
    /// When the options leave nothing to search.
    pub fn new(options: SearchOptions) -> Result<Self, SearchOptionsError> {
        let SearchOptions {
            start_per_s,
            min_per_s,
            max_per_s,
            precision,
            max_trials,
            whole,
        } = options;
        let in_order = 0.0 < min_per_s && min_per_s <= start_per_s && start_per_s <= max_per_s;
        if !in_order || !max_per_s.is_finite() {
            return Err(SearchOptionsError::Rates {
                min_per_s,
                start_per_s,
                max_per_s,
            });
        }
        let are_whole = [min_per_s, start_per_s, max_per_s].map(|one| one.fract() == 0.0);
        if whole && are_whole.contains(&false) {
            return Err(SearchOptionsError::Fractions {
                min_per_s,
                start_per_s,
                max_per_s,
            });
        }
        if !(0.001..=1.0).contains(&precision) {
            return Err(SearchOptionsError::Precision { precision });
        }
        if max_trials == 0 {
            return Err(SearchOptionsError::Trials);
        }
        Ok(Self {
            options,
            trials: Vec::new(),
            order: Vec::new(),
            anchor_per_s: None,
            refined: 0,
        })
    }

    /// Notes what a trial came to that [`next`](Self::next) asked for.
    pub fn record(&mut self, rate_per_s: f64, outcome: Outcome) {
        self.note(rate_per_s, outcome);
        if self.anchor_per_s.is_some() {
            self.refined += 1;
        } else if self.unbounded().is_none()
            && let (Some(lower), Some(upper)) = self.bounds()
            && upper.class() == Class::Missed
        {
            self.anchor_per_s = Some(lower.rate_per_s);
        }
    }

    /// Notes a trial that the caller made on its own.
    pub fn record_beside(&mut self, rate_per_s: f64, outcome: Outcome) {
        self.note(rate_per_s, outcome);
        self.options.max_trials = self.options.max_trials.saturating_add(1);
    }

    /// Whether the bounds have stood, so that only the rate that holds is left to refine.
    pub fn bounds_stand(&self) -> bool {
        self.anchor_per_s.is_some()
    }

    fn note(&mut self, rate_per_s: f64, outcome: Outcome) {
        let place = self.trials.partition_point(|t| t.rate_per_s < rate_per_s);
        let is_new = self
            .trials
            .get(place)
            .is_none_or(|t| t.rate_per_s != rate_per_s);
        if is_new {
            let trials = RateTrials {
                rate_per_s,
                held: 0,
                missed: 0,
                unusable: 0,
            };
            self.trials.insert(place, trials);
        }
        let trials = &mut self.trials[place];
        if outcome != Outcome::Unusable {
            self.order.push((rate_per_s, outcome == Outcome::Met));
        }
        match outcome {
            Outcome::Met => trials.held += 1,
            Outcome::Missed => trials.missed += 1,
            Outcome::Unusable => trials.unusable += 1,
        }
    }

    /// What to do next.
    pub fn next(&self) -> Step {
        let made: u32 = self
            .trials
            .iter()
            .map(|t| t.held + t.missed + t.unusable)
            .sum();
        let wanted = self.wanted();
        match wanted {
            Some(rate_per_s) if made < self.options.max_trials => Step::Offer { rate_per_s },
            _ => Step::Done(self.capacity(wanted.is_none())),
        }
    }

    /// What is known when the search ends here.
    pub fn so_far(&self) -> Capacity {
        self.capacity(self.wanted().is_none())
    }

    /// The rate that more should be known of; nothing when the search is complete.
    fn wanted(&self) -> Option<f64> {
        match self.anchor_per_s {
            Some(anchor) if self.refined < REFINING => self.refining(anchor),
            Some(_) => None,
            None => self.unbounded(),
        }
    }

    /// The rate of the grid at or below the one that holds by what is known so far.
    fn refining(&self, anchor_per_s: f64) -> Option<f64> {
        let o = &self.options;
        let holds = Estimate::of(&self.trials, &self.order)?.rate_per_s();
        let step = (1.0 + o.precision).ln();
        let steps = ((holds / anchor_per_s).ln() / step).floor();
        let rate = rounded(anchor_per_s * (steps * step).exp());
        let rate = self.rounded(rate, f64::round);
        Some(rate.clamp(o.min_per_s, o.max_per_s))
    }

    /// The rate that more should be known of for bounds; nothing when they stand, or when there
    /// will be none.
    fn unbounded(&self) -> Option<f64> {
        let o = &self.options;
        if self.trials.is_empty() {
            return Some(o.start_per_s);
        }
        if let Some(open) = self.trials.iter().find(|t| t.class() == Class::Open) {
            return Some(open.rate_per_s);
        }
        let unconfirmed =
            |t: Option<&RateTrials>| t.filter(|t| !t.is_confirmed()).map(|t| t.rate_per_s);
        match self.bounds() {
            (None, Some(upper)) => {
                let next = self.rounded(upper.rate_per_s / STRIDE, f64::floor);
                let next = next.max(o.min_per_s);
                if next < upper.rate_per_s {
                    Some(next)
                } else {
                    unconfirmed(Some(upper))
                }
            }
            (Some(lower), None) => {
                let next = (lower.rate_per_s * STRIDE).min(o.max_per_s);
                if next > lower.rate_per_s {
                    Some(next)
                } else {
                    unconfirmed(Some(lower))
                }
            }
            (Some(lower), Some(upper)) => {
                let (low, high) = (lower.rate_per_s, upper.rate_per_s);
                let middle = self.rounded(rounded((low * high).sqrt()), f64::round);
                if high / low > 1.0 + o.precision && low < middle && middle < high {
                    Some(middle)
                } else {
                    unconfirmed(Some(lower)).or(unconfirmed(Some(upper)))
                }
            }
            // Something was tried and nothing of it is open, so it is a bound.
            (None, None) => None,
        }
    }

    /// A whole number, where only those can be offered.
    fn rounded(&self, per_s: f64, to_whole: fn(f64) -> f64) -> f64 {
        match self.options.whole {
            true => to_whole(per_s),
            false => per_s,
        }
    }

    /// The highest rate that held below the lowest that did not, and that one.
    fn bounds(&self) -> (Option<&RateTrials>, Option<&RateTrials>) {
        let fails = |t: &&RateTrials| matches!(t.class(), Class::Missed | Class::Client);
        let upper = self.trials.iter().find(fails);
        let below = upper.map_or(f64::INFINITY, |t| t.rate_per_s);
        let lower = self
            .trials
            .iter()
            .rev()
            .find(|t| t.class() == Class::Met && t.rate_per_s < below);
        (lower, upper)
    }

    fn capacity(&self, complete: bool) -> Capacity {
        let (lower, upper) = self.bounds();
        let lower_per_s = lower.map(|t| t.rate_per_s);
        let estimate = Estimate::of(&self.trials, &self.order);
        let interval = estimate.as_ref().map(Estimate::interval_per_s);
        Capacity {
            // Never more than what was seen to hold.
            holds_per_s: estimate
                .as_ref()
                .map(|e| self.rounded(rounded_down(e.rate_per_s()), f64::floor))
                .map(|holds| holds.min(lower_per_s.unwrap_or(f64::INFINITY))),
            low_per_s: interval.map(|(low, _)| self.rounded(low, f64::floor)),
            high_per_s: interval.map(|(_, high)| self.rounded(high, f64::ceil)),
            correlation: estimate.as_ref().map_or(0.0, |e| e.correlation),
            lower_per_s,
            upper_per_s: upper.map(|t| t.rate_per_s),
            upper_is: match upper.map(RateTrials::class) {
                Some(Class::Client) => Bound::Client,
                Some(_) => Bound::Missed,
                None => Bound::Range,
            },
            complete,
            trials: self.trials.clone(),
        }
    }
}

/// A rate with as many significant digits as anybody would write down.
fn rounded(per_s: f64) -> f64 {
    let scale = digits_scale(per_s);
    (per_s * scale).round() / scale
}

fn rounded_down(per_s: f64) -> f64 {
    let scale = digits_scale(per_s);
    (per_s * scale).floor() / scale
}

fn digits_scale(per_s: f64) -> f64 {
    10f64.powi(DIGITS - 1 - per_s.log10().floor() as i32)
}

#[cfg(test)]
mod tests;
