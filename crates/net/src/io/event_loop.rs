//! The interface of the event loops: connections, buffers, events.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::address::Address;
use crate::h2::ErrorCode;
use crate::io::options::IoOptions;
use crate::os;

/// A connection of one event loop. Ids are not reused: a stale one names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnId {
    /// The id of a slot's connection with this generation, for event loops outside of this crate.
    pub const fn new(slot: u32, generation: u32) -> Self {
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
/// on with [`Io::forward`]; a buffer that is dropped is lost to the loop. A loop panics when it
/// gets a buffer that it did not lend.
#[must_use = "a buffer must be recycled or forwarded"]
#[derive(Debug)]
pub struct Buf {
    pub(crate) id: u16,
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) owner: LoopId,
    /// 0 if unknown.
    pub(crate) arrived_ns: u64,
}

/// Identifies a loop within the process, so that no loop takes a buffer of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopId(u32);

impl LoopId {
    const OUTSIDE: LoopId = LoopId(0);

    /// An ID that no other loop has.
    pub fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether this loop has lent the buffer.
    #[inline]
    pub fn has_lent(self, buf: &Buf) -> bool {
        buf.owner == self
    }

    /// # Panics
    /// If another loop has lent the buffer.
    #[inline]
    pub(crate) fn check(self, buf: &Buf) {
        assert!(
            buf.owner == self,
            "a buffer was handed to an event loop that did not lend it"
        );
    }

    /// A buffer that this loop lends.
    #[inline]
    pub fn lend(self, id: u16, start: u32, len: u32) -> Buf {
        Buf {
            id,
            start,
            len,
            owner: self,
            arrived_ns: 0,
        }
    }
}

/// Once a loop holds this many bytes for connections that do not drain, each may hold only one buffer
/// ([`Io::scarce`]).
pub const SCARCE_BYTES: usize = 64 << 20;
/// Once a loop holds this many bytes, it takes no new connections ([`Io::is_full`]).
pub const FULL_BYTES: usize = 2 * SCARCE_BYTES;

/// The `errno` of [`Event::AcceptFailed`] where all slots of [`IoOptions::accepted`] are in use;
/// the client was closed.
pub const SLOTS_FULL: i32 = libc::EUSERS;

impl Buf {
    /// A part of a buffer, for event loops outside this crate.
    pub fn new(id: u16, start: u32, len: u32) -> Self {
        LoopId::OUTSIDE.lend(id, start, len)
    }

    /// The kernel timestamp of the last of its bytes, ns of CLOCK_MONOTONIC
    /// ([`os::now_ns`]): delays of the reading thread are not in it. `None`
    /// without [`IoOptions::stamps`], and if the kernel gave none.
    pub fn arrived_ns(&self) -> Option<u64> {
        (self.arrived_ns > 0).then_some(self.arrived_ns)
    }

    /// With the time at which it arrived, ns; 0 if unknown.
    #[must_use = "a buffer must be recycled or forwarded"]
    pub fn at(self, arrived_ns: u64) -> Self {
        Self { arrived_ns, ..self }
    }

    /// Its number among the buffers of the loop that lent it.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Where its bytes lie in the buffer.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it holds nothing (it never does when it comes with an event).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Shrinks it to a range of its bytes; what of the range lies beyond its end is ignored.
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

    /// Targets are numbered in the order in which they were registered.
    pub fn number(self) -> usize {
        self.0 as usize
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

    /// Payloads are numbered in the order in which they were registered.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// How a TLS handshake went. Times are ns of the loop's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// When the connection was open and the handshake began.
    pub opened_ns: u64,
    /// When the handshake was complete.
    pub established_ns: u64,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// `1.2` or `1.3`.
    pub version: &'static str,
    /// The cipher suite's IANA name.
    pub suite: &'static str,
    /// The key exchange group, if the keys were exchanged anew.
    pub group: Option<&'static str>,
    /// The protocol that was negotiated by ALPN.
    pub alpn: Option<&'static str>,
    /// The key type of the peer's certificate, if it showed one.
    pub key: Option<&'static str>,
}

/// Bytes as they pass over the network, TLS included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireBytes {
    pub read: u64,
    pub sent: u64,
}

/// The `errno` of [`Event::ConnectFailed`] and [`Event::Failed`] where TLS failed:
/// [`Io::failure`] has the reason.
pub const TLS_FAILED: i32 = libc::EPROTO;

/// The `errno` of [`Event::Failed`] on a stream whose request the server has not processed, so that
/// it may be sent again.
pub const NOT_PROCESSED: i32 = libc::ECANCELED;

/// The `errno` of [`Event::Failed`] where the peer reset a stream with `CANCEL`.
pub const CANCELLED: i32 = libc::ECONNABORTED;

/// The same with `ENHANCE_YOUR_CALM`.
pub const ENHANCE_YOUR_CALM: i32 = libc::EDQUOT;

/// The `errno` of [`Event::ConnectFailed`] on a stream for which this side has no connection with a
/// free place.
pub const NO_PLACE: i32 = libc::ENOBUFS;

/// The `errno` of [`Event::Failed`] where the peer broke a rule of HTTP/2.
pub const MALFORMED: i32 = libc::EBADMSG;

/// The `errno` of a connection's first failed send if the peer ended its side in an orderly way before
/// it reset the connection. Linux reports a reset of any other connection as `ECONNRESET`.
pub(crate) const ENDED_BEFORE: i32 = libc::EPIPE;

/// The number of the listener in [`Event::Accepted`] if the connection is a stream of another one;
/// see [`Io::carrier`].
pub const STREAM: u32 = u32::MAX;

/// A connection that carries streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarrierState {
    /// The number of open streams.
    pub streams: usize,
    /// Whether any stream has ever been opened.
    pub has_begun: bool,
    /// Whether the peer has been told that there will be no more.
    pub is_draining: bool,
    /// Malformed requests since the last call.
    pub malformed: u64,
}

/// An event of a connection or a listener.
#[derive(Debug)]
pub enum Event {
    /// A listener accepted a connection.
    Accepted {
        conn: ConnId,
        /// Number of the listener, in the order in which they were given.
        listener: u32,
    },
    /// A listener could not accept, with the `errno`. If descriptors or memory are lacking, clients
    /// wait: the loop tries again when one of its connections closes, and ten times a second. This
    /// is reported once until an accept succeeds. After other errors it goes on at once.
    AcceptFailed {
        errno: i32,
    },
    Connected {
        conn: ConnId,
    },
    /// A connection could not be opened; it must still be closed.
    ConnectFailed {
        conn: ConnId,
        errno: i32,
    },
    Data {
        conn: ConnId,
        /// The bytes.
        buf: Buf,
    },
    /// The peer will send no more.
    Eof {
        conn: ConnId,
    },
    /// The connection broke; it must still be closed. If a send failed, all that was received before
    /// has been reported: a peer may answer, and close, before it has read all that it is sent. So
    /// this comes after [`Io::resume`] where reading is paused.
    Failed {
        conn: ConnId,
        errno: i32,
    },
    /// A socket of [`Io::watch`] has datagrams or an error. The caller reads until there are none;
    /// only then are further ones reported.
    Readable {
        /// The socket.
        conn: ConnId,
    },
    /// All sends by [`Io::send_ordered`], [`Io::send_copy`] or [`Io::forward`] are in the kernel, or
    /// were dropped because one failed; [`Event::Failed`] follows then.
    Drained {
        conn: ConnId,
    },
}

/// An event loop. It belongs to the thread that made it.
///
/// The life of a connection: [`Io::connect`] or [`Event::Accepted`] begins it, events follow, and
/// [`Io::close`] ends it; after `close` no event of it comes. A connection that failed must be
/// closed too.
pub trait Io: Sized {
    /// `io_uring` or `epoll`.
    const NAME: &'static str;

    /// The time of the loop's timers, ns of CLOCK_MONOTONIC; a simulated loop has its own.
    #[inline]
    fn now_ns(&self) -> u64 {
        os::now_ns()
    }

    /// The same, cheaper, and with the resolution of the kernel's tick.
    #[inline]
    fn coarse_now_ns(&self) -> u64 {
        os::coarse_now_ns()
    }

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

    /// As [`Io::add_target`]; its connections speak TLS by the settings with this number. A loop
    /// without TLS ignores the number.
    fn add_tls_target(
        &mut self,
        address: &Address,
        sources: &[SocketAddr],
        tls: Option<u32>,
    ) -> TargetId {
        let _ = tls;
        self.add_target(address, sources)
    }

    /// As [`Io::add_tls_target`], but each connection to it is a stream on an HTTP/2 connection.
    /// The loop opens as many HTTP/2 connections as are needed. The user of a stream sends one
    /// request and gets its response, both in HTTP/1.1. A loop that cannot carry streams opens
    /// ordinary connections.
    fn add_stream_target(
        &mut self,
        address: &Address,
        sources: &[SocketAddr],
        tls: Option<u32>,
    ) -> TargetId {
        self.add_tls_target(address, sources, tls)
    }

    /// Connections to a target get `TCP_NODELAY`: otherwise a short segment waits until the one before
    /// is acknowledged, a round trip later (Nagle's algorithm, RFC 9293 3.7.4). For targets to which
    /// several sends may be under way; connections to it are files of the process then.
    fn set_no_delay(&mut self, target: TargetId) {
        let _ = target;
    }

    /// Registers bytes to send.
    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId;

    /// Opens a connection; `first` is sent as soon as it is open.
    ///
    /// # Errors
    /// When there is no free slot or no socket.
    fn connect(&mut self, target: TargetId, first: Option<PayloadId>) -> io::Result<ConnId>;

    /// Watches a UDP socket or a [`Waker`](os::Waker), which takes the slot of a connection that the
    /// loop opens: [`Event::Readable`] comes when there is something to read. Sending and receiving
    /// are up to the caller, who keeps the socket open until [`Io::close`].
    ///
    /// # Errors
    /// When there is no free slot or descriptor, or the loop has none of the system's sockets.
    fn watch(&mut self, socket: &impl AsFd) -> io::Result<ConnId> {
        let _ = socket;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a connection that is being opened the bytes that come before its TLS handshake: a PROXY
    /// protocol header. False where there is no TLS on it, and nothing is done.
    fn send_before_handshake(&mut self, conn: ConnId, bytes: &[u8]) -> bool {
        let _ = (conn, bytes);
        false
    }

    /// How the TLS handshake of a connection went; `None` without TLS, and before it is complete.
    /// [`Event::Connected`] comes when it is complete.
    fn handshake(&self, conn: ConnId) -> Option<&Handshake> {
        let _ = conn;
        None
    }

    /// Why TLS failed on a connection that was not closed yet.
    fn failure(&self, conn: ConnId) -> Option<&str> {
        let _ = conn;
        None
    }

    /// Begins to carry streams on an accepted connection, with the bytes that were received on it
    /// so far. Each stream is then a connection, accepted from listener [`STREAM`]. False, without
    /// any effect, if the loop cannot carry streams.
    fn carry_streams(&mut self, conn: ConnId, bytes: &[u8]) -> bool {
        let _ = (conn, bytes);
        false
    }

    /// The connection that carries a stream; `None` for other connections.
    fn carrier(&self, conn: ConnId) -> Option<ConnId> {
        let _ = conn;
        None
    }

    /// Whether a connection is an outgoing stream on an HTTP/2 connection that carried others
    /// before.
    fn is_reused(&self, conn: ConnId) -> bool {
        let _ = conn;
        false
    }

    /// Whether a connection that is being opened is a stream that waits until one of the HTTP/2
    /// connections of its target has a place for it.
    fn waits_for_place(&self, conn: ConnId) -> bool {
        let _ = conn;
        false
    }

    fn carrier_state(&mut self, conn: ConnId) -> CarrierState {
        let _ = conn;
        CarrierState::default()
    }

    /// Tells the peer that a connection carries no further streams. Without `now`, those in flight
    /// are still served. [`Event::Eof`] follows when none is open.
    fn end_streams(&mut self, conn: ConnId, now: bool) {
        let _ = (conn, now);
    }

    /// Bytes of all TLS connections so far, as they passed over the network.
    fn wire_bytes(&self) -> WireBytes {
        WireBytes::default()
    }

    /// Sends registered bytes. Failures are reported; success is not always ([`Event::Drained`] may
    /// follow). Only for one request at a time: two such sends may be reordered if the peer does
    /// not read. [`Io::queued`] says whether a long one is still under way.
    fn send(&mut self, conn: ConnId, payload: PayloadId);

    /// Sends registered bytes after everything sent before; [`Event::Drained`] follows.
    fn send_ordered(&mut self, conn: ConnId, payload: PayloadId);

    /// Copies and sends bytes; [`Event::Drained`] follows.
    fn send_copy(&mut self, conn: ConnId, bytes: &[u8]);

    /// Copies and sends bytes as [`Io::send`] does registered ones: [`Event::Drained`] need not follow,
    /// and it is for one request at a time. The peer has to have read what was sent so before it is
    /// called again: otherwise the sends may be reordered, or the earlier one overwritten. An answer
    /// is taken as the sign of that. What is sent may be wrong, but is always memory of the loop.
    fn send_quietly(&mut self, conn: ConnId, bytes: &[u8]) {
        self.send_copy(conn, bytes);
    }

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

    /// Whether a connection has data, its end or a failure whose event was not taken yet. A loop
    /// that cannot tell returns false.
    fn has_unread(&self, conn: ConnId) -> bool {
        let _ = conn;
        false
    }

    /// Whether a send has failed, so that [`Event::Failed`] follows when all that was received has been
    /// reported. What was not sent until then is dropped. A user that does not read on until its sends
    /// are taken asks for this at [`Event::Drained`].
    fn has_failed_send(&self, conn: ConnId) -> bool {
        let _ = conn;
        false
    }

    /// Number of sends that are not in the kernel yet.
    fn queued(&self, conn: ConnId) -> usize;

    /// Bytes in the kernel that the peer has not acknowledged, if connections are files of the process;
    /// a system call. 0 where the loop cannot tell, and on streams.
    fn unacknowledged(&self, conn: ConnId) -> usize {
        let _ = conn;
        0
    }

    /// Ends the sending side once everything is sent.
    fn finish(&mut self, conn: ConnId);

    /// Stops receiving until [`Io::resume`]; some data may still come.
    fn pause(&mut self, conn: ConnId);

    /// Receives again after [`Io::pause`].
    fn resume(&mut self, conn: ConnId);

    /// Closes a connection and drops its send queue.
    fn close(&mut self, conn: ConnId);

    /// Closes a connection as [`Io::close`], with a reset if connections are files of the process.
    fn abort(&mut self, conn: ConnId);

    /// Says with which code of HTTP/2 [`Io::abort`] resets a stream. Returns whether it carries a gRPC
    /// call, whose client understands the code better than a status.
    fn reset_with(&mut self, _conn: ConnId, _code: ErrorCode) -> bool {
        false
    }

    /// Checks all listeners again. To be called when another loop that accepted from the same
    /// sockets has stopped: the kernel may have notified only that one of a connection.
    fn listen_again(&mut self);

    /// Closes the listeners; connections that were accepted go on.
    fn stop_listening(&mut self);

    /// Submits all operations and waits for events: not at all with `Some(0)`, at most so many
    /// nanoseconds, or without limit.
    ///
    /// # Errors
    /// When the kernel refuses; the loop is unusable then.
    fn poll(&mut self, wait_ns: Option<u64>) -> io::Result<()>;

    /// The next event of this turn; `None` ends the turn.
    fn next_event(&mut self) -> Option<Event>;

    /// Whether more than half of all receive buffers are lent, or [`SCARCE_BYTES`] are held in them and
    /// in copies that wait to be sent. When all
    /// are lent, nothing is received until one is given back.
    fn scarce(&self) -> bool;

    /// Whether [`FULL_BYTES`] are held: no new client or stream should be taken.
    fn is_full(&self) -> bool {
        false
    }

    /// Frees the buffers of an earlier burst: those that have not been needed since the last call. To
    /// be called between turns, at most about once a second. Returns the number of bytes freed; what
    /// of them the allocator keeps, [`os::trim_heap`] gives back to the system.
    fn release_memory(&mut self) -> usize {
        0
    }

    /// The bytes of a buffer.
    fn bytes(&self, buf: &Buf) -> &[u8];

    /// The address of a connection's peer, if connections are files of the process; a system call.
    fn peer(&self, conn: ConnId) -> Option<SocketAddr>;

    /// The address of the connection's own end; as [`Io::peer`].
    fn local(&self, conn: ConnId) -> Option<SocketAddr>;

    /// Gives a buffer back.
    fn recycle(&mut self, buf: Buf);
}
