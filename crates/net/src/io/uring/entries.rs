//! Submission entries for a connection's file, in the ring's table or of the process.

use io_uring::types::{CancelBuilder, Fd, Fixed};
use io_uring::{opcode, squeue};

pub(super) const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// In the ring's own table.
    Fixed(u32),
    Descriptor(i32),
}

/// Builds an operation for either kind of file.
macro_rules! on {
    ($file:expr, |$name:ident| $make:expr) => {
        match $file {
            File::Fixed(index) => {
                let $name = Fixed(index);
                $make
            }
            File::Descriptor(fd) => {
                let $name = Fd(fd);
                $make
            }
        }
    };
}

impl File {
    pub(super) fn receive(self, group: u16) -> squeue::Entry {
        on!(self, |file| opcode::RecvMulti::new(file, group).build())
    }

    /// Receives so many bytes in all, where the kernel can: see [`super::ahead`].
    pub(super) fn receive_limited(self, group: u16, bytes: u32) -> squeue::Entry {
        let mut entry = self.receive(group);
        // SAFETY: an entry has 64 bytes in the kernel's layout; `optlen`, which the crate cannot set,
        // is the 32-bit number at byte 44 of it.
        unsafe {
            std::ptr::from_mut(&mut entry)
                .cast::<u32>()
                .add(11)
                .write(bytes)
        };
        entry
    }

    /// Receives with the messages of the kernel that `room` has room for.
    pub(super) fn receive_stamped(self, room: *const libc::msghdr, group: u16) -> squeue::Entry {
        on!(self, |file| opcode::RecvMsgMulti::new(file, room, group)
            .build())
    }

    pub(super) fn receive_one(self, group: u16) -> squeue::Entry {
        on!(self, |file| opcode::Recv::new(
            file,
            std::ptr::null_mut(),
            0
        )
        .buf_group(group)
        .build())
        .flags(squeue::Flags::BUFFER_SELECT)
    }

    pub(super) fn send(self, bytes: *const u8, len: usize) -> squeue::Entry {
        on!(self, |file| opcode::Send::new(file, bytes, len as u32)
            .flags(SEND_FLAGS)
            .build())
    }

    pub(super) fn connect(
        self,
        address: *const libc::sockaddr,
        len: libc::socklen_t,
    ) -> squeue::Entry {
        on!(self, |file| opcode::Connect::new(file, address, len)
            .build())
    }

    /// Cancels all operations on the file.
    pub(super) fn cancel_all(self) -> squeue::Entry {
        let all = match self {
            File::Fixed(index) => CancelBuilder::fd(Fixed(index)),
            File::Descriptor(fd) => CancelBuilder::fd(Fd(fd)),
        };
        opcode::AsyncCancel2::new(all.all()).build()
    }

    pub(super) fn close(self) -> squeue::Entry {
        on!(self, |file| opcode::Close::new(file).build())
    }
}
