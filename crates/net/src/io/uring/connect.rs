//! Opening connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, IntoRawFd};

use io_uring::types::{DestinationSlot, Fixed};
use io_uring::{opcode, squeue};

use super::entries::{File, SEND_FLAGS};
use super::{AT_ONCE_MAX, Op, Slot, Uring, user_data};
use crate::address::{self, Address, RawAddress};
use crate::io::stamps;
use crate::io::{ConnId, PayloadId, TargetId};
use crate::os;

/// What connections are opened to.
pub(super) struct TargetAddress {
    family: i32,
    address: Box<RawAddress>,
    sources: Vec<RawAddress>,
    turn: usize,
    /// Whether its connections are files of the process, with `TCP_NODELAY`: kernels before 6.7 set
    /// no options of sockets in the ring's table.
    pub(super) is_descriptor: bool,
}

impl TargetAddress {
    pub(super) fn new(address: &Address, sources: &[SocketAddr]) -> Self {
        Self {
            family: address.family(),
            address: Box::new(address.raw()),
            sources: sources.iter().map(address::inet).collect(),
            turn: 0,
            is_descriptor: false,
        }
    }
}

impl Uring {
    pub(super) fn open_connection(
        &mut self,
        target: TargetId,
        first: Option<PayloadId>,
    ) -> io::Result<ConnId> {
        if self.files || self.targets[target.number()].is_descriptor {
            return self.open_descriptor(target, first);
        }
        let Some(index) = self.free.pop() else {
            return Err(io::Error::other(format!(
                "all {} connection slots are in use",
                self.outgoing
            )));
        };
        let (chained, later) = match first {
            Some(payload) if self.payloads[payload.0 as usize].len() > AT_ONCE_MAX => (None, first),
            _ => (first, None),
        };
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation.wrapping_add(1) & 0xff_ffff;
        *slot = Slot {
            generation,
            open: true,
            outgoing: true,
            receiving: true,
            pending: 3,
            quiet: chained.is_some(),
            first: later,
            ..Slot::default()
        };
        let conn = ConnId { index, generation };
        self.room_for(7);
        let data = |op| user_data(op, generation, index);
        let link = squeue::Flags::IO_LINK;
        let place = DestinationSlot::try_from_slot_target(index)
            .map_err(|_| io::Error::other("connection slot out of range"))?;
        let address = &self.targets[target.0 as usize];
        let family = address.family;
        let (to, to_len) = (
            &raw const address.address.0 as *const libc::sockaddr,
            address.address.1,
        );
        let source = (!address.sources.is_empty()).then(|| {
            let source = &address.sources[address.turn % address.sources.len()];
            (&raw const source.0 as *const libc::sockaddr, source.1)
        });
        self.push(
            opcode::Socket::new(family, libc::SOCK_STREAM, 0)
                .file_index(Some(place))
                .build()
                .flags(link)
                .user_data(data(Op::Socket)),
        );
        if let Some((from, from_len)) = source {
            self.targets[target.0 as usize].turn += 1;
            self.slots[index as usize].pending += 2;
            self.push(
                opcode::SetSockOpt::new(
                    Fixed(index),
                    libc::SOL_IP as u32,
                    libc::IP_BIND_ADDRESS_NO_PORT as u32,
                    (&raw const *self.one).cast(),
                    4,
                )
                .build()
                .flags(link)
                .user_data(data(Op::Socket)),
            );
            self.push(
                opcode::Bind::new(Fixed(index), from, from_len)
                    .build()
                    .flags(link)
                    .user_data(data(Op::Socket)),
            );
        }
        self.push(
            opcode::Connect::new(Fixed(index), to, to_len)
                .build()
                .flags(link)
                .user_data(data(Op::Connect)),
        );
        if let Some(payload) = chained {
            let bytes = &self.payloads[payload.0 as usize];
            let (pointer, len) = (bytes.as_ptr(), bytes.len() as u32);
            self.slots[index as usize].pending += 1;
            self.push(
                opcode::Send::new(Fixed(index), pointer, len)
                    .flags(SEND_FLAGS)
                    .build()
                    .flags(link)
                    .user_data(data(Op::ChainSend)),
            );
        }
        let group = self.buffers.group();
        self.push(
            opcode::RecvMulti::new(Fixed(index), group)
                .build()
                .user_data(data(Op::Recv)),
        );
        Ok(conn)
    }

    /// As above, if the connection is a file of the process: the socket is created by a system call,
    /// so that no chain is needed, and receiving begins when the connection is open.
    fn open_descriptor(
        &mut self,
        target: TargetId,
        first: Option<PayloadId>,
    ) -> io::Result<ConnId> {
        let address = &mut self.targets[target.0 as usize];
        let socket = os::stream_socket(address.family, false)?;
        let fd = socket.as_raw_fd();
        if address.family != libc::AF_UNIX {
            os::set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        }
        if self.stamps.is_some() {
            stamps::ask(fd)?;
        }
        if !address.sources.is_empty() {
            let (source, len) = &address.sources[address.turn % address.sources.len()];
            address.turn += 1;
            os::set_option(fd, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            // SAFETY: `source` holds a socket address of length `len`.
            os::check(unsafe { libc::bind(fd, (&raw const *source).cast(), *len) })?;
        }
        let (to, to_len) = (
            &raw const address.address.0 as *const libc::sockaddr,
            address.address.1,
        );
        let Some(index) = self.free.pop() else {
            return Err(io::Error::other("all connection slots are in use"));
        };
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation.wrapping_add(1) & 0xff_ffff;
        *slot = Slot {
            generation,
            open: true,
            outgoing: true,
            pending: 1,
            first,
            descriptor: Some(socket.into_raw_fd()),
            ..Slot::default()
        };
        let entry = File::Descriptor(fd)
            .connect(to, to_len)
            .user_data(user_data(Op::Connect, generation, index));
        self.push(entry);
        Ok(ConnId { index, generation })
    }
}
