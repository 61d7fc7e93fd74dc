//! What is compared.

pub(crate) mod words;

pub(crate) mod margin;

use readings::InstructionScope;
use serde::Serialize;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Good answers per second in a closed loop; more is better.
    RequestsPerS,
    /// Median response latency in an open loop, microseconds; less is better.
    LatencyUsP50,
    /// 99th percentile of response latency in an open loop, microseconds; less is better.
    LatencyUsP99,
    /// CPU time of all servers on the subject's path per good answer of the closed loop,
    /// microseconds; less is better.
    ServerCpuUsPerRequest,
    /// The same in the open loop, at the given rate. A server that waits between requests takes
    /// more for each than a saturated one.
    ServerCpuUsPerRequestAtRate,
    /// Instructions that all servers on the subject's path retired per good answer of a closed loop,
    /// in their own code and in the kernel; less is better. Only where the kernel counts them.
    ServerInstructionsPerRequest,
    /// The same in their own code only, where the kernel counts no others. It is a metric of its own,
    /// since the two cannot be compared.
    ServerUserInstructionsPerRequest,
    /// The most resident memory of all servers on the subject's path together, bytes; less is
    /// better.
    ServerRssBytesMax,
    /// CPU time of the load generator per complete answer, microseconds; less is better. Compared
    /// only where subjects have different drivers.
    DriverCpuUsPerRequest,
    /// Peak memory of the load generator, bytes; less is better. Compared only where subjects have
    /// different drivers.
    DriverMaxRssBytes,
    /// The share of requests that failed around an event; less is better.
    FailedShare,
    /// Time from the first event until the rate of good answers was full again, seconds; less is
    /// better.
    FullRateAfterS,
    /// The longest time without any good answer, from the first event on, seconds; less is better.
    LongestSilenceS,
    /// The longest that a good answer took which came after the first event, seconds; less is
    /// better.
    LongestResponseS,
}

impl Metric {
    /// Every metric, throughput first.
    pub const ALL: [Metric; 14] = [
        Metric::RequestsPerS,
        Metric::LatencyUsP50,
        Metric::LatencyUsP99,
        Metric::ServerCpuUsPerRequest,
        Metric::ServerCpuUsPerRequestAtRate,
        Metric::ServerInstructionsPerRequest,
        Metric::ServerUserInstructionsPerRequest,
        Metric::ServerRssBytesMax,
        Metric::DriverCpuUsPerRequest,
        Metric::DriverMaxRssBytes,
        Metric::FailedShare,
        Metric::FullRateAfterS,
        Metric::LongestSilenceS,
        Metric::LongestResponseS,
    ];

    /// The name in the JSON document.
    pub fn name(self) -> &'static str {
        match self {
            Metric::RequestsPerS => "requests_per_s",
            Metric::LatencyUsP50 => "latency_us_p50",
            Metric::LatencyUsP99 => "latency_us_p99",
            Metric::ServerCpuUsPerRequest => "server_cpu_us_per_request",
            Metric::ServerCpuUsPerRequestAtRate => "server_cpu_us_per_request_at_rate",
            Metric::ServerInstructionsPerRequest => "server_instructions_per_request",
            Metric::ServerUserInstructionsPerRequest => "server_user_instructions_per_request",
            Metric::ServerRssBytesMax => "server_rss_bytes_max",
            Metric::DriverCpuUsPerRequest => "driver_cpu_us_per_request",
            Metric::DriverMaxRssBytes => "driver_max_rss_bytes",
            Metric::FailedShare => "failed_share",
            Metric::FullRateAfterS => "full_rate_after_s",
            Metric::LongestSilenceS => "longest_silence_s",
            Metric::LongestResponseS => "longest_response_s",
        }
    }

    /// The words in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Metric::RequestsPerS => "throughput",
            Metric::LatencyUsP50 => "median latency",
            Metric::LatencyUsP99 => "99th percentile of latency",
            Metric::ServerCpuUsPerRequest => "servers' CPU time per request",
            Metric::ServerCpuUsPerRequestAtRate => "servers' CPU time per request at that rate",
            Metric::ServerInstructionsPerRequest => "servers' instructions per request",
            Metric::ServerUserInstructionsPerRequest => {
                "servers' user-mode instructions per request"
            }
            Metric::ServerRssBytesMax => "servers' peak memory",
            Metric::DriverCpuUsPerRequest => "driver's CPU time per request",
            Metric::DriverMaxRssBytes => "driver's peak memory",
            Metric::FailedShare => "share of failed requests",
            Metric::FullRateAfterS => "time until the rate is full again",
            Metric::LongestSilenceS => "longest silence",
            Metric::LongestResponseS => "longest response",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self == Metric::RequestsPerS
    }

    /// Whether it is measured in a closed loop, which factors of the open loop do not change. The
    /// latency of outside drivers may be.
    pub(crate) fn is_of_closed_loop(self) -> bool {
        matches!(
            self,
            Metric::RequestsPerS | Metric::ServerCpuUsPerRequest | Metric::DriverCpuUsPerRequest
        ) || self.instructions().is_some()
    }

    /// Which instructions it counts; nothing for other metrics.
    pub fn instructions(self) -> Option<InstructionScope> {
        match self {
            Metric::ServerInstructionsPerRequest => Some(InstructionScope::UserAndKernel),
            Metric::ServerUserInstructionsPerRequest => Some(InstructionScope::User),
            _ => None,
        }
    }

    /// The quantile of the latency, between 0 and 1; nothing for what is no latency.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::LatencyUsP50 => Some(0.5),
            Metric::LatencyUsP99 => Some(0.99),
            _ => None,
        }
    }

    /// Whether it is measured around events.
    pub fn is_of_events(self) -> bool {
        matches!(
            self,
            Metric::FailedShare
                | Metric::FullRateAfterS
                | Metric::LongestSilenceS
                | Metric::LongestResponseS
        )
    }

    /// Whether it is about the load generator and not about the servers.
    pub fn is_of_driver(self) -> bool {
        matches!(
            self,
            Metric::DriverCpuUsPerRequest | Metric::DriverMaxRssBytes
        )
    }

    /// Whether it is what the servers cost at the side of what they did. A run does not go on for
    /// such a metric alone.
    pub fn is_cost(self) -> bool {
        matches!(
            self,
            Metric::ServerCpuUsPerRequest
                | Metric::ServerCpuUsPerRequestAtRate
                | Metric::ServerRssBytesMax
        ) || self.instructions().is_some()
    }

    /// Whether it is measured in the open loop.
    pub fn is_of_open_loop(self) -> bool {
        self.quantile().is_some()
            || self.is_of_events()
            || self == Metric::ServerCpuUsPerRequestAtRate
    }
}
