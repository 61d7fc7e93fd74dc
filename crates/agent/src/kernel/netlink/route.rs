//! Devices, addresses and routes by rtnetlink(7), with the numbers of `linux/if_link.h` and
//! `linux/rtnetlink.h`.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use crate::kernel::netlink::{AF_INET, AF_INET6, Message, NEW, Netlink, attribute, text, u32_at};

/// The device that connects a host to the others.
pub const DEVICE: &str = "net0";

const NETLINK_ROUTE: i32 = 0;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;

const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RTN_LOCAL: u8 = 2;
const ARPHRD_ETHER: u16 = 1;

const IFF_UP: u32 = 1;

/// `struct ifinfomsg`; sets the flags of `change`.
fn interface(index: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&change.to_ne_bytes());
    header[12..].copy_from_slice(&change.to_ne_bytes());
    header
}

/// An rtnetlink socket, in the network namespace that it was opened in.
pub struct Route(pub(crate) Netlink);

/// Where packets to an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteTo {
    /// The index of the device.
    pub(crate) device: u32,
    /// Whether it is an address of this network namespace itself.
    pub(crate) is_local: bool,
    /// The source address of packets there, unless a program chooses another one.
    pub(crate) source: Option<IpAddr>,
}

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) gso_max_segs: u32,
    /// Whether packets have an Ethernet header on it.
    pub(crate) is_ethernet: bool,
}

impl Route {
    /// Opens one in the namespace of this thread.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open() -> io::Result<Self> {
        Netlink::open(NETLINK_ROUTE).map(Self)
    }

    /// Sends a request that changes something.
    pub(crate) fn order(&mut self, message: Message) -> io::Result<()> {
        self.0.request(message).map(drop)
    }

    /// The index of a device.
    pub fn index(&mut self, name: &str) -> io::Result<u32> {
        let mut message = Message::acknowledged(RTM_GETLINK, 0, &interface(0, 0));
        message.name(IFLA_IFNAME, name);
        let answer = self.0.request(message)?;
        if answer.len() < 16 {
            return Err(io::Error::other("the kernel named no index"));
        }
        Ok(u32_at(&answer, 4))
    }

    /// Creates a bridge.
    pub fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        let mut message = link(NEW, 0, 0);
        message.name(IFLA_IFNAME, name).nest(IFLA_LINKINFO, |info| {
            info.attribute(IFLA_INFO_KIND, b"bridge");
        });
        self.order(message)
    }

    /// Creates a pair of virtual Ethernet devices (veth), one of them in another namespace.
    pub fn add_pair(&mut self, here: &str, there: &str, namespace: &File) -> io::Result<()> {
        let mut message = link(NEW, 0, 0);
        message.name(IFLA_IFNAME, here).nest(IFLA_LINKINFO, |info| {
            info.attribute(IFLA_INFO_KIND, b"veth");
            info.nest(IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |peer| {
                    peer.raw(&interface(0, 0))
                        .name(IFLA_IFNAME, there)
                        .number(IFLA_NET_NS_FD, namespace.as_raw_fd() as u32);
                });
            });
        });
        self.order(message)
    }

    /// Attaches a device to a bridge.
    pub fn plug(&mut self, device: u32, bridge: u32) -> io::Result<()> {
        let mut message = link(0, device, 0);
        message.number(IFLA_MASTER, bridge);
        self.order(message)
    }

    /// Sets a device up.
    pub fn up(&mut self, device: u32) -> io::Result<()> {
        self.order(link(0, device, IFF_UP))
    }

    /// Sets a device down.
    pub fn down(&mut self, device: u32) -> io::Result<()> {
        let mut header = interface(device, IFF_UP);
        header[8..12].copy_from_slice(&0_u32.to_ne_bytes());
        self.order(Message::acknowledged(RTM_NEWLINK, 0, &header))
    }

    /// Sets the length of a device's transmit queue.
    pub fn queue(&mut self, device: u32, packets: u32) -> io::Result<()> {
        let mut message = link(0, device, 0);
        message.number(IFLA_TXQLEN, packets);
        self.order(message)
    }

    /// Turns segmentation offload off, so that packets are as on a wire.
    pub fn single_packets(&mut self, device: u32) -> io::Result<()> {
        self.set_gso_max_segs(device, 1)
    }

    /// Adds an address to a device.
    pub fn address(&mut self, device: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut header = [AF_INET, prefix, 0, 0, 0, 0, 0, 0];
        header[4..].copy_from_slice(&device.to_ne_bytes());
        let mut message = Message::acknowledged(RTM_NEWADDR, NEW, &header);
        message
            .attribute(IFA_LOCAL, &address.octets())
            .attribute(IFA_ADDRESS, &address.octets());
        self.order(message)
    }

    /// Adds a default route into a device.
    pub fn default_route(&mut self, device: u32) -> io::Result<()> {
        const TABLE_MAIN: u8 = 254;
        const FROM_BOOT: u8 = 3;
        const SCOPE_LINK: u8 = 253;
        const UNICAST: u8 = 1;
        let header = [
            AF_INET, 0, 0, 0, TABLE_MAIN, FROM_BOOT, SCOPE_LINK, UNICAST, 0, 0, 0, 0,
        ];
        let mut message = Message::acknowledged(RTM_NEWROUTE, NEW, &header);
        message.number(RTA_OIF, device);
        self.order(message)
    }

    /// Where packets to an address go.
    pub(crate) fn to(&mut self, address: IpAddr) -> io::Result<RouteTo> {
        let (family, bytes) = match address {
            IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
        };
        let mut header = [0; 12];
        header[0] = family;
        header[1] = 8 * bytes.len() as u8;
        let mut message = Message::acknowledged(RTM_GETROUTE, 0, &header);
        message.attribute(RTA_DST, &bytes);
        let answer = self.0.request(message)?;
        let none = || io::Error::other("the kernel named no device");
        let parts = answer.get(header.len()..).ok_or_else(none)?;
        let part = |kind, length| attribute(parts, kind).filter(|value| value.len() == length);
        let source = part(RTA_PREFSRC, bytes.len());
        Ok(RouteTo {
            device: u32_at(part(RTA_OIF, 4).ok_or_else(none)?, 0),
            is_local: answer[7] == RTN_LOCAL,
            source: source.and_then(address_of),
        })
    }

    pub(crate) fn device(&mut self, index: u32) -> io::Result<Device> {
        let message = Message::acknowledged(RTM_GETLINK, 0, &interface(index, 0));
        let answer = self.0.request(message)?;
        let none = || io::Error::other("the kernel did not describe the device");
        let parts = answer.get(16..).ok_or_else(none)?;
        let segments = attribute(parts, IFLA_GSO_MAX_SEGS).filter(|value| value.len() == 4);
        Ok(Device {
            name: text(attribute(parts, IFLA_IFNAME).ok_or_else(none)?),
            gso_max_segs: u32_at(segments.ok_or_else(none)?, 0),
            is_ethernet: answer[2..4] == ARPHRD_ETHER.to_ne_bytes(),
        })
    }

    /// Sets how many segments a packet may have that a device, or the kernel for it, divides.
    pub(crate) fn set_gso_max_segs(&mut self, device: u32, segments: u32) -> io::Result<()> {
        let mut message = link(0, device, 0);
        message.number(IFLA_GSO_MAX_SEGS, segments);
        self.order(message)
    }
}

/// An address in an attribute.
fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

fn link(flags: u16, index: u32, change: u32) -> Message {
    Message::acknowledged(RTM_NEWLINK, flags, &interface(index, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_to_an_own_address_is_local() {
        let mut route = Route::open().unwrap();
        let lo = route.index("lo").unwrap();
        for address in ["127.0.0.1", "::1"] {
            // A machine may have no IPv6.
            let Ok(to) = route.to(address.parse().unwrap()) else {
                assert_eq!(address, "::1");
                continue;
            };
            assert_eq!((to.device, to.is_local), (lo, true), "{address}");
            assert_eq!(to.source, address.parse().ok(), "{address}");
        }
        let device = route.device(lo).unwrap();
        assert_eq!((device.name.as_str(), device.is_ethernet), ("lo", false));
        assert!(device.gso_max_segs >= 1, "{device:?}");
    }
}
