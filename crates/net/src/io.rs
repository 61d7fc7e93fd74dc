//! The seam between the rooms and the kernel: connections, buffers, events.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use crate::address::Address;

/// A connection of one event loop. Ids are not reused: a stale one names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnId {
    /// The id of a slot's connection with this generation, for event loops outside of this crate.
    pub fn new(slot: u32, generation: u32) -> Self {
        Self {
            index: slot,
            generation,
        }
    }

    /// The connection's slot, for tables beside the loop; below [`IoOptions::slots`].
    pub fn slot(self) -> usize {
        self.index as usize
    }
}

/// Bytes that were received, lent by the loop. Give them back with [`Io::recycle`] or pass them
/// on with [`Io::forward`]; a buffer that is dropped is lost to the loop.
#[must_use = "a buffer must be recycled or forwarded"]
#[derive(Debug)]
pub struct Buf {
    pub(crate) id: u16,
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// 0 where it is not known.
    pub(crate) arrived_ns: u64,
}

impl Buf {
    /// Some of a buffer's bytes.
    pub fn new(id: u16, start: u32, len: u32) -> Self {
        Self {
            id,
            start,
            len,
            arrived_ns: 0,
        }
    }

    /// When the last of its bytes came to this machine, as the kernel noted it, ns of the
    /// monotonic clock ([`os::now_ns`](crate::os::now_ns)): whatever held up the thread that reads
    /// them does not count. `None` where [`IoOptions::stamps`] was not asked for, and where the
    /// kernel did not tell.
    pub fn arrived_ns(&self) -> Option<u64> {
        (self.arrived_ns > 0).then_some(self.arrived_ns)
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it holds nothing (it never does when it comes with an event).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps a part of its bytes, counted from where it begins now, and forgets the others; what
    /// of the range it does not hold is left out.
    pub fn keep(&mut self, range: std::ops::Range<usize>) {
        let end = range.end.min(self.len());
        let from = range.start.min(end);
        self.start += from as u32;
        self.len = (end - from) as u32;
    }
}

/// An address that connections are opened to, registered with the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetId(pub(crate) u32);

impl TargetId {
    /// The id of the target with this number, for event loops outside of this crate.
    pub fn new(number: u32) -> Self {
        Self(number)
    }
}

/// Bytes that are sent again and again, registered with the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadId(pub(crate) u32);

impl PayloadId {
    /// The id of the payload with this number, for event loops outside of this crate.
    pub fn new(number: u32) -> Self {
        Self(number)
    }
}

/// What happened on a connection.
#[derive(Debug)]
pub enum Event {
    /// A listener accepted a connection.
    Accepted {
        /// The new connection.
        conn: ConnId,
        /// Number of the listener, in the order in which they were given.
        listener: u32,
    },
    /// A listener could not accept, with the `errno`; it goes on.
    AcceptFailed {
        /// The error's number.
        errno: i32,
    },
    /// A connection that was asked for is open.
    Connected {
        /// The connection.
        conn: ConnId,
    },
    /// A connection that was asked for could not be opened; it must still be closed.
    ConnectFailed {
        /// The connection.
        conn: ConnId,
        /// The error's number.
        errno: i32,
    },
    /// Bytes came.
    Data {
        /// The connection.
        conn: ConnId,
        /// The bytes.
        buf: Buf,
    },
    /// The peer will send no more.
    Eof {
        /// The connection.
        conn: ConnId,
    },
    /// The connection broke; it must still be closed.
    Failed {
        /// The connection.
        conn: ConnId,
        /// The error's number.
        errno: i32,
    },
    /// Everything that was handed to [`Io::send_ordered`], [`Io::send_copy`] or [`Io::forward`] is in the kernel.
    Drained {
        /// The connection.
        conn: ConnId,
    },
}

/// Sizes of an event loop.
#[derive(Clone, Copy, Debug)]
pub struct IoOptions {
    /// Most connections opened by the loop at one time.
    pub outgoing: u32,
    /// Most connections accepted by the loop at one time; 0 for a loop that does not listen.
    pub accepted: u32,
    /// Number of receive buffers: a power of two, at most 32,768.
    pub buffers: u16,
    /// How many there may become when those do not suffice, as [`IoOptions::buffers`]; a smaller
    /// number means no more. Memory is taken only for those that were needed.
    pub buffers_max: u16,
    /// Bytes of each receive buffer.
    pub buffer_size: u32,
    /// For a relay: connections are files of the process also where the loop could hold them
    /// otherwise. Their peers' addresses can be asked for, half-closing needs no worker thread of
    /// the kernel's, and connections that the loop opens have `TCP_NODELAY`.
    pub files: bool,
    /// Have the kernel tell when bytes came: [`Buf::arrived_ns`]. Receiving costs more then, and
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
    /// Number of connection slots: every [`ConnId::slot`] is below it.
    pub fn slots(&self) -> usize {
        self.outgoing as usize + self.accepted as usize
    }
}

/// An event loop. It belongs to the thread that made it.
///
/// The life of a connection: [`Io::connect`] or [`Event::Accepted`] begins it, events follow, and
/// [`Io::close`] ends it; after `close` no event of it comes. A connection that failed must be
/// closed too.
pub trait Io: Sized {
    /// `io_uring` or `epoll`.
    const NAME: &'static str;

    /// Opens a loop.
    ///
    /// # Errors
    /// When the kernel refuses it: too old, forbidden, out of memory or descriptors.
    fn open(options: IoOptions) -> io::Result<Self>;

    /// Accepts connections from a listener, all with `TCP_NODELAY` if the listener has it.
    ///
    /// # Errors
    /// When the descriptor cannot be watched.
    fn listen(&mut self, listener: TcpListener) -> io::Result<()>;

    /// Registers an address to connect to; with several `sources`, connections are bound to them
    /// in turn.
    fn add_target(&mut self, address: &Address, sources: &[SocketAddr]) -> TargetId;

    /// Registers bytes to send.
    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId;

    /// Begins to open a connection; when `first` is given it is sent as soon as it is open.
    ///
    /// # Errors
    /// When there is no free slot or no socket.
    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId>;

    /// Sends registered bytes; failure is told, and success need not be: [`Event::Drained`] may
    /// follow. Only for one request at a time: two such sends may overtake each other when the
    /// peer does not read. Whether a long one is still under way is told by [`Io::queued`].
    fn send(&mut self, conn: ConnId, payload: PayloadId);

    /// Sends registered bytes after everything sent before; [`Event::Drained`] follows.
    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId);

    /// Copies and sends bytes; [`Event::Drained`] follows.
    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]);

    /// Sends received bytes and recycles their buffer; [`Event::Drained`] follows.
    fn forward(&mut self, conn: ConnId, buf: Buf);

    /// Sends a part of received bytes and recycles their buffer, as [`Io::forward`] does.
    fn forward_part(&mut self, conn: ConnId, mut buf: Buf, range: std::ops::Range<usize>) {
        buf.keep(range);
        if buf.is_empty() {
            return self.recycle(buf);
        }
        self.forward(conn, buf);
    }

    /// Number of sends that are not in the kernel yet.
    fn queued(&self, conn: ConnId) -> usize;

    /// Ends the sending side once everything is sent.
    fn finish(&mut self, conn: ConnId);

    /// Stops receiving until [`Io::resume`]; some data may still come.
    fn pause(&mut self, conn: ConnId);

    /// Receives again after [`Io::pause`].
    fn resume(&mut self, conn: ConnId);

    /// Closes a connection and forgets what it had still to send.
    fn close(&mut self, conn: ConnId);

    /// Closes a connection as [`Io::close`] does, and has its peer see a reset, where connections
    /// are files of the process.
    fn abort(&mut self, conn: ConnId);

    /// Looks at all listeners anew. To be called when another loop that accepted from the same
    /// sockets has stopped: the kernel may have told only that one of a connection.
    fn listen_again(&mut self);

    /// Closes the listeners; connections that were accepted go on.
    fn stop_listening(&mut self);

    /// Submits what was asked for and waits for events: not at all with `Some(0)`, at most so many
    /// nanoseconds, or for as long as it takes.
    ///
    /// # Errors
    /// When the kernel refuses; the loop is of no more use then.
    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()>;

    /// The next event of this turn; `None` ends the turn.
    fn next_event(&mut self) -> Option<Event>;

    /// Whether more than half of the receive buffers that there may be are lent. When all are,
    /// nothing is received until one is given back.
    fn scarce(&self) -> bool;

    /// The bytes of a buffer.
    fn bytes(&self, buf: &Buf) -> &[u8];

    /// The address of a connection's peer, where connections are files of the process; a system
    /// call.
    fn peer(&self, conn: ConnId) -> Option<SocketAddr>;

    /// The address that a connection's peer connected to or is connected from, as
    /// [`Io::peer`] tells the other.
    fn local(&self, conn: ConnId) -> Option<SocketAddr>;

    /// Gives a buffer back.
    fn recycle(&mut self, buf: Buf);
}
