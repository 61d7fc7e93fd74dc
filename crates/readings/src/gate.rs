//! Gates: bounds that fail a run.

use serde::{Deserialize, Serialize};

/// A bound that fails a run. `experiment` reads its text, `verdict` judges it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The name that the file gives it, or its text.
    pub name: String,
    /// The bound as written, such as `throughput > -3%`, without a subject.
    pub text: String,
    /// The subject that it holds for; without one all others than the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub metric: GateMetric,
    pub bound: GateBound,
}

impl Gate {
    /// The text that reads as this gate: `head: p99 < 20ms`.
    pub fn full_text(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{subject}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

/// What a gate bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateMetric {
    Throughput,
    P50,
    P99,
    /// The servers' CPU time per request of the closed loop.
    Cpu,
    /// That of the first server alone, where others stand behind it.
    ProxyCpu,
    /// That of all servers at the open loop's rate.
    CpuAtRate,
    /// The servers' peak memory.
    Memory,
    /// Time from the start of the first server until it is ready.
    Start,
    /// The first server's memory then.
    RestMemory,
    /// Time until a reload of the first server is in effect.
    Reload,
    /// The first server's memory after events.
    MemoryAfter,
    /// Requests let through, of what a rate limit allows.
    Accepted,
    /// The median time to the first message of a stream.
    FirstMessage,
    /// The 99th percentile of how late its messages arrive.
    Lag,
    /// The share of the messages to members of topics that reached them.
    Reach,
    /// The share of requests that failed.
    Failed,
    /// The highest rate that keeps an objective; of `weigh capacity` only.
    Capacity,
}

/// The unit of a gate's bound on a figure of the subject alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateUnit {
    /// Requests per second.
    RequestsPerS,
    /// Microseconds until the answer.
    LatencyUs,
    /// Microseconds of CPU time for each request.
    CpuUs,
    Bytes,
    /// A fraction of the requests, or of the messages.
    Share,
}

impl GateMetric {
    /// Every metric with its word and its unit, in the order of reports.
    const ROWS: [(GateMetric, &'static str, GateUnit); 17] = [
        (GateMetric::Throughput, "throughput", GateUnit::RequestsPerS),
        (GateMetric::P50, "p50", GateUnit::LatencyUs),
        (GateMetric::P99, "p99", GateUnit::LatencyUs),
        (GateMetric::Cpu, "cpu", GateUnit::CpuUs),
        (GateMetric::ProxyCpu, "proxy_cpu", GateUnit::CpuUs),
        (GateMetric::CpuAtRate, "cpu_at_rate", GateUnit::CpuUs),
        (GateMetric::Memory, "memory", GateUnit::Bytes),
        (GateMetric::Start, "start", GateUnit::LatencyUs),
        (GateMetric::RestMemory, "rest_memory", GateUnit::Bytes),
        (GateMetric::Reload, "reload", GateUnit::LatencyUs),
        (GateMetric::MemoryAfter, "memory_after", GateUnit::Bytes),
        (GateMetric::Accepted, "accepted", GateUnit::Share),
        (
            GateMetric::FirstMessage,
            "first_message",
            GateUnit::LatencyUs,
        ),
        (GateMetric::Lag, "lag", GateUnit::LatencyUs),
        (GateMetric::Reach, "reach", GateUnit::Share),
        (GateMetric::Failed, "failed", GateUnit::Share),
        (GateMetric::Capacity, "capacity", GateUnit::RequestsPerS),
    ];

    /// Those of runs, in the order of reports.
    pub fn of_runs() -> impl Iterator<Item = GateMetric> + Clone {
        let all = Self::ROWS.into_iter().map(|(metric, ..)| metric);
        all.filter(|metric| *metric != GateMetric::Capacity)
    }

    fn row(self) -> (GateMetric, &'static str, GateUnit) {
        let row = Self::ROWS.into_iter().find(|(metric, ..)| *metric == self);
        // Every variant has a row, as a test shows.
        row.unwrap_or(Self::ROWS[0])
    }

    /// The word in a gate's text, and in the JSON document.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The unit of a bound that is not relative to a baseline.
    pub fn unit(self) -> GateUnit {
        self.row().2
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self.unit() == GateUnit::RequestsPerS || self == GateMetric::Reach
    }
}

/// Where a gate's bound lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateBound {
    /// Subject over baseline less one: -0.03 is 3% less.
    Relative(f64),
    /// A figure of the subject alone: requests per second, microseconds, bytes, or a fraction of the
    /// requests.
    Absolute(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_row() {
        for (metric, name, _) in GateMetric::ROWS {
            assert_eq!(metric.name(), name);
            // The word of the JSON document is that of the gate.
            let written = serde_json::to_value(metric).unwrap();
            assert_eq!(written, name);
            let read: GateMetric = serde_json::from_value(written).unwrap();
            assert_eq!(read, metric);
        }
    }
}
