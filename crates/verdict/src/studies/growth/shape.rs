//! What a growth is called: constant, linear, or faster or slower than that.
//!
//! The exponent is that of `y = a + b x^k`, by least squares with `a` free: what a server takes without
//! any route must not flatten it. It is taken from the means over the blocks, and its interval is that of
//! the jackknife over blocks, since the exponent of a single block is too noisy to be averaged.
//!
//! Source: J. W. Tukey, Bias and confidence in not-quite large samples, Annals of Mathematical Statistics
//! 29 (1958) 614; R. G. Miller, The jackknife: a review, Biometrika 61 (1974) 1.

use serde::Serialize;

use super::line::{Bend, fit};
use super::{FEWEST_LEVELS, Growing, Slope};

const SEARCHED: (f64, f64) = (0.05, 5.0);
/// Steps of the first search, in equal ratios.
const STEPS: u32 = 48;
/// Rounds of the golden section after it.
const ROUNDS: u32 = 40;
/// An exponent whose interval lies between these counts as 1: over a tenfold of the factor the rise then
/// is less than 1.6 times that of a line, or more than that of a line over 1.6.
const AS_GOOD_AS_ONE: (f64, f64) = (0.8, 1.2);

/// How a metric grows with a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Over the measured range it changes by less than matters.
    Constant,
    /// It rises in proportion to the factor.
    Linear,
    /// It rises faster the higher the factor is.
    Superlinear,
    /// It rises slower the higher the factor is.
    Sublinear,
    Falls,
    /// None of these is shown.
    Unsettled,
}

/// The exponent of a growth: 1 for a line, 2 for a square, near 0 for a logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Exponent {
    pub value: f64,
    /// The ends of its interval.
    pub low: f64,
    pub high: f64,
}

impl Exponent {
    /// The exponent of blocks that all have the same levels; `None` with fewer blocks than have an
    /// interval or fewer than three levels.
    pub(super) fn of(blocks: &[Vec<(f64, f64)>], confidence: f64) -> Option<Self> {
        let count = blocks.len();
        let whole = best(&mean_without(blocks, None)?)?;
        let pseudo = (0..count).map(|left_out| {
            let rest = best(&mean_without(blocks, Some(left_out))?)?;
            Some(count as f64 * whole - (count - 1) as f64 * rest)
        });
        let pseudo = Slope::of(&pseudo.collect::<Option<Vec<f64>>>()?, confidence)?;
        let half = (pseudo.high? - pseudo.low?) / 2.0;
        Some(Self {
            value: whole,
            low: (whole - half).max(0.0),
            high: whole + half,
        })
    }

    fn is_as_good_as_one(self) -> bool {
        AS_GOOD_AS_ONE.0 < self.low && self.high < AS_GOOD_AS_ONE.1
    }
}

impl Shape {
    /// What a slope, its bend and its exponent say, of levels that ascend; `matters` is the smallest
    /// change that does, as a fraction of the value at the lowest level.
    pub(super) fn of(
        levels: &[(f64, f64)],
        slope: &Slope,
        bend: Option<&Bend>,
        exponent: Option<Exponent>,
        matters: f64,
    ) -> Self {
        let (Some(first), Some(last)) = (levels.first(), levels.last()) else {
            return Shape::Unsettled;
        };
        let (range, least) = (last.0 - first.0, matters * first.1.abs());
        let is_small = |slope: f64| (slope * range).abs() < least;
        let is_flat = levels.iter().all(|one| (one.1 - first.1).abs() < least);
        let is_constant = slope.interval().is_some_and(|(low, high)| {
            is_small(low) && is_small(high) && bend.is_none_or(|bend| bend.deviation < least)
        });
        match Growing::of(slope) {
            _ if is_constant && is_flat => Shape::Constant,
            Growing::Falls => Shape::Falls,
            Growing::NotShown => Shape::Unsettled,
            Growing::Rises => match exponent {
                Some(one) if one.is_as_good_as_one() => Shape::Linear,
                Some(one) if one.low > 1.0 => Shape::Superlinear,
                Some(one) if one.high < 1.0 => Shape::Sublinear,
                _ => Shape::Unsettled,
            },
        }
    }
}

/// The levels with their means over the blocks but one.
fn mean_without(blocks: &[Vec<(f64, f64)>], left_out: Option<usize>) -> Option<Vec<(f64, f64)>> {
    let kept = |at: &usize| Some(*at) != left_out;
    let kept: Vec<&Vec<(f64, f64)>> = (0..blocks.len())
        .filter(kept)
        .map(|at| &blocks[at])
        .collect();
    let count = kept.len() as f64;
    let first = kept.first()?;
    let mean = |at: usize| kept.iter().map(|block| block[at].1).sum::<f64>() / count;
    let means = first.iter().enumerate();
    Some(means.map(|(at, (x, _))| (*x, mean(at))).collect())
}

/// The exponent that leaves the least squares; `None` where any higher one leaves less, since the
/// levels are no power of the factor then: one leap at the end fits every high exponent.
fn best(points: &[(f64, f64)]) -> Option<f64> {
    let most = points.iter().fold(0.0_f64, |most, point| most.max(point.0));
    if points.len() < FEWEST_LEVELS || most <= 0.0 || points.iter().any(|point| point.0 < 0.0) {
        return None;
    }
    let left = |exponent: f64| {
        let bent = points.iter().map(|(x, y)| ((x / most).powf(exponent), *y));
        let bent: Vec<(f64, f64)> = bent.collect();
        let line = fit(&bent);
        line.map_or(f64::INFINITY, |line| {
            let apart = bent.iter().map(|(x, y)| (y - line.at(*x)).powi(2));
            apart.sum::<f64>()
        })
    };
    let (low, high) = SEARCHED;
    let step = (high / low).powf(1.0 / f64::from(STEPS));
    let tried = (0..=STEPS).map(|at| low * step.powi(at as i32));
    let nearest = tried.min_by(|a, b| left(*a).total_cmp(&left(*b)))?;
    if nearest * step > high {
        return None;
    }
    let (mut low, mut high) = ((nearest / step).max(low), nearest * step);
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..ROUNDS {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        match left(a) < left(b) {
            true => high = b,
            false => low = a,
        }
    }
    Some(f64::midpoint(low, high))
}
