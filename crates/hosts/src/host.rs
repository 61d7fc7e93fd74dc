//! Where servers and loads of an experiment run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use agent::{AgentError, AgentHandle};
use readings::{Access, LinkSpec};
use serde_json::Value;

/// Ports that servers get: below the range that the kernel gives to outgoing connections, so that
/// the load's own connections cannot take them.
const SERVER_PORTS: std::ops::Range<u16> = 18_000..32_000;
/// How many ports are tried where each has to be asked for.
const PORTS_TRIED: usize = 1_000;

/// The ports of a host's outgoing connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingPorts {
    /// The first and the last.
    pub range: (u16, u16),
    /// Whether a port is used again a second after its connection has ended (`tcp_tw_reuse=1`).
    pub are_reused: bool,
    /// Whether the range is the host's alone, so that it may be changed.
    pub are_own: bool,
}

/// A host of an experiment: the agent there, and what is known of the place.
///
/// The defaults are those of a host without a network, a link and a control group of its own.
pub trait Host {
    /// Its name in the experiment; empty for this machine where hosts are not apart.
    fn name(&self) -> &str;

    /// Its agent.
    ///
    /// # Errors
    /// [`AgentError::Lost`] when there is none any more.
    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError>;

    /// A second agent there, which makes loads while the first one takes other orders.
    ///
    /// # Errors
    /// When it does not start.
    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError>;

    /// The machine that it is on: hosts of one machine share processes and counters. Empty for
    /// this one.
    fn machine(&self) -> &str {
        ""
    }

    /// The address by which the host `from`, whose access is given, reaches it.
    fn address(&self, from: &str, access: Access) -> IpAddr {
        let _ = (from, access);
        Ipv4Addr::LOCALHOST.into()
    }

    /// How it reaches others.
    fn access(&self) -> Access {
        Access::Internal
    }

    /// Whether a server could listen at a port.
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
        // Where all are taken the server reports it.
        port
    }

    /// The CPUs that its control group keeps programs to; empty for all.
    fn cpus(&self) -> &[u32] {
        &[]
    }

    /// The path of `weigh` there, where that is another one than here.
    fn remote_program(&self) -> Option<PathBuf> {
        None
    }

    /// What lies between it and the others.
    fn link(&self) -> Option<LinkSpec> {
        None
    }

    /// Whether everything that it sends goes into its link, and not only what is for its network.
    fn routes_into_link(&self) -> bool {
        false
    }

    /// The ports of its outgoing connections, where they can be read.
    fn outgoing_ports(&self) -> Option<OutgoingPorts> {
        None
    }

    /// Whether its control group bounds the CPU time of its programs, and to how many CPUs.
    fn cpu_quota(&self) -> Option<Option<f64>> {
        None
    }

    /// Bounds the CPU time of its programs to so many CPUs; `None` gives back the declared bound.
    ///
    /// # Errors
    /// When its control group takes no such bound.
    fn set_cpu_quota(&self, cpus: Option<f64>) -> io::Result<()> {
        let _ = cpus;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What is known of it, for `hosts.json`.
    fn inventory(&self) -> Value {
        Value::Null
    }
}

/// Hosts that are not apart: one agent on this machine.
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

/// Whether a server of another machine could listen at an address, by its agent.
pub(crate) fn is_free_there(agent: &mut dyn AgentHandle, address: SocketAddr) -> bool {
    use agent::wire::{Answer, Order};
    match agent.ask(&Order::IsFree { address }) {
        Ok(Answer::Free { free }) => free,
        // Then the server reports it.
        _ => true,
    }
}
