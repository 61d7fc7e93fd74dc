//! What an event loop is opened with.

/// Sizes of an event loop.
#[derive(Clone, Copy, Debug)]
pub struct IoOptions {
    /// Most connections opened by the loop at one time.
    pub outgoing: u32,
    /// Most connections accepted by the loop at one time; 0 for a loop that does not listen.
    pub accepted: u32,
    /// Number of receive buffers: a power of two, at most 32,768.
    pub buffers: u16,
    /// Upper limit of their number, which grows when all are in use; a smaller number than
    /// [`IoOptions::buffers`] means no growth. Memory is taken only for those that were needed.
    pub buffers_max: u16,
    /// Bytes of each receive buffer.
    pub buffer_size: u32,
    /// For a relay: connections are files of the process even if the loop has a table of its own.
    /// Then peer addresses are available, half-closing needs no kernel worker thread, and outgoing
    /// connections have `TCP_NODELAY`. A connection of io_uring has received at most 128 KiB more than
    /// its user has been told of.
    pub files: bool,
    /// Kernel timestamps of received data: [`Buf::arrived_ns`](super::Buf::arrived_ns). Receiving costs more, and
    /// connections are files of the process.
    pub stamps: bool,
}

impl Default for IoOptions {
    fn default() -> Self {
        Self {
            outgoing: 1024,
            accepted: 0,
            buffers: 256,
            buffers_max: 0,
            buffer_size: 16 * 1024,
            files: false,
            stamps: false,
        }
    }
}

impl IoOptions {
    /// Number of connection slots: every [`ConnId::slot`](super::ConnId::slot) is below it.
    pub fn slots(&self) -> usize {
        self.outgoing as usize + self.accepted as usize
    }
}
