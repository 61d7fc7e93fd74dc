//! Buffers that are allocated as they are needed, and freed after a burst.

use crate::io::event_loop::{FULL_BYTES, SCARCE_BYTES};
use crate::io::{Buf, LoopId};

/// Bytes of each buffer: the most that a TLS record holds, and an HTTP/2 frame unless agreed otherwise.
const BUFFER_BYTES: usize = 16 * 1024;
const BUFFERS_MAX: usize = 16 * 1024;
/// So many are kept even if they are not needed.
const KEPT: usize = 64;

/// Numbered buffers of one size.
pub(crate) struct Pool {
    /// Those that are not allocated are empty.
    all: Vec<Box<[u8]>>,
    free: Vec<u16>,
    bytes_each: usize,
    /// How many there may be, and how many are kept allocated.
    most: usize,
    kept: usize,
    allocated: usize,
    /// The most that were in use at a time since [`Pool::shrink`].
    peak: usize,
}

impl Pool {
    pub(crate) fn new(bytes_each: usize, kept: usize, most: usize) -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            bytes_each,
            most,
            kept,
            allocated: 0,
            peak: 0,
        }
    }

    /// A free buffer; `None` if all are in use.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u16> {
        let id = match self.free.pop() {
            Some(id) => id,
            None if self.all.len() >= self.most => return None,
            None => {
                self.all.push(Box::default());
                u16::try_from(self.all.len() - 1).ok()?
            }
        };
        let buffer = &mut self.all[usize::from(id)];
        if buffer.is_empty() {
            *buffer = vec![0; self.bytes_each].into_boxed_slice();
            self.allocated += 1;
        }
        self.peak = self.peak.max(self.in_use());
        Some(id)
    }

    #[inline]
    pub(crate) fn give(&mut self, id: u16) {
        self.free.push(id);
    }

    #[inline]
    pub(crate) fn get(&self, id: u16) -> &[u8] {
        &self.all[usize::from(id)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u16) -> &mut [u8] {
        &mut self.all[usize::from(id)]
    }

    #[inline]
    fn in_use(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// See [`crate::io::Io::scarce`]; `copied` bytes are held besides.
    pub(crate) fn is_scarce(&self, copied: usize) -> bool {
        self.in_use() > self.most / 2 || self.in_use() * self.bytes_each + copied > SCARCE_BYTES
    }

    /// See [`crate::io::Io::is_full`]; `copied` bytes are held besides.
    pub(crate) fn is_full(&self, copied: usize) -> bool {
        self.in_use() * self.bytes_each + copied > FULL_BYTES
    }

    /// Frees what has not been needed since the last call, beyond twice what was. Returns the number
    /// of bytes freed.
    pub(crate) fn shrink(&mut self) -> usize {
        let wanted = self.kept.max(2 * self.peak);
        self.peak = self.in_use();
        let mut surplus = self.allocated.saturating_sub(wanted);
        let before = self.allocated;
        // The last are used first.
        for id in &self.free {
            if surplus == 0 {
                break;
            }
            let buffer = &mut self.all[usize::from(*id)];
            if !buffer.is_empty() {
                *buffer = Box::default();
                self.allocated -= 1;
                surplus -= 1;
            }
        }
        (before - self.allocated) * self.bytes_each
    }
}

/// Buffers of an event loop that wraps another one. They are lent with data and given back.
pub struct LentBuffers {
    owner: LoopId,
    pool: Pool,
    is_exhausted: bool,
}

impl LentBuffers {
    /// No buffers yet.
    pub fn new(owner: LoopId) -> Self {
        Self {
            owner,
            pool: Pool::new(BUFFER_BYTES, KEPT, BUFFERS_MAX),
            is_exhausted: false,
        }
    }

    #[inline]
    pub fn has_lent(&self, buf: &Buf) -> bool {
        self.owner.has_lent(buf)
    }

    /// Lends a buffer with what `read` puts into it; none if it reads nothing.
    pub fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> usize) -> Option<Buf> {
        let Some(id) = self.pool.take() else {
            self.is_exhausted = true;
            return None;
        };
        match read(self.pool.get_mut(id)) {
            0 => {
                self.pool.give(id);
                None
            }
            len => Some(self.owner.lend(id, 0, len as u32)),
        }
    }

    /// Whether a buffer was wanted and there was none since the last call.
    pub fn is_exhausted(&mut self) -> bool {
        std::mem::take(&mut self.is_exhausted)
    }

    /// See [`crate::Io::scarce`].
    pub fn is_scarce(&self) -> bool {
        self.pool.is_scarce(0)
    }

    /// See [`crate::Io::is_full`].
    pub fn is_full(&self) -> bool {
        self.pool.is_full(0)
    }

    /// See [`crate::Io::release_memory`].
    pub fn release_memory(&mut self) -> usize {
        self.pool.shrink()
    }

    /// The bytes of a buffer.
    #[inline]
    pub fn bytes(&self, buf: &Buf) -> &[u8] {
        &self.pool.get(buf.id())[buf.range()]
    }

    /// Takes a buffer back.
    #[inline]
    pub fn give_back(&mut self, buf: &Buf) {
        self.pool.give(buf.id());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_a_burst_are_freed_once_they_are_not_needed() {
        let mut buffers = LentBuffers::new(LoopId::next());
        let burst: Vec<Buf> = (0..1000).filter_map(|_| buffers.fill(|_| 1)).collect();
        assert_eq!(buffers.release_memory(), 0, "all are in use");
        burst.iter().for_each(|buf| buffers.give_back(buf));
        assert_eq!(buffers.release_memory(), 0, "they were in use since");
        assert_eq!(buffers.release_memory(), (1000 - KEPT) * BUFFER_BYTES);
        assert_eq!(buffers.release_memory(), 0);
        // They come back as they are needed.
        let again = (0..2000).filter_map(|_| {
            buffers.fill(|bytes| {
                bytes[BUFFER_BYTES - 1] = 1;
                BUFFER_BYTES
            })
        });
        assert_eq!(again.count(), 2000);
    }
}
