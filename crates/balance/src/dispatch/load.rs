//! By what is measured: size, duration, connections.

use super::Candidate;
use crate::config::model::Backend;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The mean size of the connections that have ended, bytes.
    Size,
    /// Their mean duration, ns.
    Duration,
    /// The connections, now or on average.
    Connections,
    /// The connections that there would be with this client.
    Next,
}

/// The back end with the smallest measure, multiplied by its cost; of several, the one with the
/// fewest connections, and of those the next in turn.
///
/// What Crossroads calls weight is the cost. Its decay takes a part of what is known of a back
/// end's size or duration away whenever another one is chosen, so that a back end that was busy
/// once is tried again.
#[derive(Clone, Debug)]
pub(super) struct Load {
    measure: Measure,
    averaged: bool,
    costs: Box<[f64]>,
    /// What is left of a mean when another back end is chosen: 0 to 1.
    kept: Box<[f64]>,
    means: Box<[Mean]>,
    turn: usize,
}

impl Load {
    pub fn new(measure: Measure, over: Option<u32>, backends: &[Backend]) -> Load {
        let kept = |one: &Backend| 1.0 - f64::from(one.decay_percent.min(100)) / 100.0;
        let counts = matches!(measure, Measure::Connections | Measure::Next);
        Load {
            measure,
            averaged: !counts || over.is_some(),
            costs: backends.iter().map(|one| one.weight.cost()).collect(),
            // Connections are there or not; nothing of them is forgotten.
            kept: backends
                .iter()
                .map(|one| if counts { 1.0 } else { kept(one) })
                .collect(),
            means: backends.iter().map(|_| Mean::new(over)).collect(),
            turn: 0,
        }
    }

    pub fn choose(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let count = candidates.len().min(self.costs.len());
        if self.measure == Measure::Connections && self.averaged {
            for (mean, candidate) in self.means.iter_mut().zip(candidates) {
                mean.add(f64::from(candidate.active));
            }
        }
        let mut best: Option<(usize, (f64, f64))> = None;
        for step in 0..count {
            let at = (self.turn + step) % count;
            let candidate = &candidates[at];
            if !candidate.usable {
                continue;
            }
            let cost = self.costs[at] / candidate.share;
            let active = f64::from(candidate.active);
            let measure = match self.measure {
                _ if self.averaged => self.means[at].get(),
                Measure::Next => active + 1.0,
                _ => active,
            };
            let key = (measure * cost, active * cost);
            if best.is_none_or(|(_, least)| key < least) {
                best = Some((at, key));
            }
        }
        let (chosen, _) = best?;
        self.turn = (chosen + 1) % count;
        for (at, (mean, kept)) in self.means.iter_mut().zip(&self.kept).enumerate() {
            if at != chosen {
                mean.shrink(*kept);
            }
        }
        Some(chosen)
    }

    pub fn finished(&mut self, candidate: usize, bytes: u64, duration_ns: u64) {
        let value = match self.measure {
            Measure::Size => bytes,
            Measure::Duration => duration_ns,
            Measure::Connections | Measure::Next => return,
        };
        if let Some(mean) = self.means.get_mut(candidate) {
            mean.add(value as f64);
        }
    }
}

/// The mean of all values, or of the last so many.
#[derive(Clone, Debug)]
struct Mean {
    /// The last values, when only so many count; divided by `scale`.
    last: Box<[f64]>,
    next: usize,
    count: u64,
    /// Sum of what counts; divided by `scale`.
    sum: f64,
    /// What is left of the values that there are, so that shrinking them is one multiplication.
    scale: f64,
}

/// Below this, dividing by a scale would make sums that rounding spoils.
const SCALE_MIN: f64 = 1e-9;

impl Mean {
    fn new(over: Option<u32>) -> Mean {
        Mean {
            last: vec![0.0; over.unwrap_or(0) as usize].into(),
            next: 0,
            count: 0,
            sum: 0.0,
            scale: 1.0,
        }
    }

    fn add(&mut self, value: f64) {
        let value = value / self.scale;
        if self.last.is_empty() {
            self.count += 1;
            self.sum += value;
            return;
        }
        self.count = (self.count + 1).min(self.last.len() as u64);
        self.sum += value - std::mem::replace(&mut self.last[self.next], value);
        self.next += 1;
        if self.next == self.last.len() {
            self.next = 0;
            // Adding and taking away leaves rounding behind; once a round it is cleared.
            self.sum = self.last.iter().sum();
        }
    }

    /// The mean; 0 where there is nothing yet, so that the unknown is tried first.
    fn get(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        // Rounding must not make it less than nothing.
        (self.sum * self.scale / self.count as f64).max(0.0)
    }

    fn shrink(&mut self, kept: f64) {
        if kept >= 1.0 || self.sum <= 0.0 {
            return;
        }
        self.scale *= kept;
        if self.scale < SCALE_MIN {
            // Seldom, as it goes through all values.
            self.last.iter_mut().for_each(|value| *value *= self.scale);
            self.sum *= self.scale;
            self.scale = 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mean_of_the_last_forgets_the_others() {
        let mut mean = Mean::new(Some(2));
        assert_eq!(mean.get(), 0.0);
        mean.add(4.0);
        assert_eq!(mean.get(), 4.0);
        mean.add(8.0);
        mean.add(10.0);
        assert_eq!(mean.get(), 9.0);
        mean.shrink(0.5);
        assert_eq!(mean.get(), 4.5);
        mean.add(5.5);
        assert_eq!(mean.get(), 5.25);
        mean.shrink(0.0);
        assert_eq!(mean.get(), 0.0);
        mean.add(6.0);
        assert_eq!(mean.get(), 3.0);
    }

    proptest! {
        #[test]
        fn a_mean_is_that_of_the_values_that_count(
            over in proptest::option::of(1..8u32),
            steps in proptest::collection::vec((0..1_000_000u32, 0..=100u8), 1..60),
        ) {
            let mut mean = Mean::new(over);
            let mut values: Vec<f64> = Vec::new();
            for (value, percent) in steps {
                mean.add(f64::from(value));
                values.push(f64::from(value));
                if let Some(over) = over {
                    while values.len() > over as usize {
                        values.remove(0);
                    }
                }
                let kept = 1.0 - f64::from(percent) / 100.0;
                mean.shrink(kept);
                values.iter_mut().for_each(|value| *value *= kept);
                let expected = values.iter().sum::<f64>() / values.len() as f64;
                let close = (mean.get() - expected).abs() <= 1e-6 * (1.0 + expected) + 1e-2;
                prop_assert!(close, "{} {}", mean.get(), expected);
            }
        }
    }
}
