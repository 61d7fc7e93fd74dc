//! Round robin.

use super::Candidate;

/// Plain round robin. During slow start a back end is skipped until its shares add up to one turn.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    next: usize,
    saved: Box<[f64]>,
}

/// Bounds the rounds for tiny shares.
const ROUNDS_MAX: usize = 64;

impl RoundRobin {
    pub fn new(count: usize) -> RoundRobin {
        RoundRobin {
            next: 0,
            saved: vec![0.0; count].into(),
        }
    }

    pub fn choose(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let count = candidates.len().min(self.saved.len());
        let mut usable = None;
        for step in 0..count * ROUNDS_MAX {
            let at = (self.next + step) % count;
            if !candidates[at].usable {
                // After one round without a usable one, there is none.
                if usable.is_none() && step >= count {
                    return None;
                }
                continue;
            }
            usable = Some(at);
            self.saved[at] += candidates[at].share;
            // Tolerates rounding of summed shares.
            if self.saved[at] > 1.0 - 1e-9 {
                self.saved[at] = (self.saved[at] - 1.0).clamp(0.0, 1.0);
                self.next = (at + 1) % count;
                return Some(at);
            }
        }
        usable
    }
}

/// Smooth weighted round robin, as in nginx since 1.3.1 ("Upstream: smooth weighted round-robin
/// balancing", 2012): in each turn every back end gains its weight; the richest is chosen and pays
/// what all have gained. One of twice the weight comes twice as often, but not twice in a row.
#[derive(Clone, Debug)]
pub(super) struct WeightedRoundRobin {
    weights: Box<[f64]>,
    gained: Box<[f64]>,
}

impl WeightedRoundRobin {
    pub fn new(weights: Box<[f64]>) -> WeightedRoundRobin {
        WeightedRoundRobin {
            gained: vec![0.0; weights.len()].into(),
            weights,
        }
    }

    pub fn choose(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let mut total = 0.0;
        let mut best: Option<usize> = None;
        for (at, candidate) in candidates.iter().enumerate().take(self.weights.len()) {
            if !candidate.usable {
                continue;
            }
            let weight = self.weights[at] * candidate.share;
            total += weight;
            self.gained[at] += weight;
            if best.is_none_or(|best| self.gained[at] > self.gained[best]) {
                best = Some(at);
            }
        }
        if let Some(best) = best {
            self.gained[best] -= total;
        }
        best
    }
}
