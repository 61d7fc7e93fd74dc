//! One sample: what the kernel had counted of servers and machine at one moment.

use std::time::Duration;

use readings::{AcceptQueue, SocketMetrics};

use crate::kernel::clock::{monotonic_ns, wall_ns};
use crate::kernel::namespace::Namespace;
use crate::kernel::proc_files::CpuUsed;
use crate::sampling::network::accept_queues::AcceptQueueCounter;
use crate::sampling::network::counters::NetworkCounters;
use crate::sampling::scheduling::Scheduling;
use crate::sampling::server::counters::{ServerCounterReader, ServerCounters};
use crate::sampling::server::processes::ServerGauges;
use crate::sampling::server::run_times::Descriptors;
use crate::sampling::server::thread_exits::ThreadExits;
use crate::sampling::server::watched::{Watched, WatchedServers};
use crate::sampling::system_counters::{SystemCounters, SystemSources};

/// What a sample has. Each part costs more than the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) accepted: bool,
    pub(crate) cpu: bool,
    pub(crate) gauges: bool,
    /// Gauges as well.
    pub(crate) counters: bool,
    pub(crate) scheduling: bool,
    /// Only with scheduling.
    pub(crate) ports: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// CLOCK_MONOTONIC.
    pub(crate) at_ns: i64,
    pub(crate) unix_s: f64,
    /// CPU time of taking it.
    pub(crate) cost: Duration,
    /// Taken exactly at the edge of a segment or a window.
    pub(crate) edge: bool,
    /// Connections accepted so far, all namespaces together.
    pub(crate) accepted: Option<u64>,
    /// CPU time of each server so far.
    pub(crate) cpu: Option<Vec<CpuUsed>>,
    pub(crate) gauges: Option<Gauges>,
    pub(crate) counters: Option<Box<Counters>>,
    pub(crate) scheduling: Option<Box<Scheduling>>,
}

/// Counters, which only grow, of each server and each namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) servers: Vec<ServerCounters>,
    pub(crate) system: SystemCounters,
    pub(crate) networks: Vec<NetworkCounters>,
}

/// Gauges, which go up and down: the highest values of one or several samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    /// How many samples.
    pub(crate) samples: u64,
    pub(crate) servers: Vec<ServerGauges>,
    pub(crate) sockets: Vec<SocketMetrics>,
}

impl Gauges {
    fn of(servers: Vec<ServerGauges>, networks: &[NetworkCounters]) -> Self {
        Self {
            samples: 1,
            servers,
            sockets: networks.iter().map(|network| network.sockets).collect(),
        }
    }

    pub(crate) fn raise(&mut self, other: &Self) {
        self.samples += other.samples;
        let servers = self.servers.len().max(other.servers.len());
        self.servers.resize(servers, ServerGauges::default());
        for (highest, one) in self.servers.iter_mut().zip(&other.servers) {
            highest.raise(*one);
        }
        let sockets = self.sockets.len().max(other.sockets.len());
        self.sockets.resize(sockets, SocketMetrics::default());
        for (highest, one) in self.sockets.iter_mut().zip(&other.sockets) {
            highest.raise(one);
        }
    }
}

impl Sample {
    pub(crate) fn is_empty(&self) -> bool {
        self.accepted.is_none()
            && self.cpu.is_none()
            && self.gauges.is_none()
            && self.scheduling.is_none()
    }
}

/// Takes samples of servers and machine.
pub(crate) struct SampleReader {
    servers: Vec<Server>,
    system: SystemSources,
    /// Where the kernel reports threads that exit.
    exits: Option<ThreadExits>,
}

struct Server {
    name: String,
    watched: Watched,
    counters: ServerCounterReader,
}

impl SampleReader {
    pub(crate) fn new(servers: WatchedServers, system: SystemSources) -> Self {
        let descriptors = Descriptors::of_this_process();
        let servers = servers.into_iter().map(|(name, watched)| Server {
            name,
            watched,
            counters: ServerCounterReader::new(descriptors.clone()),
        });
        Self {
            servers: servers.collect(),
            system,
            exits: ThreadExits::open(),
        }
    }

    pub(crate) fn server_names(&self) -> Vec<String> {
        self.servers.iter().map(|one| one.name.clone()).collect()
    }

    pub(crate) fn namespaces(&self) -> &[Namespace] {
        &self.system.namespaces
    }

    /// Accept queues of the servers that were full since the counter was started.
    pub(crate) fn accept_queues(&self, counter: &mut AcceptQueueCounter) -> Vec<AcceptQueue> {
        let servers = self.servers.iter();
        let pids = servers.map(|one| (one.name.as_str(), one.watched.pids()));
        counter.of_servers(&pids.collect::<Vec<_>>())
    }

    /// Files that reading the servers' CPU time opens, at least.
    pub(crate) fn cpu_files(&self) -> usize {
        self.watched().map(Watched::files).sum()
    }

    fn watched(&self) -> impl Iterator<Item = &Watched> {
        self.servers.iter().map(|server| &server.watched)
    }

    /// Parts for which the exact moment matters most come first.
    pub(crate) fn read(&mut self, parts: Parts) -> Sample {
        let before_ns = net::os::thread_cpu_ns();
        let mut sample = Sample {
            unix_s: wall_ns() as f64 / 1e9,
            at_ns: monotonic_ns(),
            ..Sample::default()
        };
        let namespaces = &self.system.namespaces;
        if parts.cpu {
            sample.cpu = Some(self.watched().map(Watched::cpu).collect());
        }
        if parts.accepted {
            sample.accepted = namespaces.iter().map(Namespace::accepted).sum();
        }
        if parts.scheduling {
            let scheduling = Scheduling::read(self.watched(), namespaces);
            sample.scheduling = Some(Box::new(scheduling));
        }
        if parts.counters {
            let counters = self.read_counters();
            let gauges = counters.servers.iter().map(ServerCounters::gauges);
            sample.gauges = Some(Gauges::of(gauges.collect(), &counters.networks));
            sample.counters = Some(Box::new(counters));
        } else if parts.gauges {
            // Where servers have many threads this costs a small part of what counters do.
            let servers = self.servers.iter_mut();
            let gauges = servers.map(|one| one.counters.read_gauges(&one.watched));
            sample.gauges = Some(Gauges::of(gauges.collect(), &self.networks()));
        }
        if let Some(scheduling) = sample.scheduling.as_mut().filter(|_| parts.ports) {
            scheduling.read_ports(&self.system.namespaces);
        }
        let cost_ns = net::os::thread_cpu_ns().saturating_sub(before_ns);
        sample.cost = Duration::from_nanos(cost_ns);
        sample
    }

    fn read_counters(&mut self) -> Counters {
        let exits = self.exits.as_mut().map(ThreadExits::take);
        let servers = self.servers.iter_mut();
        let read = servers.map(|one| one.counters.read(&one.watched, exits.as_deref()));
        Counters {
            servers: read.collect(),
            system: SystemCounters::read(&self.system),
            networks: self.networks(),
        }
    }

    fn networks(&self) -> Vec<NetworkCounters> {
        let namespaces = self.system.namespaces.iter();
        namespaces.map(NetworkCounters::read).collect()
    }
}
