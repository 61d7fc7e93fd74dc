//! Simulated searches: the server's capacity varies from trial to trial, and the truth is known.

use super::{Outcome, Search, SearchOptions, SearchOptionsError, Step};
use crate::stats::normal::Normal;

/// The median capacity of the trials, requests per second.
const MEDIAN_PER_S: f64 = 7300.0;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchScenario {
    /// The standard deviation of the capacity's logarithm between trials.
    pub spread: f64,
    /// The correlation of successive trials.
    pub correlation: f64,
    /// The number of trials at lower rates between two trials of the search.
    pub beside: u32,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedSearch {
    /// The chance that a trial at the answer meets the objective.
    pub chance: f64,
    /// Whether the interval contains the rate that holds in 90% of the trials.
    pub is_covered: bool,
    /// The logarithm of the interval's upper end over its lower end.
    pub width: f64,
    pub trials: u32,
}

impl SearchScenario {
    /// Carries out one search, with the options for a first guess of 1,000 requests per second.
    pub fn search(&self, seed: u64) -> Result<SimulatedSearch, SearchOptionsError> {
        let mut normal = Normal::with_seed(seed);
        let mut state = normal.next();
        let mut capacity_per_s = move || {
            let fresh = (1.0 - self.correlation.powi(2)).sqrt() * normal.next();
            state = self.correlation * state + fresh;
            MEDIAN_PER_S * (self.spread * state).exp()
        };
        let outcome = |rate_per_s: f64, capacity_per_s: f64| match rate_per_s <= capacity_per_s {
            true => Outcome::Met,
            false => Outcome::Missed,
        };
        // The usual options are always accepted.
        let mut search = Search::new(SearchOptions::around(1000.0))?;
        let mut trials = 0;
        while let Step::Offer { rate_per_s } = search.next() {
            if search.bounds_stand() {
                for _ in 0..self.beside {
                    search.record_beside(500.0, outcome(500.0, capacity_per_s()));
                }
            }
            search.record(rate_per_s, outcome(rate_per_s, capacity_per_s()));
            trials += 1;
        }
        let found = search.so_far();
        // 90% of a normal distribution lies above its mean less 1.28 standard deviations.
        let truth_per_s = MEDIAN_PER_S * (-1.281_552 * self.spread).exp();
        let answer_per_s = found.holds_per_s.unwrap_or(0.0);
        let low_per_s = found.low_per_s.unwrap_or(0.0);
        let high_per_s = found.high_per_s.unwrap_or(f64::INFINITY);
        Ok(SimulatedSearch {
            chance: above((answer_per_s / MEDIAN_PER_S).ln() / self.spread),
            is_covered: low_per_s <= truth_per_s && truth_per_s <= high_per_s,
            width: (high_per_s / low_per_s).ln(),
            trials,
        })
    }
}

/// The share of a standard normal distribution above a value.
fn above(z: f64) -> f64 {
    let tail = crate::t_two_sided_p(z.abs(), 1e6) / 2.0;
    if z < 0.0 { 1.0 - tail } else { tail }
}
