//! A host in namespaces of this machine.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use agent::wire::Order;
use agent::{Agent, AgentError, AgentHandle};
use readings::{Access, HostSpec, LinkKind, LinkSpec};
use serde_json::{Value, json};

use crate::host::{Host, OutgoingPorts};
use crate::namespaces::topology::{BuiltHost, Topology, TopologyError};

const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";
const PORT_REUSE: &str = "net.ipv4.tcp_tw_reuse";

pub(crate) struct NamespaceHost {
    spec: HostSpec,
    agent: Agent,
    topology: Rc<RefCell<Topology>>,
}

impl NamespaceHost {
    pub(crate) fn open(
        spec: &HostSpec,
        topology: &Rc<RefCell<Topology>>,
    ) -> Result<Self, TopologyError> {
        let agent = topology.borrow().agent_in(&spec.name)?;
        Ok(Self {
            spec: spec.clone(),
            agent,
            topology: topology.clone(),
        })
    }

    fn with<T>(&self, read: impl FnOnce(&BuiltHost) -> Option<T>) -> Option<T> {
        let topology = self.topology.borrow();
        read(topology.host(&self.spec.name).ok()?)
    }
}

impl Host for NamespaceHost {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn agent(&mut self) -> Result<&mut dyn AgentHandle, AgentError> {
        Ok(&mut self.agent)
    }

    fn start_agent(&self) -> Result<Box<dyn AgentHandle>, AgentError> {
        match self.topology.borrow().agent_in(&self.spec.name) {
            Ok(agent) => Ok(Box::new(agent)),
            Err(TopologyError::Agent { source, .. }) => Err(source),
            Err(other) => Err(AgentError::Lost(other.to_string())),
        }
    }

    fn address(&self, from: &str, access: Access) -> IpAddr {
        let address = self.with(|host| {
            Some(match access {
                Access::External if from != self.spec.name => host.external_address,
                _ => host.address,
            })
        });
        // The topology knows every host that it built.
        address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }

    fn access(&self) -> Access {
        self.spec.access
    }

    /// It has a network of its own, with no other servers than the run's.
    fn is_free(&mut self, _: u16) -> bool {
        true
    }

    fn cpus(&self) -> &[u32] {
        &self.spec.cpus
    }

    fn link(&self) -> Option<LinkSpec> {
        self.spec.link
    }

    fn link_order(&self, up: bool) -> Option<Order> {
        Some(Order::Link {
            up,
            // In user space the default route leads into the link.
            routed: self.topology.borrow().kind == LinkKind::UserSpace,
        })
    }

    fn outgoing_ports(&self) -> Option<OutgoingPorts> {
        self.with(|host| {
            let reuse = host.settings.get(PORT_REUSE);
            Some(OutgoingPorts {
                range: agent::parse_port_range(host.settings.get(PORT_RANGE)?)?,
                are_reused: reuse.is_some_and(|value| value.trim() == "1"),
                are_own: true,
            })
        })
    }

    fn cpu_quota(&self) -> Option<Option<f64>> {
        let accounts = self.with(|host| Some(host.accounts_cpu_time()))?;
        accounts.then_some(self.spec.quota)
    }

    fn set_cpu_quota(&self, cpus: Option<f64>) -> io::Result<()> {
        let topology = self.topology.borrow();
        let set = topology.set_cpu_quota(&self.spec.name, cpus);
        set.map_err(io::Error::other)
    }

    fn inventory(&self) -> Value {
        let inventory = self.with(|host| {
            Some(json!({
                "address": host.address,
                "external_address": host.external_address,
                "access": self.spec.access,
                "cpus": self.spec.cpus,
                "cpus_bound_by": if host.cpus_bound { "control group" } else { "affinity" },
                "quota_cpus": self.spec.quota,
                "link": self.spec.link,
                "settings": host.settings,
            }))
        });
        inventory.unwrap_or_default()
    }
}
