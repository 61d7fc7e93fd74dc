//! Where the servers and loads of an experiment run: this machine, namespaces with links, or
//! machines behind ssh. [`Host`] is what a run sees of one, [`Hosts`] of all.
//!
//! Hosts on one machine are network namespaces, joined by links. Nothing is made in the machine's own namespaces. A process of its own, `weigh netns-holder`, makes a
//! network namespace for the wires and, for each host, one of network, mounts and host name. None
//! of them has a name outside: they live as long as that process and what runs inside, and so do
//! all devices. An agent is started inside by entering them before its program begins; from then on
//! it is an agent as any other.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod groups;
mod holder_protocol;
mod host;
mod lacking;
pub mod link;
mod namespace;
mod namespace_host;
mod netns_holder;
mod remote_host;
mod set;
mod setting;
mod topology;

use std::net::Ipv4Addr;

use crate::link::router::Addresses;

pub use host::{Host, OutgoingPorts};
pub use lacking::lacking;
pub use netns_holder::serve;
pub use set::{Hosts, HostsError, HostsSpec, Links};
pub use setting::SettingError;
pub use topology::{BuiltHost, Topology, TopologyError, TopologyOptions};

/// The most hosts that a topology can have: their numbers are the last bytes of addresses.
pub const HOSTS_MAX: usize = 250;

/// Addresses of hosts: a private network (RFC 1918).
const INTERNAL: [u8; 3] = [10, 77, 0];
/// Addresses that hosts are known by from outside: of the range that is set aside for measurements
/// of network devices (RFC 2544).
const EXTERNAL: [u8; 3] = [198, 18, 77];

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
