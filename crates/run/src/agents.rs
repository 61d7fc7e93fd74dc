//! The agents of a run: one on this machine, or one in each host where hosts are apart.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::group::Runner;
use crate::machines::Machines;
use crate::{CpuPlacement, RunError, RunEvent, RunOptions, cpu_placement};
use agent::wire::{Answer, Order, OtherServer, StartServer};
use agent::{Agent, AgentError};
use experiment::{Experiment, ResolvedCondition, Target};
use hosts::{Topology, TopologyError, TopologyOptions};
use readings::LinkKind;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Links that are later than this on average, ns, are named in the result.
const LATE_NS: u64 = 200_000;

/// A host, servers that its agent has started, and those that others have.
pub(super) type View = (Option<String>, Vec<String>, Vec<OtherServer>);

pub(super) struct Agents {
    /// By host; the empty name is this machine's.
    agents: BTreeMap<String, Agent>,
    pub(super) topology: Option<Topology>,
    /// What makes loads while the others do something to servers, and its host.
    loader: Option<(Option<String>, Agent)>,
    /// Where hosts are machines.
    machines: Option<Machines>,
    /// Servers that run, with their hosts.
    running: Vec<(String, OtherServer)>,
}

impl Agents {
    /// Starts them all, with a look whether all that the experiment needs is there.
    pub(super) fn ready(
        options: &RunOptions<'_>,
        placement: &CpuPlacement,
        seed: u64,
    ) -> Result<Self, RunError> {
        let mut agents = Self::start(options.weigh, options.experiment, placement, seed)?;
        let sentences = agents.missing(options.experiment, options.recipes)?;
        match sentences.is_empty() {
            true => Ok(agents),
            false => Err(RunError::Missing { sentences }),
        }
    }

    /// Makes the hosts, where they are apart, and starts an agent in each.
    fn start(
        weigh: &Path,
        experiment: &Experiment,
        placement: &CpuPlacement,
        seed: u64,
    ) -> Result<Self, RunError> {
        let mut agents = Self {
            agents: BTreeMap::new(),
            loader: None,
            topology: None,
            machines: None,
            running: Vec::new(),
        };
        if experiment.hosts_are_machines() {
            return Self::on_machines(weigh, experiment);
        }
        if !experiment.hosts_are_apart() {
            agents.agents.insert(String::new(), Agent::start(weigh)?);
            return Ok(agents);
        }
        // This thread keeps off the load's CPUs by now, so it cannot be asked which there are.
        let all = [placement.load_cpus.as_slice(), &placement.server_cpus].concat();
        let of_a_host = |cpu: &u32| experiment.hosts.iter().any(|host| host.cpus.contains(cpu));
        let mut link_cpus: Vec<u32> = all.iter().copied().filter(|cpu| !of_a_host(cpu)).collect();
        if link_cpus.is_empty() {
            link_cpus = all;
        }
        let options = TopologyOptions {
            kind: None,
            seed,
            link_cpus,
        };
        let topology = Topology::build(weigh, &experiment.hosts, &options)?;
        for host in &experiment.hosts {
            let agent = topology.agent_in(&host.name)?;
            agents.agents.insert(host.name.clone(), agent);
        }
        agents.topology = Some(topology);
        Ok(agents)
    }

    /// Starts them all afresh after one was lost.
    pub(super) fn again(
        self,
        weigh: &Path,
        experiment: &Experiment,
        placement: &CpuPlacement,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Self, RunError> {
        if self.are_machines() {
            return Ok(self.on_machines_again(weigh, stop));
        }
        // What is left of them goes first: hosts and servers have the same names again.
        drop(self);
        Self::start(weigh, experiment, placement, seed)
    }

    /// The agent of a host.
    pub(super) fn of(&mut self, host: Option<&str>) -> Result<&mut Agent, AgentError> {
        let name = match self.are_apart() {
            true => host.unwrap_or_default(),
            false => "",
        };
        let lost = || {
            AgentError::Lost(match &self.machines {
                Some(machines) => machines.why_lost(name),
                None => format!("there is none on host `{name}`"),
            })
        };
        self.agents.get_mut(name).ok_or_else(lost)
    }

    /// All that there are, with their hosts.
    pub(super) fn all_agents(&mut self) -> impl Iterator<Item = (&String, &mut Agent)> {
        self.agents.iter_mut()
    }

    /// Those of machines.
    pub(super) fn with_machines(agents: BTreeMap<String, Agent>, machines: Machines) -> Self {
        Self {
            agents,
            loader: None,
            topology: None,
            machines: Some(machines),
            running: Vec::new(),
        }
    }

    /// Ends the agents of machines and returns those; nothing where hosts are none.
    pub(super) fn take_all(&mut self) -> Option<Machines> {
        let machines = self.machines.take()?;
        self.agents.clear();
        Some(machines)
    }

    /// Whether hosts have ports and addresses of their own.
    pub(super) fn are_apart(&self) -> bool {
        self.topology.is_some() || self.machines.is_some()
    }

    /// Whether hosts are namespaces of this machine.
    pub(super) fn is_world(&self) -> bool {
        self.topology.is_some()
    }

    /// Whether hosts are machines.
    pub(super) fn are_machines(&self) -> bool {
        self.machines.is_some()
    }

    /// Whether a host's agent is on another machine: then its files are others than those here.
    pub(super) fn is_elsewhere(&self, host: Option<&str>) -> bool {
        let agent = self.agents.get(host.unwrap_or_default());
        self.machines.is_some() && agent.is_none_or(Agent::is_elsewhere)
    }

    /// What `weigh` is called where a host's agent is.
    pub(super) fn program(&self, host: Option<&str>) -> Option<PathBuf> {
        let agent = self.agents.get(host.unwrap_or_default())?;
        agent.is_elsewhere().then(|| agent.program().to_path_buf())
    }

    /// Hosts on which servers were started.
    pub(super) fn with_servers(&self) -> BTreeSet<String> {
        self.running.iter().map(|(host, _)| host.clone()).collect()
    }

    /// A port for a server. One that hosts have to themselves is free; the other machines are
    /// asked.
    pub(super) fn free_port(&mut self, host: Option<&str>, random: &mut fastrand::Rng) -> u16 {
        const ATTEMPTS: usize = 100;
        let mut port = cpu_placement::free_port(random, self.are_apart());
        if self.are_machines() {
            let address = self.address(host, host);
            for _ in 0..ATTEMPTS {
                if self.is_free(host, SocketAddr::new(address, port)) {
                    break;
                }
                port = cpu_placement::free_port(random, true);
            }
        }
        port
    }

    /// The address by which one host reaches another.
    pub(super) fn address(&self, from: Option<&str>, to: Option<&str>) -> IpAddr {
        if let Some(machines) = &self.machines {
            return machines.address(to.unwrap_or_default()).unwrap_or(LOCAL);
        }
        let Some(topology) = &self.topology else {
            return LOCAL;
        };
        // An experiment that was read names hosts that there are.
        let name = |host: Option<&str>| host.unwrap_or_default().to_string();
        topology.address(&name(from), &name(to)).unwrap_or(LOCAL)
    }

    /// Has a host's agent start a server.
    pub(super) fn start_server(
        &mut self,
        host: Option<&str>,
        order: StartServer,
    ) -> Result<(), AgentError> {
        let server = order.server.clone();
        let answer = self.of(host)?.ask(&Order::Start(order))?;
        if let Answer::Started { pid, group } = answer {
            self.running.retain(|(_, other)| other.server != server);
            let other = OtherServer { server, pid, group };
            let host = host.unwrap_or_default().to_string();
            self.running.push((host, other));
        }
        Ok(())
    }

    /// An agent on a host that makes loads and nothing else, so that the host's own can be asked
    /// meanwhile. It is given back by [`Self::put_loader`].
    pub(super) fn take_loader(
        &mut self,
        weigh: &Path,
        host: Option<&str>,
    ) -> Result<Agent, AgentError> {
        match self.loader.take() {
            Some((at, agent)) if at.as_deref() == host => return Ok(agent),
            _ => {}
        }
        match (&self.topology, host) {
            (Some(topology), Some(host)) => topology.agent_in(host).map_err(|e| match e {
                TopologyError::Agent { source, .. } => source,
                other => AgentError::Lost(other.to_string()),
            }),
            _ => Agent::start(weigh),
        }
    }

    pub(super) fn put_loader(&mut self, host: Option<&str>, agent: Agent) {
        self.loader = Some((host.map(str::to_owned), agent));
    }

    /// Servers that run, as an agent sees that has started none of them.
    pub(super) fn seen_from_beside(&self, wanted: impl Fn(&str) -> bool) -> Vec<OtherServer> {
        let all = self.running.iter().map(|(_, one)| one);
        all.filter(|one| wanted(&one.server)).cloned().collect()
    }

    /// Whether hosts send everything into their links.
    pub(super) fn links_are_routed(&self) -> bool {
        let topology = self.topology.as_ref();
        topology.is_some_and(|topology| topology.kind == LinkKind::UserSpace)
    }

    /// Servers that the agent of a host has started, and those that others have.
    pub(super) fn watched(
        &self,
        from: Option<&str>,
        resolved: &ResolvedCondition,
    ) -> (Vec<String>, Vec<OtherServer>) {
        let all = resolved.servers.iter().map(|server| server.name.clone());
        if !self.are_apart() {
            return (all.collect(), Vec::new());
        }
        let (own, others): (Vec<_>, Vec<_>) = self
            .running
            .iter()
            .filter(|(_, one)| resolved.servers.iter().any(|s| s.name == one.server))
            .cloned()
            .partition(|(host, _)| from == Some(host));
        let own = own.into_iter().map(|(_, one)| one.server).collect();
        // What another machine counts is asked of that one.
        let others = others.into_iter().filter(|_| self.topology.is_some());
        (own, others.map(|(_, one)| one).collect())
    }

    /// From where all servers of a resolved can be looked at: hosts, with their own servers and
    /// those of others.
    pub(super) fn views(&self, from: Option<&str>, resolved: &ResolvedCondition) -> Vec<View> {
        let hosts = match self.are_machines() {
            true => self.with_servers().into_iter().map(Some).collect(),
            false => vec![from.map(str::to_owned)],
        };
        let view = |host: Option<String>| {
            let (servers, others) = self.watched(host.as_deref(), resolved);
            (host, servers, others)
        };
        hosts.into_iter().map(view).collect()
    }

    /// What the reader of the result is told at the beginning.
    pub(super) fn notices(&self) -> Vec<String> {
        let Some(topology) = &self.topology else {
            return Vec::new();
        };
        let mut notices = topology.warnings.clone();
        if topology.kind != LinkKind::Direct {
            notices.push(topology.kind.sentence().to_string());
        }
        notices
    }

    /// What the reader of the result is told at the end: links that did other things than they
    /// should.
    pub(super) fn faults_of_links(&mut self) -> Vec<String> {
        let Some(topology) = &mut self.topology else {
            return Vec::new();
        };
        let counters = topology.counters().unwrap_or_default();
        let names = topology.hosts.iter().map(|host| &host.spec.name);
        let late = counters.iter().zip(names).filter_map(|(link, name)| {
            let late_ns = link.late_ns_sum.checked_div(link.delivered)?;
            (late_ns > LATE_NS).then(|| {
                format!(
                    "the link of host `{name}` was late by {:.2} ms on average: its thread had to \
                     wait for a CPU",
                    late_ns as f64 / 1e6
                )
            })
        });
        late.collect()
    }

    /// The hosts, for `hosts.json`, with the key that they stand below; nothing where they are not
    /// apart.
    pub(super) fn described(&self) -> Option<(&'static str, Value)> {
        if let Some(machines) = &self.machines {
            return Some(("machines", machines.described()));
        }
        let topology = self.topology.as_ref()?;
        let hosts: BTreeMap<&str, Value> = topology
            .hosts
            .iter()
            .map(|host| {
                let spec = &host.spec;
                let described = json!({
                    "address": host.address,
                    "external_address": host.external_address,
                    "access": spec.access,
                    "cpus": spec.cpus,
                    "cpus_bound_by": if host.cpus_bound { "control group" } else { "affinity" },
                    "quota_cpus": spec.quota,
                    "link": spec.link,
                    "settings": host.settings,
                });
                (spec.name.as_str(), described)
            })
            .collect();
        Some(("apart", json!({ "links": topology.kind, "hosts": hosts })))
    }
}

impl From<TopologyError> for RunError {
    fn from(error: TopologyError) -> Self {
        match error {
            TopologyError::Agent { source, .. } => RunError::Agent(source),
            other => RunError::Topology(other),
        }
    }
}

impl<F: FnMut(RunEvent)> Runner<'_, F> {
    /// Where a server is, as a host sees it.
    pub(super) fn seen(
        &self,
        from: Option<&str>,
        server: &str,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Option<SocketAddr> {
        let port = addresses.get(server)?.port();
        let server = self.options.experiment.server(server)?;
        let address = self.agents.address(from, server.host.as_deref());
        Some(SocketAddr::new(address, port))
    }

    /// Where a subject is asked.
    pub(super) fn resolve(
        &self,
        from: Option<&str>,
        target: &Target,
        addresses: &BTreeMap<String, SocketAddr>,
    ) -> Result<SocketAddr, String> {
        match target {
            Target::Server(name) => self
                .seen(from, name, addresses)
                .ok_or_else(|| format!("server `{name}` is not up")),
            Target::Address(text) => text
                .to_socket_addrs()
                .map_err(|e| format!("{text} cannot be resolved: {e}"))?
                .next()
                .ok_or_else(|| format!("{text} has no address")),
        }
    }
}
