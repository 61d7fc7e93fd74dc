//! WebSockets in simulated time: what is due while a server is away waits, and is charged exactly.

use net::simulated::{Driver, Network, SimIo, try_random};
use net::ws::{Event as Said, Reader, Role, Writer, handshake};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::exchange::Lasting;
use crate::job::traffic::{Traffic, WebSocket};
use crate::record::Recorder;

/// What an echo takes.
const ECHO_NS: u64 = 100_000;

/// A server that sends messages back, and is away for a time: its connections end, and it refuses
/// others.
#[derive(Default)]
struct Echo {
    away: Option<(u64, u64)>,
    open: Vec<Socket>,
    coming: Vec<(u64, ConnId, Vec<u8>)>,
}

struct Socket {
    id: ConnId,
    head: Vec<u8>,
    reader: Reader,
    writer: Writer,
}

impl Socket {
    /// What it answers to bytes.
    fn answer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes;
        let mut out = Vec::new();
        if !self.head.ends_with(b"\r\n\r\n") {
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                self.head.extend_from_slice(bytes);
                return out;
            };
            let (head, rest) = bytes.split_at(end + 4);
            self.head.extend_from_slice(head);
            bytes = rest;
            let head = String::from_utf8(self.head.clone()).unwrap();
            let fields = head.lines().filter_map(|line| line.split_once(": "));
            let fields = fields.map(|(name, value)| (name, value.as_bytes()));
            let accepted = handshake::accept_request("GET", fields, false).unwrap();
            out.extend_from_slice(accepted.answer("").as_bytes());
        }
        while let Some(said) = self.reader.next(&mut bytes).unwrap() {
            if let Said::Message(kind, content) = said {
                self.writer.message(&mut out, kind, content);
            }
        }
        out
    }
}

impl Driver for Echo {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        let now = network.now_ns();
        let is_away = self
            .away
            .is_some_and(|(from, to)| (from..to).contains(&now));
        let mut has_changed = false;
        for id in network.opening() {
            has_changed = true;
            network.decide(id, is_away.then_some(111));
            if !is_away {
                self.open.push(Socket {
                    id,
                    head: Vec::new(),
                    reader: Reader::new(Role::Server, 1 << 16, None),
                    writer: Writer::new(Role::Server, 0, None),
                });
            }
        }
        if is_away {
            self.coming.clear();
            for socket in self.open.drain(..) {
                has_changed = true;
                network.end(socket.id);
            }
        }
        if has_changed {
            network.advance(1_000);
            return Ok(());
        }
        for socket in &mut self.open {
            let sent = network.take_sent(socket.id);
            let answer = socket.answer(&sent);
            if !answer.is_empty() {
                self.coming.push((now + ECHO_NS, socket.id, answer));
            }
        }
        let next = self.coming.iter().map(|one| one.0).min();
        let edges = self.away.into_iter().flat_map(|(from, to)| [from, to]);
        let edge = edges.filter(|at| *at > now).min();
        let until = now + wait_ns.unwrap_or(0).max(1_000);
        let until = next.unwrap_or(until).min(edge.unwrap_or(until)).min(until);
        network.advance(until.saturating_sub(now).max(1_000));
        let now = network.now_ns();
        self.coming.retain(|(at, id, answer)| {
            if *at <= now {
                network.arrive(*id, answer);
            }
            *at > now
        });
        Ok(())
    }
}

fn carried_out(websocket: WebSocket, connections: u32, segment: Segment, server: Echo) -> Recorder {
    let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let target = Target {
        traffic: Traffic::WebSocket(websocket),
        ..Target::new(address, request, Expect::default()).with_connections(connections)
    };
    let job = Job {
        rows: Some(ms(100)),
        ..Job::to(target).segment(segment)
    };
    let io = SimIo::new(io_options(&job, 0), 0, server);
    let clock = NetworkClock(io.network.clock());
    let (events, _messages) = mpsc::channel();
    let mut worker = Worker::<_, _, Lasting>::new(io, clock, Arc::new(job), 0, events);
    worker.segment(0, 0, &AtomicBool::new(false)).unwrap();
    worker.into_recorders().remove(0)
}

#[test]
fn a_closed_loop_has_its_messages_in_flight() {
    let websocket = WebSocket {
        in_flight: 4,
        ..WebSocket::default()
    };
    let segment = Segment::closed(Stop::Requests(400));
    let done = carried_out(websocket, 2, segment, Echo::default());
    assert_eq!((done.requests, done.errors_all.total()), (400, 0));
    assert_eq!((done.connects, done.connect.count()), (2, 2));
    // TCP takes no time here, the handshake that of an echo.
    let opened_us = done.connect.quantile_us(1.0);
    assert!((100.0..110.0).contains(&opened_us), "{opened_us}");
    // Eight at a time: fifty rounds, after the first.
    let took_s = done.slices[0].duration_s;
    assert!((0.005..0.0053).contains(&took_s), "{took_s}");
}

#[test]
fn what_is_due_while_the_server_is_away_waits_and_is_charged() {
    let websocket = WebSocket {
        paced_by_connection: true,
        ..WebSocket::default()
    };
    // A message each 10 ms, of each of two connections in turn, and 300 ms without a server.
    let server = Echo {
        away: Some((305 * MS, 605 * MS)),
        ..Echo::default()
    };
    let segment = Segment::open(100.0, Stop::After(ms(1_000)));
    let done = carried_out(websocket, 2, segment, server);
    assert_eq!((done.requests, done.errors_all.total()), (100, 0));
    let lasting = &done.connections.as_ref().unwrap().reading;
    assert_eq!((lasting.cut(), lasting.opened), (2, 4));
    assert_eq!(lasting.ends[0].how, "closed");
    // A connection is tried again each 20 ms.
    assert_eq!(lasting.reconnect.count(), 2);
    for quantile in [0.0, 1.0] {
        let back_us = lasting.reconnect.quantile_us(quantile);
        assert!((300_000.0..325_000.0).contains(&back_us), "{back_us}");
    }
    let attempts = lasting.reconnect_failed;
    assert!((28..=34).contains(&attempts), "{attempts}");
    // Due from 310 ms on; the first of them waited the longest.
    let most_us = done.response.quantile_us(1.0);
    assert!((295_000.0..316_000.0).contains(&most_us), "{most_us}");
    // Those that were due at least 100 ms before.
    let late = done.response.count_above_us(100_000.0);
    assert!((19..=22).contains(&late), "{late}");
    assert!(done.schedule_lag.quantile_us(1.0) < 10.0);
    let rows = &lasting.connections;
    let open: Vec<u64> = rows.iter().map(|row| row.open).collect();
    assert_eq!(open, [2, 2, 2, 0, 0, 0, 2, 2, 2, 2]);
    assert_eq!((rows[0].opened, rows[3].cut, rows[6].opened), (2, 2, 2));
}

#[test]
fn a_connection_that_is_lost_without_a_message_due_comes_back() {
    let websocket = WebSocket {
        paced_by_connection: true,
        ..WebSocket::default()
    };
    let server = Echo {
        away: Some((150 * MS, 151 * MS)),
        ..Echo::default()
    };
    // Two messages a second on ten connections: most have none after the loss.
    let segment = Segment::open(2.0, Stop::After(ms(1_000)));
    let done = carried_out(websocket, 10, segment, server);
    assert_eq!((done.requests, done.errors_all.total()), (2, 0));
    let lasting = &done.connections.as_ref().unwrap().reading;
    assert_eq!(
        (lasting.cut(), lasting.opened, lasting.open_min),
        (10, 20, 10)
    );
}

/// What a server does with a connection that asks for a WebSocket.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// It accepts, answers so many messages, and closes.
    Echo(u8),
    /// It refuses the handshake.
    Refuse,
    /// It closes before it answers the handshake.
    Close,
    /// It does not take the connection.
    Unreachable,
    Silent,
}

/// A server that treats its connections in turn, without an end.
struct Fickle {
    habits: Vec<Habit>,
    connects: u64,
    open: Vec<(Socket, Habit)>,
}

impl Driver for Fickle {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        for id in network.opening() {
            let habit = self.habits[self.connects as usize % self.habits.len()];
            self.connects += 1;
            let is_unreachable = matches!(habit, Habit::Unreachable);
            network.decide(id, is_unreachable.then_some(111));
            let socket = Socket {
                id,
                head: Vec::new(),
                reader: Reader::new(Role::Server, 1 << 16, None),
                writer: Writer::new(Role::Server, 0, None),
            };
            self.open.push((socket, habit));
        }
        let mut has_answered = false;
        self.open.retain_mut(|(socket, habit)| {
            let sent = network.take_sent(socket.id);
            if sent.is_empty() {
                return true;
            }
            let refused = b"HTTP/1.1 503 A\r\nContent-Length: 0\r\n\r\n";
            match habit {
                Habit::Silent | Habit::Unreachable => return true,
                Habit::Refuse => network.arrive(socket.id, refused),
                Habit::Echo(left) if *left > 0 => {
                    *left -= 1;
                    let answer = socket.answer(&sent);
                    network.arrive(socket.id, &answer);
                    has_answered = true;
                    return true;
                }
                Habit::Echo(_) | Habit::Close => {}
            }
            network.end(socket.id);
            false
        });
        let idle = wait_ns.unwrap_or(0).max(ECHO_NS);
        network.advance(if has_answered { ECHO_NS } else { idle });
        match network.now_ns() > 20_000 * MS {
            true => Err(std::io::Error::other("it does not end")),
            false => Ok(()),
        }
    }
}

fn habits() -> impl Strategy<Value = Vec<Habit>> {
    let one = prop_oneof![
        3 => (0..20_u8).prop_map(Habit::Echo),
        1 => Just(Habit::Refuse),
        1 => Just(Habit::Close),
        1 => Just(Habit::Unreachable),
        1 => Just(Habit::Silent),
    ];
    vec(one, 1..6)
}

/// Runs a worker against such a server for a time. Returns the rules that were broken.
fn fickle(
    habits: Vec<Habit>,
    (connections, in_flight): (u32, u32),
    rate: Option<f64>,
    window_ms: u64,
) -> Vec<String> {
    let stop = Stop::After(ms(window_ms));
    let segment = rate.map_or(Segment::closed(stop), |rate| Segment::open(rate, stop));
    let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let websocket = WebSocket {
        in_flight,
        ..WebSocket::default()
    };
    let target = Target {
        traffic: Traffic::WebSocket(websocket),
        ..Target::new(address, request, Expect::default()).with_connections(connections)
    };
    let mut job = Job::to(target).segment(segment);
    (job.timeout, job.connect_timeout) = (ms(50), ms(30));
    let server = Fickle {
        habits,
        connects: 0,
        open: Vec::new(),
    };
    let io = SimIo::new(io_options(&job, 0), 0, server);
    let time = io.network.clock();
    let (events, _messages) = mpsc::channel();
    let clock = NetworkClock(time.clone());
    let mut worker = Worker::<_, _, Lasting>::new(io, clock, Arc::new(job), 0, events);
    let done = worker.segment(0, 0, &AtomicBool::new(false));
    let mut found = Vec::new();
    if let Err(error) = done {
        found.push(format!("it failed: {error}"));
    }
    let took_ms = time.get() / MS;
    if took_ms > window_ms + 2 * 50 + 30 + 60 {
        found.push(format!("it took {took_ms} ms"));
    }
    // Two in a row may be without an answer, and then one at each check.
    let connects = worker.io.driver.connects;
    let done = worker.into_recorders().remove(0);
    let most = u64::from(connections) * (3 + took_ms / 10) + done.requests_all;
    if connects > most {
        found.push(format!("{connects} connects in {took_ms} ms"));
    }
    if rate.is_none() && done.requests_all + done.errors_all.total() == 0 {
        found.push("nothing is counted".to_owned());
    }
    found
}

#[test]
fn however_servers_refuse_and_close_connections_are_opened_again_at_intervals_and_it_ends() {
    let rates = proptest::option::of(10.0..2_000.0);
    let inputs = (habits(), (1..4_u32, 1..4_u32), rates, 20..300_u64);
    try_random(100, file!(), &inputs, |(habits, sizes, rate, window_ms)| {
        fickle(habits, sizes, rate, window_ms)
    });
}
