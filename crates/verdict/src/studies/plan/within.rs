//! The variance within a block: what the slices of two subjects, taken in turns, give to the log
//! ratio of their block. A slice's variance is taken to fall with its length.

use readings::{LoadReading, Slice};

/// Fewer pairs of slices say nothing of the variance of a throughput: what two say in each of several
/// blocks is averaged.
const PAIRS_MIN: usize = 2;
/// Fewer batches say nothing of that of a quantile.
const BATCHES_MIN: usize = 3;

/// Of a throughput; nothing where the slices cannot be paired.
pub(super) fn of_throughput(ours: &[Slice], theirs: &[Slice]) -> Option<f64> {
    if ours.len() != theirs.len() || ours.len() < PAIRS_MIN {
        return None;
    }
    let pairs: Vec<(f64, f64)> = ours
        .iter()
        .zip(theirs)
        .map(|(a, b)| {
            let log = (a.requests_per_s() / b.requests_per_s()).ln();
            (a.duration_s.min(b.duration_s), log)
        })
        .collect();
    if pairs
        .iter()
        .any(|(length, log)| !log.is_finite() || *length <= 0.0)
    {
        return None;
    }
    let time: f64 = pairs.iter().map(|(length, _)| length).sum();
    let mean = pairs.iter().map(|(length, log)| length * log).sum::<f64>() / time;
    let squares = pairs
        .iter()
        .map(|(length, log)| length * (log - mean).powi(2));
    let per_time = squares.sum::<f64>() / (pairs.len() as f64 - 1.0);
    Some(per_time / time)
}

/// The same for a quantile of latency; `None` if the batches cannot be paired, or do not count this
/// quantile.
///
/// A quantile of all requests is not the mean of the slices' quantiles. But the share of requests
/// above it is the mean of the slices' shares, so the slices are clusters of a sample. Woodruff's
/// method turns the standard error of that share into one of the quantile: it takes the quantiles one
/// standard error of the share above and below (Woodruff: Confidence Intervals for Medians and Other Position Measures, JASA 1952; for
/// clusters of requests: Deng, Knoblich, Lu: Applying the Delta Method in Metric Analytics, KDD
/// 2018). What both subjects have in common in a pair cancels in the ratio.
pub(super) fn of_quantile(ours: &LoadReading, theirs: &LoadReading, quantile: f64) -> Option<f64> {
    let (ours, theirs) = (influences(ours, quantile)?, influences(theirs, quantile)?);
    if ours.len() != theirs.len() {
        return None;
    }
    let of_pairs: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a - b).collect();
    Some(variance_of_sum(&of_pairs))
}

/// The influence of each batch on the logarithm of the load's quantile; they add up to 0.
fn influences(load: &LoadReading, quantile: f64) -> Option<Vec<f64>> {
    let counts: Option<Vec<(f64, f64)>> = load
        .batches
        .iter()
        .map(|one| Some((one.requests as f64, one.above(quantile)? as f64)))
        .collect();
    let counts = counts.filter(|counts| counts.len() >= BATCHES_MIN)?;
    let (requests, above) = counts
        .iter()
        .fold((0.0, 0.0), |(n, a), one| (n + one.0, a + one.1));
    if requests <= 0.0 {
        return None;
    }
    let share = above / requests;
    let of_share: Vec<f64> = counts
        .iter()
        .map(|(requests_here, above_here)| (above_here - share * requests_here) / requests)
        .collect();
    let error = variance_of_sum(&of_share).sqrt();
    // One answer is the least that a share can differ by.
    let error = error.max(1.0 / requests);
    let (low, high) = (quantile - error, quantile + error);
    let (low, high) = (low.max(0.0), high.min(1.0));
    let log = |share: f64| load.response.quantile_us(share).ln();
    let slope = (log(high) - log(low)) / (high - low);
    slope
        .is_finite()
        .then(|| of_share.iter().map(|one| slope * one).collect())
}

fn variance_of_sum(terms: &[f64]) -> f64 {
    let n = terms.len() as f64;
    let mean = terms.iter().sum::<f64>() / n;
    let squares: f64 = terms.iter().map(|term| (term - mean).powi(2)).sum();
    n / (n - 1.0) * squares
}
