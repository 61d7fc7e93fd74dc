//! A host that is a machine: behind ssh, or this one beside such machines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use agent::wire::{Answer, Order};
use agent::{Agent, AgentError, AgentHandle, Clock, Far, Program};
use readings::{Access, HostSpec};
use serde_json::{Value, json};

use crate::host::{Host, is_free_there};

pub(crate) struct RemoteHost {
    spec: HostSpec,
    weigh: PathBuf,
    /// The agent, or why there is none.
    agent: Result<Agent, String>,
    /// The machine's clock against this one's, at the agent's start.
    clock: Clock,
    /// The machine's description of itself.
    about: Value,
}

impl RemoteHost {
    /// Starts its agent and reads the machine's description.
    pub(crate) fn open(spec: &HostSpec, weigh: &Path) -> Result<Self, AgentError> {
        let mut agent = start(spec, weigh)?;
        if spec.ssh.is_some() {
            agent.ask(&Order::Sweep)?;
        }
        let clock = agent.clock()?;
        let Answer::Machine { machine } = agent.ask(&Order::Describe)? else {
            return Err(AgentError::Lost(
                "it sent no description of its machine".into(),
            ));
        };
        Ok(Self {
            spec: spec.clone(),
            weigh: weigh.to_path_buf(),
            agent: Ok(agent),
            clock,
            about: machine,
        })
    }

    /// A host without an agent.
    pub(crate) fn absent(spec: &HostSpec, weigh: &Path) -> Self {
        Self {
            spec: spec.clone(),
            weigh: weigh.to_path_buf(),
            agent: Err(format!("there is none on host `{}`", spec.name)),
            clock: Clock::default(),
            about: Value::Null,
        }
    }

    pub(crate) fn reopen(&mut self) -> Result<(), AgentError> {
        match Self::open(&self.spec, &self.weigh) {
            Ok(opened) => *self = opened,
            Err(error) => {
                let (AgentError::Lost(why) | AgentError::Failed(why)) = &error;
                let name = &self.spec.name;
                self.agent = Err(format!("host `{name}` cannot be reached any more: {why}"));
                return Err(error);
            }
        }
        Ok(())
    }
}

fn start(spec: &HostSpec, weigh: &Path) -> Result<Agent, AgentError> {
    let Some(destination) = &spec.ssh else {
        return Agent::start(weigh);
    };
    let path = spec.ssh_binary.as_deref().unwrap_or(weigh);
    let program = Program::read(path).map_err(AgentError::Failed)?;
    let far = Far {
        host: &spec.name,
        destination,
    };
    Agent::start_over_ssh(far, &program)
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
        Ok(Box::new(start(&self.spec, &self.weigh)?))
    }

    fn machine(&self) -> &str {
        &self.spec.name
    }

    fn address(&self, _: &str, _: Access) -> IpAddr {
        self.spec.address.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    fn is_free(&mut self, port: u16) -> bool {
        let address = SocketAddr::new(self.address("", Access::Internal), port);
        match &mut self.agent {
            Ok(agent) => is_free_there(agent, address),
            Err(_) => true,
        }
    }

    fn remote_program(&self) -> Option<PathBuf> {
        let agent = self.agent.as_ref().ok()?;
        agent.is_elsewhere().then(|| agent.program().to_path_buf())
    }

    fn inventory(&self) -> Value {
        json!({
            "ssh": self.spec.ssh,
            "address": self.spec.address,
            "cpus": self.spec.cpus,
            "clock_ahead_s": self.clock.ahead_ns as f64 / 1e9,
            "clock_round_trip_s": self.clock.round_trip_ns as f64 / 1e9,
            "machine": self.about,
        })
    }
}
