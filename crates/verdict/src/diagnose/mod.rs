//! What the figures of other load generators say, and what they do not.
//!
//! [`diagnose`] looks at each reading on its own and at readings of the same target side by side.
//! It measures nothing: every finding follows from figures that the tools printed, and names them.
//!
//! Sources: J. D. C. Little, A proof for the queuing formula L = λW, Operations Research 9 (1961);
//! RFC 6298 for the steps in which a SYN is sent again (1 s, then twice as long each time, so that
//! a connection opens 1, 3 or 7 s late).

mod between;
mod little;
mod name;
mod single;
mod syn;

use readings::{FigureTable, ProcessLine, ToolReading};
use serde::Serialize;

use crate::text::number;

/// Something that readings say, or cannot say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The readings that it is about, as indices, ascending.
    pub readings: Vec<usize>,
    /// What it is.
    pub kind: FindingKind,
    /// The finding in words, with the figures that it rests on.
    pub sentence: String,
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
    /// Connections opened 1, 3 or 7 s late: their SYN was lost.
    SynRetransmission,
    /// Requests that were not answered in time are missing from the latency.
    Timeouts,
    /// Requests that failed are missing from the latency.
    ErrorsLeftOut,
    /// Answers that were not the expected ones count as throughput.
    WrongAnswersAsSpeed,
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
    /// What it is in a few words.
    pub fn words(self) -> &'static str {
        match self {
            FindingKind::ImpossibleMean => "impossible mean",
            FindingKind::CorrectedAfterwards => "corrected after the fact",
            FindingKind::RoundTripBound => "bound by round trip and connections",
            FindingKind::RoundTripSuspected => "round trip or a full queue",
            FindingKind::StoodStill => "connections stood still",
            FindingKind::Saturated => "saturated",
            FindingKind::SynRetransmission => "SYNs sent again",
            FindingKind::Timeouts => "timeouts left out",
            FindingKind::ErrorsLeftOut => "errors left out",
            FindingKind::WrongAnswersAsSpeed => "wrong answers as speed",
            FindingKind::SameMachine => "client on the same machine",
            FindingKind::ClientBusy => "busy client",
            FindingKind::SingleMeasurement => "one measurement only",
            FindingKind::SameLoadDiffers => "same load, other figures",
        }
    }
}

/// What it means that a text lists a load generator with its share of a machine's CPU: it ran on the
/// machine whose processes were looked at. `source` names the text, where there are several.
pub fn process_listed(
    readings: &[ToolReading],
    process: &ProcessLine,
    source: Option<&str>,
) -> Finding {
    let ours = |i: &usize| {
        let r = &readings[*i];
        r.tool == process.tool && r.source.as_deref() == source
    };
    let place = source.map_or(String::new(), |source| format!("{source} "));
    Finding {
        readings: (0..readings.len()).filter(ours).collect(),
        kind: FindingKind::SameMachine,
        sentence: format!(
            "{}: {place}line {} lists it among the processes of a machine (`{}`): if the server \
             ran there too, client and server took CPU time from each other, and the throughput is \
             that of the two together.",
            process.tool, process.line, process.text
        ),
    }
}

/// What a table says that compares subjects by one figure each: the second figure column against the
/// first, the third against the first, and so on. `source` names the text, where there are several.
pub fn table_compared(table: &FigureTable, source: Option<&str>) -> Vec<Finding> {
    let place = source.map_or(String::new(), |source| format!("{source} "));
    let (first, last) = table.lines;
    let compared = |column: usize| {
        let ratios: Vec<f64> = table
            .rows
            .iter()
            .filter_map(|row| Some(row.get(column)? / row.get(1)?))
            .collect();
        let written: Vec<String> = ratios.iter().map(|r| number(*r, 2, false)).collect();
        let above = ratios.iter().filter(|r| **r > 1.0).count();
        Finding {
            readings: Vec::new(),
            kind: FindingKind::SingleMeasurement,
            sentence: format!(
                "{} against {} (the table in {place}lines {first} to {last}): the ratios {}, from \
                 one figure each, {above} of {} above 1: nothing says how much of them is noise, so \
                 nothing follows.",
                table.head[column],
                table.head[1],
                name::listed(&written),
                ratios.len()
            ),
        }
    };
    (2..table.head.len()).map(compared).collect()
}

/// What readings say, ordered by the first reading that a finding is about.
pub fn diagnose(readings: &[ToolReading]) -> Vec<Finding> {
    let between = between::findings(readings);
    let saturated = |i: usize| {
        // What is saturated waits in a queue, however even its latency looks.
        between
            .iter()
            .any(|f| f.kind == FindingKind::Saturated && f.readings.contains(&i))
    };
    let mut found: Vec<Finding> = Vec::new();
    for i in 0..readings.len() {
        found.extend(little::findings(readings, i, saturated(i)));
        found.extend(syn::finding(readings, i));
        found.extend(single::findings(readings, i));
    }
    found.extend(single::same_machine(readings));
    found.extend(single::corrected(readings));
    found.extend(between);
    // Stable: findings on the same readings stay in the order above.
    found.sort_by_key(|f| f.readings.first().copied());
    found
}

#[cfg(test)]
mod tests;
