//! The energy statistic of E-divisive, weighted.

use super::scale::Noise;

/// Prefix sums over the pairs of runs in a window. They give the statistic of any split in constant
/// time.
///
/// Source: D. Matteson and N. James, A nonparametric approach for multiple change point analysis of
/// multivariate data, Journal of the American Statistical Association 109 (2014), with exponent 1.
pub(super) struct Energy {
    from: usize,
    size: usize,
    /// `sums[i * (size + 1) + j]`: the sum of the weighted distances between runs below `i` and
    /// runs below `j`.
    sums: Vec<f64>,
    /// The sums of the weights of all runs below `i`, and of their squares.
    weights: Vec<f64>,
    squares: Vec<f64>,
}

impl Energy {
    /// The sums for the runs `from..to`.
    pub fn of(noise: &Noise, from: usize, to: usize) -> Self {
        let size = to - from;
        let width = size + 1;
        let mut sums = vec![0.0; width * width];
        let mut weights = vec![0.0; width];
        let mut squares = vec![0.0; width];
        let value = |i: usize| noise.without_spikes[from + i];
        let weight = |i: usize| 1.0 / noise.variances[from + i];
        for i in 0..size {
            weights[i + 1] = weights[i] + weight(i);
            squares[i + 1] = squares[i] + weight(i) * weight(i);
            let mut row = 0.0;
            for j in 0..size {
                row += weight(i) * weight(j) * (value(i) - value(j)).abs();
                sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
            }
        }
        Self {
            from,
            size,
            sums,
            weights,
            squares,
        }
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

    fn statistic(&self, from: usize, at: usize, to: usize) -> f64 {
        let (a, b, c) = (from - self.from, at - self.from, to - self.from);
        let (before, after) = (self.weight(a, b), self.weight(b, c));
        let between = 2.0 * self.sum((a, b), (b, c)) / (before * after);
        let within = |i: usize, j: usize, weight: f64| {
            // Only pairs of different runs count: the weights of a run with itself are subtracted.
            let pairs = weight * weight - (self.squares[j] - self.squares[i]);
            if j - i < 2 || pairs <= 0.0 {
                0.0
            } else {
                self.sum((i, j), (i, j)) / pairs
            }
        };
        let effective =
            |i: usize, j: usize, weight: f64| weight * weight / (self.squares[j] - self.squares[i]);
        let (m, n) = (effective(a, b, before), effective(b, c, after));
        m * n / (m + n) * (between - within(a, b, before) - within(b, c, after))
    }

    fn weight(&self, i: usize, j: usize) -> f64 {
        self.weights[j] - self.weights[i]
    }

    fn sum(&self, rows: (usize, usize), columns: (usize, usize)) -> f64 {
        let at = |i: usize, j: usize| self.sums[i * (self.size + 1) + j];
        at(rows.1, columns.1) - at(rows.0, columns.1) - at(rows.1, columns.0)
            + at(rows.0, columns.0)
    }
}
