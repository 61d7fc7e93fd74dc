//! Random.

use super::Candidate;
use crate::config::model::Backend;

/// Draws a back end in proportion to its weight.
#[derive(Clone, Debug)]
pub(super) struct Random {
    weights: Box<[f64]>,
}

impl Random {
    pub fn new(backends: &[Backend]) -> Random {
        Random {
            weights: backends.iter().map(|one| one.weight.share()).collect(),
        }
    }

    pub fn choose(&self, candidates: &[Candidate], rng: &mut fastrand::Rng) -> Option<usize> {
        let weighed = || {
            candidates
                .iter()
                .zip(&self.weights)
                .enumerate()
                .filter(|(_, (candidate, _))| candidate.usable)
                .map(|(at, (candidate, weight))| (at, weight * candidate.share))
        };
        let total: f64 = weighed().map(|(_, weight)| weight).sum();
        let mut point = rng.f64() * total;
        let mut last = None;
        for (at, weight) in weighed() {
            last = Some(at);
            if point < weight {
                break;
            }
            point -= weight;
        }
        // Rounding may leave the point past the last one.
        last
    }
}
