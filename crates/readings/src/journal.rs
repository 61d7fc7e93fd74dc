use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    BottleneckReading, DriverReading, EventsReading, LoadReading, Probed, SettingsReading,
};

/// One combination of factor levels, such as `connections = 96`; empty without factors.
pub type Condition = BTreeMap<String, String>;

/// A line of a run's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "row")]
pub enum JournalRow {
    /// The first line: what run this is.
    Run(RunHeader),
    /// The rate at which latency is compared under a condition, chosen from the first block.
    Rate(RateChoice),
    /// One trial, done or failed.
    Trial(Box<Trial>),
    /// What was measured to find out what held a throughput.
    #[serde(alias = "limiter")]
    Bottleneck(Box<BottleneckReading>),
    /// How the servers of the subjects were set under a condition.
    Settings(SettingsReading),
    /// Something the reader of the result should know.
    Warning {
        /// The sentence.
        text: String,
    },
    /// The run ended.
    End {
        /// Whether the plan was carried out, or everything was settled before; `false` when the
        /// run was stopped.
        complete: bool,
    },
}

/// What a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Version of the program that wrote the journal.
    pub weigh_version: String,
    /// The experiment's name.
    pub experiment: String,
    /// The experiment's title.
    pub title: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The baseline subject.
    pub baseline: String,
    /// All subjects, baseline included, as declared.
    pub subjects: Vec<String>,
    /// All conditions, as declared.
    pub conditions: Vec<Condition>,
    /// Blocks planned.
    pub blocks: u32,
    /// The smallest difference that matters, as a fraction: 0.03 is 3%.
    pub matters: f64,
    /// The share of requests that may fail on the way before a trial is invalid, as a fraction.
    #[serde(default = "one_percent")]
    pub max_error: f64,
    /// Seconds since 1970 when the run began.
    pub started_unix_s: u64,
    /// Figures that others published, to be shown beside what is measured.
    #[serde(default)]
    pub published: Vec<Published>,
}

fn one_percent() -> f64 {
    0.01
}

/// A figure that someone published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Where it stands.
    pub source: String,
}

/// The open-loop rate under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateChoice {
    /// The condition it holds for.
    pub condition: Condition,
    /// Requests per second, over all connections.
    pub rate_per_s: f64,
    /// The throughput of the slowest subject that it was derived from; absent when it was given.
    pub slowest_per_s: Option<f64>,
}

/// One subject under one condition in one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number within the run, from 1.
    pub trial: u32,
    /// Number of the block, from 1.
    pub block: u32,
    /// Its condition.
    pub condition: Condition,
    /// The subject's name.
    pub subject: String,
    /// Whether this is the baseline's second copy, measured for the noise floor.
    pub again: bool,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured.
    Done(Box<Reading>),
    /// It could not be measured.
    Failed {
        /// Why, with the server's own last words where there are any.
        reason: String,
    },
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
    /// What was seen of servers and machine in the closed loop's measured windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<Probed>,
    /// The same for the open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_probed: Option<Probed>,
    /// What happened to servers in the open loop's window, and what clients noticed of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsReading>,
}

/// What one server did while a trial's load ran on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReading {
    /// The server's name in the experiment.
    pub server: String,
    /// CPU time of its process tree during this subject's measured windows of the closed loop.
    pub cpu_s: f64,
}
