//! Samples of servers on other machines than that of the load.

use std::collections::BTreeSet;

use agent::wire::{Answer, Order};
use agent::{AgentError, Measured, Spans};

use crate::testbed::Testbed;

/// Machines that sample their servers while a load is made on another.
pub(crate) struct RemoteSampling {
    /// How far the load's clock was ahead of this machine's at the start.
    load_ahead_ns: i64,
    /// Hosts, and how far their clocks were ahead.
    hosts: Vec<(String, i64)>,
}

impl Testbed {
    /// Starts sampling on all machines but the load's; `None` if there are no others.
    pub(crate) fn start_remote_sampling(
        &mut self,
        from: Option<&str>,
    ) -> Result<Option<RemoteSampling>, AgentError> {
        let remote = self.hosts_apart_from(from);
        if remote.is_empty() {
            return Ok(None);
        }
        let load_ahead_ns = self.agent(from)?.clock()?.monotonic_ahead_ns;
        let mut hosts = Vec::new();
        for host in remote {
            let agent = self.agent(Some(&host))?;
            let ahead_ns = agent.clock()?.monotonic_ahead_ns;
            agent.ask(&Order::StartSampling)?;
            hosts.push((host, ahead_ns));
        }
        Ok(Some(RemoteSampling {
            load_ahead_ns,
            hosts,
        }))
    }

    /// Stops sampling, and adds what the other machines measured to each reading.
    pub(crate) fn add_remote_samples(
        &mut self,
        from: Option<&str>,
        remote: Option<RemoteSampling>,
        readings: &mut [Measured],
    ) -> Result<(), AgentError> {
        let Some(remote) = remote else {
            return Ok(());
        };
        // Clocks run at slightly different rates: the middle of before and after counts.
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
            let Answer::Measured { readings: measured } = agent.ask(&order)? else {
                return Err(AgentError::Lost("it has sampled nothing".into()));
            };
            let network = agent.network().to_owned();
            let new_machine = machines.insert(machine_of(&network).to_owned());
            let new_network = networks.insert(network);
            for (reading, there) in readings.iter_mut().zip(measured) {
                add(reading, there, &host, new_network, new_machine);
            }
        }
        Ok(())
    }
}

/// Adds what another machine measured; its network and the machine itself only where nothing else
/// has counted them.
fn add(reading: &mut Measured, there: Measured, host: &str, new_network: bool, new_machine: bool) {
    reading.cpu_s.extend(there.cpu_s);
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
    use readings::{NetworkMetrics, ServerMetrics, SystemMetrics};
    use std::collections::BTreeMap;

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
        // What one machine cannot count is unknown.
        add(&mut all, measured("d", 0.0, None), "z", true, false);
        assert_eq!(all.accepted, None);
        // Windows that were not sampled at the load stay so.
        let mut unsampled = Measured::default();
        add(&mut unsampled, measured("b", 2.0, Some(7)), "x", true, true);
        assert!(unsampled.metrics.is_none() && unsampled.cpu_s["b"] == 2.0);
    }
}
