//! What qualifies a verdict, and what a reader should know before trusting a result.

use readings::Condition;

use crate::summary::congestion::CongestionSummary;
use crate::{
    CpusOfOthers, LagRemedy, Metric, NoiseFloor, Reason, SettingDifference, Starts, Verdict,
    WithoutPauses,
};

/// What qualifies a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The interval excludes zero and lies within what matters.
    SmallerThanMatters,
    /// A difference on its own, but not after the correction for so many comparisons.
    NotAmong {
        /// The comparisons of the run.
        comparisons: usize,
    },
    /// The interval excludes zero and may reach beyond what matters.
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
    /// More blocks would not settle it: the difference is about as large as what matters.
    AsLargeAsMatters,
    /// More blocks would not settle it: the blocks differ too much.
    TooNoisy,
    /// Too many blocks cannot be used.
    Unusable {
        /// Blocks that cannot be used.
        blocks: usize,
        /// Blocks in which both were tried.
        tried: usize,
        /// The subject whose trials they are.
        subject: String,
        /// The first reason.
        reason: Option<Reason>,
    },
    /// No block was measured.
    NothingMeasured,
    /// Fewer blocks than a decision needs.
    TooFewBlocks {
        /// Blocks that can be used.
        usable: usize,
        /// The first reason why another cannot.
        reason: Option<Reason>,
    },
    /// Fewer blocks than a decision needs beside other programs that take CPU time.
    TooFewBesideOthers {
        /// Blocks that can be used.
        usable: usize,
        needed: usize,
        others: CpusOfOthers,
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
        /// What helps.
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
    /// Sides whose rate was full all the time, or not full at the window's end.
    FullRate(Vec<FullRateOf>),
}

/// The failures of one side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FailuresOf {
    pub subject: String,
    pub requests: u64,
    pub failed: u64,
    /// The share that failures can have at most, as a fraction, where none was seen.
    pub share_at_most: f64,
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

/// A subject under a condition.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    pub subject: String,
    pub condition: Condition,
}

/// What a reader should know before trusting a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// What the run said, or so many trials.
    Recorded {
        /// The sentence.
        text: String,
        /// The trials; 1 for the run's.
        trials: usize,
    },
    /// Subjects under one condition do not use the same TLS.
    TlsDiffers {
        /// The first subject with TLS.
        at: Place,
        /// The first one that negotiated something else.
        other: String,
        /// What the sessions of the two negotiated.
        agreed: [readings::Negotiated; 2],
    },
    /// Subjects do not have the same congestion control.
    CongestionDiffers {
        /// The first subject, and the first one with another algorithm at one end or both.
        sides: [CongestionSummary; 2],
        /// Where; empty for all conditions.
        conditions: Vec<Condition>,
    },
    /// The baseline differs from itself by more than what matters.
    BiasedBaseline {
        /// How it differs.
        floor: NoiseFloor,
        /// What matters, as a fraction.
        matters: f64,
    },
    /// The ratio of two subjects' slices had no steady state.
    Unsettled {
        /// The subject.
        at: Place,
        baseline: String,
        /// Blocks in which it had none.
        unsettled: usize,
        blocks: usize,
    },
    /// The ratios of blocks correlate with those of the blocks before.
    DependentBlocks {
        /// The subject.
        at: Place,
        baseline: String,
        /// What was compared.
        metric: Metric,
        /// The correlation of each ratio with the next.
        lag1: f64,
        blocks: usize,
    },
    /// The slices shift a throughput ratio by more than what matters.
    SliceLength {
        /// The subject.
        at: Place,
        baseline: String,
        /// The ratio as measured, over the one by slices without end.
        ratio: f64,
        blocks: usize,
    },
    /// The baseline's difference from itself is known too poorly to tell what matters.
    WideFloor {
        /// How it differs.
        floor: NoiseFloor,
        /// What matters, as a fraction.
        matters: f64,
    },
    /// Other programs took CPU time while closed loops were measured.
    OtherPrograms {
        others: CpusOfOthers,
        /// The least difference of throughput that can be detected beside them, as a fraction.
        least_difference: Option<f64>,
    },
    /// The steady state of closed loops was not checked: blocks have too few slices.
    SteadyStateUnchecked {
        /// The most slices of a block.
        slices: usize,
        /// How many the check needs.
        needed: usize,
    },
    /// The client was the bottleneck.
    AtLeast {
        /// The subject.
        at: Place,
        /// Trials in which it was.
        limited: usize,
        trials: usize,
    },
    /// Fewer requests were answered than were offered.
    RateNotKept {
        /// The subject.
        at: Place,
        answered_per_s: f64,
        offered_per_s: f64,
    },
    /// Requests failed, too few to make a trial invalid.
    Errors {
        /// The subject.
        at: Place,
        /// Requests that failed.
        failed: u64,
        requests: u64,
    },
    /// By Little's law connections were idle.
    IdleConnections {
        /// The subject.
        at: Place,
        /// Connections that were busy.
        busy: f64,
        connections: u64,
    },
    /// Connections took as long to open as a SYN that is sent again.
    LostSyns {
        /// The subject.
        at: Place,
        /// Connections that did.
        late: u64,
        connections: u64,
        /// The median time to open one, us.
        median_us: f64,
    },
    /// The client's CPU stood still now and then in the open loops.
    ClientPauses {
        /// The subject.
        at: Place,
        found: WithoutPauses,
    },
    /// A quantile has too few answers beyond it.
    Unresolved {
        /// The subject.
        at: Place,
        /// The quantile.
        metric: Metric,
        /// Blocks in which it has.
        blocks: usize,
    },
    /// CPU time of these servers may be missing.
    UncountedCpu(Vec<String>),
    /// What servers cost was not compared, since upstreams of one path were not counted.
    UncountedUpstreams {
        subject: String,
        baseline: String,
        /// The subjects behind which they are, each with their addresses.
        missing: Vec<(String, Vec<String>)>,
    },
    /// The compared servers differ in a setting.
    Settings {
        /// The setting and its values.
        difference: SettingDifference,
        /// Where; empty when everywhere.
        conditions: Vec<Condition>,
    },
}
