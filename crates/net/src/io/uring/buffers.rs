//! The ring of provided receive buffers.

use std::alloc::{self, Layout};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::io::event_loop::{FULL_BYTES, SCARCE_BYTES};
use crate::io::{Buf, LoopId};
use crate::os;

const GROUP: u16 = 0;
const PAGE: usize = 4096;

/// Buffers shared with the kernel. Dropped after the ring that they are registered with.
pub(super) struct BufferRing {
    owner: LoopId,
    entries: *mut BufRingEntry,
    entries_layout: Layout,
    /// Mapped, so that only used pages take memory.
    memory: *mut u8,
    memory_bytes: usize,
    size: u32,
    mask: u16,
    tail: u16,
    /// Buffers provided so far; those beyond take no memory.
    begun: u16,
    /// How many are always provided.
    first: u16,
    /// The most that were in use at a time since [`BufferRing::shrink`].
    peak: u16,
    /// Buffers that the kernel may fill now.
    free: u16,
}

impl BufferRing {
    /// Registers a ring for `most` buffers and provides `first` of them.
    pub(super) fn register(ring: &IoUring, first: u16, most: u16, size: u32) -> io::Result<Self> {
        let count = most.max(first);
        if !count.is_power_of_two() || size == 0 {
            return Err(io::Error::other(format!(
                "expected a power of two of buffers that hold something, found {count} of {size}"
            )));
        }
        let entries_layout =
            Layout::from_size_align(count as usize * std::mem::size_of::<BufRingEntry>(), PAGE)
                .map_err(|_| io::Error::other("receive buffers too large"))?;
        let memory_bytes = count as usize * size as usize;
        let memory = os::map_memory(memory_bytes)?;
        // SAFETY: the layout has a size above zero.
        let entries = unsafe { alloc::alloc_zeroed(entries_layout).cast::<BufRingEntry>() };
        if entries.is_null() {
            os::unmap_memory(memory, memory_bytes);
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        let mut buffers = Self {
            owner: LoopId::next(),
            entries,
            entries_layout,
            memory,
            memory_bytes,
            size,
            mask: count - 1,
            tail: 0,
            begun: 0,
            first,
            peak: 0,
            free: 0,
        };
        // SAFETY: the entries live until `buffers` is dropped, which is after the ring is.
        unsafe {
            ring.submitter()
                .register_buf_ring_with_flags(entries as u64, count, GROUP, 0)?;
        }
        buffers.begin(first);
        buffers.publish();
        Ok(buffers)
    }

    /// Provides so many more buffers, or as many as there are.
    fn begin(&mut self, more: u16) {
        let end = self
            .begun
            .saturating_add(more)
            .min(self.mask.saturating_add(1));
        for id in self.begun..end {
            self.take_back(id);
        }
        self.begun = end;
    }

    /// Doubles the number of buffers within its limit; whether it grew.
    pub(super) fn grow(&mut self) -> bool {
        let before = self.begun;
        self.begin(before);
        self.begun > before
    }

    /// Bytes of a buffer.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// The kernel has filled one.
    pub(super) fn taken(&mut self) {
        self.free = self.free.saturating_sub(1);
        self.peak = self.peak.max(self.begun - self.free);
    }

    /// Whether the kernel has none to fill.
    pub(super) fn is_empty(&self) -> bool {
        self.free == 0
    }

    /// Whether more than half of all are in use, or too much is held with so many bytes of copies.
    pub(super) fn is_scarce(&self, copied: usize) -> bool {
        self.begun - self.free > self.mask / 2 || self.bytes_in_use() + copied > SCARCE_BYTES
    }

    fn bytes_in_use(&self) -> usize {
        usize::from(self.begun - self.free) * self.size as usize
    }

    /// Whether with so many bytes of copies as much is in use as a loop may hold.
    pub(super) fn is_full(&self, copied: usize) -> bool {
        self.bytes_in_use() + copied > FULL_BYTES
    }

    /// Withdraws the buffers that have not been needed since the last call, beyond twice as many as
    /// were, and frees the pages of those that are unused. Returns the number of bytes freed.
    ///
    /// Only to be called while the kernel takes no buffer, and after each that it took was noted.
    pub(super) fn shrink(&mut self) -> usize {
        let wanted = self.first.max(self.peak.saturating_mul(2)).min(self.begun);
        self.peak = self.begun - self.free;
        if wanted == self.begun {
            return 0;
        }
        // What was provided and not taken are the last entries of the ring.
        let entries =
            (1..=self.free).map(|back| (self.tail.wrapping_sub(back) & self.mask) as usize);
        // SAFETY: the index is masked to the ring's length; the kernel only reads the entries.
        let unused: Vec<u16> = entries
            .map(|at| unsafe { (*self.entries.add(at)).bid() })
            .collect();
        let mut is_lent = vec![true; self.begun.into()];
        for id in &unused {
            is_lent[usize::from(*id)] = false;
        }
        let last_lent = is_lent.iter().rposition(|is_lent| *is_lent);
        let end = last_lent.map_or(0, |at| at as u16 + 1).max(wanted);
        self.tail = self.tail.wrapping_sub(self.free);
        self.free = 0;
        for id in unused.into_iter().filter(|id| *id < end) {
            self.take_back(id);
        }
        let mut freed = 0;
        let is_unused = |id: &u16| !is_lent[usize::from(*id)];
        let mut next = wanted;
        while let Some(first) = (next..self.begun).find(is_unused) {
            next = (first..self.begun)
                .find(|id| !is_unused(id))
                .unwrap_or(self.begun);
            let bytes = usize::from(next - first) * self.size as usize;
            // SAFETY: both identifiers came from this ring, so that the range is within the memory.
            let start = unsafe { self.memory.add(first as usize * self.size as usize) };
            os::free_pages(start, bytes);
            freed += bytes;
        }
        self.begun = end;
        self.publish();
        freed
    }

    pub(super) fn group(&self) -> u16 {
        GROUP
    }

    pub(super) fn bytes(&self, buf: &Buf) -> &[u8] {
        self.check(buf);
        // SAFETY: this ring has lent the buffer. The kernel filled it up to `start + len` at least
        // and does not touch it again until it is given back, which takes the `Buf`.
        unsafe {
            std::slice::from_raw_parts(
                self.memory
                    .add(buf.id as usize * self.size as usize + buf.start as usize),
                buf.len as usize,
            )
        }
    }

    /// A buffer that the kernel has filled.
    pub(super) fn lend(&self, id: u16, start: u32, len: u32) -> Buf {
        self.owner.lend(id, start, len)
    }

    /// # Panics
    /// If another loop has lent the buffer.
    pub(super) fn check(&self, buf: &Buf) {
        self.owner.check(buf);
    }

    /// Makes a buffer available with the next [`BufferRing::publish`].
    pub(super) fn give(&mut self, buf: Buf) {
        self.check(&buf);
        self.take_back(buf.id);
    }

    /// The same for a buffer of this ring for which no [`Buf`] exists.
    pub(super) fn take_back(&mut self, id: u16) {
        // SAFETY: the index is masked to the ring's length; only this thread writes entries
        // beyond the published tail.
        let entry = unsafe { &mut *self.entries.add((self.tail & self.mask) as usize) };
        // SAFETY: `id` came from this ring, so it is within the memory.
        let start = unsafe { self.memory.add(id as usize * self.size as usize) };
        entry.set_addr(start as u64);
        entry.set_len(self.size);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        self.free += 1;
    }

    /// Publishes the new tail to the kernel.
    pub(super) fn publish(&mut self) {
        // SAFETY: `entries` points to the first entry of a registered ring; its reserved field is
        // the tail, which the kernel reads and only this thread writes.
        unsafe {
            let tail = BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout; the ring is gone, so the kernel does not use
        // it any more.
        unsafe { alloc::dealloc(self.entries.cast(), self.entries_layout) };
        os::unmap_memory(self.memory, self.memory_bytes);
    }
}
