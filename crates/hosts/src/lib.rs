//! Where the servers and loads of an experiment run: this machine, namespaces with links, or
//! machines behind a pipe, of ssh or another command. A run sees one as [`Host`], all as [`Hosts`].
//!
//! Hosts on one machine are network namespaces, joined by links. A process, `weigh netns-holder`,
//! creates a network namespace for the links, and for each host network, mount and UTS namespaces.
//! None is named, so they vanish with all their devices when that process and those inside have
//! ended. An agent enters them before it executes its program.
//!
//! Between machines, links are made by the agents there.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod engine;
mod host;
mod lacking;
mod links;
mod machine_links;
mod namespaces;
mod remote_host;
mod set;

use std::net::Ipv4Addr;

use crate::namespaces::link::router::Addresses;

pub use host::{Host, HostsByName, OutgoingPorts, Unconfirmed};
pub use lacking::lacking;
pub use links::Links;
pub use machine_links::MachineLinks;
pub use namespaces::link;
pub use namespaces::netns_holder::serve;
pub use namespaces::setting::SettingError;
pub use namespaces::topology::{BuiltHost, Topology, TopologyError, TopologyOptions};
pub use set::{Hosts, HostsError, HostsSpec};

/// Most hosts of a topology: the host number is the last byte of its addresses.
pub const HOSTS_MAX: usize = 250;

/// Internal addresses: a private network (RFC 1918).
const INTERNAL: [u8; 3] = [10, 77, 0];
/// External addresses: of the range for benchmarks (RFC 2544).
const EXTERNAL: [u8; 3] = [198, 18, 77];

/// The addresses of a host, numbered from 0.
fn addresses(number: usize) -> Addresses {
    // At most HOSTS_MAX; the caller has checked.
    let last = number as u8 + 1;
    let address = |[a, b, c]: [u8; 3]| Ipv4Addr::new(a, b, c, last);
    Addresses {
        internal: address(INTERNAL),
        external: address(EXTERNAL),
    }
}
