//! Back ends of HTTP/2 that break rules, refuse, reset, stall and flood, and do not tire of it. Each
//! request is answered once, in time, and what the balancer holds meanwhile stays bounded.

mod client;
mod deeds;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use net::h2::{ErrorCode, Event, FrameReader, frame, hpack, settings};
use net::simulated::{Driver, Fate, Network, SimIo, try_random};
use net::{ConnId, IoOptions, os};
use testing::odd::streams::{Response, all};

use super::{service, worker_over};
use crate::config::model::{Config, HttpVersion, HttpVersions, ServiceKind};
use crate::engine::health_checker::lookups;
use crate::engine::multiplexed::{Multiplexed, StreamsMax};
use crate::engine::shared::Shared;
use client::Client;
use deeds::{BEYOND, BEYOND_BYTES, Case, Deed, Flood, Opening, cases, flood_of};

const CASES: u32 = 60;
/// How long an answer may take, and then the end of the balancer: longer than the longest chain of the
/// time limits of the configuration.
const LONGEST_NS: u64 = 15_000_000_000;
/// Time between two looks at the balancer.
const TURN_NS: u64 = 10_000_000;
const BUSY_NS: u64 = 1_000_000;
/// What an HTTP/2 connection may hold, and one stream.
const CARRIER_MAX: usize = 256 * 1024;
const EACH_MAX: usize = (384 + 64) * 1024;
/// How often a request may be sent: at first, and again to those that say that they did not process it.
const SENT_MAX: u32 = 4;

/// A connection to a back end.
struct Back {
    reader: FrameReader,
    decoder: hpack::Decoder,
    floods: Vec<(u32, Flood)>,
    speaks: bool,
    /// Bytes of content that have come: its connection's window is never opened further.
    content: usize,
}

struct Peers {
    shared: Arc<Shared>,
    case: Case,
    odd: Vec<Response>,
    clients: Vec<Client>,
    backs: HashMap<ConnId, Back>,
    hanging: Vec<ConnId>,
    /// How many connections were tried, and how many requests have come.
    tried: usize,
    asked: usize,
    /// How often each path was asked for.
    sent: HashMap<String, u32>,
    start_ns: Option<u64>,
    draining_ns: Option<u64>,
    found: Vec<String>,
}

impl Peers {
    fn connect(&mut self, network: &mut Network) {
        for (number, (streams, content)) in self.case.clients.clone().into_iter().enumerate() {
            let address = SocketAddr::from(([10, 0, 0, 1], 1000 + number as u16));
            let conn = network.accept(0, Some(address)).unwrap();
            let client = Client::new(conn, number, streams, content);
            network.arrive(conn, &client.requests());
            self.clients.push(client);
        }
    }

    fn open(&mut self, network: &mut Network) {
        for conn in network.opening() {
            if self.hanging.contains(&conn) {
                continue;
            }
            let opening = self.case.openings[self.tried % self.case.openings.len()];
            self.tried += 1;
            match opening {
                Opening::Hanging => self.hanging.push(conn),
                Opening::Refused => {
                    network.decide(conn, Some(super::steps::libc_numbers::ECONNREFUSED))
                }
                opening => {
                    network.decide(conn, None);
                    self.greet(network, conn, opening);
                }
            }
        }
    }

    fn greet(&mut self, network: &mut Network, conn: ConnId, opening: Opening) {
        let mut out = Vec::new();
        match opening {
            Opening::Settings { window, streams } => {
                let values = [
                    (settings::INITIAL_WINDOW_SIZE, window),
                    (settings::MAX_CONCURRENT_STREAMS, streams),
                ];
                frame::settings(&mut out, &values);
            }
            Opening::Text => out.extend(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
            Opening::Silent | Opening::Refused | Opening::Hanging => {}
        }
        network.arrive(conn, &out);
        let back = Back {
            reader: FrameReader::of_server(16_384, 64 * 1024),
            decoder: hpack::Decoder::new(4_096, 64 * 1024),
            floods: Vec::new(),
            content: 0,
            speaks: matches!(opening, Opening::Settings { .. }),
        };
        self.backs.insert(conn, back);
    }

    /// Back ends read what has come, and answer it.
    fn answer(&mut self, network: &mut Network) {
        let mut conns: Vec<ConnId> = self.backs.keys().copied().collect();
        conns.sort_by_key(|conn| conn.slot());
        for conn in conns {
            let bytes = network.take_sent(conn);
            if network.fate(conn) != Fate::Open {
                continue;
            }
            for (stream, path) in self.requests(conn, &bytes) {
                *self.sent.entry(path.clone()).or_default() += 1;
                let deed = self.case.deeds[self.asked % self.case.deeds.len()];
                self.asked += 1;
                self.carry_out(network, conn, deed, (stream, &path));
            }
            if !network.has_unread(conn) {
                let floods = self.backs[&conn].floods.clone();
                for (stream, flood) in floods {
                    network.arrive(conn, &flood_of(flood, stream));
                }
            }
        }
    }

    /// The streams and the paths of requests whose heads have come.
    fn requests(&mut self, conn: ConnId, bytes: &[u8]) -> Vec<(u32, String)> {
        let mut requests = Vec::new();
        let Some(back) = self.backs.get_mut(&conn).filter(|back| back.speaks) else {
            return requests;
        };
        let (decoder, content) = (&mut back.decoder, &mut back.content);
        let read = back.reader.feed(bytes, |event| {
            if let Event::Data { bytes, .. } = event {
                *content += bytes.len();
            }
            if let Event::Headers { stream, block, .. } = event {
                let mut path = String::new();
                decoder.decode(block, |name, value| {
                    if name == b":path" {
                        path = String::from_utf8_lossy(value).into_owned();
                    }
                    Ok(())
                })?;
                requests.push((stream, path));
            }
            Ok(())
        });
        if let Err(error) = read {
            self.found.push(format!("a back end got {error}"));
        }
        if back.content > 65_535 {
            self.found
                .push(format!("a back end got {} bytes of content", back.content));
        }
        requests
    }

    fn carry_out(
        &mut self,
        network: &mut Network,
        conn: ConnId,
        deed: Deed,
        (stream, path): (u32, &str),
    ) {
        let mut out = Vec::new();
        let ok = hpack::block(&[(":status", "200")]);
        match deed {
            Deed::Good => {
                frame::headers(&mut out, stream, &ok, false, 16_384);
                frame::data(&mut out, stream, path.as_bytes(), true);
            }
            Deed::Odd(number) => out = self.odd[number].bytes(stream),
            Deed::Part => {
                frame::headers(&mut out, stream, &ok, false, 16_384);
                frame::data(&mut out, stream, b"a part", false);
            }
            Deed::Beyond => {
                frame::headers(&mut out, stream, &ok, false, 16_384);
                let content = vec![BEYOND; BEYOND_BYTES];
                for piece in content.chunks(16_384) {
                    frame::data(&mut out, stream, piece, false);
                }
                frame::data(&mut out, stream, b"", true);
            }
            Deed::Refuse => frame::reset(&mut out, stream, ErrorCode::RefusedStream),
            Deed::GoAway => frame::go_away(&mut out, stream - 1, ErrorCode::NoError),
            Deed::Flood(flood) => {
                if matches!(flood, Flood::EmptyData) {
                    frame::headers(&mut out, stream, &ok, false, 16_384);
                }
                if let Some(back) = self.backs.get_mut(&conn) {
                    back.floods.push((stream, flood));
                }
            }
            Deed::Nothing | Deed::ResetConnection => {}
        }
        network.arrive(conn, &out);
        match deed {
            Deed::ResetConnection => network.reset(conn),
            Deed::Odd(number) if self.odd[number].closes() => network.end(conn),
            _ => {}
        }
    }

    fn check(&mut self, network: &Network) {
        for conn in network.open() {
            let held = network.held(conn);
            if held > CARRIER_MAX {
                self.found
                    .push(format!("{held} bytes are held for {conn:?}"));
            }
        }
    }

    /// Checks how each request was answered, and how often it was sent.
    fn judge(&mut self) {
        self.found
            .extend(self.clients.iter().flat_map(Client::faults));
        let often = self.sent.iter().filter(|(_, sent)| **sent > SENT_MAX);
        let often = often.map(|(path, sent)| format!("{path} was sent {sent} times"));
        self.found.extend(often);
    }
}

impl Driver for Peers {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> io::Result<()> {
        let now_ns = network.now_ns();
        if self.start_ns.is_none() {
            self.start_ns = Some(now_ns);
            (network.is_late, network.is_reversed) = (self.case.is_late, self.case.is_reversed);
            self.connect(network);
        }
        self.check(network);
        self.open(network);
        self.answer(network);
        for client in &mut self.clients {
            self.found.extend(client.receive(network));
        }
        let is_over = |since: Option<u64>| since.is_some_and(|since| now_ns - since > LONGEST_NS);
        let is_done = self.clients.iter().all(Client::is_answered);
        if self.draining_ns.is_none() && (is_done || is_over(self.start_ns)) {
            self.judge();
            self.draining_ns = Some(now_ns);
            self.shared.draining.store(true, Ordering::Relaxed);
        }
        if is_over(self.draining_ns) {
            self.found.push("it does not end when it is drained".into());
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        // A flood takes its time, also where the balancer does not wait.
        network.advance(wait_ns.unwrap_or(TURN_NS).clamp(BUSY_NS, TURN_NS));
        Ok(())
    }
}

fn config() -> Config {
    let mut service = service("web", ServiceKind::HTTP);
    service.offered_versions = Some(HttpVersions::BOTH);
    service.connections_max = None;
    for backend in &mut service.backends {
        backend.http = HttpVersion::Two;
        backend.connections_max = None;
    }
    let mut config = Config::new();
    config.connections_per_thread = 64;
    config.services.push(service);
    config
}

/// Runs a worker through a case. Returns the rules that were broken.
fn go_through(case: Case) -> Vec<String> {
    found_and_clients(case).0
}

/// The same, with the clients.
fn found_and_clients(case: Case) -> (Vec<String>, Vec<Client>) {
    let config = Arc::new(config());
    let addresses = lookups::all_backends(&config).unwrap();
    let start_ns = os::now_ns();
    let shared = Arc::new(Shared::new(&config, &addresses, start_ns));
    let peers = Peers {
        shared: shared.clone(),
        case,
        odd: all(9, 9),
        clients: Vec::new(),
        backs: HashMap::new(),
        hanging: Vec::new(),
        tried: 0,
        asked: 0,
        sent: HashMap::new(),
        start_ns: None,
        draining_ns: None,
        found: Vec::new(),
    };
    let options = IoOptions {
        outgoing: 64,
        accepted: 16,
        buffers: 512,
        buffers_max: 0,
        buffer_size: 32 * 1024,
        files: true,
        stamps: false,
    };
    let streams = StreamsMax {
        incoming: 64,
        outgoing: 64,
    };
    let io = Multiplexed::over(SimIo::new(options, start_ns, peers), &options, streams);
    let slots = options.slots() + (streams.incoming + streams.outgoing) as usize;
    let mut worker = worker_over(io, slots, &config, &shared);
    worker.run().unwrap();
    let most = worker.io.most_of_one();
    let clients = worker.clients;
    let inner = worker.io.inner_mut();
    let lent = inner.network.lent();
    let mut found = std::mem::take(&mut inner.driver.found);
    let seen = std::mem::take(&mut inner.driver.clients);
    if most > EACH_MAX {
        found.push(format!("{most} bytes are held for a stream"));
    }
    if lent > 0 || clients > 0 {
        found.push(format!(
            "{lent} buffers are lent, {clients} clients counted"
        ));
    }
    (found, seen)
}

#[test]
fn every_request_is_answered_once_in_time_whatever_back_ends_of_http_2_do() {
    try_random(CASES, file!(), &cases(), go_through);
}

/// What clients of HTTP/2, and of HTTP/1.1, got where every request meets this.
fn outcome(deed: Deed) -> String {
    let case = Case {
        clients: vec![(Some(1), 0), (None, 0)],
        openings: vec![Opening::Settings {
            window: 65_535,
            streams: 100,
        }],
        deeds: vec![deed],
        is_late: false,
        is_reversed: false,
    };
    let (found, clients) = found_and_clients(case);
    assert!(found.is_empty(), "{deed:?}: {found:#?}");
    let told: Vec<String> = clients.iter().map(Client::outcome).collect();
    told.join(", ")
}

#[test]
fn requests_end_as_their_back_ends_deserve() {
    for (deed, expected) in [
        (Deed::Good, "200 whole, 200 whole"),
        (Deed::Nothing, "504 whole, 504 whole"),
        (Deed::Part, "200 cut, 200 cut"),
        // HTTP/1.1 clients get it as it comes, so the window is open again in time.
        (Deed::Beyond, "200 cut, 200 whole"),
        (Deed::Refuse, "503 whole, 503 whole"),
        (Deed::GoAway, "503 whole, 503 whole"),
        (Deed::ResetConnection, "502 whole, 502 whole"),
        (Deed::Flood(Flood::Ping), "502 whole, 502 whole"),
        (Deed::Flood(Flood::Settings), "502 whole, 502 whole"),
        (Deed::Flood(Flood::EmptyData), "200 cut, 200 cut"),
        (Deed::Flood(Flood::WindowUpdates), "502 whole, 502 whole"),
        (Deed::Flood(Flood::Resets), "502 whole, 502 whole"),
        (Deed::Flood(Flood::Interim), "502 whole, 502 whole"),
        (Deed::Flood(Flood::Unknown), "502 whole, 502 whole"),
    ] {
        assert_eq!(outcome(deed), expected, "{deed:?}");
    }
}
