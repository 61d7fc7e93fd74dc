//! What a reader should know before trusting a result.

pub(crate) mod words;

pub(crate) mod congestion;
pub(crate) mod connections;
pub(crate) mod effect;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod tls;
pub(crate) mod upstreams;

use readings::Condition;

use crate::{
    CongestionSummary, CpusOfOthers, Drift, Metric, NoiseFloor, Place, QuantileFigure, ResolvedBy,
    SettingDifference, WithoutPauses,
};

/// What a reader should know before trusting a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// What the run said, or so many trials.
    Recorded {
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
    /// Subjects under one condition close connections unequally often.
    ConnectionsDiffer {
        /// The subject with the most new connections per request.
        at: Place,
        other: String,
        /// New connections per request of the two.
        per_request: [f64; 2],
    },
    /// Subjects do not have the same congestion control.
    CongestionDiffers {
        /// The first subject, and the first one with another algorithm at one end or both.
        sides: [CongestionSummary; 2],
        /// Where; empty for all conditions.
        conditions: Vec<Condition>,
    },
    /// The baseline differs from itself by more than the margin.
    BiasedBaseline {
        floor: NoiseFloor,
        /// What matters, as a fraction.
        matters: f64,
    },
    /// A subject's rate changed while it was measured.
    Drifts { at: Place, found: Drift },
    /// The ratio of two subjects' slices had no steady state.
    Unsettled {
        at: Place,
        baseline: String,
        /// Blocks in which it had none.
        unsettled: usize,
        blocks: usize,
    },
    /// The ratios of blocks correlate with those of the blocks before.
    DependentBlocks {
        at: Place,
        baseline: String,
        metric: Metric,
        /// The correlation of each ratio with the next.
        lag1: f64,
        blocks: usize,
    },
    /// The slices shift a throughput ratio by more than the margin.
    SliceLength {
        at: Place,
        baseline: String,
        /// The ratio as measured, over the one by slices without end.
        ratio: f64,
        blocks: usize,
    },
    /// The baseline's difference from itself is known too poorly to tell the margin.
    WideFloor {
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
    /// Whether subjects changed while they were measured was not checked: there are too few slices or
    /// blocks.
    SteadyStateUnchecked {
        /// The most slices of a block, and how many the check needs.
        slices: [usize; 2],
        /// The most blocks of a subject, and how many the check needs.
        blocks: [usize; 2],
    },
    /// The client was the bottleneck.
    AtLeast {
        at: Place,
        limited: usize,
        trials: usize,
    },
    /// Fewer requests were answered than were offered.
    RateNotKept {
        at: Place,
        answered_per_s: f64,
        offered_per_s: f64,
    },
    /// Requests failed, too few to make a trial invalid.
    Errors {
        at: Place,
        failed: u64,
        requests: u64,
    },
    /// Answers were upgrades to another protocol, after which the load ends the connection.
    Handshakes { at: Place },
    /// By Little's law connections were idle.
    IdleConnections {
        at: Place,
        busy: f64,
        connections: u64,
    },
    /// Connections took as long to open as a SYN that is sent again.
    LostSyns {
        at: Place,
        /// Connections that did.
        late: u64,
        connections: u64,
        /// The median time to open one, us.
        median_us: f64,
    },
    /// The client's CPU stood still now and then in the open loops.
    ClientPauses { at: Place, found: WithoutPauses },
    /// A quantile has too few answers beyond it.
    Unresolved {
        at: Place,
        metric: Metric,
        /// What is known of it; nothing by an outside driver.
        known: Option<QuantileFigure>,
        /// What would resolve it, and what it is compared with.
        resolved_by: Option<ResolvedBy>,
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
        difference: SettingDifference,
        /// Where; empty when everywhere.
        conditions: Vec<Condition>,
    },
}

impl Warning {
    /// The subject and condition that it is about, where it is about one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Warning::TlsDiffers { at, .. }
            | Warning::Drifts { at, .. }
            | Warning::Unsettled { at, .. }
            | Warning::DependentBlocks { at, .. }
            | Warning::SliceLength { at, .. }
            | Warning::AtLeast { at, .. }
            | Warning::RateNotKept { at, .. }
            | Warning::Errors { at, .. }
            | Warning::IdleConnections { at, .. }
            | Warning::LostSyns { at, .. }
            | Warning::ClientPauses { at, .. }
            | Warning::ConnectionsDiffer { at, .. }
            | Warning::Handshakes { at }
            | Warning::Unresolved { at, .. } => Some(at),
            Warning::Recorded { .. }
            | Warning::CongestionDiffers { .. }
            | Warning::BiasedBaseline { .. }
            | Warning::WideFloor { .. }
            | Warning::OtherPrograms { .. }
            | Warning::SteadyStateUnchecked { .. }
            | Warning::UncountedCpu(_)
            | Warning::UncountedUpstreams { .. }
            | Warning::Settings { .. } => None,
        }
    }
}
