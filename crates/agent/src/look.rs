//! A look at servers and at what is around them, and what happened between two.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use readings::{Probed, SocketsProbed};

use super::counts::{Counter, Counts};
use super::exits::Exits;
use super::processes::Peak;
use super::run_times::Descriptors;
use super::system_counters::{SystemCounters, SystemSources};
use super::watch::Watched;

/// What the kernel had counted at one moment.
#[derive(Clone)]
pub(super) struct Look {
    unix_s: f64,
    at_ns: u64,
    servers: Vec<Counts>,
    around: SystemCounters,
}

impl Look {
    /// When it was, by the clock that nobody sets, ns.
    pub(super) fn at_ns(&self) -> u64 {
        self.at_ns
    }
}

/// Looks at servers.
pub(super) struct Looker<'a> {
    servers: Vec<(&'a str, &'a Watched<'a>, Counter)>,
    around: SystemSources,
    /// Where the kernel tells of threads that end.
    exits: Option<Exits>,
}

impl<'a> Looker<'a> {
    pub(super) fn new(servers: &'a BTreeMap<String, Watched<'a>>, around: SystemSources) -> Self {
        let descriptors = Descriptors::of_this_process();
        let servers = servers.iter().map(|(name, watched)| {
            let counter = Counter::new(descriptors.clone());
            (name.as_str(), watched, counter)
        });
        Self {
            servers: servers.collect(),
            around,
            exits: Exits::open(),
        }
    }

    /// Looks; also what that took of a CPU.
    pub(super) fn look(&mut self) -> (Look, Duration) {
        let before_ns = net::os::thread_cpu_ns();
        let exits = self.exits.as_mut().map(Exits::take);
        let look = Look {
            unix_s: unix_s(),
            at_ns: net::os::now_ns(),
            servers: self
                .servers
                .iter_mut()
                .map(|(_, watched, counter)| counter.look(watched, exits.as_deref()))
                .collect(),
            around: self.around.look(),
        };
        let cost = net::os::thread_cpu_ns().saturating_sub(before_ns);
        (look, Duration::from_nanos(cost))
    }

    /// Looks only at what goes up and down, and notes it; also what that took of a CPU. Where
    /// servers have many threads that takes a small part of what a look does.
    pub(super) fn glance(&mut self, peaks: &mut Peaks) -> Duration {
        let before_ns = net::os::thread_cpu_ns();
        let servers = self.servers.iter_mut();
        let seen: Vec<Peak> = servers
            .map(|(_, watched, counter)| counter.glance(watched))
            .collect();
        peaks.add(&seen, &self.around.look());
        Duration::from_nanos(net::os::thread_cpu_ns().saturating_sub(before_ns))
    }

    /// What happened between two looks, with what looks in between have seen.
    pub(super) fn between(&self, before: &Look, after: &Look, within: &Peaks) -> Probed {
        let (machine, mut networks) = self.around.between(&before.around, &after.around);
        for (network, sockets) in networks.iter_mut().zip(&within.sockets) {
            network.sockets_max.raise(sockets);
        }
        let mut servers = BTreeMap::new();
        for (at, (name, _, _)) in self.servers.iter().enumerate() {
            let mut seen = after.servers[at].since(&before.servers[at]);
            if let Some(peak) = within.servers.get(at) {
                seen.rss_bytes_max = seen.rss_bytes_max.max(peak.rss_bytes);
                seen.processes_max = seen.processes_max.max(peak.processes);
                seen.threads_max = seen.threads_max.max(peak.threads);
            }
            servers.insert((*name).to_owned(), seen);
        }
        Probed {
            from_unix_s: before.unix_s,
            to_unix_s: after.unix_s,
            looked_s: after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9,
            looks: 2 + within.looks,
            servers,
            machine,
            networks,
            ..Probed::default()
        }
    }
}

/// What looks between two others saw that their ends do not show: the most of what goes up and
/// down.
#[derive(Default)]
pub(super) struct Peaks {
    servers: Vec<Peak>,
    sockets: Vec<SocketsProbed>,
    looks: u64,
}

impl Peaks {
    pub(super) fn note(&mut self, look: &Look) {
        let seen: Vec<Peak> = look.servers.iter().map(Counts::peak).collect();
        self.add(&seen, &look.around);
    }

    fn add(&mut self, seen: &[Peak], around: &SystemCounters) {
        self.looks += 1;
        self.servers.resize(seen.len(), Peak::default());
        for (peak, seen) in self.servers.iter_mut().zip(seen) {
            peak.rss_bytes = peak.rss_bytes.max(seen.rss_bytes);
            peak.processes = peak.processes.max(seen.processes);
            peak.threads = peak.threads.max(seen.threads);
        }
        self.sockets
            .resize(around.networks.len(), SocketsProbed::default());
        for (peak, network) in self.sockets.iter_mut().zip(&around.networks) {
            peak.raise(&network.sockets);
        }
    }
}

fn unix_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |since| since.as_secs_f64())
}
