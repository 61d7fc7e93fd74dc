//! What gates came to.

use readings::{Condition, GateMetric};
use serde::Serialize;

use crate::studies::plan::Needed;
use crate::{NoiseFloor, Reason, ResolvedBy, Starts};

/// The outcome of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// Surely within the bound.
    Passed,
    /// Surely worse than the bound.
    Breached,
    /// The blocks measured show neither.
    Unsettled,
    /// What was measured cannot be judged.
    NotJudged,
}

impl GateOutcome {
    /// The words of reports.
    pub fn words(self) -> &'static str {
        match self {
            GateOutcome::Passed => "passed",
            GateOutcome::Breached => "breached",
            GateOutcome::Unsettled => "unsettled",
            GateOutcome::NotJudged => "not judged",
        }
    }
}

/// Why a gate is unsettled or cannot be judged.
#[derive(Clone, Debug, PartialEq)]
pub enum GateReason {
    /// The run did not measure the metric.
    NotMeasured,
    /// Most blocks cannot be used; `reason` is the first.
    Unusable {
        blocks: usize,
        tried: usize,
        reason: Option<Reason>,
    },
    /// Too few requests lie beyond the quantile; what would resolve it.
    TooFewRequests(Option<ResolvedBy>),
    TooFewBlocks {
        usable: usize,
        needed: usize,
    },
    /// At the rate of the latency the subject was overloaded, in so many of the blocks tried: breached.
    Overloaded {
        subject: String,
        blocks: usize,
        tried: usize,
        offered_per_s: f64,
        /// Good answers per second, as far as that is known.
        carried_per_s: Option<f64>,
    },
    /// The interval of the change holds zero.
    NoChange,
    /// The client was the bottleneck for this subject, or for both.
    ClientLimits(Option<String>),
    /// A subject's starts failed more often than the baseline's or, in a gate on the subject alone,
    /// more often than not.
    FailedStarts(String, Starts),
    /// The baseline differs from itself by more than the distance to the bound.
    WithinFloor(NoiseFloor),
    /// The length of slices biases the ratio across the bound.
    SliceBias,
    /// The client's lag is large, and the service times do not lead to the same outcome.
    ClientLag,
    /// The Hodges-Lehmann interval does not lead to the same outcome: a few blocks decide.
    FewBlocksDecide,
    /// The blocks are too skewed for the t test.
    Skewed,
}

/// A gate, judged for one subject under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    pub name: String,
    pub gate: String,
    pub metric: GateMetric,
    pub condition: Condition,
    pub subject: String,
    /// What it is compared with; absent for a figure of the subject alone.
    pub baseline: Option<String>,
    /// The bound: the ratio less one if it is relative to a baseline, otherwise in the metric's
    /// unit (requests per second, microseconds, bytes, a fraction of the requests).
    pub bound: f64,
    pub outcome: GateOutcome,
    #[serde(skip)]
    pub reason: Option<GateReason>,
    /// What was measured, on the bound's scale.
    pub value: Option<f64>,
    /// Ends of its interval: each is the limit of a one-sided test.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Confidence of the interval: 1 less twice the one-sided error rate of each end.
    pub confidence: f64,
    pub blocks: usize,
    /// One-sided p value of 'not worse than the bound'.
    pub p_breach: Option<f64>,
    /// One-sided p value of 'not better than the bound'.
    pub p_pass: Option<f64>,
    /// The blocks that would settle an unsettled gate nine times in ten if the truth is what was
    /// measured. Absent if that takes more than [`MOST_BLOCKS`](crate::plan::MOST_BLOCKS), or if blocks do not help.
    pub needed: Option<Needed>,
    /// The rate at which a latency was measured, if it was the same in all blocks.
    pub rate_per_s: Option<f64>,
}
