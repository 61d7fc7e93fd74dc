//! Least load: by size, duration or connections.

use super::Candidate;
use crate::config::model::Backend;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Mean size of finished connections, bytes.
    Size,
    /// Mean duration of finished connections, ns.
    Duration,
    /// Connections, current or average.
    Connections,
    /// Connections including this client's.
    Next,
}

/// Takes the back end with the smallest measure times cost; ties go to fewer connections, then
/// round robin.
///
/// The cost is Crossroads' weight. Crossroads' decay shrinks a back end's mean size or duration
/// whenever another one is chosen, so that one that was busy once is tried again.
#[derive(Clone, Debug)]
pub(super) struct Load {
    measure: Measure,
    averaged: bool,
    costs: Box<[f64]>,
    /// The factor that a mean shrinks by: 0 to 1.
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
            // Connection counts do not decay.
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

/// The mean of all values, or of the last N.
#[derive(Clone, Debug)]
struct Mean {
    /// The last values, if limited; divided by `scale`.
    last: Box<[f64]>,
    next: usize,
    count: u64,
    /// The sum; divided by `scale`.
    sum: f64,
    /// A common factor, so that shrinking is one multiplication.
    scale: f64,
}

/// A smaller scale would lose precision.
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
            // Clears accumulated rounding errors, once per cycle.
            self.sum = self.last.iter().sum();
        }
    }

    /// The mean; 0 without values, so that unknown back ends are tried first.
    fn get(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        // Rounding must not make it negative.
        (self.sum * self.scale / self.count as f64).max(0.0)
    }

    fn shrink(&mut self, kept: f64) {
        if kept >= 1.0 || self.sum <= 0.0 {
            return;
        }
        self.scale *= kept;
        if self.scale < SCALE_MIN {
            // Rare, as it touches all values.
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
