//! The facts that findings need, and how far they are known of a reading.

use readings::{Tool, ToolReading};
use serde::Serialize;

use super::{Finding, FindingKind};

/// Something that a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The requests per second.
    Rate,
    Mean,
    Longest,
    /// How long the run took.
    Duration,
    Connections,
    /// How many requests a connection may have in flight.
    Depth,
    /// That the latency counts from when a request was sent, and not from when it was due.
    FromSending,
    /// That each request follows an answer, without a pause.
    NoPauses,
    Version,
    /// How long connections took to open.
    Connecting,
    /// Whether packets were lost, which no tool counts.
    Packets,
    /// Whether answers may differ in length.
    SameContent,
    /// Which machine and which CPUs the server had.
    Place,
}

/// How far a fact is known of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The output or the command says it.
    Known,
    /// Nothing says it, and it is usual.
    Usual,
    /// Nothing says it, or something denies it.
    Missing,
}

impl FindingKind {
    /// The facts that it needs. Where one is missing, there is no finding; where one is only usual, the
    /// finding is a possibility.
    pub fn needs(self) -> &'static [Fact] {
        use Fact::*;
        match self {
            Self::ImpossibleMean => &[Rate, Mean, Connections, Depth, FromSending],
            Self::StoodStill => &[
                Rate,
                Mean,
                Connections,
                Depth,
                FromSending,
                NoPauses,
                Duration,
            ],
            Self::RoundTripBound | Self::RoundTripSuspected => {
                &[Rate, Mean, Connections, Depth, FromSending, NoPauses]
            }
            Self::Saturated => &[Rate, Mean, Connections, FromSending, NoPauses],
            Self::CorrectedAfterwards => &[Rate, Longest, Connections, Version],
            Self::SynRetransmission => &[Connecting, Packets],
            Self::OtherLength => &[SameContent],
            Self::SameMachine => &[Place],
            Self::Timeouts
            | Self::ErrorsLeftOut
            | Self::Failures
            | Self::WrongAnswersAsSpeed
            | Self::SaidByTool
            | Self::ClientBusy
            | Self::SingleMeasurement
            | Self::SameLoadDiffers => &[],
        }
    }
}

/// How far a fact is known of a reading.
pub fn state(fact: Fact, r: &ToolReading) -> State {
    let positive = |figure: Option<f64>| match figure {
        Some(figure) if figure > 0.0 => State::Known,
        _ => State::Missing,
    };
    match fact {
        Fact::Rate => positive(r.requests_per_s),
        Fact::Mean => positive(r.latency.mean_us),
        Fact::Longest => positive(r.latency.max_us),
        Fact::Duration => positive(lasted_s(r)),
        Fact::Connections => positive(r.connections.map(|n| n as f64)),
        Fact::Depth => match (r.depth, r.tool) {
            (Some(_), _) => State::Known,
            // They send several at once only if a script or an option says so.
            (None, Tool::Wrk | Tool::RedisBenchmark) => State::Usual,
            (None, _) => State::Missing,
        },
        Fact::FromSending if is_paced(r) => State::Missing,
        Fact::FromSending => State::Known,
        Fact::NoPauses if is_paced(r) => State::Missing,
        Fact::NoPauses if r.closed_loop.is_none() => State::Usual,
        Fact::NoPauses => State::Known,
        Fact::Connecting if r.connect.max_us.is_some() => State::Known,
        Fact::Connecting if !r.connect.quantiles_us.is_empty() => State::Known,
        Fact::Connecting | Fact::Version | Fact::Packets | Fact::SameContent | Fact::Place => {
            State::Usual
        }
    }
}

fn is_paced(r: &ToolReading) -> bool {
    r.offered_per_s.is_some() || r.closed_loop == Some(false)
}

/// How long a run lasted.
pub(super) fn lasted_s(r: &ToolReading) -> Option<f64> {
    let requests = r.requests.map(|n| n as f64);
    r.duration_s.or_else(|| Some(requests? / r.requests_per_s?))
}

/// A finding with the facts that nothing says; none where a fact that it needs is missing.
pub(super) fn checked(mut finding: Finding, readings: &[ToolReading]) -> Option<Finding> {
    for &fact in finding.kind().needs() {
        let states = finding.readings.iter().map(|&i| state(fact, &readings[i]));
        match states.max_by_key(|state| *state as u8) {
            Some(State::Missing) => return None,
            Some(State::Usual) => finding.unknown.push(fact),
            Some(State::Known) | None => {}
        }
    }
    Some(finding)
}
