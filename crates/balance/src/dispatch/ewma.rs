//! The better of two drawn by lot, by answer times.

use super::Candidate;
use crate::config::model::Backend;

/// Two back ends are drawn, and the one that costs less is chosen: "The Power of Two Choices in
/// Randomized Load Balancing" (M. Mitzenmacher, 2001) shows that two are nearly as good as all,
/// and threads that do not know of each other do not all run to the same one.
///
/// The cost is that of Finagle's `PeakEwma` (Twitter, from 2015): the moving average of a back
/// end's answer times, that a slower answer raises at once and faster ones lower by and by, times
/// the requests that it would have. A back end that has not answered yet is given one request at a
/// time.
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

/// What one that has not answered yet costs while it has a request: more than any that has.
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
        // One of the others: all but the first have the same chance.
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
        // Time passes also for one that gets nothing, so that it is tried again.
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
