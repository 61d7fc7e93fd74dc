//! Opening connections.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

use io_uring::types::{DestinationSlot, Fixed};
use io_uring::{opcode, squeue};

use super::entries::{File, SEND_FLAGS};
use super::{AT_ONCE_MAX, Op, Slot, Uring, user_data};
use crate::io::target::all_in_use;
use crate::io::{ConnId, PayloadId, TargetId};

impl Uring {
    pub(super) fn open_connection(
        &mut self,
        target: TargetId,
        first: Option<PayloadId>,
    ) -> io::Result<ConnId> {
        // Kernels before 6.7 set no options of sockets in the ring's table.
        if self.targets[target.number()].no_delay {
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
        let slot = Slot {
            receiving: true,
            pending: 3,
            quiet: chained.is_some(),
            first: later,
            ..Slot::default()
        };
        let conn = self.occupy(index, slot);
        self.room_for(7);
        let data = |op| user_data(op, conn.generation, index);
        let link = squeue::Flags::IO_LINK;
        let place = DestinationSlot::try_from_slot_target(index)
            .map_err(|_| io::Error::other("connection slot out of range"))?;
        let address = &mut self.targets[target.number()];
        let family = address.family;
        let (to, to_len) = (
            &raw const address.address.0 as *const libc::sockaddr,
            address.address.1,
        );
        let source = address
            .next_source()
            .map(|source| (&raw const source.0 as *const libc::sockaddr, source.1));
        self.push(
            opcode::Socket::new(family, libc::SOCK_STREAM, 0)
                .file_index(Some(place))
                .build()
                .flags(link)
                .user_data(data(Op::Socket)),
        );
        if let Some((from, from_len)) = source {
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

    /// Gives a free slot to a new connection of this side.
    pub(super) fn occupy(&mut self, index: u32, new: Slot) -> ConnId {
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation.wrapping_add(1) & 0xff_ffff;
        *slot = Slot {
            generation,
            open: true,
            outgoing: true,
            ..new
        };
        ConnId { index, generation }
    }

    /// As above, if the connection is a file of the process: the socket is created by a system call,
    /// so that no chain is needed, and receiving begins when the connection is open.
    fn open_descriptor(
        &mut self,
        target: TargetId,
        first: Option<PayloadId>,
    ) -> io::Result<ConnId> {
        let address = &mut self.targets[target.number()];
        let socket = address.socket(false, self.stamps.is_some())?;
        let fd = socket.as_raw_fd();
        let (to, to_len) = (
            &raw const address.address.0 as *const libc::sockaddr,
            address.address.1,
        );
        let index = self.free.pop().ok_or_else(all_in_use)?;
        let slot = Slot {
            pending: 1,
            first,
            descriptor: Some(socket.into_raw_fd()),
            ..Slot::default()
        };
        let conn = self.occupy(index, slot);
        let entry = File::Descriptor(fd)
            .connect(to, to_len)
            .user_data(user_data(Op::Connect, conn.generation, index));
        self.push(entry);
        Ok(conn)
    }
}
