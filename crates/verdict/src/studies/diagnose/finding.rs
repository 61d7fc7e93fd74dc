//! What can be found in readings, with the figures that it rests on. The words stand in `words`.

use readings::{ErrorCounts, ProcessLine, ToolReading};
use serde::Serialize;

use super::Fact;

/// Something that readings say, or cannot say.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The readings that it is about, as indices, ascending.
    pub readings: Vec<usize>,
    pub diagnosis: Diagnosis,
    /// The facts that it needs and the text does not say, in the order of [`FindingKind::needs`]: with
    /// any of them it is a possibility.
    pub unknown: Vec<Fact>,
}

impl Finding {
    /// A finding all of whose facts are known.
    pub(super) fn new(readings: Vec<usize>, diagnosis: Diagnosis) -> Self {
        Self {
            readings,
            diagnosis,
            unknown: Vec::new(),
        }
    }

    /// What it is.
    pub fn kind(&self) -> FindingKind {
        match &self.diagnosis {
            Diagnosis::ImpossibleMean(_) => FindingKind::ImpossibleMean,
            Diagnosis::CorrectedAfterwards { .. } => FindingKind::CorrectedAfterwards,
            Diagnosis::AllBusy {
                shown_by: Some(_), ..
            } => FindingKind::RoundTripBound,
            Diagnosis::AllBusy { shown_by: None, .. } => FindingKind::RoundTripSuspected,
            Diagnosis::StoodStill(_) => FindingKind::StoodStill,
            Diagnosis::Saturated { .. } => FindingKind::Saturated,
            Diagnosis::SynRetransmission(_) => FindingKind::SynRetransmission,
            Diagnosis::Timeouts { .. } => FindingKind::Timeouts,
            Diagnosis::ErrorsLeftOut { .. } => FindingKind::ErrorsLeftOut,
            Diagnosis::Failures { .. } => FindingKind::Failures,
            Diagnosis::WrongAnswersAsSpeed { .. } => FindingKind::WrongAnswersAsSpeed,
            Diagnosis::OtherLength { .. } => FindingKind::OtherLength,
            Diagnosis::Said(_) => FindingKind::SaidByTool,
            Diagnosis::OnLoopback { .. } | Diagnosis::ProcessListed { .. } => {
                FindingKind::SameMachine
            }
            Diagnosis::ClientBusy { .. } => FindingKind::ClientBusy,
            Diagnosis::TargetsOnce { .. }
            | Diagnosis::TimedOnce { .. }
            | Diagnosis::TableOnce { .. } => FindingKind::SingleMeasurement,
            Diagnosis::SameLoadDiffers { .. } => FindingKind::SameLoadDiffers,
        }
    }
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Requests per second times mean latency exceed the connections, which cannot be.
    ImpossibleMean,
    /// The tool changed the latencies after it had measured them.
    CorrectedAfterwards,
    /// All connections were busy all the time with a latency that hardly varies, and the round trip
    /// is known or another load shows it: it and their number set the throughput.
    RoundTripBound,
    /// The same without either: a server with a full queue fits as well.
    RoundTripSuspected,
    /// Connections stood still for part of the time.
    StoodStill,
    /// More connections brought latency and no throughput.
    Saturated,
    /// Connections that opened 1, 3 or 7 s late, as one whose SYN was lost.
    SynRetransmission,
    /// Requests that were not answered in time are missing from the latency.
    Timeouts,
    /// Requests that failed.
    ErrorsLeftOut,
    /// Requests failed in ways that the tool does not tell, or are in the latency.
    Failures,
    /// Answers that were not the expected ones count as throughput.
    WrongAnswersAsSpeed,
    /// Answers of another length than the first, which may be as good.
    OtherLength,
    /// The tool itself says that something went wrong.
    SaidByTool,
    /// Client and server shared a machine.
    SameMachine,
    /// The client was so busy that it may be what set the throughput.
    ClientBusy,
    /// Targets are compared that were measured once.
    SingleMeasurement,
    /// Readings of the same target and load differ.
    SameLoadDiffers,
}

impl FindingKind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::ImpossibleMean,
        Self::CorrectedAfterwards,
        Self::RoundTripBound,
        Self::RoundTripSuspected,
        Self::StoodStill,
        Self::Saturated,
        Self::SynRetransmission,
        Self::Timeouts,
        Self::ErrorsLeftOut,
        Self::Failures,
        Self::WrongAnswersAsSpeed,
        Self::OtherLength,
        Self::SaidByTool,
        Self::SameMachine,
        Self::ClientBusy,
        Self::SingleMeasurement,
        Self::SameLoadDiffers,
    ];
}

/// What readings say.
#[derive(Clone, Debug, PartialEq)]
pub enum Diagnosis {
    ImpossibleMean(Concurrency),
    StoodStill(Concurrency),
    /// All connections were busy all the time.
    AllBusy {
        concurrency: Concurrency,
        steadiness: Steadiness,
        /// What shows that the round trip set the throughput; nothing where that is a suspicion.
        shown_by: Option<ShownBy>,
        /// By which share of its mean the latency of a full queue varies at most.
        queue_varies: f64,
    },
    /// The tool adds latencies that it did not measure.
    CorrectedAfterwards {
        /// The longest latency of the first reading.
        longest_us: f64,
        /// From twice this on it adds some.
        limit_us: f64,
    },
    /// More connections brought latency and no throughput.
    Saturated {
        few: LevelFigures,
        many: LevelFigures,
    },
    SynRetransmission(LateConnects),
    Timeouts {
        requests: u64,
        share: Option<f64>,
    },
    ErrorsLeftOut {
        errors: ErrorCounts,
        answered: Option<u64>,
        /// The connections that did open, where they account for the rate.
        opened: Option<Concurrency>,
    },
    /// Failures of which the tool does not tell how, or whose times are in the latency.
    Failures {
        /// Without wrong answers.
        errors: ErrorCounts,
        answered: Option<u64>,
        in_latency: bool,
        /// Where those of an unknown kind are among the requests.
        counted: Option<CountedFailures>,
    },
    WrongAnswersAsSpeed {
        wrong: u64,
        requests: u64,
        share: f64,
        good_per_s: Option<f64>,
    },
    OtherLength {
        answers: u64,
        requests: u64,
    },
    /// In the tool's own words.
    Said(Vec<String>),
    /// The target is on the client's own machine.
    OnLoopback {
        /// The most cores that the client used.
        client_cores: Option<f64>,
    },
    /// A text lists the load generator among the processes of a machine.
    ProcessListed {
        process: ProcessLine,
        /// The text, where there are several.
        source: Option<String>,
    },
    ClientBusy {
        cores: f64,
        threads: u64,
    },
    /// Two targets, with one measurement of at least one of them.
    TargetsOnce {
        first: String,
        second: String,
        /// Whether both were measured once.
        once_each: bool,
        /// The figures of the first pair.
        figures: (Figure, Figure),
        /// The second target's figures over the first one's, for each load.
        ratios: Vec<f64>,
    },
    /// Two commands that were timed.
    TimedOnce {
        first: Figure,
        second: Figure,
        ratio: f64,
    },
    /// A column of a table against its first one.
    TableOnce {
        lines: (usize, usize),
        /// The text, where there are several.
        source: Option<String>,
        first: String,
        column: String,
        ratios: Vec<f64>,
    },
    SameLoadDiffers {
        count: usize,
        low: Figure,
        high: Figure,
        ratio: f64,
    },
}

/// Failures of an unknown kind that are among the requests of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedFailures {
    /// All requests.
    pub requests: u64,
    /// The share of failures in them.
    pub share: f64,
    pub good_per_s: Option<f64>,
}

/// Little's law for one reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Concurrency {
    pub requests_per_s: f64,
    pub mean_us: f64,
    /// Requests that can be in flight.
    pub slots: f64,
    /// Whether these are its connections.
    pub are_connections: bool,
}

impl Concurrency {
    /// Requests that were in flight, on average.
    pub fn busy(&self) -> f64 {
        self.requests_per_s * self.mean_us / 1e6
    }

    /// The requests per second with all of them in flight.
    pub fn bound_per_s(&self) -> f64 {
        self.slots * 1e6 / self.mean_us
    }

    /// The share of that which was reached.
    pub fn reached(&self) -> f64 {
        self.busy() / self.slots
    }
}

/// Why a latency counts as that of an idle server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    NearSmallest {
        min_us: f64,
    },
    /// Its standard deviation is this share of the mean.
    HardlyVaries {
        stdev_us: f64,
        share: f64,
    },
}

/// What shows that the round trip set a throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShownBy {
    /// The target did better with as many connections, in this reading.
    Better { reading: usize },
    /// Opening a connection took most of the latency, or half of it with two round trips.
    Connecting {
        connect_us: f64,
        two_round_trips: bool,
    },
    /// More connections brought as much more throughput, in this reading.
    InProportion { reading: usize },
}

/// Means at one number of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelFigures {
    pub connections: u64,
    pub requests_per_s: f64,
    pub mean_us: f64,
}

/// Connections that opened late, by whole steps.
#[derive(Clone, Debug, PartialEq)]
pub struct LateConnects {
    /// Whether the time to connect shows them; otherwise the latency does.
    pub in_connecting: bool,
    pub typical_us: f64,
    /// The quantiles from the first that met a step on, the maximum without a share.
    pub jumps_to: Vec<(Option<f64>, f64)>,
    pub steps_s: Vec<u32>,
    /// A reading with keep-alive that shows none.
    pub without: Option<usize>,
}

/// The figure by which two readings are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    PerSecond(f64),
    Duration(f64),
    /// The mean latency in microseconds.
    Mean(f64),
}

impl Figure {
    pub(super) fn of(r: &ToolReading) -> Option<Self> {
        let positive = |v: Option<f64>| v.filter(|v| *v > 0.0);
        positive(r.requests_per_s)
            .map(Figure::PerSecond)
            .or(positive(r.duration_s).map(Figure::Duration))
            .or(positive(r.latency.mean_us).map(Figure::Mean))
    }

    pub(super) fn ratio_to(self, other: Figure) -> Option<f64> {
        match (self, other) {
            (Figure::PerSecond(a), Figure::PerSecond(b))
            | (Figure::Duration(a), Figure::Duration(b))
            | (Figure::Mean(a), Figure::Mean(b)) => Some(a / b),
            _ => None,
        }
    }
}
