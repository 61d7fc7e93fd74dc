//! Hosts on one machine: network namespaces, wired to each other, with links between them.
//!
//! Nothing is made in the machine's own namespaces. A process of its own, `weigh wiring`, makes a
//! network namespace for the wires and, for each host, one of network, mounts and host name. None
//! of them has a name outside: they live as long as that process and what runs inside, and so do
//! all devices. An agent is started inside by entering them before its program begins; from then on
//! it is an agent as any other.

pub(crate) mod groups;
mod lacking;
pub(crate) mod leftovers;
mod namespace;
pub(crate) mod netlink;
mod setting;
mod wire;
mod wiring;
mod world;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::link::LinkSpec;
use crate::link::router::Addresses;

pub use lacking::lacking;
pub use leftovers::sweep;
pub(crate) use namespace::DEVICE;
pub use setting::SettingError;
pub use wiring::serve;
pub use world::{BuiltHost, World, WorldError, WorldOptions};

/// The most hosts that a world can have: their numbers are the last bytes of addresses.
pub const HOSTS_MAX: usize = 250;

/// Addresses of hosts: a private network (RFC 1918).
const INTERNAL: [u8; 3] = [10, 77, 0];
/// Addresses that hosts are known by from outside: of the range that is set aside for measurements
/// of network devices (RFC 2544).
const EXTERNAL: [u8; 3] = [198, 18, 77];

/// By which addresses a host reaches the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// By their own.
    #[default]
    Internal,
    /// By external ones, which are translated on the way, as from outside of a data centre.
    External,
}

/// A host to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its name, by which the others know it.
    pub name: String,
    /// The CPUs of its programs; empty for all.
    pub cpus: Vec<u32>,
    /// How many CPUs' time its programs may use together, such as 0.5; `None` for no bound.
    pub quota: Option<f64>,
    /// What lies between it and the others; `None` for nothing.
    pub link: Option<LinkSpec>,
    /// How it reaches the others.
    pub access: Access,
    /// Settings of the kernel's network, such as `net.core.somaxconn`, and their values.
    pub settings: Vec<(String, String)>,
    /// What `ssh` calls the machine that it is, such as `user@host`; `None` for this machine.
    #[serde(default)]
    pub ssh: Option<String>,
    /// A `weigh` for that machine, where it needs another one than this.
    #[serde(default)]
    pub ssh_binary: Option<PathBuf>,
    /// The address by which other machines reach its servers.
    #[serde(default)]
    pub address: Option<IpAddr>,
}

/// The addresses of the host with a number, counted from 0.
fn addresses(number: usize) -> Addresses {
    // At most HOSTS_MAX, which the caller has checked.
    let last = number as u8 + 1;
    let address = |[a, b, c]: [u8; 3]| Ipv4Addr::new(a, b, c, last);
    Addresses {
        internal: address(INTERNAL),
        external: address(EXTERNAL),
    }
}
