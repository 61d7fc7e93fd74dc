//! What other load generators, and the shell's `time`, printed of one run.
//!
//! What a tool does not report is `None`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ErrorCounts;

/// A program whose output can be read: a load generator, or the shell's `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// wrk by Will Glozer.
    Wrk,
    /// wrk2 by Gil Tene: wrk with a constant rate.
    Wrk2,
    /// ApacheBench.
    Ab,
    Httperf,
    /// h2load of nghttp2.
    H2load,
    Hey,
    Oha,
    K6,
    RedisBenchmark,
    Siege,
    Autocannon,
    Vegeta,
    Bombardier,
    Locust,
    Gatling,
    /// Apache JMeter.
    Jmeter,
    Artillery,
    /// ghz, for gRPC.
    Ghz,
    /// Our own engine, by the command line: `weigh load`.
    Weigh,
    /// The shell's `time`, or GNU time.
    Time,
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 20] = [
        Tool::Wrk,
        Tool::Wrk2,
        Tool::Ab,
        Tool::Httperf,
        Tool::H2load,
        Tool::Hey,
        Tool::Oha,
        Tool::K6,
        Tool::RedisBenchmark,
        Tool::Siege,
        Tool::Autocannon,
        Tool::Vegeta,
        Tool::Bombardier,
        Tool::Locust,
        Tool::Gatling,
        Tool::Jmeter,
        Tool::Artillery,
        Tool::Ghz,
        Tool::Weigh,
        Tool::Time,
    ];

    /// The tool's command.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Wrk => "wrk",
            Tool::Wrk2 => "wrk2",
            Tool::Ab => "ab",
            Tool::Httperf => "httperf",
            Tool::H2load => "h2load",
            Tool::Hey => "hey",
            Tool::Oha => "oha",
            Tool::K6 => "k6",
            Tool::RedisBenchmark => "redis-benchmark",
            Tool::Siege => "siege",
            Tool::Autocannon => "autocannon",
            Tool::Vegeta => "vegeta",
            Tool::Bombardier => "bombardier",
            Tool::Locust => "locust",
            Tool::Gatling => "gatling",
            Tool::Jmeter => "jmeter",
            Tool::Artillery => "artillery",
            Tool::Ghz => "ghz",
            Tool::Weigh => "weigh",
            Tool::Time => "time",
        }
    }

    /// Whether its latencies are also those of requests that failed.
    pub fn times_failures(self) -> bool {
        matches!(
            self,
            Tool::K6
                | Tool::Vegeta
                | Tool::Bombardier
                | Tool::Locust
                | Tool::Gatling
                | Tool::Jmeter
        )
    }

    /// Whether requests that failed, without a word whether they were answered, are among its
    /// requests and its rate.
    pub fn counts_failures(self) -> bool {
        matches!(self, Tool::K6 | Tool::Locust | Tool::Gatling | Tool::Jmeter)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Tool::ALL
            .into_iter()
            .find(|tool| tool.name() == text)
            .ok_or_else(|| {
                let names: Vec<_> = Tool::ALL.iter().map(|tool| tool.name()).collect();
                format!("expected one of {}, found `{text}`", names.join(", "))
            })
    }
}

/// A latency as a tool sums it up, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolLatency {
    pub mean_us: Option<f64>,
    /// The step in which the tool prints the mean, where that is known.
    pub mean_step_us: Option<f64>,
    /// The standard deviation.
    pub stdev_us: Option<f64>,
    pub min_us: Option<f64>,
    pub max_us: Option<f64>,
    /// Quantiles between 0 and 1 with their values, in ascending order.
    pub quantiles_us: Vec<(f64, f64)>,
}

/// How a tool's connections were encrypted, as it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTls {
    /// The version, such as `1.3`.
    pub version: Option<String>,
    /// The cipher suite by the name that the tool prints.
    pub suite: Option<String>,
    /// The group of the key exchange, such as `X25519`.
    pub group: Option<String>,
    /// The protocol that was agreed on by ALPN, such as `h2`.
    pub alpn: Option<String>,
}

/// What one run of a tool said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolReading {
    pub tool: Tool,
    /// The text that it was read from, where there are several: a file's name. Readers leave it
    /// open.
    pub source: Option<String>,
    /// The lines that it was read from, counted from 1, both included.
    pub lines: (usize, usize),
    /// The command line, where one stands above the output.
    pub command: Option<String>,
    /// Where the load went.
    pub url: Option<String>,
    /// How its connections were encrypted, where it says so.
    pub tls: Option<ToolTls>,
    /// What was asked for, where the tool measures several things (`GET` of redis-benchmark).
    pub operation: Option<String>,
    pub threads: Option<u64>,
    /// Connections held at one time.
    pub connections: Option<u64>,
    /// Whether connections were used for more than one request.
    pub keepalive: Option<bool>,
    /// The most requests in flight on one connection.
    pub depth: Option<u64>,
    /// Whether each request follows an answer, without a rate or a pause between.
    pub closed_loop: Option<bool>,
    /// The rate that was asked for (open loop).
    pub offered_per_s: Option<f64>,
    /// Complete answers.
    pub requests: Option<u64>,
    /// Length of the run.
    pub duration_s: Option<f64>,
    /// Complete answers per second.
    pub requests_per_s: Option<f64>,
    /// Bytes read, heads included where the tool counts them.
    pub bytes_read: Option<u64>,
    pub bytes_per_s: Option<f64>,
    /// Time of a request.
    pub latency: ToolLatency,
    /// Time to open a connection.
    pub connect: ToolLatency,
    /// Time to the answer's first byte.
    pub first_byte: ToolLatency,
    /// Failures, as far as the tool tells their kinds apart.
    pub errors: ErrorCounts,
    /// What the tool itself says went wrong, in its words: bounds of its own that were crossed,
    /// checks that failed, errors that the server answered.
    #[serde(default)]
    pub said: Vec<String>,
    /// CPU time that the tool took itself, user and system: as it says, or as `time` says of it.
    /// Of [`Tool::Time`] it is that of the command.
    pub client_cpu_s: Option<f64>,
}

impl ToolReading {
    /// A reading that knows nothing yet.
    pub fn new(tool: Tool) -> Self {
        Self {
            tool,
            source: None,
            lines: (0, 0),
            command: None,
            url: None,
            tls: None,
            operation: None,
            threads: None,
            connections: None,
            keepalive: None,
            depth: None,
            closed_loop: None,
            offered_per_s: None,
            requests: None,
            duration_s: None,
            requests_per_s: None,
            bytes_read: None,
            bytes_per_s: None,
            latency: ToolLatency::default(),
            connect: ToolLatency::default(),
            first_byte: ToolLatency::default(),
            errors: ErrorCounts::default(),
            said: Vec::new(),
            client_cpu_s: None,
        }
    }
}

/// A table whose columns are the same measure of several subjects.
///
/// The first column is what was varied; the others name the measure, such as `A, time` and
/// `B, time`, and hold one figure a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureTable {
    /// The lines, counted from 1, both included.
    pub lines: (usize, usize),
    /// The names of the columns, that of the first included.
    pub head: Vec<String>,
    /// The rows, each as long as the head; all but the first column above 0.
    pub rows: Vec<Vec<f64>>,
}

/// A line that lists a load generator among the processes of a machine, with its share of the CPU:
/// of `top`, or as people write it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLine {
    /// The load generator.
    pub tool: Tool,
    /// The line, counted from 1.
    pub line: usize,
    pub text: String,
}
