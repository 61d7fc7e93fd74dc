//! The variance of log ratios over blocks, taken apart.

use serde::Serialize;

/// Beyond this standard score drift counts as seen: one in twenty by chance, one-sided.
const DRIFT_SEEN: f64 = 1.645;

/// Variances of a block's log ratio. They add up to the total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Components {
    pub total: f64,
    /// Of slices within a block, at its present window; absent where slices do not tell.
    pub slices: Option<f64>,
    /// Of what stays within a block and changes from one to the next, such as what starting afresh
    /// does. Without slices, those are in it.
    pub starts: f64,
    /// Of what changes slowly over blocks: a trend, or blocks that resemble the one before.
    pub drift: f64,
    /// Whether the drift is more than a random order of blocks explains.
    pub drift_seen: bool,
}

impl Components {
    /// Takes apart the log ratios of blocks in their order, at least two.
    ///
    /// Half the mean squared difference of successive blocks is their variance without slow change
    /// (von Neumann 1941); what it lacks of the total is drift.
    pub(crate) fn of(logs: &[f64], slices: Option<f64>) -> Self {
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let steps: f64 = logs
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).powi(2))
            .sum();
        let total = squares / (n - 1.0);
        let successive = (steps / (2.0 * (n - 1.0))).min(total);
        let slices = slices.map(|slices| slices.min(successive));
        Self {
            total,
            slices,
            starts: successive - slices.unwrap_or(0.0),
            drift: total - successive,
            drift_seen: squares > 0.0 && drift_score(steps / squares, n) > DRIFT_SEEN,
        }
    }
}

/// How many standard deviations von Neumann's ratio is below what independent blocks have.
fn drift_score(ratio: f64, n: f64) -> f64 {
    let sd = (4.0 * (n - 2.0) / (n * n - 1.0)).sqrt();
    match sd > 0.0 {
        true => (2.0 - ratio) / sd,
        false => 0.0,
    }
}
