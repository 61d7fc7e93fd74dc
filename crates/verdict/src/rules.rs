//! The rules of a run's decisions: what matters, errors, looks.

use readings::RunHeader;
use serde::Serialize;

use crate::metric::margin::margin;
use crate::{Looks, Metric};

/// What a run declared before it measured: the figures that the decisions hang on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rules {
    /// The subject that the others are compared with.
    pub baseline: String,
    /// The smallest difference that matters, as a fraction: 0.03 is 3%.
    pub matters: f64,
    /// The smallest difference that matters between two shares of failed requests, as a fraction of
    /// all requests: 0.001 is one in a thousand.
    pub matters_failures: f64,
    /// The smallest difference of a latency that matters, ms: a latency is the same within this or
    /// within `matters`.
    pub matters_ms: Option<f64>,
    /// Confidence of the published intervals, between 0 and 1, all looks taken together; 0.95
    /// unless told otherwise.
    pub confidence: f64,
    /// When the run looks at its data.
    pub looks: Looks,
}

impl Rules {
    /// The rules that a run's header declares, with 95% intervals.
    pub fn of(header: &RunHeader) -> Self {
        Self {
            baseline: header.baseline.clone(),
            matters: header.matters,
            matters_failures: header.matters_failures,
            matters_ms: header.matters_ms,
            confidence: 0.95,
            looks: Looks::of(header.blocks),
        }
    }

    /// The rules for a comparison of a metric whose baseline has this value: with the margin of
    /// latencies that is declared as a time, where it is the wider one.
    pub(crate) fn of_comparison(&self, metric: Metric, baseline_value: Option<f64>) -> Self {
        Self {
            matters: margin(self, metric, baseline_value).exp_m1(),
            ..self.clone()
        }
    }

    /// The smallest log ratio that matters.
    pub(crate) fn delta(&self) -> f64 {
        self.matters.max(0.0).ln_1p()
    }

    /// The error rate that goes with the confidence, for the whole run.
    pub(crate) fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }

    /// The error rate of one look.
    pub(crate) fn look_alpha(&self) -> f64 {
        self.alpha() * self.looks.share()
    }

    /// The confidence of an interval at one look, so that the intervals of all looks together
    /// have the run's (repeated confidence intervals: Jennison and Turnbull 1989).
    pub(crate) fn look_confidence(&self) -> f64 {
        1.0 - self.look_alpha()
    }
}
