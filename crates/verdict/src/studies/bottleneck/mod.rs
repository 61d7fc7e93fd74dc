//! What limited a throughput: suspected from samples, confirmed by the effect of a change.
//!
//! Samples alone mislead: a busy client thread may be waiting for a full server, and a server's CPU
//! may be full because of too many clients. So each suspicion is tested where possible: a short load
//! changes one thing, and the change that moves the throughput names the bottleneck.

pub mod words;

mod effects;
mod evidence;
mod server_cpu;
mod suspects;
#[cfg(test)]
mod tests;
mod unchanged;

use readings::{BottleneckReading, Condition};
use serde::Serialize;

use effects::Effects;

pub use effects::Effect;
pub use evidence::{
    ClientEvidence, CpuUse, Evidence, Full, HalvedCpu, MachineUse, PortsEvidence, Refused, Relief,
    ServerEvidence, TakenPorts, ThreadMore, Threads,
};

/// The part that held a throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The load generator, or that it shares a CPU with the servers.
    Client,
    /// The CPU time of one of the servers on the path.
    Server,
    /// CPUs that several servers of the path fill together.
    SharedCpu,
    /// The number of connections and the time that an answer takes.
    Concurrency,
    /// The queue of connections that wait to be accepted.
    AcceptQueue,
    /// The ports for outgoing connections.
    Ports,
    /// Connections that a server of the path opens to its upstream.
    UpstreamConnections,
    /// The link between client and servers.
    Network,
    OtherPrograms,
    /// Nothing that was looked for.
    Unknown,
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It was seen to be full, and a change to it moved the throughput as it must.
    Confirmed,
    /// A change to it moved the throughput, but it was not seen to be full: the throughput follows
    /// it, and so it would where something waits for it a part of the time.
    Sensitive,
    /// What was seen speaks for it; no change was tried that could tell.
    Suspected,
    /// Neither.
    Unknown,
}

/// What was found for one subject under one condition. There may be several for the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub condition: Condition,
    pub subject: String,
    pub bottleneck: Bottleneck,
    pub standing: Standing,
    /// The server that it is about, where it is about one.
    pub server: Option<String>,
    /// Whether the subject's throughput is a lower bound, since the client limits it.
    pub at_least: bool,
    /// What the changes did to the throughput, changed over unchanged.
    pub effects: Vec<Effect>,
    /// Where hosts are machines: the changes that were not made there, and why, a sentence fragment
    /// each. Only with the first finding, and not if that is confirmed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_tested: Vec<String>,
    /// Throughput without a change, requests/s.
    #[serde(skip)]
    pub unchanged_per_s: f64,
    /// The figures behind it.
    #[serde(skip)]
    pub evidence: Evidence,
}

/// A suspicion and what speaks for it.
struct Suspect {
    bottleneck: Bottleneck,
    standing: Standing,
    server: Option<String>,
    evidence: Evidence,
}

/// Says what limits each subject: of each at least one finding, the surest first.
pub fn bottlenecks(readings: &[&BottleneckReading]) -> Vec<Finding> {
    readings
        .iter()
        .flat_map(|reading| of_subject(reading))
        .collect()
}

fn of_subject(reading: &BottleneckReading) -> Vec<Finding> {
    let effects = Effects::of(reading);
    let mut suspects = match &reading.failed {
        Some(reason) => suspects::of_failure(reading, reason).into_iter().collect(),
        None => suspects::suspects(reading, &effects),
    };
    suspects.sort_by_key(|suspect| suspect.standing);
    if suspects.is_empty() {
        suspects.push(Suspect {
            bottleneck: Bottleneck::Unknown,
            standing: Standing::Unknown,
            server: None,
            evidence: match &reading.failed {
                Some(reason) => Evidence::NotMeasured(reason.clone()),
                None => suspects::all_figures(reading),
            },
        });
    }
    let confirmed = suspects[0].standing == Standing::Confirmed;
    let mut findings: Vec<Finding> = suspects
        .into_iter()
        .map(|suspect| {
            // What is only suspected gives way to what is confirmed.
            let at_least = suspect.bottleneck == Bottleneck::Client
                && (suspect.standing == Standing::Confirmed || !confirmed);
            finding(reading, &effects, suspect, at_least)
        })
        .collect();
    if !confirmed && !reading.hosts.is_empty() {
        findings[0].not_tested.clone_from(&reading.not_tried);
    }
    findings
}

fn finding(
    reading: &BottleneckReading,
    effects: &Effects,
    suspect: Suspect,
    at_least: bool,
) -> Finding {
    Finding {
        condition: reading.condition.clone(),
        subject: reading.subject.clone(),
        bottleneck: suspect.bottleneck,
        standing: suspect.standing,
        server: suspect.server,
        at_least,
        effects: effects.told(),
        not_tested: Vec::new(),
        unchanged_per_s: effects.unchanged_per_s(),
        evidence: suspect.evidence,
    }
}
