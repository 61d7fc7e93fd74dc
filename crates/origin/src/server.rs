//! The origin's threads.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use net::http::RequestParser;
use net::{Buf, ConnId, Epoll, Event, Io, IoKind, IoOptions, PayloadId, Uring, os};

use readings::Histogram;
use tls::{Secure, ServerTls};

use crate::h2::{H2Page, H2Request, H2Server};
use crate::pages::{ConnectionReuse, HELLO, Page, answer, page};

/// How to run an origin.
#[derive(Clone, Debug)]
pub struct OriginOptions {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Number of threads.
    pub threads: usize,
    /// The event loop to use.
    pub io: IoKind,
    /// Length of the queue of connections that wait to be accepted.
    pub backlog: i32,
    /// Most connections open at one time, per thread.
    pub connections: u32,
    /// Whether threads poll without sleeping, with kernel timestamps of requests: each takes a
    /// whole CPU and sees requests within a microsecond, and its histogram of delays includes those
    /// of the thread itself.
    pub spin: bool,
    /// TLS on all connections.
    pub tls: Option<ServerTls>,
}

/// Why an origin does not start.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Its event loop cannot be opened.
    #[error("cannot open an event loop: {0}")]
    Loop(#[source] io::Error),
}

/// A thread of an origin ended before it was asked to. Its listening socket is closed.
#[derive(Debug, thiserror::Error)]
pub enum ThreadEnded {
    #[error("a thread of the origin ended, as its event loop failed: {0}")]
    Loop(#[source] io::Error),
    #[error("a thread of the origin panicked; this is a defect of the program")]
    Panic,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Requests answered.
    pub requests: u64,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
    /// The `errno` of the last accept that failed; 0 if none has failed since it was last read.
    accept_errno: AtomicI32,
    /// Actual delays, updated once per turn of the loop.
    delays: Mutex<Histogram>,
}

/// A running origin; dropping it stops it.
pub struct Origin {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    counters: Vec<Arc<Counters>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Longest interval between checks of the stop flag.
const TURN_NS: u64 = 50_000_000;
/// Fixed pages that a thread caches.
const PAGES_MAX: usize = 64;

impl Origin {
    /// Starts an origin.
    ///
    /// # Errors
    /// When it cannot listen there, or no event loop can be had.
    pub fn start(options: &OriginOptions) -> Result<Origin, OriginError> {
        let mut address = options.listen;
        let mut listeners = Vec::new();
        for _ in 0..options.threads.max(1) {
            let listener = os::listen(address, options.backlog, options.threads > 1)
                .map_err(|source| OriginError::Listen { address, source })?;
            address = listener
                .local_addr()
                .map_err(|source| OriginError::Listen { address, source })?;
            listeners.push(listener);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let counters: Vec<Arc<Counters>> = listeners.iter().map(|_| Arc::default()).collect();
        let (opened, failures) = std::sync::mpsc::channel();
        let threads = listeners
            .into_iter()
            .enumerate()
            .map(|(number, listener)| {
                let (stop, all, opened) = (stop.clone(), counters.clone(), opened.clone());
                let (kind, connections, spin) = (options.io, options.connections, options.spin);
                let tls = options.tls.clone();
                std::thread::spawn(move || {
                    let io_options = IoOptions {
                        outgoing: 0,
                        accepted: connections,
                        buffers: 256,
                        buffers_max: 0,
                        buffer_size: 4096,
                        files: false,
                        stamps: spin,
                    };
                    match kind {
                        IoKind::Uring => match start_loop::<Uring>(io_options, listener, tls) {
                            Ok(io) => {
                                let _ = opened.send(Ok(()));
                                Worker::new(io, connections, number, all).run(&stop, spin)?;
                            }
                            Err(e) => drop(opened.send(Err(e))),
                        },
                        IoKind::Epoll => match start_loop::<Epoll>(io_options, listener, tls) {
                            Ok(io) => {
                                let _ = opened.send(Ok(()));
                                Worker::new(io, connections, number, all).run(&stop, spin)?;
                            }
                            Err(e) => drop(opened.send(Err(e))),
                        },
                    }
                    Ok(())
                })
            })
            .collect();
        let origin = Origin {
            address,
            stop,
            counters,
            threads,
        };
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
        stats(&self.counters)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn stats(counters: &[Arc<Counters>]) -> Stats {
    let sum = |f: fn(&Counters) -> &AtomicU64| {
        counters
            .iter()
            .map(|c| f(c).load(Ordering::Relaxed))
            .sum::<u64>()
    };
    Stats {
        connections: sum(|c| &c.connections),
        requests: sum(|c| &c.requests),
    }
}

fn start_loop<I: Io>(
    options: IoOptions,
    listener: std::net::TcpListener,
    tls: Option<ServerTls>,
) -> io::Result<Secure<I>> {
    let mut io = Secure::over(I::open(options)?, &options).with_servers(vec![tls]);
    io.listen(listener)?;
    Ok(io)
}

#[derive(Default)]
struct Client {
    conn: Option<ConnId>,
    parser: RequestParser,
    /// The bytes of the last request if it arrived in one piece and has a fixed page: load
    /// generators send the same bytes again and again.
    last: Vec<u8>,
    last_page: Option<PayloadId>,
    last_keep_alive: bool,
    closing: bool,
    /// The session, with HTTP/2.
    h2: Option<Box<H2Server>>,
    /// Whether it has sent anything.
    has_begun: bool,
}

struct Worker<I: Io> {
    io: I,
    clients: Vec<Client>,
    /// By method, target and what becomes of the connection.
    pages: HashMap<(String, ConnectionReuse), PayloadId>,
    /// By method and target.
    h2_pages: HashMap<String, H2Page>,
    /// Requests of the bytes that are being read.
    h2_requests: Vec<H2Request>,
    number: usize,
    all: Vec<Arc<Counters>>,
    connections: u64,
    requests: u64,
    /// Delayed answers: when each is due, and when its request arrived, ns.
    held: BinaryHeap<Reverse<(u64, u64, ConnKey)>>,
    delays: Histogram,
    random: fastrand::Rng,
}

/// An arbitrary order, for the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnKey {
    conn: ConnId,
    persist: ConnectionReuse,
    /// With HTTP/2.
    stream: Option<u32>,
}

impl PartialOrd for ConnKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ConnKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.conn.slot().cmp(&other.conn.slot())
    }
}

impl<I: Io> Worker<I> {
    fn new(io: I, connections: u32, number: usize, all: Vec<Arc<Counters>>) -> Self {
        let mut clients = Vec::new();
        clients.resize_with(connections as usize, Client::default);
        Self {
            io,
            clients,
            pages: HashMap::new(),
            h2_pages: HashMap::new(),
            h2_requests: Vec::new(),
            number,
            all,
            connections: 0,
            requests: 0,
            held: BinaryHeap::new(),
            delays: Histogram::new(),
            random: fastrand::Rng::new(),
        }
    }

    fn run(&mut self, stop: &AtomicBool, spin: bool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let wait = if spin { 0 } else { self.wait() };
            #[cfg(test)]
            tests::meet_fault()?;
            self.io.poll(Some(wait))?;
            while let Some(event) = self.io.next_event() {
                self.handle(event);
            }
            if !self.held.is_empty() {
                self.answer_due();
            }
            self.publish();
        }
        Ok(())
    }

    /// How long to wait for events: until an answer is due.
    fn wait(&self) -> u64 {
        match self.held.peek() {
            None => TURN_NS,
            Some(Reverse((due, _, _))) => due.saturating_sub(os::now_ns()).min(TURN_NS),
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
            let client = &mut self.clients[key.conn.slot()];
            if client.conn != Some(key.conn) {
                continue; // It has gone meanwhile.
            }
            let bytes = answer(200, "text/plain", HELLO, false, key.persist);
            match (&mut client.h2, key.stream) {
                (Some(h2), Some(stream)) => {
                    h2.answer(stream, &H2Page::of(&bytes));
                    self.send_h2(key.conn);
                }
                _ => {
                    client.closing = key.persist.closes();
                    self.io.send_copy(key.conn, &bytes);
                }
            }
            self.delays.record_ns(now - came);
        }
    }

    fn publish(&mut self) {
        if self.delays.count() > 0
            && let Ok(mut shared) = self.all[self.number].delays.lock()
        {
            shared.merge(&self.delays);
            self.delays.clear();
        }
        let own = &self.all[self.number];
        own.connections.store(self.connections, Ordering::Relaxed);
        own.requests.store(self.requests, Ordering::Relaxed);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => {
                self.connections += 1;
                self.clients[conn.slot()] = Client {
                    conn: Some(conn),
                    ..Client::default()
                };
            }
            Event::Data { conn, buf } => {
                self.data(conn, &buf);
                self.io.recycle(buf);
            }
            Event::Eof { conn } => {
                if self.io.queued(conn) == 0 {
                    self.io.close(conn);
                } else {
                    self.clients[conn.slot()].closing = true;
                }
            }
            Event::Drained { conn }
                if self.clients[conn.slot()].h2.is_some() && !self.clients[conn.slot()].closing =>
            {
                self.send_h2(conn);
            }
            Event::Drained { conn } => {
                if self.clients[conn.slot()].closing && self.io.queued(conn) == 0 {
                    self.io.close(conn);
                }
            }
            Event::Failed { conn, .. } => self.io.close(conn),
            Event::AcceptFailed { errno } => {
                let own = &self.all[self.number];
                own.accept_errno.store(errno, Ordering::Relaxed);
            }
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    fn data(&mut self, conn: ConnId, buf: &Buf) {
        let slot = conn.slot();
        if self.clients[slot].closing {
            return;
        }
        let is_first = !std::mem::replace(&mut self.clients[slot].has_begun, true);
        if is_first {
            self.begin_h2(conn, buf);
        }
        if self.clients[slot].h2.is_some() {
            return self.h2_data(conn, buf);
        }
        let mut at = 0;
        while at < buf.len() && !self.clients[slot].closing {
            let bytes = &self.io.bytes(buf)[at..];
            let client = &mut self.clients[slot];
            let at_start = client.parser.at_start();
            if let Some(payload) = client.last_page
                && at_start
                && bytes == client.last
            {
                client.closing = !client.last_keep_alive;
                self.requests += 1;
                self.io.send_ordered(conn, payload);
                return;
            }
            let whole = at == 0 && at_start;
            match client.parser.feed(bytes) {
                Ok((taken, false)) => at += taken.max(1),
                Ok((taken, true)) => {
                    client.last.clear();
                    client.last_page = None;
                    if whole && taken == bytes.len() {
                        client.last.extend_from_slice(bytes);
                    }
                    at += taken;
                    self.requests += 1;
                    self.respond(conn, buf.arrived_ns());
                }
                Err(e) => {
                    let text = format!("{e}\n");
                    let bytes = answer(
                        400,
                        "text/plain",
                        text.as_bytes(),
                        false,
                        ConnectionReuse::Closed,
                    );
                    client.closing = true;
                    self.io.send_copy(conn, &bytes);
                }
            }
        }
    }

    /// The actual delays of all threads.
    fn all_delays(&mut self) -> Histogram {
        self.publish();
        let mut sum = Histogram::new();
        for counters in &self.all {
            if let Ok(own) = counters.delays.lock() {
                sum.merge(&own);
            }
        }
        sum
    }

    /// `arrived_ns` is the kernel timestamp of the request, if there is one.
    fn respond(&mut self, conn: ConnId, arrived_ns: Option<u64>) {
        let client = &mut self.clients[conn.slot()];
        let request = client.parser.request();
        let persist = ConnectionReuse::of(request);
        let head_only = request.method == "HEAD";
        client.closing = persist.closes();
        let key = (format!("{} {}", request.method, request.target), persist);
        if let Some(&payload) = self.pages.get(&key) {
            if !client.last.is_empty() {
                client.last_page = Some(payload);
                client.last_keep_alive = !persist.closes();
            }
            self.io.send_ordered(conn, payload);
            return;
        }
        match page(request) {
            Page::Own(bytes) => {
                client.last.clear();
                self.io.send_copy(conn, &bytes);
            }
            Page::Delayed(delay) => {
                client.last.clear();
                let now = os::now_ns();
                let came = arrived_ns.map_or(now, |at| at.min(now));
                let due = came + delay.draw(&mut self.random);
                let stream = None;
                let key = ConnKey {
                    conn,
                    persist,
                    stream,
                };
                // Pipelined requests may be answered in any order: load generators wait for each
                // answer.
                client.closing = false;
                self.held.push(Reverse((due, came, key)));
            }
            Page::Delays => {
                client.last.clear();
                let sum = self.all_delays();
                let text = sum.to_base64();
                let bytes = answer(200, "text/plain", text.as_bytes(), head_only, persist);
                self.io.send_copy(conn, &bytes);
            }
            Page::Stall(ms) => {
                client.last.clear();
                std::thread::sleep(Duration::from_millis(ms));
                let bytes = answer(200, "text/plain", b"stood still\n", head_only, persist);
                self.io.send_copy(conn, &bytes);
            }
            Page::Stats => {
                client.last.clear();
                self.publish();
                let text = serde_json::to_string(&stats(&self.all)).unwrap_or_default();
                let bytes = answer(200, "application/json", text.as_bytes(), head_only, persist);
                self.io.send_copy(conn, &bytes);
            }
            Page::Fixed(bytes) => {
                if self.pages.len() >= PAGES_MAX {
                    client.last.clear();
                    self.io.send_copy(conn, &bytes);
                    return;
                }
                let payload = self.io.add_payload(Arc::from(bytes.as_slice()));
                self.pages.insert(key, payload);
                if !client.last.is_empty() {
                    client.last_page = Some(payload);
                    client.last_keep_alive = !persist.closes();
                }
                self.io.send_ordered(conn, payload);
            }
        }
    }
}

mod streams;
#[cfg(test)]
mod tests;
