//! What qualifies a verdict.

use crate::{CpusOfOthers, LagRemedy, NoiseFloor, Reason, Starts, Verdict};

/// What qualifies a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The interval excludes zero and lies within the margin.
    SmallerThanMatters,
    /// A difference on its own, but not after the correction for so many comparisons.
    NotAmong {
        comparisons: usize,
    },
    /// The interval excludes zero and may reach beyond the margin.
    MayMatter,
    /// A new run of so many blocks would likely settle it.
    MoreBlocks {
        /// The blocks of the new run.
        total: usize,
        /// The fewest, at the lower end of what the spread between blocks may truly be.
        low: usize,
        /// The most, at the upper end; absent where that is more than is advised.
        high: Option<usize>,
    },
    /// The baseline differs from itself by as much, so nothing of that size was measured.
    FloorAsLarge {
        /// The baseline's second copy over its first.
        floor: f64,
        /// What other programs took, where it is much.
        others: Option<CpusOfOthers>,
    },
    /// More blocks alone would hardly settle it.
    BlocksAlone {
        /// The noise floor, if its interval is as wide as the difference.
        floor: Option<Box<NoiseFloor>>,
        /// What other programs took, where it is much.
        others: Option<CpusOfOthers>,
    },
    /// The t interval says so, and the robust companion does not: a few blocks decide.
    CompanionDiffers {
        /// What the t interval alone would give.
        verdict: Verdict,
        /// The Hodges-Lehmann estimate of the ratio.
        ratio: f64,
        /// Lower end of its interval, of the confidence that the verdict needs.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The t interval says so, and the blocks are too skewed for it.
    Skewed {
        /// What the t interval alone would give.
        verdict: Verdict,
    },
    /// More blocks would not settle it: the difference is about as large as the margin.
    AsLargeAsMatters,
    /// More blocks would not settle it: the blocks differ too much.
    TooNoisy,
    /// Too many blocks cannot be used.
    Unusable {
        /// Blocks that cannot be used.
        blocks: usize,
        tried: usize,
        subject: String,
        reason: Option<Reason>,
    },
    NothingMeasured,
    /// Fewer blocks than a decision needs.
    TooFewBlocks {
        /// Blocks that can be used.
        usable: usize,
        /// The first reason why another cannot.
        reason: Option<Reason>,
    },
    /// The client was the bottleneck for one subject, or for both where none is named.
    ClientLimits(Option<String>),
    /// Starts of these subjects that failed through their own doing.
    FailedStarts(Vec<(String, Starts)>),
    /// The client's own lag is a good part of the latency, and service times do not say the same.
    ClientLag {
        /// Its largest share of a latency in a block.
        share: f64,
        /// The ratio of service times, where they were measured.
        service_ratio: Option<f64>,
        remedy: LagRemedy,
    },
    /// The baseline differs from itself by as much.
    WithinFloor(Box<NoiseFloor>),
    /// The slices shift the ratio by this factor.
    SliceBias(f64),
    /// The latency was taken by the clocks of load generators other than the engine.
    Clock {
        subject: String,
        baseline: String,
        /// Whether they ran a closed loop.
        closed_loop: bool,
    },
    /// How many requests of each side failed.
    Failures(Vec<FailuresOf>),
    /// The failures that a time of good answers leaves out, of sides with more than a load may have.
    LeavesOut(Vec<FailuresOf>),
    /// Sides whose rate was full all the time, or not full at the window's end.
    FullRate(Vec<FullRateOf>),
}

/// The failures of one side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FailuresOf {
    pub subject: String,
    pub requests: u64,
    pub failed: u64,
    /// The events that failures are counted for; absent where they are counted as a share of the
    /// requests.
    pub events: Option<usize>,
    /// Where none was seen: the share of the requests that can fail at most, as a fraction, or how
    /// many for each event.
    pub at_most: f64,
}

/// How the rate of one side of a comparison came back.
#[derive(Clone, Debug, PartialEq)]
pub struct FullRateOf {
    pub subject: String,
    /// Blocks in which it was full all the time.
    pub always: usize,
    /// Blocks in which it was not full at the window's end.
    pub never: usize,
}
