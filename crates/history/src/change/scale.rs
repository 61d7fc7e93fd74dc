//! The variance of runs at one level, and the levels of the stretches before and after a place.

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
/// Halvings of the range in which a variance between runs is searched for.
const HALVINGS: usize = 30;

/// One run's log ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Log ratio of subject over baseline.
    pub value: f64,
    pub standard_error: f64,
    /// The degrees of freedom of the standard error.
    pub degrees: f64,
}

/// The runs of a series with their variances.
pub(super) struct Noise {
    pub values: Vec<f64>,
    /// The variance of each run that its blocks show, shrunk towards the others'.
    within: Vec<f64>,
    /// The same plus the variance between runs, as far as neighbouring runs show it.
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
            within,
            variances,
            without_spikes,
        }
    }
}

/// The variance between runs that their own standard errors do not explain. It is estimated from
/// the median difference of neighbouring runs, which changes and single spikes hardly move.
fn variance_between(values: &[f64], within: &[f64]) -> f64 {
    let pairs = values.windows(2).zip(within.windows(2));
    let differences: Vec<(f64, f64)> = pairs
        .map(|(y, v)| ((y[1] - y[0]).powi(2), v[0] + v[1]))
        .collect();
    // Whether half of the differences are as small as those of normal numbers.
    let is_enough = |between: f64| {
        let limit = |within: f64| MEDIAN_OF_NORMAL.powi(2) * (within + 2.0 * between);
        let small = differences.iter().filter(|(d, v)| *d <= limit(*v)).count();
        2 * small >= differences.len()
    };
    if is_enough(0.0) {
        return 0.0;
    }
    let widest = differences.iter().map(|(d, _)| *d).fold(0.0, f64::max);
    smallest(2.0 * widest, is_enough)
}

/// The smallest variance up to `most` that is enough.
fn smallest(most: f64, is_enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The level of a stretch of runs.
pub(super) struct Level {
    /// Huber's estimate of the mean.
    pub mean: f64,
    /// The sum of the weights behind the mean.
    weight: f64,
}

impl Level {
    /// The level of at least one run.
    pub fn of(values: &[f64], variances: &[f64]) -> Self {
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
        Self { mean, weight }
    }

    fn variance(&self) -> f64 {
        1.0 / self.weight
    }
}

/// The levels before and after a place, with a variance between runs that is estimated around both.
///
/// The variance between runs `b` is the one at which the squared residuals over `within + b` have
/// the mean that normal ones have; 0 if the blocks explain them. The degrees of freedom are those of
/// the runs, as if the blocks' variances told nothing: so the test holds its level for any `b`.
///
/// Source: R. Paule and J. Mandel, Consensus values and weighting factors, Journal of Research of
/// the National Bureau of Standards 87 (1982), here with residuals that are cut off.
pub(super) struct Split {
    pub before: f64,
    pub after: f64,
    /// The standard error of their difference, with the correlation of successive runs.
    pub standard_error: f64,
    pub degrees: f64,
}

impl Split {
    /// Splits the runs `from..to` at a place between them.
    pub fn of(noise: &Noise, from: usize, at: usize, to: usize) -> Self {
        let (values, within) = (&noise.values[from..to], &noise.within[from..to]);
        let place = at - from;
        let with = |between: f64| {
            let variances: Vec<f64> = within.iter().map(|v| v + between).collect();
            let (values, variances) = (values.split_at(place), variances.split_at(place));
            let sides = [(values.0, variances.0), (values.1, variances.1)];
            sides.map(|(values, variances)| {
                let level = Level::of(values, variances);
                let z = |(y, v): (&f64, &f64)| ((y - level.mean) / v.sqrt()).clamp(-CUT, CUT);
                let residuals: Vec<f64> = values.iter().zip(variances).map(z).collect();
                (level, residuals)
            })
        };
        let degrees = values.len() as f64 - 2.0;
        let is_enough = |between: f64| {
            let sides = with(between);
            let squares: f64 = sides.iter().flat_map(|side| &side.1).map(|z| z * z).sum();
            squares <= MEAN_SQUARE_OF_CUT * degrees
        };
        let between = match is_enough(0.0) {
            true => 0.0,
            false => {
                let ends = values.iter().fold((f64::MAX, f64::MIN), |(low, high), y| {
                    (low.min(*y), high.max(*y))
                });
                smallest(values.len() as f64 * (ends.1 - ends.0).powi(2), is_enough)
            }
        };
        let [before, after] = with(between);
        let factor = inflation(&before.1, &after.1);
        let (before, after) = (before.0, after.0);
        Self {
            before: before.mean,
            after: after.mean,
            standard_error: (factor * (before.variance() + after.variance())).sqrt(),
            degrees,
        }
    }
}

/// The factor by which the correlation of successive runs raises the variance of the difference of
/// two levels, from the standardised residuals of both sides. At least 1.
fn inflation(before: &[f64], after: &[f64]) -> f64 {
    let runs = (before.len() + after.len()) as f64;
    let squares: f64 = before.iter().chain(after).map(|z| z * z).sum();
    let pairs = before.windows(2).chain(after.windows(2));
    let products: f64 = pairs.map(|z| z[0] * z[1]).sum();
    // The part beyond chance. Estimating the means lowers the correlation by about 1/n.
    let correlation = products / squares.max(f64::MIN_POSITIVE) + 1.0 / runs - 1.0 / runs.sqrt();
    let correlation = correlation.clamp(0.0, 0.8);
    (1.0 + correlation) / (1.0 - correlation)
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
