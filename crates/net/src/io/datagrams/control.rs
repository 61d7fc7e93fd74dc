//! Control messages of UDP sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::io::stamps;

/// Room for the control messages of one call, in longs: kernel timestamp, GRO size, packet info.
pub(super) const LONGS: usize = 20;

/// Control messages to send.
#[derive(Default)]
pub(super) struct Messages {
    longs: [u64; LONGS],
    len: usize,
}

impl Messages {
    /// Adds the size of each datagram.
    pub(super) fn segment(&mut self, bytes: u16) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
    }

    pub(super) fn source(&mut self, source: IpAddr) {
        match source {
            IpAddr::V4(ip) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(ip.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(ip) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr {
                        s6_addr: ip.octets(),
                    },
                    ipi6_ifindex: 0,
                };
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
    }

    fn push<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
        let head = size_of::<libc::cmsghdr>();
        let space = (head + size_of::<T>()).next_multiple_of(size_of::<usize>());
        assert!(self.len + space <= LONGS * 8);
        let at = self.longs.as_mut_ptr().cast::<u8>();
        // SAFETY: the message lies within `longs` by the check above, which is aligned for a
        // cmsghdr as `len` is a multiple of a long; the value is written unaligned.
        unsafe {
            let message = at.add(self.len).cast::<libc::cmsghdr>();
            (*message).cmsg_len = (head + size_of::<T>()) as _;
            (*message).cmsg_level = level;
            (*message).cmsg_type = kind;
            at.add(self.len + head).cast::<T>().write_unaligned(value);
        }
        self.len += space;
    }

    pub(super) fn attach(&mut self, message: &mut libc::msghdr) {
        if self.len > 0 {
            message.msg_control = self.longs.as_mut_ptr().cast();
            message.msg_controllen = self.len as _;
        }
    }
}

/// What the control messages say about received datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The size of each datagram, if several were joined.
    pub(super) segment: Option<usize>,
    pub(super) to: Option<IpAddr>,
    /// ns of CLOCK_MONOTONIC; 0 if unknown.
    pub(super) arrived_ns: u64,
}

/// Reads control messages. `ahead_ns`: see [`stamps::ahead_ns`].
pub(super) fn read(mut bytes: &[u8], ahead_ns: i64) -> Said {
    let head = size_of::<libc::cmsghdr>();
    let long = size_of::<usize>();
    let mut said = Said::default();
    while let Some((len, rest)) = bytes.split_first_chunk::<{ size_of::<usize>() }>() {
        let len = usize::from_ne_bytes(*len);
        let (Some(message), Some(data)) = (bytes.get(..len), bytes.get(head..len)) else {
            break;
        };
        let int = |at: usize| {
            let four = rest.get(at..at + 4).and_then(|four| four.first_chunk());
            four.map_or(-1, |four| i32::from_ne_bytes(*four))
        };
        match (int(0), int(4)) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                said.segment = data
                    .first_chunk()
                    .and_then(|four| usize::try_from(i32::from_ne_bytes(*four)).ok());
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // The interface, the local address, the address in the packet's header.
                let ip = data.get(8..12).and_then(|four| four.first_chunk::<4>());
                said.to = ip.map(|ip| Ipv4Addr::from(*ip).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let ip = data.first_chunk::<16>();
                said.to = ip.map(|ip| Ipv6Addr::from(*ip).into());
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                said.arrived_ns = stamps::arrival_ns(message, ahead_ns).unwrap_or(0);
            }
            _ => {}
        }
        bytes = bytes.get(len.next_multiple_of(long)..).unwrap_or_default();
    }
    said
}
