//! All hosts of a run, and the links between them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use agent::{AgentError, AgentHandle, heartbeat_limit};
use readings::{HostSpec, LinkKind, LinkSpec};
use serde_json::{Value, json};

use crate::host::{Host, HostsByName, LocalHost};
use crate::links::Links;
use crate::machine_links::MachineLinks;
use crate::namespaces::host::NamespaceHost;
use crate::namespaces::topology::{Topology, TopologyError, TopologyOptions};
use crate::remote_host::{RemoteHost, Shared};

/// A dying process takes others with it, which shows within this time.
const LOSS_GRACE: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(10);
/// The pauses between attempts to reconnect to a machine.
const RETRY_AFTER: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// The kind of an experiment's hosts.
#[derive(Clone, Debug)]
pub enum HostsSpec {
    /// Not separate: one agent on this machine for all.
    Local,
    /// Namespaces of this machine.
    Namespaces {
        hosts: Vec<HostSpec>,
        /// Options of their links.
        options: TopologyOptions,
    },
    /// Machines: behind pipes, or this one.
    Machines(Vec<HostSpec>),
}

/// Why hosts cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The agent of this machine does not start.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Namespaces or links cannot be created.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A machine cannot be used.
    #[error("host `{host}`: {why}")]
    Machine { host: String, why: String },
}

/// The hosts of a run.
pub struct Hosts {
    spec: HostsSpec,
    weigh: PathBuf,
    hosts: HostsByName,
    links: Option<Box<dyn Links>>,
    engines: Shared,
    loss_grace: Duration,
}

impl Hosts {
    /// Creates the hosts and starts an agent on each with the program `weigh`. The wait for one that has
    /// to be granted, as by Slurm, ends when `stop` is set.
    ///
    /// # Errors
    /// When one cannot be opened; all that was created is removed then.
    pub fn open(spec: HostsSpec, weigh: &Path, stop: &AtomicBool) -> Result<Self, HostsError> {
        let mut hosts = HostsByName::new();
        let mut links: Option<Box<dyn Links>> = None;
        let engines = Shared::default();
        match &spec {
            HostsSpec::Local => {
                hosts.insert(String::new(), Box::new(LocalHost::open(weigh)?));
            }
            HostsSpec::Namespaces {
                hosts: specs,
                options,
            } => {
                let topology = Topology::build(weigh, specs, options)?;
                let topology = Rc::new(RefCell::new(topology));
                for one in specs {
                    let host = NamespaceHost::open(one, &topology)?;
                    hosts.insert(one.name.clone(), Box::new(host));
                }
                links = Some(Box::new(topology));
            }
            HostsSpec::Machines(specs) => {
                let failed = |host: &str, error| {
                    let (AgentError::Lost(why) | AgentError::Failed(why)) = error;
                    // A lost agent's error names its host.
                    let named = format!("host `{host}`: ");
                    HostsError::Machine {
                        why: why.strip_prefix(&named).unwrap_or(&why).to_owned(),
                        host: host.to_owned(),
                    }
                };
                let has_links = specs.iter().any(|spec| spec.link.is_some());
                let mut machines = Machines::new();
                for one in specs {
                    let host = RemoteHost::open(one, weigh, &engines, stop);
                    let host = host.map_err(|error| failed(&one.name, error))?;
                    if has_links && host.known_address().is_none() {
                        let why = "links need its address: address = \"…\"".to_owned();
                        return Err(failed(&one.name, AgentError::Failed(why)));
                    }
                    machines.insert(one.name.clone(), Box::new(host));
                }
                let mut made = MachineLinks::of(with_addresses(specs, &machines));
                let not_made = made.as_mut().map(|links| links.make(&mut machines));
                if let Some((host, error)) = not_made.into_iter().flatten().next() {
                    return Err(failed(&host, error));
                }
                hosts = into_hosts(machines);
                links = made.map(|links| Box::new(links) as _);
            }
        }
        Ok(Self {
            spec,
            weigh: weigh.to_path_buf(),
            hosts,
            links,
            engines,
            loss_grace: LOSS_GRACE,
        })
    }

    /// Wraps hosts of the caller, such as fakes. Losses show at once, and [`reopen`](Self::reopen)
    /// is the caller's task.
    pub fn of(hosts: Vec<Box<dyn Host>>, links: Option<Box<dyn Links>>) -> Self {
        let by_name = |host: Box<dyn Host>| (host.name().to_owned(), host);
        Self {
            spec: HostsSpec::Local,
            weigh: PathBuf::new(),
            hosts: hosts.into_iter().map(by_name).collect(),
            links,
            engines: Shared::default(),
            loss_grace: Duration::ZERO,
        }
    }

    /// Reopens all hosts after a loss. A machine that cannot be reached after some attempts has no
    /// agent: what needs it fails, until the next reopening.
    ///
    /// # Errors
    /// When hosts of this machine cannot be created again.
    pub fn reopen(mut self, stop: &AtomicBool) -> Result<Self, HostsError> {
        let HostsSpec::Machines(specs) = self.spec.clone() else {
            // The old ones go first: the new ones have the same names.
            let (spec, weigh) = (self.spec.clone(), self.weigh.clone());
            drop(self);
            return Self::open(spec, &weigh, stop);
        };
        // The old ones keep what their engines have given until the new ones have it.
        let mut old = std::mem::take(&mut self.hosts);
        let mut machines = Machines::new();
        for spec in &specs {
            let before = old.get_mut(&spec.name).map(|host| host.close());
            let before = before.unwrap_or_default();
            let mut host = RemoteHost::absent(spec, &self.weigh, &self.engines, before);
            let mut opened = host.reopen(stop);
            for pause in RETRY_AFTER {
                if opened.is_ok() || !wait(pause, stop) {
                    break;
                }
                opened = host.reopen(stop);
            }
            machines.insert(spec.name.clone(), Box::new(host));
        }
        let mut links = MachineLinks::of(with_addresses(&specs, &machines));
        let not_made = links.as_mut().map(|links| links.make(&mut machines));
        for (name, error) in not_made.into_iter().flatten() {
            // One without an agent is given up already.
            if let (Some(host), AgentError::Failed(why)) = (machines.get_mut(&name), error) {
                host.give_up(&why);
            }
        }
        self.links = links.map(|links| Box::new(links) as _);
        self.hosts = into_hosts(machines);
        Ok(self)
    }

    /// Ends all agents. Returns the hosts whose agents did not confirm that, a sentence each.
    pub fn close(&mut self) -> Vec<String> {
        let unconfirmed = self.hosts.iter_mut().filter_map(|(name, host)| {
            if host.close().is_empty() {
                return None;
            }
            let seconds = heartbeat_limit().as_secs();
            Some(format!(
                "host `{name}`: its agent did not confirm its end; without a heartbeat it ends \
                 within {seconds} s"
            ))
        });
        unconfirmed.collect()
    }

    /// A host by name; where hosts are not separate, this machine for every name.
    ///
    /// # Errors
    /// When there is none.
    pub fn at(&mut self, name: Option<&str>) -> Result<&mut dyn Host, AgentError> {
        let key = self.key(name);
        match self.hosts.get_mut(&key) {
            Some(host) => Ok(host.as_mut()),
            None => Err(AgentError::Lost(format!("there is no host `{key}`"))),
        }
    }

    /// [`Self::at`], shared.
    pub fn get(&self, name: Option<&str>) -> Option<&dyn Host> {
        self.hosts.get(&self.key(name)).map(Box::as_ref)
    }

    /// The agent of a host.
    ///
    /// # Errors
    /// When there is none.
    pub fn agent(&mut self, name: Option<&str>) -> Result<&mut dyn AgentHandle, AgentError> {
        self.at(name)?.agent()
    }

    /// The agents of several hosts, in the order of their names.
    ///
    /// # Errors
    /// When one of them is not among the hosts, or has no agent.
    pub fn agents(&mut self, names: &[String]) -> Result<Vec<&mut dyn AgentHandle>, AgentError> {
        let is_missing = |name: &&String| !self.hosts.contains_key(*name);
        if let Some(missing) = names.iter().find(is_missing) {
            return Err(AgentError::Lost(format!("there is no host `{missing}`")));
        }
        let mut found = Vec::new();
        for (name, host) in &mut self.hosts {
            if let Some(place) = names.iter().position(|one| one == name) {
                found.push((place, host.agent()?));
            }
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, agent)| agent).collect())
    }

    /// The key of a host.
    pub fn key(&self, name: Option<&str>) -> String {
        match self.hosts.contains_key("") {
            true => String::new(),
            false => name.unwrap_or_default().to_owned(),
        }
    }

    /// Whether two hosts are on one machine, so that they share processes and counters.
    pub fn share_a_machine(&self, one: Option<&str>, other: Option<&str>) -> bool {
        let machine = |name| self.get(name).map(Host::machine);
        machine(one) == machine(other)
    }

    /// Whether all of them are on this machine.
    pub fn are_here(&self) -> bool {
        self.hosts.values().all(|host| host.machine().is_empty())
    }

    /// The address by which one host reaches another, or itself.
    pub fn address(&self, from: Option<&str>, to: Option<&str>) -> IpAddr {
        let access = self.get(from).map(Host::access).unwrap_or_default();
        let address = self.get(to).map(|to| to.address(&self.key(from), access));
        address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }

    /// What has died, a sentence fragment. If something has `failed`, a loss is awaited for a
    /// moment.
    pub fn lost(&mut self, failed: bool) -> Option<String> {
        let end = Instant::now() + self.loss_grace;
        loop {
            let lost = self.lost_now();
            if lost.is_some() || !failed || Instant::now() >= end {
                return lost;
            }
            sleep(POLL);
        }
    }

    fn lost_now(&mut self) -> Option<String> {
        if self.links.as_mut().is_some_and(|links| links.are_lost()) {
            return Some("lost the process that holds the links".to_owned());
        }
        self.hosts.iter_mut().find_map(|(name, host)| {
            // A machine without an agent is reported by what needs it.
            let why = host.agent().ok()?.gone()?;
            Some(match name.is_empty() || !host.machine().is_empty() {
                true => why.to_string(),
                false => format!("host `{name}`: {why}"),
            })
        })
    }

    /// Sets the rates of links that have one to the declared ones times `factor`.
    ///
    /// # Errors
    /// When there are no links, or the change fails.
    pub fn scale_link_rates(&mut self, factor: f64) -> Result<(), AgentError> {
        match &mut self.links {
            Some(links) => links.scale_rates(&mut self.hosts, factor),
            None => Err(AgentError::Failed("there are no links".into())),
        }
    }

    /// Changes the link of a host; `None` restores the declared one.
    ///
    /// # Errors
    /// When there are no links, or the change fails.
    pub fn change_link(&mut self, host: &str, spec: Option<LinkSpec>) -> Result<(), AgentError> {
        match &mut self.links {
            Some(links) => links.change(&mut self.hosts, host, spec),
            None => Err(AgentError::Failed("there are no links".into())),
        }
    }

    /// The process that carries the packets of links, if they pass through user space.
    pub fn link_process(&self) -> Option<i32> {
        self.links.as_ref()?.process()
    }

    /// Warnings at the start of a run.
    pub fn notices(&self) -> Vec<String> {
        let Some(links) = &self.links else {
            return Vec::new();
        };
        let mut notices = links.warnings();
        if links.kind() != LinkKind::Direct {
            notices.push(links.kind().sentence().to_owned());
        }
        notices
    }

    /// Links that did not behave as declared, a sentence each.
    pub fn link_faults(&mut self) -> Vec<String> {
        self.links.as_mut().map_or_else(Vec::new, |it| it.late())
    }

    /// The hosts for `hosts.json`, with their key; `None` where they are not separate.
    pub fn inventory(&self) -> Option<(&'static str, Value)> {
        let hosts: BTreeMap<&str, Value> = self
            .hosts
            .iter()
            .map(|(name, host)| (name.as_str(), host.inventory()))
            .collect();
        match (self.are_here(), &self.links) {
            (false, _) => Some(("machines", json!(hosts))),
            (true, Some(links)) => {
                let apart = json!({ "links": links.kind(), "hosts": hosts });
                Some(("apart", apart))
            }
            (true, None) => None,
        }
    }
}

/// Machines by their names.
type Machines = BTreeMap<String, Box<RemoteHost>>;

fn into_hosts(machines: Machines) -> HostsByName {
    let machines = machines.into_iter();
    machines
        .map(|(name, host)| (name, host as Box<dyn Host>))
        .collect()
}

/// The hosts as they were declared, with their addresses where these are known.
fn with_addresses<'h>(
    specs: &'h [HostSpec],
    machines: &Machines,
) -> impl Iterator<Item = (&'h HostSpec, Option<IpAddr>)> {
    specs.iter().map(|spec| {
        let host = machines.get(&spec.name);
        (spec, host.and_then(|host| host.known_address()))
    })
}

/// Sleeps; false if `stop` was set meanwhile.
fn wait(time: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}
