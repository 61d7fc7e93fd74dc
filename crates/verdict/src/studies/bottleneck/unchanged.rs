//! The loads without a change, taken together.

use std::collections::BTreeSet;

use readings::{BottleneckReading, Change, Probe, ServerSample};

use super::effects::of_change;
use super::evidence::{MachineUse, Refused, TakenPorts, Threads};

/// From this share of a CPU on a thread counts as full: the scheduler and the hypervisor take the
/// rest.
pub(super) const FULL: f64 = 0.85;
/// From this many new upstream connections per request on they count as a bottleneck.
pub(super) const UPSTREAM_SHARE: f64 = 0.1;

/// The loads without a change, taken together.
pub(super) struct Unchanged<'a> {
    pub(super) reading: &'a BottleneckReading,
    pub(super) probes: Vec<&'a Probe>,
}

impl<'a> Unchanged<'a> {
    pub(super) fn of(reading: &'a BottleneckReading) -> Self {
        Self {
            reading,
            probes: of_change(reading, Change::None).collect(),
        }
    }

    pub(super) fn mean(&self, of: impl Fn(&Probe) -> f64) -> f64 {
        let sum: f64 = self.probes.iter().map(|probe| of(probe)).sum();
        sum / self.probes.len().max(1) as f64
    }

    pub(super) fn sum(&self, of: impl Fn(&Probe) -> u64) -> u64 {
        self.probes.iter().map(|probe| of(probe)).sum()
    }

    pub(super) fn client_busiest(&self) -> f64 {
        self.mean(|probe| probe.client.iter().copied().fold(0.0, f64::max))
    }

    /// How much of the time the client's busiest thread wanted a CPU.
    pub(super) fn client_wanted(&self) -> f64 {
        self.mean(|probe| probe.seen.client_wanted)
            .max(self.client_busiest())
    }

    /// The use of CPUs on each machine, the load's first; without those of which it is not known
    /// which CPUs client and servers have.
    pub(super) fn machines(&self) -> Vec<MachineUse> {
        let reading = self.reading;
        let mut machines = Vec::new();
        // Where all servers are on other machines, the load's has only the client.
        let are_known = !reading.server_cpus.is_empty() || !reading.hosts.is_empty();
        if !reading.client_cpus.is_empty() && are_known {
            let cpus = [&reading.client_cpus[..], &reading.server_cpus].concat();
            let client = self.mean(|probe| probe.client.iter().sum::<f64>());
            machines.extend(self.machine(None, cpus, client));
        }
        let hosts: BTreeSet<&str> = reading.hosts.values().map(String::as_str).collect();
        for host in hosts {
            let servers = reading.cpus_of_servers.iter();
            let there = servers.filter(|(server, _)| reading.apart(server) == Some(host));
            let cpus = there.flat_map(|(_, cpus)| cpus).copied().collect();
            machines.extend(self.machine(Some(host), cpus, 0.0));
        }
        machines
    }

    /// The use of these CPUs; `None` where no sample has them.
    fn machine(
        &self,
        host: Option<&'a str>,
        mut cpus: Vec<u32>,
        client: f64,
    ) -> Option<MachineUse> {
        cpus.sort_unstable();
        cpus.dedup();
        let count = cpus.len() as f64;
        let all = |probe: &'a Probe| match host {
            None => Some(&probe.seen.cpus),
            Some(host) => probe.seen.other_cpus.get(host),
        };
        if cpus.is_empty() || self.probes.iter().any(|probe| all(probe).is_none()) {
            return None;
        }
        let busy: f64 = self
            .probes
            .iter()
            .flat_map(|probe| all(probe))
            .flatten()
            .filter(|one| cpus.contains(&one.cpu))
            .map(|one| one.busy)
            .sum();
        let servers = self.server_names().into_iter();
        let there = servers.filter(|server| self.reading.apart(server) == host);
        let own: f64 = client + there.map(|server| self.server(server)).sum::<f64>();
        Some(MachineUse {
            host: host.map(str::to_owned),
            busy: busy / self.probes.len().max(1) as f64 / count,
            own: own / count,
        })
    }

    pub(super) fn server_names(&self) -> Vec<&'a String> {
        let first = self.probes.first();
        first.map_or_else(Vec::new, |probe| probe.seen.servers.keys().collect())
    }

    pub(super) fn server(&self, name: &str) -> f64 {
        self.mean(|probe| probe.seen.servers.get(name).map_or(0.0, |one| one.cpus))
    }

    pub(super) fn threads(&self, name: &str) -> Threads {
        self.threads_of(|probe| probe.seen.servers.get(name))
    }

    /// The threads that carry the packets of links; nothing where the kernel does.
    pub(super) fn links(&self) -> Option<Threads> {
        let are_sampled = self.probes.iter().any(|probe| probe.links.is_some());
        are_sampled.then(|| self.threads_of(|probe| probe.links.as_ref()))
    }

    fn threads_of(&self, sample: impl Fn(&Probe) -> Option<&ServerSample>) -> Threads {
        let nth = |n: usize, of: fn(&ServerSample) -> &Vec<f64>| {
            self.mean(|probe| {
                let one = sample(probe);
                one.and_then(|one| of(one).get(n)).copied().unwrap_or(0.0)
            })
        };
        let samples = self.probes.iter().filter_map(|probe| sample(probe));
        let count = samples.map(|one| one.threads).max();
        let had = nth(0, |server| &server.busiest);
        Threads {
            had,
            wanted: nth(0, |server| &server.wanted).max(had),
            second_had: nth(1, |server| &server.busiest),
            count: count.unwrap_or(0),
        }
    }

    /// The client's CPUs that servers may use, too, and how busy they were; nothing where there
    /// are none.
    pub(super) fn shared_cpus(&self) -> Option<(Vec<u32>, f64)> {
        let shared: Vec<u32> = self
            .reading
            .client_cpus
            .iter()
            .copied()
            .filter(|cpu| self.reading.server_cpus.contains(cpu))
            .collect();
        let busy = |cpu: &u32| {
            self.mean(|probe| {
                let one = probe.seen.cpus.iter().find(|one| one.cpu == *cpu);
                one.map_or(0.0, |one| one.busy)
            })
        };
        let busiest = shared.iter().map(busy).fold(0.0, f64::max);
        (!shared.is_empty()).then_some((shared, busiest))
    }

    /// The ports of the network namespace in which the greatest share of them is taken; nothing
    /// where that is not known.
    pub(super) fn taken_ports(&self) -> Option<TakenPorts> {
        let mut fullest: Option<TakenPorts> = None;
        for (number, ports) in self.probes.first()?.seen.ports.iter().enumerate() {
            let of_servers = ports.servers.iter();
            let of_servers = of_servers.filter_map(|one| self.reading.server_ports.get(one));
            let (range, server) = match number {
                // With keep-alive, sockets in TIME_WAIT are other programs'.
                0 if self.opens_connections() => (self.reading.ports, None),
                0 => (None, None),
                _ => (of_servers.min().copied(), ports.servers.first().cloned()),
            };
            let Some(range) = range.filter(|range| *range > 0) else {
                continue;
            };
            // TIME_WAIT lasts a minute, so the last load has the most.
            let waits = |probe: &&Probe| probe.seen.ports.get(number).map(|one| one.waiting);
            let waiting = self.probes.iter().filter_map(waits).max().unwrap_or(0);
            // After a load with more ports, some of those wait, too.
            let waiting = waiting.min(u64::from(range));
            let taken = TakenPorts {
                server,
                waiting,
                range,
            };
            if fullest
                .as_ref()
                .is_none_or(|known| known.share() < taken.share())
            {
                fullest = Some(taken);
            }
        }
        fullest
    }

    /// Connections that were dropped while they were opened, for the accept queue was full.
    pub(super) fn found_full(&self) -> u64 {
        self.sum(Probe::accept_queue_overflows)
    }

    pub(super) fn with(&self, change: Change, refused: impl Fn(&Probe) -> u64) -> Refused {
        let probes: Vec<&Probe> = of_change(self.reading, change).collect();
        Refused::of(&probes, refused)
    }

    /// Whether load or servers open connections all the time.
    pub(super) fn opens_connections(&self) -> bool {
        !self.reading.keepalive || self.upstream_per_request() >= UPSTREAM_SHARE
    }

    /// Connections accepted beyond the load's own, per request; 0 where no server of the path is
    /// behind another one: what was accepted is then other programs' affair.
    pub(super) fn upstream_per_request(&self) -> f64 {
        if self.server_names().len() == 1 {
            return 0.0;
        }
        self.mean(|probe| {
            let answers = probe.requests_per_s * probe.seen.duration_s;
            // The load's own in the time that was looked at, by its requests.
            let all = probe.requests_all.max(1) as f64;
            let opened = probe.connects.saturating_sub(u64::from(probe.connections)) as f64;
            let own = opened * (answers / all).min(1.0);
            (probe.seen.kernel.accepted as f64 - own).max(0.0) / answers.max(1.0)
        })
    }
}
