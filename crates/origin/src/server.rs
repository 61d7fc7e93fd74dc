//! The origin's threads.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use net::http::RequestParser;
use net::{
    ConnId, Datagrams, Epoll, Event, Io, IoKind, IoOptions, Lingering, PayloadId, Uring, os,
};

use readings::{Arrivals, Histogram, QuicCongestion, Received};
use tls::{Secure, ServerTls};

use crate::h2::{H2Incoming, H2Page, H2Server};
use crate::pages::{Asked, BYTES_MAX, ConnectionReuse, HELLO, StreamPage, answer};
use counters::{Counters, Pages, RequestBody, ThreadCounts, merged, stats};
use held::{AnswerKey, AnswerTo};
use lasting::{Exchanges, Mailbox};
use limit::Limit;
use quic_clients::QuicClients;
use sockets::Sockets;
use stream_pages::StreamPages;

pub use counters::Stats;
pub(crate) use lasting::LastingId;
pub use options::{Always, OriginError, OriginOptions, ThreadEnded};

/// A running origin; dropping it stops it.
pub struct Origin {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    counters: Vec<Arc<Counters>>,
    pages: Pages,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Longest interval between checks of the stop flag.
const TURN_NS: u64 = 50_000_000;
/// Fixed pages that a thread caches.
const PAGES_MAX: usize = 64;
/// Most bytes of the fixed pages that a thread caches: four of the longest.
const PAGE_BYTES_MAX: usize = 4 * BYTES_MAX;
/// How many connections of a thread may linger, see [`Lingering`].
const LINGERING_MAX: u32 = 64;

impl Origin {
    /// Starts an origin.
    ///
    /// # Errors
    /// When it cannot listen there, or no event loop can be had.
    pub fn start(options: &OriginOptions) -> Result<Origin, OriginError> {
        let (address, listeners) = sockets::open(options)?;
        let stop = Arc::new(AtomicBool::new(false));
        let pages = pages(options.counts.as_deref(), listeners.len())?;
        let counters: Vec<Arc<Counters>> = listeners.iter().map(|_| Arc::default()).collect();
        let mailboxes: Vec<Mailbox> = listeners.iter().map(|_| Mailbox::default()).collect();
        let mailboxes = Arc::new(mailboxes);
        let limit = options.limit_per_s.map(Limit::new);
        let (opened, failures) = std::sync::mpsc::channel();
        let mut origin = Origin {
            address,
            stop: stop.clone(),
            counters: counters.clone(),
            pages: pages.clone(),
            threads: Vec::new(),
        };
        // On an error, dropping the origin stops the threads that did start.
        for (number, sockets) in listeners.into_iter().enumerate() {
            let (stop, all, opened) = (stop.clone(), counters.clone(), opened.clone());
            let (options, mailboxes, limit) = (options.clone(), mailboxes.clone(), limit.clone());
            let counts = ThreadCounts::of(pages.clone(), number);
            let work = move || match options.io {
                IoKind::Uring => {
                    let of = (number, all);
                    let worker =
                        Worker::<Secure<Uring>>::open(&options, sockets, of, counts, limit);
                    let worker = worker.map(|worker| worker.with_mailboxes(mailboxes));
                    run_worker(worker, &opened, &stop, options.spin)
                }
                IoKind::Epoll => {
                    let of = (number, all);
                    let worker =
                        Worker::<Secure<Epoll>>::open(&options, sockets, of, counts, limit);
                    let worker = worker.map(|worker| worker.with_mailboxes(mailboxes));
                    run_worker(worker, &opened, &stop, options.spin)
                }
            };
            let thread = net::os::start_thread("of the origin", work)?;
            origin.threads.push(thread);
        }
        drop(opened);
        for result in failures.iter().take(origin.counters.len()) {
            result.map_err(OriginError::Loop)?;
        }
        Ok(origin)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a thread that has ended by itself; each one only once.
    pub fn ended(&mut self) -> Option<ThreadEnded> {
        let ended = self.threads.iter().position(JoinHandle::is_finished)?;
        match self.threads.swap_remove(ended).join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(ThreadEnded::Loop(error)),
            Err(_) => Some(ThreadEnded::Panic),
        }
    }

    /// Why a client could not be accepted, if that happened since the last call. After
    /// [`net::SLOTS_FULL`] the client was closed; after other errors it waits.
    pub fn accept_failure(&self) -> Option<io::Error> {
        let mut last = 0;
        for own in &self.counters {
            match own.accept_errno.swap(0, Ordering::Relaxed) {
                0 => {}
                errno => last = errno,
            }
        }
        (last != 0).then(|| io::Error::from_raw_os_error(last))
    }

    /// The counters so far.
    pub fn stats(&self) -> Stats {
        stats(&self.counters, &self.pages.counts)
    }
}

/// The pages in which so many threads count; when requests came, in a file beside this one.
fn pages(path: Option<&Path>, threads: usize) -> Result<Pages, OriginError> {
    let open = |path: Option<&Path>, cells: usize| {
        let page = os::SharedCounts::open(path, threads * cells);
        page.map(Arc::new).map_err(|source| OriginError::Counts {
            path: path.unwrap_or(Path::new("")).to_owned(),
            source,
        })
    };
    let beside = path.map(Arrivals::file_beside);
    let arrivals = beside.map(|beside| open(Some(&beside), Arrivals::CELLS));
    Ok(Pages {
        counts: open(path, Received::CELLS)?,
        arrivals: arrivals.transpose()?,
    })
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs a thread's worker, after it has said whether it could be made.
fn run_worker<I: Io>(
    worker: io::Result<Worker<I>>,
    opened: &std::sync::mpsc::Sender<io::Result<()>>,
    stop: &AtomicBool,
    spin: bool,
) -> io::Result<()> {
    // Messages are due to the microsecond.
    os::sharpen_timers();
    match worker {
        Ok(mut worker) => {
            // The receiver is gone if another thread could not begin.
            let _ = opened.send(Ok(()));
            worker.run(stop, spin)
        }
        Err(e) => {
            let _ = opened.send(Err(e));
            Ok(())
        }
    }
}

#[derive(Default)]
struct Client {
    conn: Option<ConnId>,
    parser: RequestParser,
    /// The bytes of the last request if it arrived in one piece and has a fixed page: load
    /// generators send the same bytes again and again.
    last: Vec<u8>,
    last_page: Option<PayloadId>,
    last_page_size: usize,
    last_keep_alive: bool,
    last_body: RequestBody,
    /// Whether it is closed once everything is sent. What the client still sends is discarded.
    closing: bool,
    /// Whether the client may still be sending then.
    may_send: bool,
    /// Whether everything was sent, and the client has not closed yet.
    is_lingering: bool,
    /// The session, with HTTP/2.
    h2: Option<Box<H2Server>>,
    /// Whether it has sent anything.
    has_begun: bool,
    /// Bytes of a long body not yet passed to the event loop.
    body_left: usize,
    /// Bytes passed to the event loop since the send queue was last empty.
    unsent: usize,
    /// An exchange that lasts, on the connection itself; [`Self::is_held`] until its end.
    exchange: Option<LastingId>,
    /// Whether an answer is delayed. Later requests wait for it: answers keep the order of requests.
    is_held: bool,
    /// Whether reading is paused until earlier answers are sent.
    is_paused: bool,
    /// Whether its bytes belong to [`Self::exchange`].
    is_tunnel: bool,
    /// The same of a client that speaks HTTP/2, or whose bytes belong to an exchange.
    is_choked: bool,
    /// Bytes received during the pause, not parsed yet.
    unparsed: Vec<u8>,
    /// Whether the client closed its sending side during the pause.
    is_half_closed: bool,
}

struct Worker<I: Io> {
    io: I,
    clients: Vec<Client>,
    /// Cached pages and their sizes, by method, target and connection reuse.
    pages: HashMap<(String, ConnectionReuse), (PayloadId, usize)>,
    h2_pages: StreamPages<H2Page>,
    /// A [`BLOCK`] of the text of long bodies.
    block: Option<PayloadId>,
    /// The same text, for HTTP/2 and HTTP/3.
    stream_block: Option<Bytes>,
    /// Bytes of all pages that are cached.
    page_bytes: usize,
    /// What came in the bytes that are being read.
    h2_incoming: Vec<H2Incoming>,
    number: usize,
    all: Vec<Arc<Counters>>,
    /// The number of open connections, without those that linger, and its limit.
    open: u32,
    connections_max: u32,
    lingering: Lingering,
    connections: u64,
    counts: ThreadCounts,
    always: Option<Always>,
    limit: Option<Arc<Limit>>,
    /// Delayed answers: when each is due, and when its request arrived, ns.
    held: BinaryHeap<Reverse<(u64, u64, AnswerKey)>>,
    delays: Histogram,
    exchanges: Exchanges,
    random: fastrand::Rng,
    /// Whether clients without TLS have to speak HTTP/2.
    http2_only: bool,
    /// With HTTP/3.
    quic: Option<Box<QuicClients>>,
}

impl<I: Io> Worker<Secure<I>> {
    /// A thread's worker, on these sockets.
    fn open(
        options: &OriginOptions,
        (listener, datagrams): Sockets,
        (number, all): (usize, Vec<Arc<Counters>>),
        counts: ThreadCounts,
        limit: Option<Arc<Limit>>,
    ) -> io::Result<Self> {
        let io_options = IoOptions {
            // The UDP socket, and the bell of the thread's mailbox.
            outgoing: u32::from(datagrams.is_some()) + 1,
            accepted: options.connections.saturating_add(LINGERING_MAX),
            buffers: 256,
            buffers_max: 0,
            buffer_size: 4096,
            files: false,
            stamps: options.spin,
        };
        let io = Secure::over(I::open(io_options)?, &io_options);
        let mut io = io.with_servers(vec![options.tls.clone()]);
        io.listen(listener)?;
        let mut worker = Self::new(io, io_options, (number, all), counts);
        worker.connections_max = options.connections;
        worker.always = options.always;
        worker.limit = limit;
        worker.http2_only = options.http2_only;
        let (tls, congestion) = (options.tls.as_ref(), options.quic_congestion);
        worker.with_quic(datagrams, tls, options.connections, congestion)
    }
}

impl<I: Io> Worker<I> {
    /// Reserves room in the cache for a page beside so many others. Returns false if it does not fit.
    fn reserve_cache(&mut self, pages: usize, bytes: usize) -> bool {
        let fits = pages < PAGES_MAX && self.page_bytes + bytes <= PAGE_BYTES_MAX;
        self.page_bytes += if fits { bytes } else { 0 };
        fits
    }

    fn new(
        io: I,
        options: IoOptions,
        (number, all): (usize, Vec<Arc<Counters>>),
        counts: ThreadCounts,
    ) -> Self {
        let mut clients = Vec::new();
        clients.resize_with(options.slots(), Client::default);
        Self {
            io,
            clients,
            pages: HashMap::new(),
            h2_pages: HashMap::new(),
            block: None,
            stream_block: None,
            page_bytes: 0,
            h2_incoming: Vec::new(),
            number,
            all,
            open: 0,
            connections_max: 0,
            lingering: Lingering::new(LINGERING_MAX as usize),
            connections: 0,
            counts,
            always: None,
            limit: None,
            held: BinaryHeap::new(),
            delays: Histogram::new(),
            exchanges: Exchanges::default(),
            random: fastrand::Rng::new(),
            http2_only: false,
            quic: None,
        }
    }

    /// With HTTP/3 on this socket.
    fn with_quic(
        mut self,
        socket: Option<Datagrams>,
        tls: Option<&ServerTls>,
        connections: u32,
        congestion: Option<QuicCongestion>,
    ) -> io::Result<Self> {
        if let (Some(socket), Some(tls)) = (socket, tls) {
            let quic = QuicClients::new(socket, tls, connections, congestion, self.io.now_ns());
            let mut quic = quic.map_err(io::Error::other)?;
            quic.watch(&mut self.io)?;
            self.quic = Some(Box::new(quic));
        }
        Ok(self)
    }

    fn run(&mut self, stop: &AtomicBool, spin: bool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let has_written = self.has_written();
            let wait = match spin || has_written {
                true => 0,
                false => self.wait(),
            };
            #[cfg(test)]
            tests::meet_fault()?;
            self.io.poll(Some(wait))?;
            self.counts.begin_turn(os::now_ns());
            if has_written {
                self.record_lateness();
            }
            while let Some(event) = self.io.next_event() {
                self.handle(event);
            }
            if !self.held.is_empty() {
                self.answer_due();
            }
            if self.exchanges.next_ns().is_some() {
                self.turn_exchanges();
            }
            if self.quic.is_some() {
                self.turn_quic();
            }
            if !self.lingering.is_empty() {
                self.close_overdue();
            }
            self.publish();
        }
        self.close_quic();
        Ok(())
    }

    /// How long to wait for events: until an answer is due.
    fn wait(&self) -> u64 {
        let held = self.held.peek().map(|Reverse((due, _, _))| *due);
        let quic = self.quic.as_ref().and_then(|quic| quic.next_ns());
        let lasting = self.exchanges.next_ns();
        match held.into_iter().chain(quic).chain(lasting).min() {
            None => TURN_NS,
            Some(due) => due.saturating_sub(os::now_ns()).min(TURN_NS),
        }
    }

    /// Sends the delayed answers that are due, and records their actual delays.
    fn answer_due(&mut self) {
        while let Some(&Reverse((due, came, key))) = self.held.peek() {
            let now = os::now_ns();
            if now < due {
                break;
            }
            self.held.pop();
            if self.answer_held(key) {
                self.delays.record_ns(now - came);
            }
        }
    }

    /// Sends a delayed answer; false if its client has gone meanwhile.
    fn answer_held(&mut self, key: AnswerKey) -> bool {
        let status = self.always.and_then(|always| always.status);
        let (status, kind) = (status.unwrap_or(200), "text/plain");
        let bytes = answer(status, kind, HELLO, key.head_only, key.persist);
        let (conn, stream) = match key.to {
            AnswerTo::Http1(conn) => (conn, None),
            AnswerTo::Http2(conn, stream) => (conn, Some(stream)),
            AnswerTo::Http3 { number, id, stream } => {
                return self.answer_h3(number, id, stream, &bytes);
            }
        };
        let client = &mut self.clients[conn.slot()];
        let is_gone = stream.is_none() && !client.is_held;
        if client.conn != Some(conn) || is_gone {
            return false;
        }
        match (&mut client.h2, stream) {
            (Some(h2), Some(stream)) => {
                h2.answer(stream, &H2Page::of(&bytes));
                self.send_h2(conn);
            }
            _ => {
                client.closing = key.persist.closes();
                client.is_held = false;
                self.send(conn, &bytes);
                self.continue_answers(conn);
            }
        }
        true
    }

    fn publish(&mut self) {
        self.publish_exchanges();
        let own = &self.all[self.number];
        counters::publish(&mut self.delays, &own.delays);
        own.connections.store(self.connections, Ordering::Relaxed);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => self.accepted(conn),
            Event::Data { conn, buf } => {
                self.data(conn, &buf);
                self.io.recycle(buf);
            }
            Event::Eof { conn } => self.client_ended(conn),
            // It cannot be answered, and reading may be paused until it is.
            Event::Drained { conn } if self.io.has_failed_send(conn) => self.close(conn),
            Event::Drained { conn }
                if self.clients[conn.slot()].h2.is_some() && !self.clients[conn.slot()].closing =>
            {
                self.h2_drained(conn);
            }
            Event::Drained { conn } => self.drained(conn),
            Event::Failed { conn, .. } => self.close(conn),
            Event::AcceptFailed { errno } => self.note_accept_failure(errno),
            Event::Readable { conn } => {
                if let Some(quic) = &mut self.quic {
                    quic.readable(conn);
                }
                self.take_letters(conn);
            }
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    /// The queue was empty when this event was made.
    fn drained(&mut self, conn: ConnId) {
        if self.io.queued(conn) > 0 {
            return;
        }
        let client = &mut self.clients[conn.slot()];
        client.unsent = 0;
        if client.is_held {
            self.unblock(conn);
        } else if client.body_left > 0 || client.is_paused || client.is_half_closed {
            self.continue_answers(conn);
        }
        let client = &self.clients[conn.slot()];
        if client.closing && client.unsent == 0 {
            self.end(conn);
        }
    }

    fn note_accept_failure(&self, errno: i32) {
        let own = &self.all[self.number];
        own.accept_errno.store(errno, Ordering::Relaxed);
    }

    /// Does what a request asks for. Returns the content of the answer, after its type.
    fn find_out(&mut self, asked: Asked) -> (&'static str, String) {
        match asked {
            Asked::Delays => {
                self.publish();
                let all = merged(&self.all, |own| &own.delays);
                ("text/plain", all.to_base64())
            }
            Asked::Lateness => {
                self.publish_lateness();
                let all = merged(&self.all, |own| &own.lateness);
                ("text/plain", all.to_base64())
            }
            Asked::Stall(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                ("text/plain", "stood still\n".to_owned())
            }
            Asked::Stats => {
                self.publish();
                let text = serde_json::to_string(&stats(&self.all, self.counts.page()));
                ("application/json", text.unwrap_or_default())
            }
        }
    }
}

mod closing;
mod counters;
mod held;
mod http1;
mod lasting;
mod limit;
mod options;
mod quic_clients;
mod sockets;
mod stream_pages;
mod streams;
#[cfg(test)]
mod tests;
