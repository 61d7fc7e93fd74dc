//! The place of a change: where the likelihood of two levels exceeds that of one most.

use super::scale::Noise;

/// Prefix sums over the runs of a line. They give the statistic of any split in constant time.
///
/// Source: D. Hinkley, Inference about the change-point in a sequence of random variables,
/// Biometrika 57 (1970), with a weight for each run.
pub(super) struct Scan {
    /// The sums of the weights of all runs below `i`, and of their values by these weights.
    weights: Vec<f64>,
    sums: Vec<f64>,
}

impl Scan {
    pub fn of(noise: &Noise) -> Self {
        let (mut weights, mut sums) = (vec![0.0], vec![0.0]);
        let (mut weight, mut sum) = (0.0, 0.0);
        for (value, variance) in noise.without_spikes.iter().zip(&noise.variances) {
            weight += 1.0 / variance;
            sum += value / variance;
            weights.push(weight);
            sums.push(sum);
        }
        Self { weights, sums }
    }

    /// The place at which the runs before and after it differ most.
    pub fn best(
        &self,
        from: usize,
        to: usize,
        places: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let rated = places.map(|at| (at, self.statistic(from, at, to)));
        // Of equal places, the first.
        let best = rated.reduce(|best, one| if one.1 > best.1 { one } else { best });
        best.map(|(at, _)| at)
    }

    /// The mean of the runs `from..to`, without spikes.
    pub fn mean(&self, from: usize, to: usize) -> f64 {
        (self.sums[to] - self.sums[from]) / self.weight(from, to)
    }

    /// Twice the logarithm of the likelihood ratio: the squared difference of the two means over its
    /// variance.
    pub fn statistic(&self, from: usize, at: usize, to: usize) -> f64 {
        let difference = self.mean(at, to) - self.mean(from, at);
        let (before, after) = (self.weight(from, at), self.weight(at, to));
        difference * difference * before * after / (before + after)
    }

    fn weight(&self, from: usize, to: usize) -> f64 {
        self.weights[to] - self.weights[from]
    }
}
