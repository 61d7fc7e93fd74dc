//! The event loop on io_uring.
//!
//! Sockets are in the ring's own file table, receiving is multishot into provided buffers, and all
//! operations of a turn are submitted in one call. Connect, the first send and the first receive
//! are one chain of linked operations.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd};
use std::sync::Arc;

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::address::Address;
use crate::io::accepting::Pausing;
use crate::io::target::{Target, all_in_use};
use crate::io::{Buf, ConnId, Event, Io, IoOptions, PayloadId, TargetId};
use crate::os;

mod accepting;
mod ahead;
mod buffers;
mod closing;
mod connect;
mod entries;
mod events;
mod op;
mod sending;
mod stamped;
mod submitting;
#[cfg(test)]
mod tests;
mod wait;
use ahead::{AHEAD_MAX, Receiving};
use buffers::BufferRing;
use entries::File;
use op::Op;
use sending::QuietCopies;
use stamped::Stamps;

const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 8192;
/// So many bytes always fit into an empty send buffer, so that sending them never blocks. Longer
/// requests are queued: the answer may come before the whole request was sent.
const AT_ONCE_MAX: usize = 16 * 1024;
/// `IORING_REGISTER_FILE_ALLOC_RANGE`, which the io-uring crate lacks.
const REGISTER_FILE_ALLOC_RANGE: u32 = 25;

#[derive(Default)]
struct Slot {
    generation: u32,
    /// Outstanding completions of this slot.
    pending: u16,
    open: bool,
    outgoing: bool,
    receiving: bool,
    /// The number of completed receives of this turn that were not taken yet; counted only if
    /// connections are files.
    unread: u16,
    paused: bool,
    /// It sends faster than its data is consumed: single receives, so that a pause is never
    /// followed by more than one buffer.
    careful: bool,
    /// Received data has a kernel timestamp.
    stamped: bool,
    /// The receive under way ends with its first buffer.
    is_single: bool,
    /// The last receive has ended, and may have left data in the socket.
    may_have_more: bool,
    /// A quiet send may still be under way.
    quiet: bool,
    finish: bool,
    /// A shutdown is under way. The kernel's worker thread looks up the file by its slot later, so
    /// the slot must not be closed and reused before.
    shutting: bool,
    close_after_shutdown: bool,
    failed: bool,
    /// The errno of a send that failed; 0 if none has. What was received before is passed on first.
    broken: i32,
    /// [`Event::Eof`] was reported.
    ended: bool,
    /// Sent once the connection is open, if it is too long for the chain.
    first: Option<PayloadId>,
    sends: VecDeque<Outgoing>,
    /// The descriptor, if connections are files of the process.
    descriptor: Option<i32>,
}

impl Slot {
    fn file(&self, index: u32) -> File {
        self.descriptor.map_or(File::Fixed(index), File::Descriptor)
    }

    /// Whether nothing can be sent any more.
    fn is_mute(&self) -> bool {
        self.failed || self.broken != 0
    }
}

enum Outgoing {
    Shared(Arc<[u8]>, usize),
    Own(Vec<u8>, usize),
    Lent(Buf, usize),
}

/// The event loop on io_uring; see [`Io`].
pub struct Uring {
    // Declared first, so dropped first: the kernel must release the memory below before it is
    // freed.
    ring: IoUring,
    buffers: BufferRing,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Free slots of accepted connections, if those are files of the process; otherwise the kernel
    /// allocates them.
    free_accepted: Vec<u32>,
    /// The number of accepted connections that are open, and its limit.
    accepted_open: u32,
    accepted_max: u32,
    outgoing: u32,
    files: bool,
    how_to_receive: Receiving,
    batch: Vec<cqueue::Entry>,
    next: usize,
    targets: Vec<Target>,
    payloads: Vec<Arc<[u8]>>,
    listeners: Vec<TcpListener>,
    relisten: Vec<usize>,
    pausing: Pausing,
    #[cfg(test)]
    accept_errors: tests::AcceptErrors,
    starved: Vec<ConnId>,
    /// Whether a receive buffer was queued behind the front of a send queue since such buffers were
    /// last reclaimed.
    waiting: bool,
    /// Sends of closed connections: kept until the kernel releases them.
    limbo: Vec<(u64, VecDeque<Outgoing>)>,
    /// Bytes of [`Outgoing::Own`].
    copied_bytes: usize,
    /// Allocations of earlier copies, for reuse.
    spare: Vec<Vec<u8>>,
    /// What is sent by [`Io::send_quietly`].
    quiet_copies: QuietCopies,
    one: Box<i32>,
    /// With [`IoOptions::stamps`].
    stamps: Option<Stamps>,
    /// The `errno` for which the kernel takes no operations any more. What was pushed since is lost,
    /// and the next turn fails.
    failure: Option<i32>,
}

fn user_data(op: Op, generation: u32, index: u32) -> u64 {
    ((op as u64) << 56) | ((u64::from(generation) & 0xff_ffff) << 32) | u64::from(index)
}

impl Uring {
    fn slot(&mut self, conn: ConnId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(conn.index as usize)?;
        (slot.open && slot.generation == conn.generation).then_some(slot)
    }

    fn receive(&mut self, conn: ConnId) {
        let group = self.buffers.group();
        let Some(slot) = self.slot(conn) else { return };
        if slot.receiving || slot.paused {
            return;
        }
        slot.receiving = true;
        slot.pending += 1;
        let slot = &mut self.slots[conn.index as usize];
        let file = slot.file(conn.index);
        let how = self.how_to_receive;
        let careful =
            slot.careful || how == Receiving::Single || self.buffers.is_scarce(self.copied_bytes);
        slot.stamped = !careful && self.stamps.is_some();
        slot.is_single = careful;
        let entry = match &self.stamps {
            _ if careful => file.receive_one(group),
            None if how == Receiving::Limited => file.receive_limited(group, AHEAD_MAX),
            None => file.receive(group),
            Some(stamps) => file.receive_stamped(stamps.room(), group),
        }
        .user_data(user_data(Op::Recv, conn.generation, conn.index));
        self.push(entry);
    }

    /// Asks for the readiness of a UDP socket until it is closed.
    fn watch_again(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        let Some(fd) = slot.descriptor else { return };
        slot.pending += 1;
        let entry = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32)
            .multi(true)
            .build()
            .user_data(user_data(Op::Watch, conn.generation, conn.index));
        self.push(entry);
    }

    fn rearm(&mut self) {
        while let Some(listener) = self.relisten.pop() {
            self.accept(listener);
        }
        if self.buffers.is_empty() && !self.starved.is_empty() && !self.buffers.grow() {
            self.reclaim();
        }
        // Without a free buffer they would fail again.
        while !self.buffers.is_empty()
            && let Some(conn) = self.starved.pop()
        {
            self.receive(conn);
        }
    }
}

/// The options with at most as many slots as the kernel allows: RLIMIT_NOFILE bounds the ring's
/// file table, although its entries are no descriptors of the process.
fn within(mut options: IoOptions, open_files: u64) -> IoOptions {
    let left = open_files.saturating_sub(u64::from(options.outgoing));
    options.accepted = options
        .accepted
        .min(u32::try_from(left).unwrap_or(u32::MAX));
    options
}

impl Io for Uring {
    const NAME: &'static str = "io_uring";

    fn open(options: IoOptions) -> io::Result<Self> {
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .setup_clamp()
            .build(SUBMISSIONS)?;
        let options = IoOptions {
            files: options.files || options.stamps,
            ..options
        };
        let options = match options.files {
            true => options,
            false => within(options, os::open_files()),
        };
        let slots = options.slots() as u32;
        if !options.files {
            ring.submitter().register_files_sparse(slots.max(1))?;
        }
        if options.accepted > 0 && !options.files {
            let range: [u32; 4] = [options.outgoing, options.accepted, 0, 0];
            // SAFETY: `range` is the 16-byte structure that this call reads: offset, length,
            // reserved.
            os::check(unsafe {
                libc::syscall(
                    libc::SYS_io_uring_register,
                    ring.as_raw_fd(),
                    REGISTER_FILE_ALLOC_RANGE,
                    range.as_ptr(),
                    0,
                )
            } as i32)?;
        }
        let buffers = BufferRing::register(
            &ring,
            options.buffers,
            options.buffers_max,
            options.buffer_size,
        )?;
        let mut table = Vec::with_capacity(slots as usize);
        table.resize_with(slots as usize, Slot::default);
        Ok(Self {
            ring,
            buffers,
            slots: table,
            free: (0..options.outgoing).rev().collect(),
            free_accepted: match options.files {
                true => (options.outgoing..slots).rev().collect(),
                false => Vec::new(),
            },
            accepted_open: 0,
            accepted_max: options.accepted,
            outgoing: options.outgoing,
            files: options.files,
            how_to_receive: Receiving::of(options.files && !options.stamps),
            batch: Vec::with_capacity(COMPLETIONS as usize),
            next: 0,
            targets: Vec::new(),
            payloads: Vec::new(),
            listeners: Vec::new(),
            relisten: Vec::new(),
            pausing: Pausing::default(),
            #[cfg(test)]
            accept_errors: tests::AcceptErrors::default(),
            starved: Vec::new(),
            waiting: false,
            limbo: Vec::new(),
            copied_bytes: 0,
            spare: Vec::new(),
            quiet_copies: QuietCopies::default(),
            one: Box::new(1),
            stamps: options.stamps.then(Stamps::new),
            failure: None,
        })
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        if self.stamps.is_some() {
            crate::io::stamps::ask(listener.as_raw_fd())?;
        }
        self.listeners.push(listener);
        self.accept(self.listeners.len() - 1);
        Ok(())
    }

    fn add_target(&mut self, address: &Address, sources: &[SocketAddr]) -> TargetId {
        self.targets.push(Target::new(address, sources, self.files));
        TargetId(self.targets.len() as u32 - 1)
    }

    fn set_no_delay(&mut self, target: TargetId) {
        self.targets[target.number()].no_delay = true;
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.push(bytes);
        PayloadId(self.payloads.len() as u32 - 1)
    }

    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId> {
        self.open_connection(target, first)
    }

    fn watch(&mut self, socket: &impl AsFd) -> io::Result<ConnId> {
        let own = socket.as_fd().try_clone_to_owned()?;
        let index = self.free.pop().ok_or_else(all_in_use)?;
        let slot = Slot {
            descriptor: Some(own.into_raw_fd()),
            ..Slot::default()
        };
        let conn = self.occupy(index, slot);
        self.watch_again(conn);
        Ok(conn)
    }

    fn send(&mut self, conn: ConnId, payload: PayloadId) {
        let bytes = &self.payloads[payload.0 as usize];
        let Some(slot) = self.slots.get_mut(conn.index as usize) else {
            return;
        };
        if !slot.open || slot.generation != conn.generation || slot.is_mute() {
            return;
        }
        if !slot.sends.is_empty() || bytes.len() > AT_ONCE_MAX {
            let bytes = bytes.clone();
            self.enqueue(conn, Outgoing::Shared(bytes, 0));
            return;
        }
        slot.quiet = true;
        let entry = slot
            .file(conn.index)
            .send(bytes.as_ptr(), bytes.len())
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(user_data(Op::QuietSend, conn.generation, conn.index));
        self.push(entry);
    }

    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId) {
        let bytes = self.payloads[payload.0 as usize].clone();
        self.enqueue(conn, Outgoing::Shared(bytes, 0));
    }

    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]) {
        let own = self.copied(bytes);
        self.enqueue(conn, Outgoing::Own(own, 0));
    }

    fn send_quietly(&mut self, conn: ConnId, bytes: &[u8]) {
        let index = conn.index as usize;
        let Some(slot) = self.slots.get(index) else {
            return;
        };
        if !slot.open || slot.generation != conn.generation || slot.is_mute() {
            return;
        }
        if slot.quiet || !slot.sends.is_empty() || bytes.len() > AT_ONCE_MAX {
            return self.send_copy(conn, bytes);
        }
        let pointer = self.quiet_copies.keep(index, bytes);
        let slot = &mut self.slots[index];
        slot.quiet = true;
        let entry = slot
            .file(conn.index)
            .send(pointer, bytes.len())
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(user_data(Op::QuietSend, conn.generation, conn.index));
        self.push(entry);
    }

    fn forward(&mut self, conn: ConnId, buf: Buf) {
        self.buffers.check(&buf);
        self.enqueue(conn, Outgoing::Lent(buf, 0));
    }

    fn has_unread(&self, conn: ConnId) -> bool {
        self.is_unread(conn)
    }

    #[inline]
    fn has_failed_send(&self, conn: ConnId) -> bool {
        let slot = self.slots.get(conn.index as usize);
        slot.is_some_and(|slot| slot.generation == conn.generation && slot.broken != 0)
    }

    fn queued(&self, conn: ConnId) -> usize {
        self.slots
            .get(conn.index as usize)
            .filter(|slot| slot.open && slot.generation == conn.generation)
            .map_or(0, |slot| slot.sends.len())
    }

    fn finish(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        if slot.sends.is_empty() {
            self.shut_down(conn);
        } else {
            slot.finish = true;
        }
    }

    fn pause(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        slot.paused = true;
        slot.careful = true;
        if slot.receiving {
            let recv = user_data(Op::Recv, conn.generation, conn.index);
            let entry = opcode::AsyncCancel::new(recv)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(user_data(Op::Cancel, 0, 0));
            self.push(entry);
        }
    }

    fn resume(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        slot.paused = false;
        self.receive(conn);
    }

    fn close(&mut self, conn: ConnId) {
        let Some(slot) = self.slot(conn) else { return };
        slot.open = false;
        let outgoing = slot.outgoing;
        slot.close_after_shutdown = slot.shutting;
        let shutting = slot.shutting;
        let sends = std::mem::take(&mut slot.sends);
        if !sends.is_empty() {
            let data = user_data(Op::Send, conn.generation, conn.index);
            self.limbo.push((data, sends));
        }
        if !outgoing {
            self.accepted_open -= 1;
        }
        if !shutting {
            self.close_slot(conn.index);
        }
    }

    fn abort(&mut self, conn: ConnId) {
        if let Some(fd) = self.slot(conn).and_then(|slot| slot.descriptor) {
            os::reset_when_closed(fd);
        }
        self.close(conn);
    }

    fn listen_again(&mut self) {
        // Each accept is cancelled and submitted again, and then takes what waits.
        self.cancel_accepts();
    }

    fn stop_listening(&mut self) {
        self.cancel_accepts();
        self.relisten.clear();
        self.pausing.resume();
        self.listeners.clear();
    }

    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        self.turn(wait_ns)
    }

    fn next_event(&mut self) -> Option<Event> {
        #[cfg(test)]
        if let Some(event) = self.injected_error() {
            return Some(event);
        }
        while self.next < self.batch.len() {
            let entry = self.batch[self.next].clone();
            self.next += 1;
            if let Some(event) = self.translate(&entry) {
                return Some(event);
            }
        }
        None
    }

    fn scarce(&self) -> bool {
        self.buffers.is_scarce(self.copied_bytes)
    }

    fn is_full(&self) -> bool {
        self.buffers.is_full(self.copied_bytes)
    }

    fn release_memory(&mut self) -> usize {
        self.spare = Vec::new();
        // A completion may say that a buffer was taken.
        let is_behind = !self.ring.completion().is_empty() || self.next < self.batch.len();
        if is_behind || self.ring.submission().cq_overflow() {
            return 0;
        }
        self.buffers.shrink()
    }

    fn bytes(&self, buf: &Buf) -> &[u8] {
        self.buffers.bytes(buf)
    }

    fn peer(&self, conn: ConnId) -> Option<SocketAddr> {
        let slot = self.slots.get(conn.index as usize)?;
        if !slot.open || slot.generation != conn.generation {
            return None;
        }
        os::peer(slot.descriptor?)
    }

    fn local(&self, conn: ConnId) -> Option<SocketAddr> {
        let slot = self.slots.get(conn.index as usize)?;
        if !slot.open || slot.generation != conn.generation {
            return None;
        }
        os::local(slot.descriptor?)
    }

    fn unacknowledged(&self, conn: ConnId) -> usize {
        let slot = self.slots.get(conn.index as usize);
        let slot = slot.filter(|slot| slot.open && slot.generation == conn.generation);
        let fd = slot.and_then(|slot| slot.descriptor);
        fd.map_or(0, os::unacknowledged)
    }

    fn recycle(&mut self, buf: Buf) {
        self.buffers.give(buf);
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.close_unheard();
        // A socket listens until its accept is cancelled, and would go on accepting clients.
        self.stop_listening();
        // The last operations, above all closes, were not submitted yet.
        if !self.ring.submission().is_empty() {
            let _ = self.poll(Some(1_000_000));
            self.close_unheard();
        }
        // All operations are cancelled before the memory that they use is freed.
        let _ = self
            .ring
            .submitter()
            .register_sync_cancel(None, CancelBuilder::any());
        for slot in &self.slots {
            if let Some(fd) = slot.descriptor {
                // SAFETY: the slot owns the descriptor; those that the kernel was told to close
                // are in no slot any more.
                unsafe { libc::close(fd) };
            }
        }
    }
}
