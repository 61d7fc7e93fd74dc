//! Metrics of servers, network and machine in the measured windows of a load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sums::add_count;

/// The kernel's tick, in which it tells the CPU time of children and threads that have ended, and of
/// groups of version 1, s: USER_HZ is 100 on every Linux that Rust supports.
pub const CPU_TICK_S: f64 = 0.01;
/// How many of a server's threads are kept.
const BUSIEST: usize = 16;

/// Metrics of one load on one subject. Counters are sums over the measured windows that were sampled
/// at both ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemMetrics {
    /// Seconds since 1970 when the first of the windows began.
    pub from_unix_s: f64,
    /// Seconds since 1970 when the last of them ended.
    pub to_unix_s: f64,
    /// The length of those windows together, s.
    pub looked_s: f64,
    /// Good answers in those windows: what 'per request' is over.
    pub requests: u64,
    /// Samples, at the ends of the windows and within.
    pub looks: u64,
    /// CPU time that sampling took, s.
    pub cpu_s: f64,
    /// The servers of the subject's path, by name.
    pub servers: BTreeMap<String, ServerMetrics>,
    /// The machine on which the load is made.
    pub machine: MachineMetrics,
    /// The servers' machines, by the name of the host, where they are others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, MachineMetrics>,
    /// The network namespaces of the load and of the servers.
    pub networks: Vec<NetworkMetrics>,
}

/// What a server did, all its processes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMetrics {
    /// CPU time in its own code, s, as the kernel divides it.
    pub user_s: f64,
    /// CPU time in the kernel, s.
    pub system_s: f64,
    /// The step in which both were counted, s; 0 where that is less than a microsecond.
    #[serde(default, skip_serializing_if = "crate::sums::is_zero")]
    pub cpu_step_s: f64,
    pub switches_voluntary: u64,
    pub switches_involuntary: u64,
    pub faults_minor: u64,
    pub faults_major: u64,
    /// Bytes that its processes wrote to files on storage; not those of processes that ended between two
    /// samples.
    #[serde(default)]
    pub written_bytes: u64,
    /// The most resident memory of its processes together in a sample, bytes. Shared memory counts
    /// for each of them.
    pub rss_bytes_max: u64,
    /// The most processes in a sample.
    pub processes_max: u32,
    /// The most threads in a sample.
    pub threads_max: u32,
    /// Its busiest threads, the busiest first; at most sixteen.
    pub busiest: Vec<ThreadMetrics>,
    /// Whether it had processes when the load began and none later.
    pub ended: bool,
    /// Whether all of its processes but the first were replaced by others since the load began.
    pub restarted: bool,
    /// Whether one of its processes ignores SIGCHLD and it has no control group: then its CPU time
    /// lacks that of its children.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub children_uncounted: bool,
}

/// What a thread did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadMetrics {
    pub thread: i32,
    pub name: String,
    /// CPU time in its own code, s.
    pub user_s: f64,
    /// CPU time in the kernel, s.
    pub system_s: f64,
    pub switches_voluntary: u64,
    pub switches_involuntary: u64,
}

/// What the machine did, whoever caused it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineMetrics {
    pub cpus: u32,
    /// Steal time, over all CPUs, s.
    pub steal_s: f64,
    /// CPU time in soft interrupts, such as the network's, over all CPUs, s.
    pub softirq_s: f64,
    /// CPU time of all programs and of the kernel, soft interrupts included and steal time not, over
    /// all CPUs, s. Absent where it could not be read.
    pub busy_s: Option<f64>,
    pub context_switches: u64,
    /// Pages read back from swap.
    pub swapped_in_pages: u64,
    /// Pages written to swap.
    pub swapped_out_pages: u64,
    /// Time in which some thread waited for a CPU, s; absent where the kernel does not tell.
    pub pressure_cpu_s: Option<f64>,
    pub pressure_memory_s: Option<f64>,
    pub pressure_io_s: Option<f64>,
    /// Times that a CPU limit which the experiment did not ask for throttled the load or a server.
    pub throttled: u64,
    /// For how long, over all CPUs, s.
    pub throttled_s: f64,
}

/// What a network namespace counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkMetrics {
    /// Whether the load is made in it.
    pub load: bool,
    pub servers: Vec<String>,
    pub accepted: u64,
    /// Connections that found a full accept queue.
    pub listen_overflows: u64,
    /// Connections dropped while they were opened, those above among them.
    pub listen_drops: u64,
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    pub interfaces: BTreeMap<String, InterfaceMetrics>,
    /// The most TCP sockets of each state in a sample.
    pub sockets_max: SocketMetrics,
}

/// What passed an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceMetrics {
    pub bytes_received: u64,
    pub packets_received: u64,
    pub bytes_sent: u64,
    pub packets_sent: u64,
}

/// Numbers of TCP sockets by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketMetrics {
    /// Connected: established, or closed by the other side only.
    pub established: u64,
    pub time_wait: u64,
    /// Closed by their program, but not yet by the kernel.
    pub orphan: u64,
    /// All but those in TIME_WAIT, also listening ones, IPv4 and IPv6.
    pub in_use: u64,
    /// Allocated, also those that are not bound to anything.
    pub allocated: u64,
}

impl SystemMetrics {
    /// Adds the metrics of other windows of the same load.
    pub fn add(&mut self, other: &SystemMetrics) {
        if self.from_unix_s == 0.0 {
            self.from_unix_s = other.from_unix_s;
        }
        self.to_unix_s = self.to_unix_s.max(other.to_unix_s);
        self.looked_s += other.looked_s;
        add_count(&mut self.requests, other.requests);
        add_count(&mut self.looks, other.looks);
        self.cpu_s += other.cpu_s;
        for (name, server) in &other.servers {
            self.servers.entry(name.clone()).or_default().add(server);
        }
        self.machine.add(&other.machine);
        for (host, machine) in &other.others {
            self.others.entry(host.clone()).or_default().add(machine);
        }
        for network in &other.networks {
            let same = |one: &&mut NetworkMetrics| {
                one.load == network.load && one.servers == network.servers
            };
            match self.networks.iter_mut().find(same) {
                Some(one) => one.add(network),
                None => self.networks.push(network.clone()),
            }
        }
    }

    /// The same with these servers only.
    pub fn of_servers(mut self, names: &[String]) -> Self {
        self.servers.retain(|name, _| names.contains(name));
        self
    }

    /// A server's context switches per request, of both kinds; `None` without requests or where
    /// the server was not seen.
    pub fn switches_per_request(&self, server: &str) -> Option<f64> {
        let seen = self.servers.get(server)?;
        self.per_request(
            seen.switches_voluntary
                .saturating_add(seen.switches_involuntary),
        )
    }

    /// A server's page faults per request, of both kinds; `None` as above.
    pub fn faults_per_request(&self, server: &str) -> Option<f64> {
        let seen = self.servers.get(server)?;
        self.per_request(seen.faults_minor.saturating_add(seen.faults_major))
    }

    /// Bytes that a server wrote to files, per request; `None` as above, and where it wrote none.
    pub fn written_bytes_per_request(&self, server: &str) -> Option<f64> {
        let written = self.servers.get(server)?.written_bytes;
        self.per_request(written).filter(|_| written > 0)
    }

    fn per_request(&self, count: u64) -> Option<f64> {
        (self.requests > 0).then(|| count as f64 / self.requests as f64)
    }
}

impl ServerMetrics {
    fn add(&mut self, other: &ServerMetrics) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.cpu_step_s = self.cpu_step_s.max(other.cpu_step_s);
        add_count(&mut self.switches_voluntary, other.switches_voluntary);
        add_count(&mut self.switches_involuntary, other.switches_involuntary);
        add_count(&mut self.faults_minor, other.faults_minor);
        add_count(&mut self.faults_major, other.faults_major);
        add_count(&mut self.written_bytes, other.written_bytes);
        self.rss_bytes_max = self.rss_bytes_max.max(other.rss_bytes_max);
        self.processes_max = self.processes_max.max(other.processes_max);
        self.threads_max = self.threads_max.max(other.threads_max);
        for thread in &other.busiest {
            match self.busiest.iter_mut().find(|t| t.thread == thread.thread) {
                Some(known) => known.add(thread),
                None => self.busiest.push(thread.clone()),
            }
        }
        self.keep_busiest();
        self.ended |= other.ended;
        self.restarted |= other.restarted;
        self.children_uncounted |= other.children_uncounted;
    }

    /// Leaves the busiest threads, in their order.
    pub fn keep_busiest(&mut self) {
        let busy = |thread: &ThreadMetrics| thread.user_s + thread.system_s;
        self.busiest.sort_by(|a, b| {
            let switches =
                |t: &ThreadMetrics| t.switches_voluntary.saturating_add(t.switches_involuntary);
            (busy(b).total_cmp(&busy(a))).then(switches(b).cmp(&switches(a)))
        });
        self.busiest.truncate(BUSIEST);
    }

    /// The share of its CPU time that it spent in its own code, 0 to 1; `None` when none was seen.
    pub fn user_share(&self) -> Option<f64> {
        let all = self.user_s + self.system_s;
        (all > 0.0).then(|| self.user_s / all)
    }
}

impl ThreadMetrics {
    fn add(&mut self, other: &ThreadMetrics) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        add_count(&mut self.switches_voluntary, other.switches_voluntary);
        add_count(&mut self.switches_involuntary, other.switches_involuntary);
    }
}

impl MachineMetrics {
    fn add(&mut self, other: &MachineMetrics) {
        let sum = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (one, other) => one.or(other),
        };
        self.cpus = self.cpus.max(other.cpus);
        self.steal_s += other.steal_s;
        self.softirq_s += other.softirq_s;
        self.busy_s = sum(self.busy_s, other.busy_s);
        add_count(&mut self.context_switches, other.context_switches);
        add_count(&mut self.swapped_in_pages, other.swapped_in_pages);
        add_count(&mut self.swapped_out_pages, other.swapped_out_pages);
        self.pressure_cpu_s = sum(self.pressure_cpu_s, other.pressure_cpu_s);
        self.pressure_memory_s = sum(self.pressure_memory_s, other.pressure_memory_s);
        self.pressure_io_s = sum(self.pressure_io_s, other.pressure_io_s);
        add_count(&mut self.throttled, other.throttled);
        self.throttled_s += other.throttled_s;
    }
}

impl NetworkMetrics {
    fn add(&mut self, other: &NetworkMetrics) {
        add_count(&mut self.accepted, other.accepted);
        add_count(&mut self.listen_overflows, other.listen_overflows);
        add_count(&mut self.listen_drops, other.listen_drops);
        add_count(&mut self.segments, other.segments);
        add_count(&mut self.retransmits, other.retransmits);
        for (name, passed) in &other.interfaces {
            let sum = self.interfaces.entry(name.clone()).or_default();
            add_count(&mut sum.bytes_received, passed.bytes_received);
            add_count(&mut sum.packets_received, passed.packets_received);
            add_count(&mut sum.bytes_sent, passed.bytes_sent);
            add_count(&mut sum.packets_sent, passed.packets_sent);
        }
        self.sockets_max.raise(&other.sockets_max);
    }
}

impl SocketMetrics {
    /// The larger of each number.
    pub fn raise(&mut self, other: &SocketMetrics) {
        self.established = self.established.max(other.established);
        self.time_wait = self.time_wait.max(other.time_wait);
        self.orphan = self.orphan.max(other.orphan);
        self.in_use = self.in_use.max(other.in_use);
        self.allocated = self.allocated.max(other.allocated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(switches: u64, rss: u64, thread: i32) -> SystemMetrics {
        let server = ServerMetrics {
            user_s: 0.1,
            system_s: 0.3,
            switches_voluntary: switches,
            switches_involuntary: 1,
            faults_minor: 4,
            rss_bytes_max: rss,
            busiest: vec![ThreadMetrics {
                thread,
                user_s: f64::from(thread),
                ..ThreadMetrics::default()
            }],
            ..ServerMetrics::default()
        };
        SystemMetrics {
            looked_s: 1.0,
            requests: 10,
            servers: BTreeMap::from([("a".to_owned(), server)]),
            networks: vec![NetworkMetrics {
                load: true,
                accepted: 3,
                ..NetworkMetrics::default()
            }],
            ..SystemMetrics::default()
        }
    }

    #[test]
    fn windows_add_up_and_peaks_stay() {
        let mut sum = one(4, 100, 7);
        sum.add(&one(14, 60, 7));
        sum.add(&one(20, 80, 9));
        let a = &sum.servers["a"];
        assert_eq!(a.switches_voluntary + a.switches_involuntary, 41);
        assert_eq!(a.rss_bytes_max, 100);
        assert_eq!(sum.requests, 30);
        assert_eq!(sum.networks.len(), 1);
        assert_eq!(sum.networks[0].accepted, 9);
        let threads: Vec<i32> = a.busiest.iter().map(|t| t.thread).collect();
        assert_eq!(threads, [7, 9], "seven was seen twice, and is busier");
        assert!((sum.switches_per_request("a").unwrap() - 41.0 / 30.0).abs() < 1e-12);
        assert!((sum.faults_per_request("a").unwrap() - 0.4).abs() < 1e-12);
        assert!((a.user_share().unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(sum.switches_per_request("b"), None);
        assert!(sum.of_servers(&["b".to_owned()]).servers.is_empty());
    }

    #[test]
    fn no_more_threads_are_kept_than_said() {
        let mut sum = one(1, 1, 0);
        (1..100).for_each(|thread| sum.add(&one(1, 1, thread)));
        let threads = &sum.servers["a"].busiest;
        assert_eq!((threads.len(), threads[0].thread), (16, 99));
    }
}
