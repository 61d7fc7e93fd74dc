//! By lot.

use super::Upstream;
use crate::config::model::Backend;

/// Each back end in proportion to its weight.
#[derive(Clone, Debug)]
pub(super) struct Lot {
    weights: Box<[f64]>,
}

impl Lot {
    pub fn new(backends: &[Backend]) -> Lot {
        Lot {
            weights: backends.iter().map(|one| one.weight.share()).collect(),
        }
    }

    pub fn choose(&self, upstreams: &[Upstream], rng: &mut fastrand::Rng) -> Option<usize> {
        let weighed = || {
            upstreams
                .iter()
                .zip(&self.weights)
                .enumerate()
                .filter(|(_, (upstream, _))| upstream.usable)
                .map(|(at, (upstream, weight))| (at, weight * upstream.share))
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
        // Rounding may leave the point behind the last one, which it belongs to.
        last
    }
}
