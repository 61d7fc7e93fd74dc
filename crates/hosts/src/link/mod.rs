//! Links: the network between a host and the others, with a round trip, jitter, loss and a rate.
//!
//! Where the kernel has netem it shapes the packets. Otherwise they pass through this program: each
//! host has a TUN device, and one thread holds every packet back until it is due. The parts that
//! decide what happens to a packet ([`shape`], [`router`], [`packet`]) know no device and no clock.

mod device;
pub(crate) mod netem;
pub mod packet;
pub mod router;
pub mod shape;

pub(crate) use device::Link;
