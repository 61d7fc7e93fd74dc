//! Tests how many round trips a request on a new connection takes. They need no wall clock, since
//! the network is simulated: in each round trip the server takes all that the load has sent,
//! answers it, and counts. Nagle's algorithm is part of the simulation: without `TCP_NODELAY` a
//! second send waits until the first is acknowledged.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use net::h2::{Incoming, Session, SessionLimits, hpack};
use net::simulated::{Driver, Network, SimIo};
use net::{ConnId, IoOptions};
use tls::{
    Authority, ClientSettings, ClientTls, KeyType, Secure, ServerSettings, ServerTls, Trust,
};

use super::*;
use crate::http::Http;
use crate::job::Segment;
use crate::job::expect::Expect;
use crate::job::target::{Http2, ProxyHeader, ProxyVersion, Target};

const RTT_NS: u64 = 50_000_000;
const LIMITS: SessionLimits = SessionLimits {
    streams_max: 256,
    overhead_max: 1_000,
    reset_cost: 1,
};

/// What is on its way to the server and back.
#[derive(Default)]
struct Wires {
    connects: bool,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

/// The network of the server.
struct Pipe {
    wires: Rc<RefCell<Wires>>,
    conn: Option<ConnId>,
}

impl Driver for Pipe {
    fn turn(&mut self, network: &mut Network, _: Option<u64>) -> std::io::Result<()> {
        let mut wires = self.wires.borrow_mut();
        if std::mem::take(&mut wires.connects) {
            self.conn = network.accept(0, None);
        }
        if let Some(conn) = self.conn {
            let bytes = std::mem::take(&mut wires.to_server);
            network.arrive(conn, &bytes);
            wires.to_client.extend(network.take_sent(conn));
        }
        Ok(())
    }
}

/// What the server has seen.
#[derive(Default)]
struct Seen {
    round_trips: u64,
    requests: u64,
    /// For each flight of the load: how many sends it was, and how many requests arrived with it.
    flights: Vec<(usize, u64)>,
}

/// A server that is a round trip away.
struct Far {
    io: Secure<SimIo<Pipe>>,
    wires: Rc<RefCell<Wires>>,
    /// The client's connection.
    conn: Option<ConnId>,
    session: Option<Session>,
    limits: SessionLimits,
    text: Vec<u8>,
    /// Sends of the client that have not left.
    unsent: VecDeque<Vec<u8>>,
    turns: u32,
    seen: Rc<RefCell<Seen>>,
}

impl Far {
    fn new(tls: Option<ServerTls>, has_header: bool, seen: Rc<RefCell<Seen>>) -> Self {
        let options = IoOptions {
            outgoing: 1,
            accepted: 16,
            ..IoOptions::default()
        };
        let wires = Rc::new(RefCell::new(Wires::default()));
        let pipe = Pipe {
            wires: wires.clone(),
            conn: None,
        };
        let io = SimIo::new(options, 0, pipe);
        Self {
            io: Secure::over(io, &options)
                .with_headers(vec![has_header && tls.is_some()])
                .with_servers(vec![tls]),
            wires,
            conn: None,
            session: None,
            limits: LIMITS,
            text: Vec::new(),
            unsent: VecDeque::new(),
            turns: 0,
            seen,
        }
    }

    /// Handles what has arrived, and sends the answers.
    fn serve(&mut self) {
        self.io.poll(Some(0)).unwrap();
        while let Some(event) = self.io.next_event() {
            let Event::Data { conn, buf } = event else {
                continue;
            };
            self.text.extend_from_slice(self.io.bytes(&buf));
            self.io.recycle(buf);
            // After a PROXY protocol header.
            if self.text.starts_with(b"PROXY ") {
                let end = self.text.windows(2).position(|two| two == b"\r\n");
                self.text.drain(..end.unwrap() + 2);
            }
            if self.session.is_none() && self.text.starts_with(b"PRI ") {
                self.session = Some(Session::of_server(self.limits));
            }
            let answer = match &mut self.session {
                Some(session) => {
                    let mut streams = Vec::new();
                    let fed = session.feed(&self.text, |incoming| {
                        if let Incoming::Head { stream, .. } = incoming {
                            streams.push(stream);
                        }
                    });
                    fed.unwrap();
                    self.text.clear();
                    let mut block = Vec::new();
                    hpack::encode(&mut block, b":status", b"200");
                    for stream in &streams {
                        session.send_headers(*stream, &block, true);
                    }
                    self.seen.borrow_mut().requests += streams.len() as u64;
                    std::mem::take(&mut session.out)
                }
                None if self.text.ends_with(b"\r\n\r\n") => {
                    self.text.clear();
                    self.seen.borrow_mut().requests += 1;
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
                }
                None => continue,
            };
            self.io.send_copy(conn, &answer);
        }
        self.io.poll(Some(0)).unwrap();
    }

    /// Delivers what the client can send now; false if there is nothing.
    fn exchange(&mut self, network: &mut Network, conn: ConnId) -> bool {
        self.unsent.extend(network.take_sends(conn));
        let target = network.target(conn).unwrap();
        let sends = match network.has_no_delay(target) {
            true => self.unsent.len(),
            // Nagle's algorithm: all sends are short segments, so only one leaves.
            false => self.unsent.len().min(1),
        };
        let flight: Vec<u8> = self.unsent.drain(..sends).flatten().collect();
        let before = self.seen.borrow().requests;
        self.wires.borrow_mut().to_server = flight;
        self.serve();
        let answer = std::mem::take(&mut self.wires.borrow_mut().to_client);
        network.arrive(conn, &answer);
        if sends > 0 {
            let mut seen = self.seen.borrow_mut();
            let requests = seen.requests - before;
            seen.flights.push((sends, requests));
        }
        sends > 0
    }
}

impl Driver for Far {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        self.turns += 1;
        if self.turns > 10_000 {
            return Err(std::io::Error::other("it does not end"));
        }
        let is_exchange = match network.opening().pop() {
            Some(conn) => {
                network.decide(conn, None);
                self.conn = Some(conn);
                self.session = None;
                self.unsent.clear();
                self.wires.borrow_mut().connects = true;
                true
            }
            None => match self.conn.filter(|conn| network.open().contains(conn)) {
                Some(conn) => self.exchange(network, conn),
                None => false,
            },
        };
        if is_exchange {
            self.seen.borrow_mut().round_trips += 1;
            network.advance(RTT_NS);
        } else {
            network.advance(wait_ns.unwrap_or(0).max(1_000));
        }
        Ok(())
    }
}

fn job(alpn: Option<&str>, streams: Option<u32>) -> Job {
    let address: std::net::SocketAddr = "127.0.0.1:443".parse().unwrap();
    let get = b"GET / HTTP/1.1\r\nHost: far\r\n\r\n".to_vec();
    let target = Target {
        tls: alpn.map(|alpn| ClientSettings {
            trust: Trust::Anything,
            alpn: vec![alpn.into()],
            ..ClientSettings::new("localhost")
        }),
        http2: streams.map(|streams| Http2 { streams }),
        requests_per_connection: Some(streams.unwrap_or(1).into()),
        ..Target::new(address, get, Expect::default())
    };
    let total = 3 * u64::from(streams.unwrap_or(1));
    Job::to(target).segment(Segment::closed(Stop::Requests(total)))
}

/// Carries out the job on one thread, and returns what the server has seen.
fn carried_out(job: Job) -> Seen {
    carried_out_within(job, LIMITS).0
}

/// Carries out the job on one thread. Returns what the server has seen, and how many answers
/// each place had.
fn carried_out_within(job: Job, limits: SessionLimits) -> (Seen, Vec<u64>) {
    let target = &job.targets[0];
    let server = target.tls.as_ref().map(|tls| {
        let authority = Authority::new().unwrap();
        let issued = authority.issue(&["localhost".into()], KeyType::EcdsaP256);
        let settings = ServerSettings {
            alpn: tls.alpn.clone(),
            ..ServerSettings::new(issued.unwrap().identity)
        };
        ServerTls::new(&settings, "the test").unwrap()
    });
    let client = target.tls.as_ref().map(|tls| ClientTls::new(tls).unwrap());
    let seen = Rc::new(RefCell::new(Seen::default()));
    let options = io_options(&job, 0);
    let has_header = target.proxy_header.is_some();
    let far = Far {
        limits,
        ..Far::new(server, has_header, seen.clone())
    };
    let io = SimIo::new(options, 0, far);
    let clock = NetworkClock(io.network.clock());
    let io = Secure::over(io, &options).with_clients(vec![client]);
    let (sender, _messages) = mpsc::channel();
    let mut worker = Worker::<_, _, Http>::new(io, clock, Arc::new(job), 0, sender);
    worker.segment(0, 0, &AtomicBool::new(false)).unwrap();
    let answers = worker.conns.iter().map(|conn| conn.answers).collect();
    let recorders = worker.into_recorders();
    assert_eq!(
        recorders[0].errors_all.total(),
        0,
        "{:?}",
        recorders[0].wrong
    );
    drop(recorders);
    let seen = Rc::try_unwrap(seen).ok().unwrap().into_inner();
    (seen, answers)
}

#[test]
fn a_new_connection_takes_as_many_round_trips_over_http_2_as_over_http_1_1() {
    for job in [job(Some("http/1.1"), None), job(Some("h2"), Some(1))] {
        let seen = carried_out(job);
        // Each of the three requests takes one round trip for TCP, one for TLS, and its own.
        assert_eq!((seen.requests, seen.round_trips), (3, 9));
        // The ClientHello; the end of the handshake with the request.
        assert_eq!(seen.flights[..2], [(1, 0), (1, 1)]);
    }
    // Without TLS.
    for job in [job(None, None), job(None, Some(1))] {
        let seen = carried_out(job);
        assert_eq!((seen.requests, seen.round_trips), (3, 6));
        assert_eq!(seen.flights[0], (1, 1));
    }
}

#[test]
fn all_first_requests_of_a_connection_leave_in_its_first_flight() {
    let seen = carried_out(job(Some("h2"), Some(40)));
    assert_eq!(seen.flights[..2], [(1, 0), (1, 40)]);
    assert_eq!((seen.requests, seen.round_trips), (120, 9));
}

#[test]
fn a_proxy_protocol_header_costs_no_round_trip() {
    for (alpn, streams, expected) in [
        (None, Some(1), [(1, 1), (1, 1)]),
        (None, None, [(1, 1), (1, 1)]),
        (Some("h2"), Some(1), [(1, 0), (1, 1)]),
        (Some("http/1.1"), None, [(1, 0), (1, 1)]),
    ] {
        let mut job = job(alpn, streams);
        job.targets[0].proxy_header = Some(ProxyHeader {
            version: ProxyVersion::V1,
            clients: Vec::new(),
        });
        let seen = carried_out(job);
        assert_eq!(seen.flights[..2], expected);
    }
}

#[test]
fn places_take_turns_where_the_server_allows_fewer_streams() {
    let mut job = job(None, Some(8));
    job.targets[0].requests_per_connection = None;
    // Two answers in each of 41 round trips, of which the first one opens the connection.
    job.segments[0].stop = Stop::After(Duration::from_nanos(41 * RTT_NS));
    let limits = SessionLimits {
        streams_max: 2,
        ..LIMITS
    };
    let (_, answers) = carried_out_within(job, limits);
    assert!(
        answers.iter().all(|of_place| (9..=10).contains(of_place)),
        "{answers:?}"
    );
}
