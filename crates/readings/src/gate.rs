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
    /// The same at the open loop's rate.
    CpuAtRate,
    /// The servers' peak memory.
    Memory,
    /// The share of requests that failed.
    Failed,
    /// The highest rate that keeps an objective; of `weigh capacity` only.
    Capacity,
}

impl GateMetric {
    /// Those of runs, in the order of reports.
    pub const OF_RUNS: [GateMetric; 7] = [
        GateMetric::Throughput,
        GateMetric::P50,
        GateMetric::P99,
        GateMetric::Cpu,
        GateMetric::CpuAtRate,
        GateMetric::Memory,
        GateMetric::Failed,
    ];

    /// The word in a gate's text, and in the JSON document.
    pub fn name(self) -> &'static str {
        match self {
            GateMetric::Throughput => "throughput",
            GateMetric::P50 => "p50",
            GateMetric::P99 => "p99",
            GateMetric::Cpu => "cpu",
            GateMetric::CpuAtRate => "cpu_at_rate",
            GateMetric::Memory => "memory",
            GateMetric::Failed => "failed",
            GateMetric::Capacity => "capacity",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, GateMetric::Throughput | GateMetric::Capacity)
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
