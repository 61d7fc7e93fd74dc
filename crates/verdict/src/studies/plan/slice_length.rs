//! Whether shorter slices would help: how much of the variance within blocks is drift of the machine
//! from one subject's slice to the other's.
//!
//! Over the same time such drift changes the rates of both subjects alike, while what is random in
//! each slice does not. So the product of both rates' changes from one round to the next is, on
//! average, the variance of the drift over the time that the two changes have in common. The drift is
//! taken for a random walk, whose variance grows with time.

use readings::{LoadReading, Reading, Slice};
use serde::Serialize;

use super::within;
use crate::stats::student::t_quantile;

/// Shared drift counts as seen with this one-sided confidence.
const SEEN: f64 = 0.95;
/// The shortest slice of `design.slice = "auto"`, and median response times per slice: with shorter
/// ones, their edges would dominate.
const SHORTEST_S: f64 = 0.1;
const ANSWERS_PER_SLICE: f64 = 25.0;
/// Proposed lengths are multiples of this.
const STEP_S: f64 = 0.01;
/// By how much a slice has to be shortened to be worth it.
const TIMES_MIN: f64 = 1.5;

/// Shorter slices, and what they would do to the variance within a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct ShorterSlices {
    /// The shortest slice at present, and the proposed length.
    pub slice_s: f64,
    pub shorter_s: f64,
    /// The share of the variance within blocks that is shared drift.
    pub drift_share: f64,
}

impl ShorterSlices {
    /// From the readings of a subject and of the baseline in each block. `None` if no shared drift is
    /// seen, or slices are as short already as response times allow.
    pub fn of(blocks: &[(&Reading, &Reading)]) -> Option<Self> {
        let loads = blocks.iter().map(|(ours, theirs)| loads(ours, theirs));
        let loads: Vec<(&LoadReading, &LoadReading)> = loads.collect::<Option<_>>()?;
        let drift_per_s = shared_drift_per_s(&loads)?;
        let of_blocks = loads
            .iter()
            .map(|(a, b)| drift_of_block(&a.slices, &b.slices, drift_per_s));
        let drift: f64 = of_blocks.sum();
        let within = loads
            .iter()
            .map(|(a, b)| within::of_throughput(&a.slices, &b.slices));
        let within = within.sum::<Option<f64>>()?;
        let both = loads.iter().flat_map(|(a, b)| [*a, *b]);
        let lengths = both.clone().flat_map(|load| &load.slices);
        let slice_s = lengths.map(|slice| slice.duration_s).reduce(f64::min)?;
        let medians = both.map(|load| load.response.quantile_us(0.5) / 1e6);
        let wanted_s = SHORTEST_S.max(ANSWERS_PER_SLICE * medians.fold(0.0, f64::max));
        let shorter_s = (wanted_s / STEP_S - 1e-9).ceil() * STEP_S;
        (within > 0.0 && slice_s >= TIMES_MIN * shorter_s).then(|| Self {
            slice_s,
            shorter_s,
            drift_share: (drift / within).clamp(0.0, 1.0),
        })
    }

    /// The factor on the variance within blocks. In a random walk, the drift between two slices falls
    /// with their length, and a window has more pairs of slices over which it is averaged.
    pub fn factor(self) -> f64 {
        let times = self.slice_s / self.shorter_s;
        1.0 - self.drift_share * (1.0 - times.powi(-2))
    }
}

/// The closed loops of a pair of readings, with slices in turns that have a common clock: not those of
/// outside drivers, nor of journals of before it was recorded.
fn loads<'r>(ours: &'r Reading, theirs: &'r Reading) -> Option<(&'r LoadReading, &'r LoadReading)> {
    let by_engine = ours.driver.is_none() && theirs.driver.is_none();
    let (a, b) = (ours.throughput.as_ref()?, theirs.throughput.as_ref()?);
    let is_good = |slice: &Slice| {
        slice.requests_per_s() > 0.0 && slice.duration_s > 0.0 && slice.at_s.is_some()
    };
    let are_good = a.slices.iter().chain(&b.slices).all(is_good);
    (by_engine && are_good && a.slices.len() == b.slices.len()).then_some((a, b))
}

/// By the common clock.
fn middle_s(slice: &Slice) -> f64 {
    slice.at_s.unwrap_or_default() + slice.duration_s / 2.0
}

/// The variance per second of the drift that both subjects share; `None` if it is not seen.
fn shared_drift_per_s(blocks: &[(&LoadReading, &LoadReading)]) -> Option<f64> {
    let of_block = |(a, b): &(&LoadReading, &LoadReading)| {
        let (mut products, mut common_s) = (0.0, 0.0);
        for (a, b) in a.slices.windows(2).zip(b.slices.windows(2)) {
            let change =
                |pair: &[Slice]| (pair[1].requests_per_s() / pair[0].requests_per_s()).ln();
            let from_s = middle_s(&a[0]).max(middle_s(&b[0]));
            let until_s = middle_s(&a[1]).min(middle_s(&b[1]));
            products += change(a) * change(b);
            common_s += (until_s - from_s).max(0.0);
        }
        (products, common_s)
    };
    let sums: Vec<(f64, f64)> = blocks.iter().map(of_block).collect();
    let count = sums.len() as f64;
    let products: f64 = sums.iter().map(|(products, _)| products).sum();
    let common_s: f64 = sums.iter().map(|(_, common_s)| common_s).sum();
    if sums.len() < 2 || common_s <= 0.0 {
        return None;
    }
    let per_s = products / common_s;
    // The standard error of a ratio of two sums over blocks.
    let residuals = sums
        .iter()
        .map(|(products, s)| (products - per_s * s).powi(2));
    let variance = residuals.sum::<f64>() * count / (count - 1.0);
    let error = variance.sqrt() / common_s;
    (per_s > t_quantile(SEEN, count - 1.0) * error).then_some(per_s)
}

/// The variance that so much drift gives to a block's log ratio.
fn drift_of_block(ours: &[Slice], theirs: &[Slice], drift_per_s: f64) -> f64 {
    let pairs = || ours.iter().zip(theirs);
    let length_s = |(a, b): (&Slice, &Slice)| a.duration_s.min(b.duration_s);
    let time_s: f64 = pairs().map(length_s).sum();
    let of_pairs = pairs().map(|(a, b)| {
        let length_s = length_s((a, b));
        let apart_s = (middle_s(a) - middle_s(b)).abs();
        // The means over two slices differ less than their middles.
        let between = drift_per_s * (apart_s - length_s / 3.0).max(0.0);
        (length_s / time_s).powi(2) * between
    });
    of_pairs.sum()
}
