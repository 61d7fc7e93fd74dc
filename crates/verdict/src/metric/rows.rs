//! The table of metrics. A new metric is a row here; gates, sentences, tables, the page and the
//! history take it from there.

use readings::{GateMetric, InstructionScope, LoadReading, Reading};

use super::figures::{self, EventTime, Value};

/// What a metric is about, which decides how it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// Good answers or messages per second: more is better, as of the reach; of all others less is.
    Throughput,
    /// A quantile of response latency, between 0 and 1.
    Latency(f64),
    /// What the servers on the subject's path cost.
    Servers,
    Instructions(InstructionScope),
    /// How the first server started; only where a run asks for it.
    Start,
    /// What its reloads did; only in tables and growths of runs that ask for it.
    Reload,
    /// What events left behind; only where a run asks for it.
    AfterEvents,
    /// What a server with a rate limit let through; only in tables of runs that ask for it.
    Limit,
    /// How messages of exchanges that last arrived.
    Messages,
    /// How many of them did: more is better.
    Reach,
    /// What the load generator cost; compared only where subjects have different ones.
    Driver,
    /// The share of requests that failed around events; compared by differences.
    FailedShare,
    /// The number of them for each event; likewise.
    FailuresPerEvent,
    /// A time around events; compared by differences.
    EventTime(EventTime),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loops {
    Closed,
    Open,
    Both,
}

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    RequestsPerS,
    MessagesPerS,
    /// Microseconds that a request takes.
    Us,
    /// Microseconds of CPU time for each request.
    UsPerRequest,
    UsPerMessage,
    InstructionsPerRequest,
    Bytes,
    /// A share of all requests, 0 to 1.
    Share,
    PerEvent,
    S,
}

/// Takes the metric from a trial and the load that it is measured in; `None` where that has none.
pub(super) type Figure = fn(&Reading, &LoadReading) -> Option<Value>;

pub(super) struct Row {
    /// In the JSON document; ends in its unit.
    pub name: &'static str,
    pub words: &'static str,
    pub unit: Unit,
    pub of: Of,
    pub loops: Loops,
    /// The place among the columns of the first screen, from 1.
    pub rank: u8,
    /// The word by which gates bound it.
    pub gate: Option<GateMetric>,
    /// The head of its column in the table of figures, where no other column there has it.
    pub column: Option<&'static str>,
    /// Absent for quantiles, which `of_trial` takes from the histogram, and for events.
    pub figure: Option<Figure>,
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $metric:ident { $($field:ident: $value:expr,)* })*) => {
        /// What is compared.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[$doc])* $metric,)*
        }

        impl Metric {
            /// Every metric, throughput first.
            pub const ALL: [Metric; [$(Metric::$metric),*].len()] = [$(Metric::$metric),*];

            pub(super) fn row(self) -> &'static Row {
                match self {
                    $(Metric::$metric => {
                        const ROW: Row = Row { $($field: $value,)* };
                        &ROW
                    })*
                }
            }
        }
    };
}

metrics! {
    /// Good answers per second in a closed loop; more is better.
    RequestsPerS {
        name: "requests_per_s",
        words: "throughput",
        unit: Unit::RequestsPerS,
        of: Of::Throughput,
        loops: Loops::Closed,
        rank: 1,
        gate: Some(GateMetric::Throughput),
        column: None,
        figure: Some(figures::requests_per_s),
    }
    /// Median response latency in an open loop, microseconds; less is better.
    LatencyUsP50 {
        name: "latency_us_p50",
        words: "median latency",
        unit: Unit::Us,
        of: Of::Latency(0.5),
        loops: Loops::Open,
        rank: 6,
        gate: Some(GateMetric::P50),
        column: None,
        figure: None,
    }
    /// 99th percentile of response latency in an open loop, microseconds; less is better.
    LatencyUsP99 {
        name: "latency_us_p99",
        words: "99th percentile of latency",
        unit: Unit::Us,
        of: Of::Latency(0.99),
        loops: Loops::Open,
        rank: 7,
        gate: Some(GateMetric::P99),
        column: None,
        figure: None,
    }
    /// CPU time of all servers on the subject's path per good answer of the closed loop,
    /// microseconds; less is better.
    ServerCpuUsPerRequest {
        name: "server_cpu_us_per_request",
        words: "CPU time per request of all servers",
        unit: Unit::UsPerRequest,
        of: Of::Servers,
        loops: Loops::Closed,
        rank: 9,
        gate: Some(GateMetric::Cpu),
        column: None,
        figure: Some(figures::cpu_per_request),
    }
    /// The same in the open loop, at the given rate. A server that waits between requests takes
    /// more for each than a saturated one.
    ServerCpuUsPerRequestAtRate {
        name: "server_cpu_us_per_request_at_rate",
        words: "CPU time per request of all servers at that rate",
        unit: Unit::UsPerRequest,
        of: Of::Servers,
        loops: Loops::Open,
        rank: 8,
        gate: Some(GateMetric::CpuAtRate),
        column: None,
        figure: Some(figures::cpu_per_request_at_rate),
    }
    /// CPU time of the server that the load addresses per good answer of the closed loop,
    /// microseconds, where other servers stand behind it; less is better.
    FirstServerCpuUsPerRequest {
        name: "first_server_cpu_us_per_request",
        words: "CPU time per request of the first server",
        unit: Unit::UsPerRequest,
        of: Of::Servers,
        loops: Loops::Closed,
        rank: 10,
        gate: Some(GateMetric::ProxyCpu),
        column: None,
        figure: Some(figures::first_server_cpu_per_request),
    }
    /// Instructions that all servers on the subject's path retired per good answer of a closed loop,
    /// in their own code and in the kernel; less is better. Only where the kernel counts them.
    ServerInstructionsPerRequest {
        name: "server_instructions_per_request",
        words: "servers' instructions per request",
        unit: Unit::InstructionsPerRequest,
        of: Of::Instructions(InstructionScope::UserAndKernel),
        loops: Loops::Closed,
        rank: 13,
        gate: None,
        column: None,
        figure: Some(figures::instructions),
    }
    /// The same in their own code only, where the kernel counts no others. It is a metric of its own,
    /// since the two cannot be compared.
    ServerUserInstructionsPerRequest {
        name: "server_user_instructions_per_request",
        words: "servers' user-mode instructions per request",
        unit: Unit::InstructionsPerRequest,
        of: Of::Instructions(InstructionScope::User),
        loops: Loops::Closed,
        rank: 14,
        gate: None,
        column: None,
        figure: Some(figures::user_instructions),
    }
    /// The most resident memory of all servers on the subject's path together, bytes; less is
    /// better.
    ServerRssBytesMax {
        name: "server_rss_bytes_max",
        words: "peak memory of all servers",
        unit: Unit::Bytes,
        of: Of::Servers,
        loops: Loops::Both,
        rank: 12,
        gate: Some(GateMetric::Memory),
        column: None,
        figure: Some(figures::memory),
    }
    /// CPU time of the load generator per complete answer, microseconds; less is better. Compared
    /// only where subjects have different drivers.
    DriverCpuUsPerRequest {
        name: "driver_cpu_us_per_request",
        words: "driver's CPU time per request",
        unit: Unit::UsPerRequest,
        of: Of::Driver,
        loops: Loops::Closed,
        rank: 11,
        gate: None,
        column: Some("driver us/req"),
        figure: Some(figures::driver_cpu_per_request),
    }
    /// Peak memory of the load generator, bytes; less is better. Compared only where subjects have
    /// different drivers.
    DriverMaxRssBytes {
        name: "driver_max_rss_bytes",
        words: "driver's peak memory",
        unit: Unit::Bytes,
        of: Of::Driver,
        loops: Loops::Both,
        rank: 15,
        gate: None,
        column: Some("driver memory"),
        figure: Some(figures::driver_memory),
    }
    /// The share of requests that failed around an event; less is better.
    FailedShare {
        name: "failed_share",
        words: "share of failed requests",
        unit: Unit::Share,
        of: Of::FailedShare,
        loops: Loops::Open,
        rank: 2,
        gate: None,
        column: None,
        figure: None,
    }
    /// Requests that failed per reload, or per server that was restarted in turn; less is better. It
    /// replaces their share where nothing else happened: a share of the window's requests shrinks as
    /// the window grows.
    FailuresPerEvent {
        name: "failures_per_event",
        words: "failures per reload or restart",
        unit: Unit::PerEvent,
        of: Of::FailuresPerEvent,
        loops: Loops::Open,
        rank: 3,
        gate: None,
        column: None,
        figure: None,
    }
    /// Time from the first event until the rate of good answers was full again, seconds; less is
    /// better.
    FullRateAfterS {
        name: "full_rate_after_s",
        words: "time until the rate is full again",
        unit: Unit::S,
        of: Of::EventTime(EventTime::FULL_RATE_AFTER),
        loops: Loops::Open,
        rank: 4,
        gate: None,
        column: None,
        figure: None,
    }
    /// The longest time without any good answer, from the first event on, seconds; less is better.
    LongestSilenceS {
        name: "longest_silence_s",
        words: "longest silence",
        unit: Unit::S,
        of: Of::EventTime(EventTime::LONGEST_SILENCE),
        loops: Loops::Open,
        rank: 5,
        gate: None,
        column: None,
        figure: None,
    }
    /// The longest that a good answer took which came after the first event, seconds; less is
    /// better.
    LongestResponseS {
        name: "longest_response_s",
        words: "longest response",
        unit: Unit::S,
        of: Of::EventTime(EventTime::LONGEST_RESPONSE),
        loops: Loops::Open,
        rank: 16,
        gate: None,
        column: None,
        figure: None,
    }
    /// Median time from the request to the first message of its stream, microseconds; less is better.
    FirstMessageUsP50 {
        name: "first_message_us_p50",
        words: "median time to the first message",
        unit: Unit::Us,
        of: Of::Messages,
        loops: Loops::Closed,
        rank: 17,
        gate: Some(GateMetric::FirstMessage),
        column: Some("first message"),
        figure: Some(figures::first_message_p50),
    }
    /// 99th percentile of how late messages arrive after they were due, microseconds; less is better.
    LagUsP99 {
        name: "lag_us_p99",
        words: "99th percentile of the messages' lag",
        unit: Unit::Us,
        of: Of::Messages,
        loops: Loops::Closed,
        rank: 18,
        gate: Some(GateMetric::Lag),
        column: Some("lag p99"),
        figure: Some(figures::lag_p99),
    }
    /// 99th percentile of the time between two messages of a stream, microseconds; less is better.
    GapUsP99 {
        name: "gap_us_p99",
        words: "99th percentile of the gap between messages",
        unit: Unit::Us,
        of: Of::Messages,
        loops: Loops::Closed,
        rank: 19,
        gate: None,
        column: Some("gap p99"),
        figure: Some(figures::gap_p99),
    }
    /// 99th percentile of the time from a message to its answer, in calls with streams both ways,
    /// microseconds; less is better.
    AnswerUsP99 {
        name: "answer_us_p99",
        words: "99th percentile of the time to a message's answer",
        unit: Unit::Us,
        of: Of::Messages,
        loops: Loops::Closed,
        rank: 28,
        gate: None,
        column: Some("answer p99"),
        figure: Some(figures::answer_p99),
    }
    /// Messages received per second, of streams; more is better.
    MessagesPerS {
        name: "messages_per_s",
        words: "messages received",
        unit: Unit::MessagesPerS,
        of: Of::Throughput,
        loops: Loops::Closed,
        rank: 20,
        gate: None,
        column: Some("messages"),
        figure: Some(figures::messages_per_s),
    }
    /// The share of the messages to members of topics that reached them; more is better.
    ReachShare {
        name: "reach_share",
        words: "share of messages that reached their receivers",
        unit: Unit::Share,
        of: Of::Reach,
        loops: Loops::Closed,
        rank: 27,
        gate: Some(GateMetric::Reach),
        column: Some("reach"),
        figure: Some(figures::reach_share),
    }
    /// CPU time of all servers on the subject's path per message of streams, microseconds; less is
    /// better.
    ServerCpuUsPerMessage {
        name: "server_cpu_us_per_message",
        words: "CPU time per message of all servers",
        unit: Unit::UsPerMessage,
        of: Of::Servers,
        loops: Loops::Closed,
        rank: 21,
        gate: None,
        column: Some("us/message"),
        figure: Some(figures::cpu_per_message),
    }
    /// Time from the start of the server that the load addresses until it is ready, microseconds; less
    /// is better.
    FirstServerStartUs {
        name: "first_server_start_us",
        words: "start time of the first server",
        unit: Unit::Us,
        of: Of::Start,
        loops: Loops::Both,
        rank: 22,
        gate: Some(GateMetric::Start),
        column: Some("start"),
        figure: Some(figures::start),
    }
    /// The memory of that server when it was ready, before any load, bytes; less is better.
    FirstServerRestBytes {
        name: "first_server_rest_bytes",
        words: "memory of the first server at rest",
        unit: Unit::Bytes,
        of: Of::Start,
        loops: Loops::Both,
        rank: 23,
        gate: Some(GateMetric::RestMemory),
        column: Some("at rest"),
        figure: Some(figures::rest_memory),
    }
    /// The memory of the server that the load addresses after the load, before events are undone, bytes;
    /// less is better.
    MemoryAfterBytes {
        name: "first_server_memory_after_bytes",
        words: "memory of the first server after events",
        unit: Unit::Bytes,
        of: Of::AfterEvents,
        loops: Loops::Open,
        rank: 26,
        gate: Some(GateMetric::MemoryAfter),
        column: None,
        figure: Some(figures::memory_after),
    }
    /// Requests that reached the back ends over what the declared rate limit of the server that the load
    /// addresses allows, 1 for a limit that is kept.
    AcceptedShare {
        name: "accepted_share",
        words: "requests let through, of the rate limit",
        unit: Unit::Share,
        of: Of::Limit,
        loops: Loops::Open,
        rank: 25,
        gate: Some(GateMetric::Accepted),
        column: Some("of the limit"),
        figure: Some(figures::accepted_share),
    }
    /// Time from the order to reload a server until the new configuration answers, microseconds, of the
    /// longest reload; less is better.
    ReloadUs {
        name: "reload_us",
        words: "time until a reload is in effect",
        unit: Unit::Us,
        of: Of::Reload,
        loops: Loops::Open,
        rank: 24,
        gate: Some(GateMetric::Reload),
        column: Some("reload"),
        figure: Some(figures::reload),
    }
}
