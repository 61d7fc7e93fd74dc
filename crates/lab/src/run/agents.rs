//! The agents of a run: one on this machine, or one in each host where hosts are apart.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

use serde_json::{Value, json};

use crate::agent::wire::{Answer, Order, OtherServer, StartServer};
use crate::agent::{Agent, AgentError};
use crate::experiment::{Experiment, Setting, Target};
use crate::hosts::{World, WorldError, WorldOptions};
use crate::link::LinkKind;
use crate::run::group::Runner;
use crate::run::{Places, RunError, RunEvent};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Links that are later than this on average, ns, are named in the result.
const LATE_NS: u64 = 200_000;

pub(super) struct Agents {
    /// By host; the empty name is this machine's.
    agents: BTreeMap<String, Agent>,
    world: Option<World>,
    /// Servers that run, with their hosts.
    running: Vec<(String, OtherServer)>,
}

impl Agents {
    /// Makes the hosts, where they are apart, and starts an agent in each.
    pub(super) fn start(
        weigh: &Path,
        experiment: &Experiment,
        places: &Places,
        seed: u64,
    ) -> Result<Self, RunError> {
        let mut agents = Self {
            agents: BTreeMap::new(),
            world: None,
            running: Vec::new(),
        };
        if !experiment.hosts_are_apart() {
            agents.agents.insert(String::new(), Agent::start(weigh)?);
            return Ok(agents);
        }
        // This thread keeps off the load's CPUs by now, so it cannot be asked which there are.
        let all = [places.load_cpus.as_slice(), &places.server_cpus].concat();
        let of_a_host = |cpu: &u32| experiment.hosts.iter().any(|host| host.cpus.contains(cpu));
        let mut link_cpus: Vec<u32> = all.iter().copied().filter(|cpu| !of_a_host(cpu)).collect();
        if link_cpus.is_empty() {
            link_cpus = all;
        }
        let options = WorldOptions {
            kind: None,
            seed,
            link_cpus,
        };
        let world = World::build(weigh, &experiment.hosts, &options)?;
        for host in &experiment.hosts {
            let agent = world.agent_in(&host.name)?;
            agents.agents.insert(host.name.clone(), agent);
        }
        agents.world = Some(world);
        Ok(agents)
    }

    /// The agent of a host.
    pub(super) fn of(&mut self, host: Option<&str>) -> Result<&mut Agent, AgentError> {
        let name = match self.world {
            Some(_) => host.unwrap_or_default(),
            None => "",
        };
        let lost = || AgentError::Lost(format!("there is none on host `{name}`"));
        self.agents.get_mut(name).ok_or_else(lost)
    }

    /// Whether hosts have ports and addresses of their own.
    pub(super) fn are_apart(&self) -> bool {
        self.world.is_some()
    }

    /// The address by which one host reaches another.
    pub(super) fn address(&self, from: Option<&str>, to: Option<&str>) -> IpAddr {
        let Some(world) = &self.world else {
            return LOCAL;
        };
        // An experiment that was read names hosts that there are.
        let name = |host: Option<&str>| host.unwrap_or_default().to_string();
        world.address(&name(from), &name(to)).unwrap_or(LOCAL)
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

    /// Servers that the agent of a host has started, and those that others have.
    pub(super) fn watched(
        &self,
        from: Option<&str>,
        setting: &Setting,
    ) -> (Vec<String>, Vec<OtherServer>) {
        let all = setting.servers.iter().map(|server| server.name.clone());
        if self.world.is_none() {
            return (all.collect(), Vec::new());
        }
        let (own, others): (Vec<_>, Vec<_>) = self
            .running
            .iter()
            .filter(|(_, one)| setting.servers.iter().any(|s| s.name == one.server))
            .cloned()
            .partition(|(host, _)| from == Some(host));
        (
            own.into_iter().map(|(_, one)| one.server).collect(),
            others.into_iter().map(|(_, one)| one).collect(),
        )
    }

    /// What the reader of the result is told at the beginning.
    pub(super) fn notices(&self) -> Vec<String> {
        let Some(world) = &self.world else {
            return Vec::new();
        };
        let mut notices = world.warnings.clone();
        if world.kind != LinkKind::Direct {
            notices.push(world.kind.sentence().to_string());
        }
        notices
    }

    /// What the reader of the result is told at the end: links that did other things than they
    /// should.
    pub(super) fn faults_of_links(&mut self) -> Vec<String> {
        let Some(world) = &mut self.world else {
            return Vec::new();
        };
        let counters = world.counters().unwrap_or_default();
        let names = world.hosts.iter().map(|host| &host.spec.name);
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

    /// The hosts, for `hosts.json`; nothing where they are not apart.
    pub(super) fn described(&self) -> Option<Value> {
        let world = self.world.as_ref()?;
        let hosts: BTreeMap<&str, Value> = world
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
        Some(json!({ "links": world.kind, "hosts": hosts }))
    }
}

impl From<WorldError> for RunError {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Agent { source, .. } => RunError::Agent(source),
            other => RunError::World(other),
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
