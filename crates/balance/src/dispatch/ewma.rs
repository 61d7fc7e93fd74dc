//! Power of two choices, by latency.

use super::Candidate;
use crate::config::model::Backend;

/// Draws two back ends and takes the one with the lower cost. Two choices are nearly as good as all
/// ("The Power of Two Choices in Randomized Load Balancing", M. Mitzenmacher, 2001), and
/// independent threads do not herd to the same one.
///
/// The cost is that of Finagle's `PeakEwma` (Twitter, from 2015): a moving average of latency that
/// rises at once with a slower response and decays with faster ones, times the number of requests
/// including this one. A back end without a response yet gets one request at a time.
#[derive(Clone, Debug)]
pub(super) struct PeakEwma {
    decay_ns: f64,
    costs: Box<[f64]>,
    averages: Box<[Average]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Average {
    latency_ns: f64,
    at_ns: u64,
}

impl Average {
    fn note(&mut self, latency_ns: f64, now_ns: u64, decay_ns: f64) {
        let passed_ns = now_ns.saturating_sub(self.at_ns) as f64;
        self.latency_ns = if latency_ns > self.latency_ns {
            latency_ns
        } else {
            let old = (-passed_ns / decay_ns).exp();
            self.latency_ns * old + latency_ns * (1.0 - old)
        };
        self.at_ns = self.at_ns.max(now_ns);
    }
}

/// Latency of a back end without a response while it has a request: above any real one.
const UNKNOWN_NS: f64 = 1e15;

impl PeakEwma {
    pub fn new(decay_ns: f64, backends: &[Backend]) -> PeakEwma {
        PeakEwma {
            decay_ns: decay_ns.max(1.0),
            costs: backends.iter().map(|one| one.weight.cost()).collect(),
            averages: vec![Average::default(); backends.len()].into(),
        }
    }

    pub fn choose(
        &mut self,
        candidates: &[Candidate],
        now_ns: u64,
        rng: &mut fastrand::Rng,
    ) -> Option<usize> {
        let count = candidates.len().min(self.costs.len());
        let usable = || (0..count).filter(|at| candidates[*at].usable);
        let choices = usable().count();
        if choices <= 1 {
            return usable().next();
        }
        let first = rng.usize(..choices);
        // Uniform over the others.
        let other = (first + rng.usize(1..choices)) % choices;
        let (first, other) = (usable().nth(first)?, usable().nth(other)?);
        let first_cost = self.cost(first, &candidates[first], now_ns);
        let other_cost = self.cost(other, &candidates[other], now_ns);
        Some(if other_cost < first_cost {
            other
        } else {
            first
        })
    }

    pub fn answered(&mut self, candidate: usize, latency_ns: u64, now_ns: u64) {
        if let Some(average) = self.averages.get_mut(candidate) {
            average.note(latency_ns as f64, now_ns, self.decay_ns);
        }
    }

    fn cost(&mut self, at: usize, candidate: &Candidate, now_ns: u64) -> f64 {
        let average = &mut self.averages[at];
        // Decays without responses too, so that it is tried again.
        average.note(0.0, now_ns, self.decay_ns);
        let active = f64::from(candidate.active);
        let latency_ns = if average.latency_ns == 0.0 && candidate.active > 0 {
            UNKNOWN_NS
        } else {
            average.latency_ns
        };
        latency_ns * (active + 1.0) * self.costs[at] / candidate.share
    }
}
