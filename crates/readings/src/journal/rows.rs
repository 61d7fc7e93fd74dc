//! The rows of a journal.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::curve::{CurveChoice, CurvePoint};
use super::events::EventsReading;
use super::settings::SettingsReading;
use crate::{
    BottleneckReading, Condition, DriverReading, Gate, GateMetric, InstructionsReading,
    LoadReading, SystemMetrics,
};

/// A line of a run's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "row")]
// A journal has one header.
#[expect(clippy::large_enum_variant)]
pub enum JournalRow {
    /// The first line: what run this is.
    Run(RunHeader),
    /// The rate at which latency is compared under a condition, chosen from the first block.
    Rate(RateChoice),
    /// The rates at which the curves of a condition are measured, chosen from the first block.
    Curve(CurveChoice),
    /// The warm-up of all servers under a condition, where the first block showed that the declared one
    /// is too short.
    WarmUp(WarmUpChoice),
    /// One trial, done or failed.
    Trial(Box<Trial>),
    /// What was measured to find a subject's bottleneck.
    Bottleneck(Box<BottleneckReading>),
    /// How the servers of the subjects were set under a condition.
    Settings(SettingsReading),
    /// The CPUs of load and servers from here on.
    Placement(Placement),
    /// Something the reader of the result should know.
    Warning { text: String },
    End {
        /// Whether the plan was carried out, or everything was settled before; `false` when the
        /// run was stopped.
        complete: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Version of the program that wrote the journal.
    pub weigh_version: String,
    pub experiment: String,
    pub title: String,
    /// The seed of every random choice.
    pub seed: u64,
    pub baseline: String,
    /// All subjects, baseline included, as declared.
    pub subjects: Vec<String>,
    /// All conditions, as declared.
    pub conditions: Vec<Condition>,
    pub blocks: u32,
    /// The smallest difference that matters, as a fraction: 0.03 is 3%.
    pub matters: f64,
    /// The smallest difference that matters between two shares of failed requests, as a fraction of
    /// all requests.
    pub matters_failures: f64,
    /// The smallest difference of a latency that matters, ms: within it a latency is the same,
    /// whatever its share. Absent where none was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matters_ms: Option<f64>,
    /// The metrics that the run is about, the first of which comes first; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub primary: Vec<GateMetric>,
    /// The share of requests that may fail on the way before a trial is invalid, as a fraction.
    pub max_error: f64,
    /// Seconds since 1970 when the run began.
    pub started_unix_s: u64,
    /// Figures that others published, to be shown beside what is measured.
    pub published: Vec<Published>,
    /// Factors that act on the open loop only, such as its rate: what the closed loop measures
    /// cannot differ between their levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_loop_factors: Vec<String>,
    /// The levels that the others of their factor are compared with, as declared: by factor.
    #[serde(default, skip_serializing_if = "Condition::is_empty")]
    pub reference: Condition,
    /// Factors over which the growth of metrics is asked, such as the number of idle connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<String>,
    /// The loads, if several are made at the same time. The fields of a [`Reading`] are those of
    /// the first compared one; the others are in [`Reading::beside`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<DeclaredLoad>,
    /// Bounds that fail the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// What the user calls this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The commit of the git repository that the run was started in, with `+changes` where tracked
    /// files differed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl Default for RunHeader {
    /// A run of one block without subjects, with the bounds of an experiment that sets none.
    fn default() -> Self {
        Self {
            weigh_version: String::new(),
            experiment: String::new(),
            title: String::new(),
            seed: 1,
            baseline: String::new(),
            subjects: Vec::new(),
            conditions: vec![Condition::new()],
            blocks: 1,
            matters: 0.03,
            matters_failures: 0.001,
            matters_ms: None,
            primary: Vec::new(),
            max_error: 0.01,
            started_unix_s: 0,
            published: Vec::new(),
            open_loop_factors: Vec::new(),
            reference: Condition::new(),
            growth: Vec::new(),
            loads: Vec::new(),
            gates: Vec::new(),
            label: None,
            revision: None,
        }
    }
}

/// A figure that someone published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub what: String,
    pub value: f64,
    pub unit: String,
    pub source: String,
}

/// The CPUs that load and servers may use; an empty list is all of a machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Placement {
    pub client_cpus: Vec<u32>,
    pub server_cpus: BTreeMap<String, Vec<u32>>,
}

/// The open-loop rate under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateChoice {
    pub condition: Condition,
    /// Requests, or users, per second, over all connections.
    pub rate_per_s: f64,
    /// The throughput of the slowest subject that it was derived from; absent when it was given.
    pub slowest_per_s: Option<f64>,
    /// Whether users arrive at this rate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_users: bool,
}

/// The warm-up under one condition, longer than declared: after the declared one a server still became
/// faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmUpChoice {
    pub condition: Condition,
    /// Load before measuring, per subject and block.
    pub warmup_s: f64,
    /// The same, as declared.
    pub declared_s: f64,
    pub subject: String,
    /// Its rate late in a check after the declared warm-up, over that early in the check.
    pub faster: f64,
    /// Whether a subject still became faster at the end of the longest warm-up that was allowed.
    pub at_most: bool,
}

/// One subject under one condition in one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number within the run, from 1.
    pub trial: u32,
    /// Number of the block, from 1.
    pub block: u32,
    pub condition: Condition,
    pub subject: String,
    /// Whether this is the baseline's second copy, measured for the noise floor.
    pub baseline_copy: bool,
    /// Which attempt at the block's trials under this condition it belongs to, from 1. Figures are
    /// paired within an attempt only.
    pub attempt: u32,
    pub outcome: Outcome,
}

impl Trial {
    /// What was measured; nothing where the trial failed.
    pub fn reading(&self) -> Option<&Reading> {
        match &self.outcome {
            Outcome::Done(reading) => Some(reading),
            Outcome::Failed { .. } => None,
        }
    }
}

impl From<Trial> for JournalRow {
    fn from(trial: Trial) -> Self {
        JournalRow::Trial(Box::new(trial))
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done(Box<Reading>),
    /// It could not be measured.
    Failed {
        /// Why, with the server's last output, if there is any.
        reason: String,
        #[serde(default, skip_serializing_if = "FailureCause::is_subject")]
        cause: FailureCause,
    },
}

impl Outcome {
    pub fn failed(reason: impl Into<String>, cause: FailureCause) -> Self {
        let reason = reason.into();
        Self::Failed { reason, cause }
    }
}

/// Who caused a trial to fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The subject: a server of its path did not start, ended, or answered wrongly. Such a failure is
    /// an outcome. A journal leaves this cause out.
    #[default]
    Subject,
    /// Anything else: the machine, the load generator, a lost agent, a server of another subject.
    Other,
}

impl FailureCause {
    fn is_subject(&self) -> bool {
        *self == FailureCause::Subject
    }
}

/// All that one trial measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Closed loop: as fast as the answers come.
    pub throughput: Option<LoadReading>,
    /// Open loop at the common rate.
    pub latency: Option<LoadReading>,
    /// The servers that this subject's path goes through.
    pub servers: Vec<ServerReading>,
    /// How the servers of the path started, by name. Absent where they were not started by the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub starts: BTreeMap<String, ServerStart>,
    /// TCP connections that the machine accepted for this subject beyond those of the load, per
    /// request of the closed loop: what the proxies opened to their upstreams. Absent where it
    /// could not be counted.
    pub upstream_connections_per_request: Option<f64>,
    /// Sentences on what was unusual.
    pub warnings: Vec<String>,
    /// What the load generator said and cost, where it was not the built-in engine; the loads
    /// above then have no histograms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverReading>,
    /// Metrics of servers and machine in the closed loop's measured windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<SystemMetrics>,
    /// The same for the open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_probed: Option<SystemMetrics>,
    /// Instructions that the servers retired. Absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<InstructionsReading>,
    /// Events in the open loop's window, and the failures around them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsReading>,
    /// Of the baseline's second copy: whether it had servers of its own, started separately.
    #[serde(default, skip_serializing_if = "is_false")]
    pub separate_copy: bool,
    /// The servers of the path that another server has to ask for every request, with that
    /// server's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked_by: BTreeMap<String, String>,
    /// The addresses of upstreams on the path that are missing in `servers`, since their processes
    /// cannot be seen.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncounted_upstreams: BTreeSet<String>,
    /// Latency at several rates, where the experiment asks for a curve: first those at which all
    /// subjects are compared, then those at shares of this subject's own capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
    /// The other loads that were made at the same time, by name; empty with one load.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, BesideReading>,
}

/// What one server did while a trial's load ran on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReading {
    /// The server's name in the experiment.
    pub server: String,
    /// CPU time of its process tree during this subject's measured windows of the closed loop.
    pub cpu_s: f64,
    /// The step in which it was counted, s; 0 where that is less than a microsecond.
    #[serde(default, skip_serializing_if = "crate::sums::is_zero")]
    pub cpu_step_s: f64,
}

/// How a server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerStart {
    /// Time from when its process began until it answered the request of its recipe, ms. It is asked
    /// every 10 ms.
    pub start_ms: f64,
    /// Its memory then, all its processes together, bytes: shared pages count in part (PSS), or for
    /// each process where the kernel does not tell. Absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_bytes: Option<u64>,
}

/// One of a run's loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredLoad {
    pub name: String,
    /// Whether it is recorded and not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// What a load other than the first one measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BesideReading {
    /// During the closed loop of the first load.
    pub throughput: Option<LoadReading>,
    /// During the open loop of the first load.
    pub latency: Option<LoadReading>,
}
