//! A host that is a machine: behind a pipe, or this one beside such machines.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agent::wire::{Answer, Order};
use agent::{Agent, AgentError, AgentHandle, Clock, Program, heartbeat_limit};
use readings::{Access, HostSpec, LinkSpec};
use serde_json::{Value, json};

use crate::engine::{Engines, HostAccess};
use crate::host::{Host, OutgoingPorts, Unconfirmed, is_free_there};

/// What hosts of a run share.
pub(crate) type Shared = Rc<RefCell<Engines>>;

pub(crate) struct RemoteHost {
    spec: HostSpec,
    weigh: PathBuf,
    engines: Shared,
    /// The agent, or why there is none.
    agent: Result<Agent, String>,
    /// The way to it; `None` on this machine.
    access: Option<HostAccess>,
    /// The machine's clock against this one's, at the agent's start.
    clock: Clock,
    /// The machine's description of itself.
    about: Value,
    /// Earlier agents, while they may still run there.
    before: Vec<Unconfirmed>,
}

impl RemoteHost {
    /// Starts its agent and reads the machine's description.
    pub(crate) fn open(
        spec: &HostSpec,
        weigh: &Path,
        engines: &Shared,
        stop: &AtomicBool,
    ) -> Result<Self, AgentError> {
        let mut host = Self::absent(spec, weigh, engines, Vec::new());
        host.connect(stop)?;
        Ok(host)
    }

    /// A host without an agent.
    pub(crate) fn absent(
        spec: &HostSpec,
        weigh: &Path,
        engines: &Shared,
        before: Vec<Unconfirmed>,
    ) -> Self {
        Self {
            spec: spec.clone(),
            weigh: weigh.to_path_buf(),
            engines: engines.clone(),
            agent: Err(format!("there is none on host `{}`", spec.name)),
            access: None,
            clock: Clock::default(),
            about: Value::Null,
            before,
        }
    }

    fn connect(&mut self, stop: &AtomicBool) -> Result<(), AgentError> {
        let (mut agent, access) = self.start(stop)?;
        if access.is_some() {
            self.await_end_of_earlier(&mut agent)?;
            agent.ask(&Order::Sweep)?;
        }
        self.clock = agent.clock()?;
        let Answer::Machine { machine } = agent.ask(&Order::Describe)? else {
            return Err(AgentError::Lost(
                "it sent no description of its machine".into(),
            ));
        };
        self.about = machine;
        self.agent = Ok(agent);
        self.access = access;
        Ok(())
    }

    fn start(&self, stop: &AtomicBool) -> Result<(Agent, Option<HostAccess>), AgentError> {
        let Some(reach) = &self.spec.reach else {
            return Ok((Agent::start(&self.weigh)?, None));
        };
        let path = self.spec.binary.as_deref().unwrap_or(&self.weigh);
        let program = Program::read(path).map_err(AgentError::Failed)?;
        let access = self
            .engines
            .borrow_mut()
            .open(&self.spec, reach, &program, stop)?;
        let agent = Agent::open_unless(&access.command, &program, stop)
            .inspect_err(|_| self.engines.borrow_mut().forget(&self.spec.name))?;
        Ok((agent, Some(access)))
    }

    /// An agent whose pipe broke may run on until it misses the heartbeat; its load and servers
    /// would disturb what is measured next.
    fn await_end_of_earlier(&mut self, agent: &mut Agent) -> Result<(), AgentError> {
        while let Some(before) = self.before.last() {
            // It counts from its last heartbeat, and one more may have passed.
            let within = heartbeat_limit().mul_f64(1.5);
            let left = within.saturating_sub(before.since.elapsed());
            let folder = before.folder.file_name().unwrap_or_default();
            agent.ask(&Order::AwaitEnd {
                folder: folder.to_string_lossy().into_owned(),
                within_ms: left.max(Duration::from_millis(1)).as_millis() as u64,
            })?;
            self.before.pop();
        }
        Ok(())
    }

    /// The declared address, or what its engine knows it by.
    pub(crate) fn known_address(&self) -> Option<IpAddr> {
        let found = self.access.as_ref().and_then(|it| it.address);
        self.spec.address.or(found)
    }

    pub(crate) fn reopen(&mut self, stop: &AtomicBool) -> Result<(), AgentError> {
        let connected = self.connect(stop);
        if let Err(AgentError::Lost(why) | AgentError::Failed(why)) = &connected {
            let name = &self.spec.name;
            self.agent = Err(format!("host `{name}` cannot be reached any more: {why}"));
        }
        connected
    }

    /// Ends its agent, since it cannot be used.
    pub(crate) fn give_up(&mut self, why: &str) {
        self.before = self.close();
        let name = &self.spec.name;
        self.agent = Err(format!("host `{name}` cannot be used any more: {why}"));
    }
}

impl Host for RemoteHost {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError> {
        match &mut self.agent {
            Ok(agent) => Ok(agent),
            Err(why) => Err(AgentError::Lost(why.clone())),
        }
    }

    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError> {
        let Some(access) = &self.access else {
            return Ok(Box::new(Agent::start(&self.weigh)?));
        };
        let path = self.spec.binary.as_deref().unwrap_or(&self.weigh);
        let program = Program::read(path).map_err(AgentError::Failed)?;
        Ok(Box::new(Agent::open(&access.command, &program)?))
    }

    fn machine(&self) -> &str {
        &self.spec.name
    }

    fn address(&self, _: &str, _: Access) -> IpAddr {
        let address = self.known_address();
        address.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    fn is_free(&mut self, port: u16) -> bool {
        let address = SocketAddr::new(self.address("", Access::Internal), port);
        match &mut self.agent {
            Ok(agent) => is_free_there(agent, address),
            Err(_) => true,
        }
    }

    fn link(&self) -> Option<LinkSpec> {
        self.spec.link
    }

    fn remote_program(&self) -> Option<PathBuf> {
        let agent = self.agent.as_ref().ok()?;
        agent.is_elsewhere().then(|| agent.program().to_path_buf())
    }

    fn usable_cpus(&self) -> Vec<u32> {
        let cpus = self.about["cpus"].as_array();
        let numbers = cpus.into_iter().flatten().filter_map(Value::as_u64);
        numbers.filter_map(|cpu| cpu.try_into().ok()).collect()
    }

    /// As the machine described itself.
    fn outgoing_ports(&self) -> Option<OutgoingPorts> {
        let setting = |name: &str| self.about["sysctls"][name].as_str();
        let reuse = setting("net.ipv4.tcp_tw_reuse");
        Some(OutgoingPorts {
            range: agent::parse_port_range(setting("net.ipv4.ip_local_port_range")?)?,
            are_reused: reuse.is_some_and(|value| value == "1"),
            are_own: false,
        })
    }

    fn has_left(&mut self, agent: Unconfirmed) {
        if self.spec.reach.is_some() {
            self.before.push(agent);
        }
    }

    fn close(&mut self) -> Vec<Unconfirmed> {
        let name = &self.spec.name;
        let agent = std::mem::replace(&mut self.agent, Err(format!("host `{name}` is closed")));
        let is_here = self.spec.reach.is_none();
        let folder = agent.ok().and_then(Agent::end).filter(|_| !is_here);
        let mut unconfirmed = std::mem::take(&mut self.before);
        unconfirmed.extend(folder.map(Unconfirmed::now));
        unconfirmed
    }

    fn inventory(&self) -> Value {
        let mut inventory = json!({
            "address": self.known_address(),
            "cpus": self.spec.cpus,
            "link": self.spec.link,
            "clock_ahead_s": self.clock.ahead_ns as f64 / 1e9,
            "clock_round_trip_s": self.clock.round_trip_ns as f64 / 1e9,
            "machine": self.about,
        });
        let about = self.access.as_ref().and_then(|it| it.about.as_object());
        for (key, value) in about.into_iter().flatten() {
            inventory[key] = value.clone();
        }
        inventory
    }
}
