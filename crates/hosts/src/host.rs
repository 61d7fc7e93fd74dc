//! The interface of a host, and the local one.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Instant;

use agent::wire::{Answer, Order};
use agent::{AgentError, AgentHandle};
use readings::{Access, LinkSpec};
use serde_json::Value;

/// Ports for servers: below the ephemeral range, so that outgoing connections cannot occupy them.
const SERVER_PORTS: std::ops::Range<u16> = 18_000..32_000;
/// Attempts to find a free port.
const PORTS_TRIED: usize = 1_000;

/// The ephemeral ports of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingPorts {
    /// First and last port.
    pub range: (u16, u16),
    /// Whether a port is reused a second after its connection ended (`tcp_tw_reuse=1`).
    pub are_reused: bool,
    /// Whether the range is the host's alone, so that it may be changed.
    pub are_own: bool,
}

/// An agent that did not confirm its end, so that it may still run.
#[derive(Clone, Debug)]
pub struct Unconfirmed {
    /// Its folder there, which names it.
    pub folder: PathBuf,
    /// When its pipe was closed.
    pub since: Instant,
}

impl Unconfirmed {
    /// An agent whose pipe was closed just now.
    pub fn now(folder: PathBuf) -> Self {
        Self {
            folder,
            since: Instant::now(),
        }
    }
}

pub type HostsByName = BTreeMap<String, Box<dyn Host>>;

/// A host of an experiment: its agent, and its properties.
///
/// The defaults are those of a host without its own network, link or control group.
pub trait Host {
    /// Its name in the experiment; empty for this machine where hosts are not separate.
    fn name(&self) -> &str;

    /// Its agent.
    ///
    /// # Errors
    /// [`AgentError::Lost`] when it has none any more.
    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError>;

    /// Starts a second agent, for loads, so that the first can take other orders meanwhile.
    ///
    /// # Errors
    /// When it does not start.
    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError>;

    /// Its machine; empty for this one. Hosts of one machine share processes and counters.
    fn machine(&self) -> &str {
        ""
    }

    /// The address by which the host `from`, of the given access, reaches it.
    fn address(&self, from: &str, access: Access) -> IpAddr {
        let _ = (from, access);
        Ipv4Addr::LOCALHOST.into()
    }

    /// How it reaches others.
    fn access(&self) -> Access {
        Access::Internal
    }

    /// Whether a server could listen on a port.
    fn is_free(&mut self, port: u16) -> bool {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    }

    /// A port for a server.
    fn free_port(&mut self, random: &mut fastrand::Rng) -> u16 {
        let mut port = random.u16(SERVER_PORTS);
        for _ in 0..PORTS_TRIED {
            if self.is_free(port) {
                break;
            }
            port = random.u16(SERVER_PORTS);
        }
        // If all are in use, the server reports it.
        port
    }

    /// The CPUs that it is bound to; empty for all.
    fn cpus(&self) -> &[u32] {
        &[]
    }

    /// The CPUs that programs on its machine may use.
    fn usable_cpus(&self) -> Vec<u32> {
        net::os::allowed_cpus().unwrap_or_default()
    }

    /// The path of `weigh` on its machine, if that is another machine.
    fn remote_program(&self) -> Option<PathBuf> {
        None
    }

    fn link(&self) -> Option<LinkSpec> {
        None
    }

    /// The order to its agent that sets its link up or down; `None` if [`Links`](crate::Links) have
    /// to lose all packets instead.
    fn link_order(&self, up: bool) -> Option<Order> {
        let _ = up;
        None
    }

    /// Its ephemeral ports, if known.
    fn outgoing_ports(&self) -> Option<OutgoingPorts> {
        None
    }

    /// Its CPU quota in CPUs: `None` if no control group accounts its CPU time, `Some(None)` for no
    /// quota.
    fn cpu_quota(&self) -> Option<Option<f64>> {
        None
    }

    /// Sets its CPU quota; `None` restores the declared one.
    ///
    /// # Errors
    /// When its control group does not accept it.
    fn set_cpu_quota(&self, cpus: Option<f64>) -> io::Result<()> {
        let _ = cpus;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends its agent with all that it has started. Returns the agents that have not confirmed that,
    /// and whose end the kernel does not see to.
    fn close(&mut self) -> Vec<Unconfirmed> {
        Vec::new()
    }

    /// Records a further agent that did not confirm its end: the next agent waits for that.
    fn has_left(&mut self, agent: Unconfirmed) {
        let _ = agent;
    }

    /// Its description for `hosts.json`.
    fn inventory(&self) -> Value {
        Value::Null
    }
}

/// This machine, where hosts are not separate.
pub(crate) struct LocalHost {
    pub(crate) weigh: PathBuf,
    pub(crate) agent: agent::Agent,
}

impl LocalHost {
    pub(crate) fn open(weigh: &Path) -> Result<Self, AgentError> {
        Ok(Self {
            weigh: weigh.to_path_buf(),
            agent: agent::Agent::start(weigh)?,
        })
    }
}

impl Host for LocalHost {
    fn name(&self) -> &str {
        ""
    }

    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError> {
        Ok(&mut self.agent)
    }

    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError> {
        Ok(Box::new(agent::Agent::start(&self.weigh)?))
    }

    fn outgoing_ports(&self) -> Option<OutgoingPorts> {
        Some(OutgoingPorts {
            range: agent::port_range()?,
            are_reused: agent::port_reuse().is_some_and(|value| value.trim() == "1"),
            are_own: false,
        })
    }
}

/// Asks an agent whether a server could listen on an address of its machine.
pub(crate) fn is_free_there(agent: &mut dyn AgentHandle, address: SocketAddr) -> bool {
    match agent.ask(&Order::IsFree { address }) {
        Ok(Answer::Free { free }) => free,
        // The server will report it.
        _ => true,
    }
}
