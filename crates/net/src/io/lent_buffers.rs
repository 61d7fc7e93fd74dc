//! Buffers of an event loop that wraps another one.

use crate::io::{Buf, LoopId};

/// Bytes of each buffer: the most that a TLS record holds, and an HTTP/2 frame unless agreed otherwise.
const BUFFER_BYTES: usize = 16 * 1024;
/// Most buffers; they are allocated as they are needed.
const BUFFERS_MAX: usize = 16 * 1024;

/// Buffers that are lent with data and given back, allocated as they are needed.
pub struct LentBuffers {
    owner: LoopId,
    all: Vec<Box<[u8]>>,
    free: Vec<u16>,
    is_exhausted: bool,
}

impl LentBuffers {
    /// No buffers yet.
    pub fn new(owner: LoopId) -> Self {
        Self {
            owner,
            all: Vec::new(),
            free: Vec::new(),
            is_exhausted: false,
        }
    }

    /// Whether a buffer is one of these.
    #[inline]
    pub fn has_lent(&self, buf: &Buf) -> bool {
        self.owner.has_lent(buf)
    }

    /// Lends a buffer with what `read` puts into it; none if it reads nothing.
    pub fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> usize) -> Option<Buf> {
        let id = match self.free.pop() {
            Some(id) => id,
            None if self.all.len() == BUFFERS_MAX => {
                self.is_exhausted = true;
                return None;
            }
            None => {
                self.all.push(vec![0; BUFFER_BYTES].into_boxed_slice());
                (self.all.len() - 1) as u16
            }
        };
        match read(&mut self.all[usize::from(id)]) {
            0 => {
                self.free.push(id);
                None
            }
            len => Some(self.owner.lend(id, 0, len as u32)),
        }
    }

    /// Whether a buffer was wanted and there was none since the last call.
    pub fn is_exhausted(&mut self) -> bool {
        std::mem::take(&mut self.is_exhausted)
    }

    /// Whether more than half of all buffers are lent.
    pub fn is_scarce(&self) -> bool {
        self.all.len() - self.free.len() > BUFFERS_MAX / 2
    }

    /// The bytes of a buffer.
    #[inline]
    pub fn bytes(&self, buf: &Buf) -> &[u8] {
        &self.all[usize::from(buf.id())][buf.range()]
    }

    /// Takes a buffer back.
    #[inline]
    pub fn give_back(&mut self, buf: &Buf) {
        self.free.push(buf.id());
    }
}
