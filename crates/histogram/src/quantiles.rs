//! The quantiles of a histogram that results show.

use serde::{Deserialize, Serialize};

/// The summary of a latency histogram. Every value is in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many values there were; the others are 0 when this is 0.
    pub count: u64,
    /// The smallest value.
    pub min: f64,
    pub mean: f64,
    /// The standard deviation.
    pub stdev: f64,
    pub p50: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p99_9: f64,
    /// The 99.99th percentile.
    pub p99_99: f64,
    /// The largest value.
    pub max: f64,
}

impl Quantiles {
    /// The quantiles among the keys, each with its share of the values.
    pub const SHARES: [(&'static str, f64); 6] = [
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99_9", 0.999),
        ("p99_99", 0.9999),
    ];

    /// Whether enough values stand behind a quantile: at least 100 beyond it
    /// (so p99.9 wants 100,000 values).
    pub fn resolves(&self, quantile: f64) -> bool {
        self.count as f64 * (1.0 - quantile) >= 99.999
    }
}
