//! The hosts of a run and the servers that run on them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use agent::wire::{Answer, Order, OtherServer, StartServer};
use agent::{AgentError, AgentHandle};
use experiment::{Experiment, ResolvedCondition};
use hosts::{Hosts, HostsError, HostsSpec, TopologyOptions};

use crate::copies::original;
use crate::{CpuPlacement, RunError};

/// A host from which servers can be sampled: its name, the servers of its own agent, and those of
/// other agents on its machine.
pub(crate) type View = (Option<String>, Vec<String>, Vec<OtherServer>);

pub(crate) struct Testbed {
    pub(crate) hosts: Hosts,
    /// A second agent for loads, with its host.
    loader: Option<(Option<String>, Box<dyn AgentHandle>)>,
    /// The started servers, with their hosts.
    running: Vec<(String, OtherServer)>,
}

/// The hosts that an experiment needs.
pub(crate) fn hosts_spec(
    experiment: &Experiment,
    placement: &CpuPlacement,
    seed: u64,
) -> HostsSpec {
    if experiment.hosts_are_machines() {
        return HostsSpec::Machines(experiment.hosts.clone());
    }
    if !experiment.hosts_are_apart() {
        return HostsSpec::Local;
    }
    // This thread is bound off the load's CPUs, so its own affinity is too small.
    let all = [placement.load_cpus.as_slice(), &placement.server_cpus].concat();
    let of_a_host = |cpu: &u32| experiment.hosts.iter().any(|host| host.cpus.contains(cpu));
    let mut link_cpus: Vec<u32> = all.iter().copied().filter(|cpu| !of_a_host(cpu)).collect();
    if link_cpus.is_empty() {
        link_cpus = all;
    }
    HostsSpec::Namespaces {
        hosts: experiment.hosts.clone(),
        options: TopologyOptions {
            kind: None,
            seed,
            link_cpus,
        },
    }
}

impl Testbed {
    pub(crate) fn of(hosts: Hosts) -> Self {
        Self {
            hosts,
            loader: None,
            running: Vec::new(),
        }
    }

    /// Returns the hosts, to be reopened.
    pub(crate) fn into_hosts(self) -> Hosts {
        self.hosts
    }

    pub(crate) fn agent(&mut self, host: Option<&str>) -> Result<&mut dyn AgentHandle, AgentError> {
        self.hosts.agent(host)
    }

    pub(crate) fn start_server(
        &mut self,
        host: Option<&str>,
        order: StartServer,
    ) -> Result<(), AgentError> {
        let server = order.server.clone();
        if let Answer::Started { pid, group } = self.agent(host)?.ask(&Order::Start(order))? {
            self.running.retain(|(_, other)| other.server != server);
            let other = OtherServer {
                server,
                pid,
                also: Vec::new(),
                group,
            };
            self.running.push((self.hosts.key(host), other));
        }
        Ok(())
    }

    /// The address of a server, as seen from the host `from`.
    pub(crate) fn address_of(
        &self,
        experiment: &Experiment,
        from: Option<&str>,
        server: &str,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Option<SocketAddr> {
        let port = addresses.get(server)?.port();
        let host = experiment.server(original(server))?.host.as_deref();
        Some(SocketAddr::new(self.hosts.address(from, host), port))
    }

    /// A second agent on a host, for loads, so that the first can take other orders meanwhile. It
    /// is returned by [`Self::put_loader`].
    pub(crate) fn take_loader(
        &mut self,
        host: Option<&str>,
    ) -> Result<Box<dyn AgentHandle>, AgentError> {
        match self.loader.take() {
            Some((at, agent)) if at.as_deref() == host => Ok(agent),
            _ => self.hosts.at(host)?.start_agent(),
        }
    }

    pub(crate) fn put_loader(&mut self, host: Option<&str>, agent: Box<dyn AgentHandle>) {
        self.loader = Some((host.map(str::to_owned), agent));
    }

    /// Running servers, as an agent samples those that it has not started.
    pub(crate) fn as_others(&self, wanted: impl Fn(&str) -> bool) -> Vec<OtherServer> {
        let all = self.running.iter().map(|(_, one)| one);
        all.filter(|one| wanted(&one.server)).cloned().collect()
    }

    /// A condition's servers that a host's agent has started, and those of other agents on its
    /// machine.
    pub(crate) fn watched(
        &self,
        from: Option<&str>,
        resolved: &ResolvedCondition,
    ) -> (Vec<String>, Vec<OtherServer>) {
        let from_key = self.hosts.key(from);
        let (own, others): (Vec<_>, Vec<_>) = self
            .running
            .iter()
            .filter(|(_, one)| resolved.servers.iter().any(|s| s.name == one.server))
            .cloned()
            .partition(|(host, _)| *host == from_key);
        let own = own.into_iter().map(|(_, one)| one.server).collect();
        // Servers of another machine are sampled there.
        let others = others
            .into_iter()
            .filter(|(host, _)| self.hosts.share_a_machine(from, Some(host)));
        (own, others.map(|(_, one)| one).collect())
    }

    /// The hosts from which all servers of a condition can be sampled.
    pub(crate) fn views(&self, from: Option<&str>, resolved: &ResolvedCondition) -> Vec<View> {
        let mut hosts = vec![from.map(str::to_owned)];
        hosts.extend(self.hosts_apart_from(from).into_iter().map(Some));
        let view = |host: Option<String>| {
            let (servers, others) = self.watched(host.as_deref(), resolved);
            (host, servers, others)
        };
        let views = hosts.into_iter().map(view);
        views
            .filter(|(_, servers, others)| !servers.is_empty() || !others.is_empty())
            .collect()
    }

    /// Hosts with servers on other machines than that of the load.
    pub(crate) fn hosts_apart_from(&self, from: Option<&str>) -> BTreeSet<String> {
        let hosts = self.running.iter().map(|(host, _)| host);
        hosts
            .filter(|host| !self.hosts.share_a_machine(from, Some(host)))
            .cloned()
            .collect()
    }
}

impl From<HostsError> for RunError {
    fn from(error: HostsError) -> Self {
        use hosts::TopologyError;
        match error {
            HostsError::Agent(source)
            | HostsError::Topology(TopologyError::Agent { source, .. }) => RunError::Agent(source),
            HostsError::Topology(other) => RunError::Topology(other),
            HostsError::Machine { host, why } => RunError::Host { host, why },
        }
    }
}
