//! Links: the network between a host and the others, with a round-trip time, jitter, loss and a
//! rate.
//!
//! The kernel's netem shapes the packets where it can. Otherwise they pass through this program:
//! each host has a TUN device, and one thread delays every packet until it is due. The modules that
//! decide on packets ([`shape`], [`router`], [`packet`]) use no device and no clock.

mod device;
pub mod packet;
pub mod router;
pub mod shape;

pub(crate) use device::Link;
