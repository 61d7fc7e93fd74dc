//! What is measured to find the bottleneck of a subject.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Condition;

/// The short loads on one subject under one condition, after the last block: some as the
/// experiment has it and, between them, some with one thing changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BottleneckReading {
    pub condition: Condition,
    pub subject: String,
    /// The loads, in the order in which they were made.
    pub probes: Vec<Probe>,
    /// Threads of the load as the experiment has it.
    pub client_threads: u32,
    /// CPUs of the load; empty when it is not bound.
    pub client_cpus: Vec<u32>,
    /// CPUs that the servers on the load's machine may use.
    pub server_cpus: Vec<u32>,
    /// The CPUs that each server may use, on its machine.
    pub cpus_of_servers: BTreeMap<String, Vec<u32>>,
    /// Where hosts are machines: the host of each server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, String>,
    /// Where hosts are machines: the load's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_host: Option<String>,
    /// Whether a connection carries more than one request.
    pub keepalive: bool,
    /// What the link between client and servers lets through, bits per second; absent where
    /// nothing limits it.
    pub link_bits_per_s: Option<f64>,
    /// Ports that the load's outgoing connections may have, where that could be read and the host
    /// does not reuse those in TIME_WAIT.
    pub ports: Option<u32>,
    /// The same for servers that are on hosts with ports of their own.
    pub server_ports: BTreeMap<String, u32>,
    /// Why a change could not be made, a sentence each.
    pub not_tried: Vec<String>,
    /// Why it could not be measured.
    pub failed: Option<String>,
    /// Ports of the load's host that connections in TIME_WAIT held then.
    pub waiting_at_failure: Option<u64>,
}

impl BottleneckReading {
    /// The host of a server on another machine than the load's.
    pub fn apart(&self, server: &str) -> Option<&str> {
        let host = self.hosts.get(server)?;
        (self.load_host.as_ref() != Some(host)).then_some(host.as_str())
    }
}

/// What was changed for one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    None,
    /// One more client thread, on one more CPU.
    ClientThread,
    /// The client gets a CPU that no server of the path uses, in place of a shared one.
    ClientApart,
    TwiceTheConnections,
    HalfTheConnections,
    /// The servers of the path get half of the CPU time that they could use.
    HalfTheServerCpu,
    TwiceTheLinkRate,
    /// Outgoing connections of the load's host have up to ten times the ports.
    MorePorts,
}

/// One short closed loop and the samples taken meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    pub change: Change,
    pub connections: u32,
    /// Measured time, s.
    pub duration_s: f64,
    /// Good answers per second.
    pub requests_per_s: f64,
    /// Mean response time, us; 0 without answers.
    pub latency_us_mean: f64,
    /// Median response time, us; 0 without answers.
    pub latency_us_p50: f64,
    /// 99th percentile of the response time, us; 0 without answers.
    pub latency_us_p99: f64,
    /// The longest that opening a connection took, us; 0 where none was opened.
    pub connect_us_max: f64,
    /// Connections opened.
    pub connects: u64,
    /// Good answers, also outside of the measured time.
    pub requests_all: u64,
    /// Failures, also outside of the measured time.
    pub errors_all: u64,
    /// Connections that could not be opened for want of a free port.
    pub no_port: u64,
    /// Connections that found the accept queue of a server of the path full, in the whole load, and
    /// overflows that no socket accounts for. Absent for a server that ran before, whose sockets are
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_queue_full: Option<u64>,
    pub bytes_per_s: f64,
    /// Each client thread's share of a CPU.
    pub client: Vec<f64>,
    /// CPU time that the servers of the path were limited to, CPUs; absent without a limit.
    pub quota_cpus: Option<f64>,
    /// The process that carries the packets of links in user space; absent without such links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<ServerSample>,
    /// The sample of servers and kernel.
    pub seen: BottleneckSample,
}

impl Probe {
    /// Connections that found an accept queue full. Where only those of the network namespace are
    /// known, other programs' are among them.
    pub fn accept_queue_overflows(&self) -> u64 {
        let of_namespace = self.seen.kernel.listen_overflows_or_drops();
        self.accept_queue_full.unwrap_or(of_namespace)
    }
}

/// A sample of servers and kernel over a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BottleneckSample {
    /// Time between its ends, s.
    pub duration_s: f64,
    /// The watched servers, by name.
    pub servers: BTreeMap<String, ServerSample>,
    /// For how much of the time the client's busiest thread wanted a CPU, 0 to 1.
    pub client_wanted: f64,
    /// How busy each CPU of the load's machine was.
    pub cpus: Vec<CpuSample>,
    /// The same of servers' other machines, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_cpus: BTreeMap<String, Vec<CpuSample>>,
    /// What the kernel counted in the network namespaces of the load and of the watched servers,
    /// together.
    pub kernel: KernelSample,
    /// Ports that are taken at the end, by network namespace, the load's own first.
    pub ports: Vec<PortsSample>,
}

/// Ports of a network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortsSample {
    pub servers: Vec<String>,
    /// Ports that connections in TIME_WAIT hold, each counted once: those that a server has closed
    /// first hold its one port all together.
    pub waiting: u64,
}

/// How busy a CPU was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSample {
    pub cpu: u32,
    /// 0 to 1, steal time included.
    pub busy: f64,
}

/// A server's use of the CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSample {
    /// CPU time of all its processes over the time: 1 is one CPU.
    pub cpus: f64,
    pub threads: u32,
    /// The shares of a CPU of its busiest threads, the busiest first; at most sixteen.
    pub busiest: Vec<f64>,
    /// The share of the time in which the same threads ran or were runnable. A thread that never
    /// sleeps is at 1, however little CPU time it gets.
    pub wanted: Vec<f64>,
}

impl KernelSample {
    /// Connections that were dropped while they were opened.
    pub fn listen_overflows_or_drops(&self) -> u64 {
        self.listen_overflows.max(self.listen_drops)
    }
}

/// What the kernel counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSample {
    /// Connections accepted: `PassiveOpens`.
    pub accepted: u64,
    /// Connections that found a full accept queue: `ListenOverflows`.
    pub listen_overflows: u64,
    /// Connections dropped while they were opened, those above among them: `ListenDrops`.
    pub listen_drops: u64,
    /// Segments sent again: `RetransSegs`.
    pub retransmits: u64,
    /// Segments sent: `OutSegs`.
    pub segments: u64,
    /// Sockets in TIME_WAIT at the end.
    pub time_wait: u64,
}
