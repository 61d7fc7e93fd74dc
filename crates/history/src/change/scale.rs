//! The variance of runs at one level, and the level of a stretch of runs.

/// A change is confirmed once this many runs after it lie nearer to the new level than to the old
/// one. It also needs this many runs before it that lie nearer to the old level.
pub const CONFIRMED_BY: usize = 3;
/// Prior degrees of freedom with which a standard error is shrunk towards that of the other runs. A
/// run of few blocks has a small standard error by chance now and then, and would outweigh all
/// others.
///
/// Source: G. Smyth, Linear models and empirical Bayes methods, Statistical Applications in Genetics
/// and Molecular Biology 3 (2004).
const PRIOR_DEGREES: f64 = 4.0;
/// The median of the absolute value of a standard normal variable.
const MEDIAN_OF_NORMAL: f64 = 0.674_489_75;
/// Runs on either side with which a run is compared to find spikes.
const NEIGHBOURS: usize = 3;
/// Huber's constant: the standard deviations beyond which a run loses weight.
const HUBER: f64 = 2.0;
/// The standard deviations from its neighbours beyond which a run counts as a spike, and is clamped
/// for the search of places.
const SPIKE: f64 = 3.0;
/// The limit at which residuals are clamped, and the mean square of clamped normal residuals.
const CUT: f64 = 2.5;
const MEAN_SQUARE_OF_CUT: f64 = 0.969;
/// The smallest standard error that is believed.
const FINEST: f64 = 1e-4;

/// One run's log ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Log ratio of subject over baseline.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The degrees of freedom of the standard error.
    pub degrees: f64,
}

/// The runs of a series with their variances.
pub(super) struct Noise {
    pub values: Vec<f64>,
    /// The variance of each run: that of its blocks, shrunk towards the others', plus that between
    /// runs.
    pub variances: Vec<f64>,
    /// The values, with single spikes clamped to three standard deviations from their neighbours.
    pub without_spikes: Vec<f64>,
}

impl Noise {
    /// `None` for fewer runs than a change needs.
    pub fn of(points: &[Point]) -> Option<Self> {
        (points.len() > CONFIRMED_BY).then(|| Self::of_level(points))
    }

    /// The same for any number of runs.
    pub fn of_level(points: &[Point]) -> Self {
        let values: Vec<f64> = points.iter().map(|p| p.value).collect();
        let own = |p: &Point| p.standard_error.max(FINEST).powi(2);
        let typical = median(points.iter().map(own).collect());
        let drawn = |p: &Point| {
            let degrees = p.degrees.max(1.0);
            (PRIOR_DEGREES * typical + degrees * own(p)) / (PRIOR_DEGREES + degrees)
        };
        let within: Vec<f64> = points.iter().map(drawn).collect();
        let between = variance_between(&values, &within);
        let variances: Vec<f64> = within.iter().map(|v| v + between).collect();
        let without_spikes = (0..values.len())
            .map(|i| {
                let from = i.saturating_sub(NEIGHBOURS);
                let to = (i + NEIGHBOURS + 1).min(values.len());
                let middle = median(values[from..to].to_vec());
                let room = SPIKE * variances[i].sqrt();
                values[i].clamp(middle - room, middle + room)
            })
            .collect();
        Self {
            values,
            variances,
            without_spikes,
        }
    }
}

/// The variance between runs that their own standard errors do not explain. It is estimated from
/// the median difference of neighbouring runs, which changes and single spikes hardly move.
fn variance_between(values: &[f64], within: &[f64]) -> f64 {
    let median_with = |between: f64| {
        let pairs = values.windows(2).zip(within.windows(2));
        let standardised =
            pairs.map(|(y, v)| (y[1] - y[0]).abs() / (v[0] + v[1] + 2.0 * between).sqrt());
        median(standardised.collect())
    };
    if median_with(0.0) <= MEDIAN_OF_NORMAL {
        return 0.0;
    }
    let widest = values.windows(2).map(|y| (y[1] - y[0]).powi(2));
    let (mut low, mut high) = (0.0, widest.fold(0.0, f64::max));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if median_with(middle) > MEDIAN_OF_NORMAL {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The level of a stretch of runs.
pub(crate) struct Level {
    /// Huber's estimate of the mean.
    pub mean: f64,
    /// The sum of the weights behind the mean.
    weight: f64,
    from: usize,
    to: usize,
}

impl Level {
    /// The level of the runs `from..to`, of which there is at least one.
    pub(super) fn of(noise: &Noise, from: usize, to: usize) -> Self {
        let (values, variances) = (&noise.values[from..to], &noise.variances[from..to]);
        let mut mean = median(values.to_vec());
        let mut weight = 0.0;
        for _ in 0..30 {
            let mut sum = 0.0;
            weight = 0.0;
            for (value, variance) in values.iter().zip(variances) {
                let z = (value - mean).abs() / variance.sqrt();
                let w = (HUBER / z).min(1.0) / variance;
                weight += w;
                sum += w * value;
            }
            let next = sum / weight;
            let moved = (next - mean).abs();
            mean = next;
            if moved < 1e-9 {
                break;
            }
        }
        Self {
            mean,
            weight,
            from,
            to,
        }
    }

    pub fn variance(&self) -> f64 {
        1.0 / self.weight
    }

    fn residuals<'a>(&'a self, noise: &'a Noise) -> impl Iterator<Item = f64> + 'a {
        (self.from..self.to).map(|i| {
            let z = (noise.values[i] - self.mean) / noise.variances[i].sqrt();
            z.clamp(-CUT, CUT)
        })
    }
}

/// The factor by which the variance of the difference of two levels exceeds what the weights give:
/// for the spread of the runs around their levels, and for the correlation of successive runs. At
/// least 1.
pub(super) fn inflation(noise: &Noise, before: &Level, after: &Level) -> f64 {
    let sides: [Vec<f64>; 2] = [before, after].map(|level| level.residuals(noise).collect());
    let runs = sides.iter().map(Vec::len).sum::<usize>() as f64;
    let squares: f64 = sides.iter().flatten().map(|z| z * z).sum();
    let spread = squares / (runs - 2.0) / MEAN_SQUARE_OF_CUT;
    let products: f64 = sides
        .iter()
        .flat_map(|side| side.windows(2).map(|z| z[0] * z[1]))
        .sum();
    // The part beyond chance. Estimating the means lowers the correlation by about 1/n.
    let correlation = products / squares.max(f64::MIN_POSITIVE) + 1.0 / runs - 1.0 / runs.sqrt();
    let correlation = correlation.clamp(0.0, 0.8);
    spread.max(1.0) * (1.0 + correlation) / (1.0 - correlation)
}

/// The median; 0 for an empty list.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    }
}
