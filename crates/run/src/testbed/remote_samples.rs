//! Samples of servers on other machines than that of the load.

use std::collections::{BTreeMap, BTreeSet};

use agent::wire::{Answer, Order};
use agent::{AgentError, Measured, Spans};
use experiment::ResolvedCondition;
use readings::BottleneckSample;

use crate::testbed::Testbed;

/// Machines that sample their servers while a load is made on another.
pub(crate) struct RemoteSampling {
    /// How far the load's clock was ahead of this machine's at the start.
    load_ahead_ns: i64,
    /// Hosts, and how far their clocks were ahead.
    hosts: Vec<(String, i64)>,
}

/// Scheduling of servers on another machine.
pub(crate) struct RemoteScheduling {
    host: String,
    new_network: bool,
    new_machine: bool,
    seen: BottleneckSample,
}

impl Testbed {
    /// Starts sampling on all machines but the load's, with or without scheduling; `None` if there
    /// are no others.
    pub(crate) fn start_remote_sampling(
        &mut self,
        from: Option<&str>,
        scheduling: bool,
    ) -> Result<Option<RemoteSampling>, AgentError> {
        let hosts = self.hosts_apart_from(from);
        self.start_sampling(from, hosts, None, scheduling)
    }

    /// Starts sampling on all machines that run these servers, even on the load's. It samples only
    /// those of the servers for which `is_sampled` is true.
    pub(crate) fn start_sampling_of(
        &mut self,
        from: Option<&str>,
        servers: &BTreeSet<&str>,
        is_sampled: impl Fn(&str) -> bool,
    ) -> Result<Option<RemoteSampling>, AgentError> {
        let hosts = self.hosts_of(|server| servers.contains(server));
        let sampled = servers.iter().filter(|server| is_sampled(server));
        let sampled = sampled.map(|server| (*server).to_owned()).collect();
        self.start_sampling(from, hosts, Some(sampled), false)
    }

    fn start_sampling(
        &mut self,
        from: Option<&str>,
        remote: BTreeSet<String>,
        servers: Option<BTreeSet<String>>,
        scheduling: bool,
    ) -> Result<Option<RemoteSampling>, AgentError> {
        if remote.is_empty() {
            return Ok(None);
        }
        let load_ahead_ns = self.agent(from)?.clock()?.monotonic_ahead_ns;
        let mut hosts = Vec::new();
        for host in remote {
            let agent = self.agent(Some(&host))?;
            let ahead_ns = agent.clock()?.monotonic_ahead_ns;
            agent.ask(&Order::StartSampling {
                servers: servers.clone(),
                scheduling,
            })?;
            hosts.push((host, ahead_ns));
        }
        Ok(Some(RemoteSampling {
            load_ahead_ns,
            hosts,
        }))
    }

    /// Stops sampling, and adds what the other machines measured to each reading. Returns
    /// scheduling there, where it was sampled.
    pub(crate) fn add_remote_samples(
        &mut self,
        from: Option<&str>,
        remote: Option<RemoteSampling>,
        readings: &mut [Measured],
    ) -> Result<Vec<RemoteScheduling>, AgentError> {
        let mut scheduling = Vec::new();
        let Some(remote) = remote else {
            return Ok(scheduling);
        };
        // Clocks run at slightly different rates, so the mean of start and end is used.
        let middle = |before: i64, after: i64| before + (after - before) / 2;
        let agent = self.agent(from)?;
        let load_ahead_ns = middle(remote.load_ahead_ns, agent.clock()?.monotonic_ahead_ns);
        let mut networks = BTreeSet::from([agent.network().to_owned()]);
        let mut machines = BTreeSet::from([machine_of(agent.network()).to_owned()]);
        let spans: Vec<Spans> = readings.iter().map(|one| one.spans.clone()).collect();
        for (host, before_ns) in remote.hosts {
            let agent = self.agent(Some(&host))?;
            let ahead_ns = middle(before_ns, agent.clock()?.monotonic_ahead_ns) - load_ahead_ns;
            let readings_there = spans.iter().map(|one| one.shifted(ahead_ns)).collect();
            let order = Order::StopSampling {
                readings: readings_there,
            };
            let Answer::Measured {
                readings: measured,
                seen,
            } = agent.ask(&order)?
            else {
                return Err(AgentError::Lost("it has sampled nothing".into()));
            };
            let network = agent.network().to_owned();
            let new_machine = machines.insert(machine_of(&network).to_owned());
            let new_network = networks.insert(network);
            for (reading, there) in readings.iter_mut().zip(measured) {
                add(reading, there, &host, new_network, new_machine);
            }
            scheduling.extend(seen.map(|seen| RemoteScheduling {
                host,
                new_network,
                new_machine,
                seen: *seen,
            }));
        }
        Ok(scheduling)
    }

    /// For each server of a condition, the host that stands for its machine. If several hosts share
    /// a machine, that is the load's host if it is one of them, otherwise the first by name.
    /// Machines are told apart by their kernels, as two hosts may be containers of one machine.
    pub(crate) fn machines_of(
        &mut self,
        resolved: &ResolvedCondition,
    ) -> Result<BTreeMap<String, String>, AgentError> {
        let load = self.hosts.key(resolved.load.host.as_deref());
        let hosts = resolved.servers.iter().map(|server| {
            let host = self.hosts.key(server.host.as_deref());
            (server.name.clone(), host)
        });
        let mut hosts: BTreeMap<String, String> = hosts.collect();
        let mut names: Vec<String> = hosts.values().cloned().collect();
        names.sort_unstable();
        names.insert(0, load);
        let mut first = BTreeMap::new();
        for name in names {
            let network = self.agent(Some(&name))?.network().to_owned();
            let machine = machine_of(&network).to_owned();
            let known = first.entry(machine).or_insert_with(|| name.clone()).clone();
            let same = hosts.values_mut().filter(|host| **host == name);
            same.for_each(|host| host.clone_from(&known));
        }
        Ok(hosts)
    }
}

impl RemoteScheduling {
    /// Adds it to what the load's agent sampled; a network and a machine count once.
    pub(crate) fn add_to(self, all: &mut BottleneckSample) {
        let there = self.seen;
        all.servers.extend(there.servers);
        if self.new_machine {
            all.other_cpus.insert(self.host, there.cpus);
        }
        if self.new_network {
            let (sum, one) = (&mut all.kernel, there.kernel);
            sum.accepted += one.accepted;
            sum.listen_overflows += one.listen_overflows;
            sum.listen_drops += one.listen_drops;
            sum.retransmits += one.retransmits;
            sum.segments += one.segments;
            sum.time_wait += one.time_wait;
            all.ports.extend(there.ports);
        }
    }
}

/// Adds what another machine measured; its network and the machine itself only where nothing else
/// has counted them.
fn add(reading: &mut Measured, there: Measured, host: &str, new_network: bool, new_machine: bool) {
    reading.cpu_s.extend(there.cpu_s);
    reading.cpu_in_ticks.extend(there.cpu_in_ticks);
    let queues = there.accept_queues.into_iter();
    // Overflows without a server are those of a whole network, and taken once for each network.
    let queues = queues.filter(|queue| new_network || queue.server.is_some());
    reading.accept_queues.extend(queues);
    if new_network {
        let accepted = reading.accepted.zip(there.accepted);
        reading.accepted = accepted.map(|(here, there)| here + there);
    }
    let (Some(metrics), Some(there)) = (&mut reading.metrics, there.metrics) else {
        return;
    };
    metrics.looks += there.looks;
    metrics.cpu_s += there.cpu_s;
    metrics.servers.extend(there.servers);
    if new_network {
        metrics.networks.extend(there.networks);
    }
    if new_machine {
        metrics.others.insert(host.to_owned(), there.machine);
    }
}

/// The part of a network's name that identifies its machine.
fn machine_of(network: &str) -> &str {
    network
        .split_once('/')
        .map_or(network, |(machine, _)| machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::{CpuSample, KernelSample, NetworkMetrics, ServerMetrics, SystemMetrics};

    fn measured(server: &str, cpu_s: f64, accepted: Option<u64>) -> Measured {
        let metrics = SystemMetrics {
            looks: 2,
            servers: BTreeMap::from([(server.to_owned(), ServerMetrics::default())]),
            networks: vec![NetworkMetrics::default()],
            ..SystemMetrics::default()
        };
        Measured {
            cpu_s: BTreeMap::from([(server.to_owned(), cpu_s)]),
            accepted,
            metrics: Some(metrics),
            ..Measured::default()
        }
    }

    #[test]
    fn a_network_and_a_machine_count_once() {
        let mut all = measured("a", 1.0, Some(5));
        add(&mut all, measured("b", 2.0, Some(7)), "x", true, true);
        add(&mut all, measured("c", 3.0, Some(9)), "y", false, false);
        assert_eq!(all.accepted, Some(12));
        assert_eq!(all.cpu_s.values().sum::<f64>(), 6.0);
        let metrics = all.metrics.as_ref().unwrap();
        assert_eq!((metrics.looks, metrics.servers.len()), (6, 3));
        assert_eq!((metrics.networks.len(), metrics.others.len()), (2, 1));
        // If one machine cannot count connections, the sum is unknown.
        add(&mut all, measured("d", 0.0, None), "z", true, false);
        assert_eq!(all.accepted, None);
        // A window without metrics from the load's machine gets none from another machine.
        let mut unsampled = Measured::default();
        add(&mut unsampled, measured("b", 2.0, Some(7)), "x", true, true);
        assert!(unsampled.metrics.is_none() && unsampled.cpu_s["b"] == 2.0);
    }

    #[test]
    fn scheduling_of_two_hosts_on_one_machine_counts_its_cpus_once() {
        let seen = |server: &str| BottleneckSample {
            servers: BTreeMap::from([(server.to_owned(), readings::ServerSample::default())]),
            cpus: vec![CpuSample { cpu: 0, busy: 0.5 }],
            kernel: KernelSample {
                listen_drops: 3,
                ..KernelSample::default()
            },
            ports: vec![readings::PortsSample::default()],
            ..BottleneckSample::default()
        };
        let mut all = seen("a");
        for (host, server, is_new) in [("x", "b", true), ("y", "c", false)] {
            let there = RemoteScheduling {
                host: host.to_owned(),
                new_network: is_new,
                new_machine: is_new,
                seen: seen(server),
            };
            there.add_to(&mut all);
        }
        assert_eq!(all.servers.len(), 3);
        assert_eq!(all.other_cpus.keys().collect::<Vec<_>>(), ["x"]);
        assert_eq!((all.kernel.listen_drops, all.ports.len()), (6, 2));
        assert_eq!(all.cpus.len(), 1);
    }
}
