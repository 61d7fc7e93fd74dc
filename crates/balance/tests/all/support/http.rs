//! Balancers, scripted back ends, and clients that report the answers they get.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use balance::config::model::{Backend, Service, ServiceKind};
use balance::{Balancer, Config};
use net::IoKind;

pub use super::{BOTH, LONG, active_now, clients_now, dead, on_both, queued_now, until};

/// One end of a connection.
pub struct Peer {
    pub stream: TcpStream,
    got: Vec<u8>,
}

/// A message, as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub head: String,
    pub body: Vec<u8>,
}

impl Message {
    pub fn status(&self) -> u16 {
        self.head[9..12].parse().unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// All values of a field.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }
}

impl Peer {
    pub fn new(stream: TcpStream) -> Peer {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Peer {
            stream,
            got: Vec::new(),
        }
    }

    pub fn connect(address: SocketAddr) -> Peer {
        Peer::new(TcpStream::connect(address).unwrap())
    }

    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        // A peer that has gone is found out by reading.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(n) => {
                self.got.extend_from_slice(&piece[..n]);
                n > 0
            }
            Err(e) => {
                let slow = matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                assert!(!slow, "nothing came; so far {:?}", self.lossy());
                false
            }
        }
    }

    fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.got).into_owned()
    }

    /// What comes next; empty at the end, `None` after a reset.
    pub fn some(&mut self) -> Option<Vec<u8>> {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(n) => Some(piece[..n].to_vec()),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(e) => panic!("nothing came: {e}"),
        }
    }

    /// A head; `None` when the connection ends before it.
    pub fn head(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.got.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = self.got.split_off(at + 4);
                let head = std::mem::replace(&mut self.got, rest);
                return Some(String::from_utf8(head).unwrap());
            }
            if !self.more() {
                return None;
            }
        }
    }

    pub fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.got.len() < count {
            if !self.more() {
                return None;
            }
        }
        let rest = self.got.split_off(count);
        Some(std::mem::replace(&mut self.got, rest))
    }

    /// All until the end, which may be a reset; the second tells whether it was an orderly one.
    pub fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut piece = [0; 65536];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return (std::mem::take(&mut self.got), true),
                Ok(n) => self.got.extend_from_slice(&piece[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {
                    return (std::mem::take(&mut self.got), false);
                }
                Err(e) => panic!("no end came: {e}; so far {:?}", self.lossy()),
            }
        }
    }

    fn body(&mut self, head: &str) -> Option<Vec<u8>> {
        let message = Message {
            head: head.to_owned(),
            body: Vec::new(),
        };
        if message.values("transfer-encoding") == ["chunked"] {
            let mut body = Vec::new();
            loop {
                while !self.got.windows(2).any(|two| two == b"\r\n") {
                    if !self.more() {
                        return None;
                    }
                }
                let at = self.got.windows(2).position(|two| two == b"\r\n").unwrap();
                let line = self.bytes(at + 2)?;
                let size = std::str::from_utf8(&line[..at]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                body.extend_from_slice(&self.bytes(size)?);
                assert_eq!(self.bytes(2)?, b"\r\n");
                if size == 0 {
                    return Some(body);
                }
            }
        }
        match message.values("content-length").first() {
            Some(length) => self.bytes(length.parse().unwrap()),
            None => Some(Vec::new()),
        }
    }

    /// A request, with its body.
    pub fn request(&mut self) -> Option<Message> {
        let head = self.head()?;
        let body = self.body(&head)?;
        Some(Message { head, body })
    }

    /// An answer to anything but HEAD; `None` when the connection ends before it is complete.
    pub fn answer(&mut self) -> Option<Message> {
        let head = self.head()?;
        let bodiless = head.starts_with("HTTP/1.1 1") || head.starts_with("HTTP/1.1 304");
        let body = if bodiless {
            Vec::new()
        } else {
            self.body(&head)?
        };
        Some(Message { head, body })
    }

    /// Sends a request and gives its answer.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Message {
        self.say(request);
        self.answer().expect("an answer")
    }
}

/// A simple request.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")
}

/// A simple answer.
pub fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// A back end, and what it has seen.
pub struct BackEnd {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub requests: Arc<Mutex<Vec<Message>>>,
}

impl BackEnd {
    /// One that does as told with each connection, which are numbered from 0.
    pub fn new(serve: impl Fn(&mut Peer, usize, &BackEnd) + Send + Sync + 'static) -> BackEnd {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = BackEnd {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let (shared, serve) = (one.again(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut peer = Peer::new(stream.unwrap());
                peer.stream.set_read_timeout(None).unwrap();
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                let (shared, serve) = (shared.again(), serve.clone());
                std::thread::spawn(move || serve(&mut peer, number, &shared));
            }
        });
        one
    }

    fn again(&self) -> BackEnd {
        BackEnd {
            address: self.address,
            connections: self.connections.clone(),
            requests: self.requests.clone(),
        }
    }

    /// One that answers every request with its name and the path, and goes on.
    pub fn named(name: &'static str) -> BackEnd {
        BackEnd::new(move |peer, _, all| {
            while let Some(request) = peer.request() {
                let path = request.head.split(' ').nth(1).unwrap().to_owned();
                all.note(request);
                peer.say(ok(&format!("{name}{path}")));
            }
        })
    }

    /// One that answers every request with the same.
    pub fn saying(answer: impl AsRef<[u8]> + Send + Sync + 'static) -> BackEnd {
        BackEnd::new(move |peer, _, all| {
            while let Some(request) = peer.request() {
                all.note(request);
                peer.say(&answer);
            }
        })
    }

    /// One that answers the first request of a connection, and then waits for its end.
    pub fn saying_once(answer: impl AsRef<[u8]> + Send + Sync + 'static) -> BackEnd {
        BackEnd::new(move |peer, _, _| {
            peer.request();
            peer.say(&answer);
            let _ = peer.rest();
        })
    }

    /// One that reads requests and never answers.
    pub fn mute() -> BackEnd {
        BackEnd::new(|peer, _, all| {
            while let Some(request) = peer.request() {
                all.note(request);
            }
        })
    }

    /// One that takes this long for each answer.
    pub fn slow(time: Duration, body: &'static str) -> BackEnd {
        BackEnd::new(move |peer, _, all| {
            while let Some(request) = peer.request() {
                all.note(request);
                std::thread::sleep(time);
                peer.say(ok(body));
            }
        })
    }

    /// One that ends each connection when a request has come.
    pub fn silent() -> BackEnd {
        BackEnd::new(|peer, _, all| {
            if let Some(request) = peer.request() {
                all.note(request);
            }
        })
    }

    pub fn note(&self, request: Message) {
        self.requests.lock().unwrap().push(request);
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<Message> {
        self.requests.lock().unwrap().clone()
    }
}

/// A balancer of HTTP in front of these, changed as told.
pub fn balancer_with(
    io: IoKind,
    back_ends: &[SocketAddr],
    change: impl FnOnce(&mut Service),
) -> Balancer {
    threads_with(io, 1, back_ends, change)
}

/// The same with several threads.
pub fn threads_with(
    io: IoKind,
    threads: usize,
    back_ends: &[SocketAddr],
    change: impl FnOnce(&mut Service),
) -> Balancer {
    Balancer::start(&http_config(threads, back_ends, change), io).unwrap()
}

pub fn http_config(
    threads: usize,
    back_ends: &[SocketAddr],
    change: impl FnOnce(&mut Service),
) -> Config {
    let mut service = Service::new("web");
    service.listen.push("127.0.0.1:0".parse().unwrap());
    service.kind = ServiceKind::HTTP;
    service.timeouts.connect = Duration::from_secs(2);
    for (number, address) in back_ends.iter().enumerate() {
        let backend = Backend::new(&format!("back{number}"), (*address).into());
        service.backends.push(backend);
    }
    change(&mut service);
    let mut config = Config::new();
    config.threads = threads;
    config.connections_per_thread = 2048;
    config.services.push(service);
    config
}

pub fn balancer(io: IoKind, back_ends: &[SocketAddr]) -> Balancer {
    balancer_with(io, back_ends, |_| {})
}

/// The same, and a client of it.
pub fn balancer_and_client(io: IoKind, back_ends: &[SocketAddr]) -> (Balancer, Peer) {
    client_with(io, back_ends, |_| {})
}

/// As [`balancer_with`], and a client of it.
pub fn client_with(
    io: IoKind,
    back_ends: &[SocketAddr],
    change: impl FnOnce(&mut Service),
) -> (Balancer, Peer) {
    let balancer = balancer_with(io, back_ends, change);
    let client = Peer::connect(balancer.address());
    (balancer, client)
}
