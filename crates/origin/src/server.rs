//! The origin's threads.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use net::http::RequestParser;
use net::{Buf, ConnId, Epoll, Event, Io, IoKind, IoOptions, PayloadId, Uring, os};

use crate::pages::{Page, answer, page};

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
}

/// Why an origin does not start.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Its event loop cannot be opened.
    #[error("cannot open an event loop: {0}")]
    Loop(#[source] io::Error),
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
}

/// A running origin; dropping it stops it.
pub struct Origin {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    counters: Vec<Arc<Counters>>,
    threads: Vec<JoinHandle<()>>,
}

/// A thread looks at the stop flag at least this often.
const TURN_NS: u64 = 50_000_000;
/// Fixed pages that a thread keeps ready.
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
                let (kind, connections) = (options.io, options.connections);
                std::thread::spawn(move || {
                    let io_options = IoOptions {
                        outgoing: 0,
                        accepted: connections,
                        buffers: 256,
                        buffer_size: 4096,
                    };
                    match kind {
                        IoKind::Uring => match start_loop::<Uring>(io_options, listener) {
                            Ok(io) => {
                                let _ = opened.send(Ok(()));
                                Worker::new(io, connections, number, all).run(&stop);
                            }
                            Err(e) => drop(opened.send(Err(e))),
                        },
                        IoKind::Epoll => match start_loop::<Epoll>(io_options, listener) {
                            Ok(io) => {
                                let _ = opened.send(Ok(()));
                                Worker::new(io, connections, number, all).run(&stop);
                            }
                            Err(e) => drop(opened.send(Err(e))),
                        },
                    }
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

    /// What it has done so far.
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

fn start_loop<I: Io>(options: IoOptions, listener: std::net::TcpListener) -> io::Result<I> {
    let mut io = I::open(options)?;
    io.listen(listener)?;
    Ok(io)
}

#[derive(Default)]
struct Client {
    parser: RequestParser,
    /// The last request's bytes when it came in one piece and has a fixed page: load generators
    /// send the same bytes again and again.
    last: Vec<u8>,
    last_page: Option<PayloadId>,
    last_keep_alive: bool,
    closing: bool,
}

struct Worker<I: Io> {
    io: I,
    clients: Vec<Client>,
    pages: HashMap<Vec<u8>, PayloadId>,
    number: usize,
    all: Vec<Arc<Counters>>,
    connections: u64,
    requests: u64,
}

impl<I: Io> Worker<I> {
    fn new(io: I, connections: u32, number: usize, all: Vec<Arc<Counters>>) -> Self {
        let mut clients = Vec::new();
        clients.resize_with(connections as usize, Client::default);
        Self {
            io,
            clients,
            pages: HashMap::new(),
            number,
            all,
            connections: 0,
            requests: 0,
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if self.io.poll(Some(TURN_NS)).is_err() {
                return;
            }
            while let Some(event) = self.io.next_event() {
                self.handle(event);
            }
            self.publish();
        }
    }

    fn publish(&self) {
        let own = &self.all[self.number];
        own.connections.store(self.connections, Ordering::Relaxed);
        own.requests.store(self.requests, Ordering::Relaxed);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn } => {
                self.connections += 1;
                self.clients[conn.slot()] = Client::default();
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
            Event::Drained { conn } => {
                if self.clients[conn.slot()].closing && self.io.queued(conn) == 0 {
                    self.io.close(conn);
                }
            }
            Event::Failed { conn, .. } => self.io.close(conn),
            Event::Connected { .. } | Event::ConnectFailed { .. } | Event::AcceptFailed { .. } => {}
        }
    }

    fn data(&mut self, conn: ConnId, buf: &Buf) {
        let slot = conn.slot();
        if self.clients[slot].closing {
            return;
        }
        let mut at = 0;
        while at < buf.len() && !self.clients[slot].closing {
            let bytes = &self.io.bytes(buf)[at..];
            let client = &mut self.clients[slot];
            if let Some(payload) = client.last_page
                && bytes == client.last
            {
                client.closing = !client.last_keep_alive;
                self.requests += 1;
                self.io.send_ordered(conn, payload);
                return;
            }
            let whole = at == 0;
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
                    self.respond(conn);
                }
                Err(e) => {
                    let text = format!("{e}\n");
                    let bytes = answer(400, "text/plain", text.as_bytes(), false, false);
                    client.closing = true;
                    self.io.send_copy(conn, &bytes);
                }
            }
        }
    }

    fn respond(&mut self, conn: ConnId) {
        let client = &mut self.clients[conn.slot()];
        let request = client.parser.request();
        let keep_alive = request.keep_alive;
        let head_only = request.method == "HEAD";
        client.closing = !keep_alive;
        match page(request) {
            Page::Own(bytes) => {
                client.last.clear();
                self.io.send_copy(conn, &bytes);
            }
            Page::Stats => {
                client.last.clear();
                self.publish();
                let text = serde_json::to_string(&stats(&self.all)).unwrap_or_default();
                let bytes = answer(
                    200,
                    "application/json",
                    text.as_bytes(),
                    head_only,
                    keep_alive,
                );
                self.io.send_copy(conn, &bytes);
            }
            Page::Fixed(bytes) => {
                let payload = match self.pages.get(&bytes) {
                    Some(&payload) => payload,
                    None if self.pages.len() >= PAGES_MAX => {
                        client.last.clear();
                        self.io.send_copy(conn, &bytes);
                        return;
                    }
                    None => {
                        let payload = self.io.add_payload(Arc::from(bytes.as_slice()));
                        self.pages.insert(bytes, payload);
                        payload
                    }
                };
                if !client.last.is_empty() {
                    client.last_page = Some(payload);
                    client.last_keep_alive = keep_alive;
                }
                self.io.send_ordered(conn, payload);
            }
        }
    }
}
