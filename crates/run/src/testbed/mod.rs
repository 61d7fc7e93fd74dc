//! The hosts of a run and the servers that run on them.

pub(crate) mod authority;
mod back_ends;
pub(crate) mod chosen_addresses;
pub(crate) mod copies;
pub(crate) mod cpu_placement;
pub(crate) mod outside;
pub(crate) mod path_limits;
mod ready_subject;
mod remote_programs;
mod remote_samples;
mod started_server;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use agent::wire::{Answer, Order, OtherServer, StartServer};
use agent::{AgentError, AgentHandle};
use experiment::{Experiment, ResolvedCondition};
use hosts::{Hosts, HostsSpec, TopologyOptions, Unconfirmed};
use readings::InstructionScope;

use crate::testbed::copies::original;
use crate::testbed::cpu_placement::CpuPlacement;

pub(crate) use back_ends::BackEnds;
pub(crate) use ready_subject::{ReadySubject, running_behind};
pub(crate) use started_server::{StartedServer, to_write};

/// A host from which servers can be sampled: its name, the servers of its own agent, and those of
/// other agents on its machine.
pub(crate) type View = (Option<String>, Vec<String>, Vec<OtherServer>);

pub(crate) struct Testbed {
    pub(crate) hosts: Hosts,
    /// A second agent for loads, with its host.
    loader: Option<(Option<String>, Box<dyn AgentHandle>)>,
    /// Further agents that make loads at the same time, by host and number; a host may have
    /// several.
    partners: BTreeMap<(Option<String>, usize), Box<dyn AgentHandle>>,
    /// The started servers, with their hosts.
    running: Vec<(String, OtherServer)>,
    /// What commands have told of versions, by host and command.
    versions: BTreeMap<(Option<String>, Vec<String>), Option<String>>,
    pub(crate) counting_support: CountingSupport,
}

/// What is known of counting on the hosts of a run.
#[derive(Debug, Default)]
pub(crate) struct CountingSupport {
    /// What each host counts, by its key.
    pub(crate) scopes: BTreeMap<String, Option<InstructionScope>>,
    /// Whether counters of servers could not be opened: then it is not tried again.
    pub(crate) are_refused: bool,
}

/// The loss of an agent that answers what was not asked.
pub(crate) fn unexpected(answer: &Answer) -> AgentError {
    AgentError::Lost(format!("unexpected answer: {answer:?}"))
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
            partners: BTreeMap::new(),
            running: Vec::new(),
            versions: BTreeMap::new(),
            counting_support: CountingSupport::default(),
        }
    }

    /// Returns the hosts, to be reopened. They wait for the end of agents for loads that do not
    /// confirm it, since those may go on.
    pub(crate) fn into_hosts(self) -> Hosts {
        let Self {
            mut hosts,
            loader,
            partners,
            ..
        } = self;
        let partners = partners.into_iter().map(|((host, _), agent)| (host, agent));
        for (host, agent) in loader.into_iter().chain(partners) {
            if let (Some(folder), Ok(host)) = (agent.end(), hosts.at(host.as_deref())) {
                host.has_left(Unconfirmed::now(folder));
            }
        }
        hosts
    }

    pub(crate) fn agent(&mut self, host: Option<&str>) -> Result<&mut dyn AgentHandle, AgentError> {
        self.hosts.agent(host)
    }

    /// Starts a server. Returns the congestion control of TCP on its host, if it is known.
    pub(crate) fn start_server(
        &mut self,
        host: Option<&str>,
        order: StartServer,
    ) -> Result<Option<String>, AgentError> {
        let server = order.server.clone();
        let answer = self.agent(host)?.ask(&Order::Start(order))?;
        Ok(self.record_start(host, &server, answer))
    }

    /// Records where a server runs since it was started. Returns the congestion control of TCP there,
    /// if the agent knows it.
    pub(crate) fn record_start(
        &mut self,
        host: Option<&str>,
        server: &str,
        answer: Answer,
    ) -> Option<String> {
        let Answer::Started {
            pid,
            group,
            counts,
            tcp_congestion,
        } = answer
        else {
            return None;
        };
        self.running.retain(|(_, other)| other.server != server);
        let other = OtherServer {
            server: server.to_owned(),
            pid,
            also: Vec::new(),
            group,
            counts,
        };
        self.running.push((self.hosts.key(host), other));
        tcp_congestion
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
        if let Some((at, mut agent)) = self.loader.take()
            && at.as_deref() == host
            && agent.gone().is_none()
        {
            return Ok(agent);
        }
        self.hosts.at(host)?.start_agent()
    }

    pub(crate) fn put_loader(&mut self, host: Option<&str>, agent: Box<dyn AgentHandle>) {
        self.loader = Some((host.map(str::to_owned), agent));
    }

    /// An agent for each of these hosts. For the first host it is its own agent, which has started
    /// its servers; the others only make loads. A host that is named again gets another agent.
    pub(crate) fn load_agents(
        &mut self,
        hosts: &[Option<&str>],
    ) -> Result<Vec<&mut dyn AgentHandle>, AgentError> {
        let Some((lead, others)) = hosts.split_first() else {
            return Ok(Vec::new());
        };
        let mut keys: Vec<(Option<String>, usize)> = Vec::new();
        for host in others {
            let host = host.map(str::to_owned);
            let before = keys.iter().filter(|(other, _)| *other == host).count();
            keys.push((host, before));
        }
        for key in &keys {
            let is_gone = |agent: &mut Box<dyn AgentHandle>| agent.gone().is_some();
            if self.partners.get_mut(key).is_none_or(is_gone) {
                let agent = self.hosts.at(key.0.as_deref())?.start_agent()?;
                self.partners.insert(key.clone(), agent);
            }
        }
        let partners = self.partners.iter_mut();
        let mut partners: Vec<_> = partners
            .filter_map(|(key, agent)| Some((keys.iter().position(|one| one == key)?, agent)))
            .collect();
        partners.sort_by_key(|(place, _)| *place);
        let mut agents = vec![self.hosts.agent(*lead)?];
        for (_, agent) in partners {
            agents.push(&mut **agent);
        }
        Ok(agents)
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

    /// Hosts that run servers of these names.
    pub(crate) fn hosts_of(&self, is_one: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let running = self.running.iter();
        let found = running.filter(|(_, one)| is_one(&one.server));
        found.map(|(host, _)| host.clone()).collect()
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
