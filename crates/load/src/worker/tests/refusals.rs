//! Property tests of a worker against simulated HTTP/2 servers that refuse requests and end
//! connections as a habit, for as long as the load goes on.
//!
//! [`super::simulated`] has steps that are used up, after which its servers are silent, so that each
//! wait there ends by a time limit. What never ends is a server that goes on.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use net::h2::{ErrorCode, Event, FrameReader, frame, hpack};
use net::simulated::{Driver, Network, SimIo, try_random};
use net::{ConnId, IoOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use readings::Pacing;

use super::sim::MS;
use super::*;
use crate::exchange::{Kind, Lasting};
use crate::http::Http;
use crate::job::Segment;
use crate::job::expect::Expect;
use crate::job::target::{Http2, Target};
use crate::job::traffic::{Events, Grpc, Traffic};
use crate::record::merge::merge;

const TIMEOUT_MS: u64 = 50;
const CONNECT_TIMEOUT_MS: u64 = 30;
/// How long a segment may take after the end of its window, ns: a request that was due at its end
/// waits for a connection that is free, is opened, and is not answered; each is noticed at a check.
const AFTER_NS: u64 = (2 * TIMEOUT_MS + CONNECT_TIMEOUT_MS + 60) * MS;

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Answer,
    Refuse,
    /// It refuses it after the head of an answer.
    RefuseLate,
    /// It takes no further requests on the connection, this one included.
    GoAway,
    Reset,
    Close,
    Silent,
}

fn habits() -> impl Strategy<Value = Vec<Habit>> {
    let one = prop_oneof![
        3 => Just(Habit::Answer),
        3 => Just(Habit::Refuse),
        1 => Just(Habit::RefuseLate),
        3 => Just(Habit::GoAway),
        1 => Just(Habit::Reset),
        2 => Just(Habit::Close),
        1 => Just(Habit::Silent),
    ];
    vec(one, 1..6)
}

/// What is asked for and how it is answered.
#[derive(Clone, Copy, Debug)]
enum Of {
    Answers,
    Grpc,
    Events,
}

impl Of {
    fn target(self) -> Target {
        let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
        let (request, traffic) = match self {
            Of::Answers => (&b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"[..], Traffic::Answers),
            Of::Grpc => (
                &b"POST /a.B/C HTTP/1.1\r\nHost: h\r\n\r\nhi"[..],
                Traffic::Grpc(Grpc::default()),
            ),
            Of::Events => (
                &b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"[..],
                Traffic::Events(Events::default()),
            ),
        };
        Target {
            traffic,
            ..Target::new(address, request.to_vec(), Expect::default())
        }
    }

    /// The head of an answer, and what makes it a whole one.
    fn answer(self, stream: u32, out: &mut Vec<u8>) {
        let head = |fields: &[(&str, &str)], ends: bool, out: &mut Vec<u8>| {
            frame::headers(out, stream, &hpack::block(fields), ends, 16_384);
        };
        match self {
            Of::Answers => head(&[(":status", "200")], true, out),
            Of::Grpc => {
                head(
                    &[(":status", "200"), ("content-type", "application/grpc")],
                    false,
                    out,
                );
                frame::data(out, stream, b"\0\0\0\0\x02hi", false);
                head(&[("grpc-status", "0")], true, out);
            }
            Of::Events => {
                head(
                    &[(":status", "200"), ("content-type", "text/event-stream")],
                    false,
                    out,
                );
                frame::data(out, stream, b"data: a\n\ndata: b\n\n", true);
            }
        }
    }
}

fn job(of: Of) -> impl Strategy<Value = Job> {
    let stop = || {
        prop_oneof![
            (1..300u64).prop_map(|window_ms| Stop::After(ms(window_ms))),
            (1..40u64).prop_map(Stop::Requests),
        ]
    };
    let segment = prop_oneof![
        stop().prop_map(Segment::closed),
        (10..2_000u32, stop()).prop_map(|(rate, stop)| Segment::open(rate.into(), stop)),
    ];
    (1..4u32, 1..5u32, vec(segment, 1..3)).prop_map(move |(connections, streams, segments)| {
        let target = Target {
            http2: Some(Http2 { streams }),
            ..of.target()
        };
        let mut job = Job::to(target.with_connections(connections));
        for (number, one) in segments.into_iter().enumerate() {
            job = job.segment(one.on(0, Some(number)));
        }
        (job.timeout, job.connect_timeout) = (ms(TIMEOUT_MS), ms(CONNECT_TIMEOUT_MS));
        job
    })
}

struct Servers {
    of: Of,
    /// Done in turn, without an end.
    habits: Vec<Habit>,
    number: usize,
    readers: HashMap<ConnId, FrameReader>,
    /// What has been opened.
    connects: u64,
    answers: u64,
}

impl Servers {
    fn look(&mut self, network: &mut Network) {
        for conn in network.opening() {
            network.decide(conn, None);
            self.connects += 1;
            let reader = FrameReader::of_server(16_384, 65_536);
            self.readers.insert(conn, reader);
            let mut out = Vec::new();
            frame::settings(&mut out, &[]);
            network.arrive(conn, &out);
        }
        for conn in network.open() {
            let sent = network.take_sent(conn);
            let Some(reader) = self.readers.get_mut(&conn) else {
                continue;
            };
            let (mut requests, mut opened) = (Vec::new(), 0);
            let fed = reader.feed(&sent, |event| {
                match event {
                    Event::Headers { stream, .. } => requests.push(stream),
                    Event::Data { flow, .. } => opened += flow,
                    _ => {}
                }
                Ok(())
            });
            fed.unwrap();
            if opened > 0 {
                let mut out = Vec::new();
                frame::window_update(&mut out, 0, opened);
                network.arrive(conn, &out);
            }
            for stream in requests {
                if !self.readers.contains_key(&conn) {
                    break;
                }
                self.treat(network, conn, stream);
            }
        }
    }

    fn treat(&mut self, network: &mut Network, conn: ConnId, stream: u32) {
        let habit = self.habits[self.number % self.habits.len()];
        self.number += 1;
        let mut block = Vec::new();
        hpack::encode(&mut block, b":status", b"200");
        let mut out = Vec::new();
        match habit {
            Habit::Answer => {
                self.answers += 1;
                self.of.answer(stream, &mut out);
            }
            Habit::Refuse => frame::reset(&mut out, stream, ErrorCode::RefusedStream),
            Habit::RefuseLate => {
                frame::headers(&mut out, stream, &block, false, 16_384);
                frame::reset(&mut out, stream, ErrorCode::RefusedStream);
            }
            Habit::GoAway => {
                frame::go_away(&mut out, stream.saturating_sub(2), ErrorCode::NoError);
                self.readers.remove(&conn);
            }
            Habit::Reset => frame::reset(&mut out, stream, ErrorCode::InternalError),
            Habit::Close => {
                self.readers.remove(&conn);
                return network.end(conn);
            }
            Habit::Silent => {}
        }
        network.arrive(conn, &out);
    }
}

impl Driver for Servers {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        let before = self.number;
        self.look(network);
        // An answer takes 100 us.
        let idle = wait_ns.unwrap_or(0).max(100_000);
        network.advance(if self.number > before { 100_000 } else { idle });
        match network.now_ns() > 20_000 * MS {
            true => Err(std::io::Error::other("it does not end")),
            false => Ok(()),
        }
    }
}

/// Runs a worker through the job. Returns the rules that were broken.
fn go_through<K: Kind>(of: Of, job: &Job, habits: Vec<Habit>) -> Vec<String> {
    let options = IoOptions {
        buffers: 16,
        buffer_size: 1024,
        ..io_options(job, 0)
    };
    let servers = Servers {
        of,
        habits,
        number: 0,
        readers: HashMap::new(),
        connects: 0,
        answers: 0,
    };
    let io = SimIo::new(options, 0, servers);
    let clock = io.network.clock();
    let (sender, _messages) = mpsc::channel();
    let job = Arc::new(job.clone());
    let mut worker =
        Worker::<_, _, K>::new(io, NetworkClock(clock.clone()), job.clone(), 0, sender);
    let mut found = Vec::new();
    for (number, segment) in job.segments.iter().enumerate() {
        let (start, before) = (clock.get(), worker.io.driver.connects);
        let done = worker
            .settle()
            .and_then(|()| worker.segment(number, start, &AtomicBool::new(false)));
        if let Err(error) = done {
            found.push(format!("segment {number}: {error}"));
        }
        let took = clock.get() - start;
        if let Stop::After(window) = segment.stop
            && took > ns(window) + AFTER_NS
        {
            found.push(format!("segment {number} took {} ms", took / MS));
        }
        // Two in a row may be without an answer, and then one at each check; others had answers.
        let connects = worker.io.driver.connects - before;
        let paced = u64::from(job.targets[0].connections) * (3 + took / (20 * MS));
        if connects > paced + worker.io.driver.answers * 3 {
            found.push(format!("{connects} connects in {} ms", took / MS));
        }
    }
    if worker.conns.iter().any(|conn| conn.is_busy()) {
        found.push("a request waits after the end".to_owned());
    }
    let answers = worker.io.driver.answers;
    let connections = u64::from(job.targets[0].connections);
    let mut good = 0;
    for (segment, recorder) in job.segments.iter().zip(worker.into_recorders()) {
        let parts = vec![recorder];
        let Some(reading) = merge(parts, Default::default(), connections, None, "sim", &[]) else {
            continue;
        };
        good += reading.requests_all;
        let ended = reading.requests + reading.errors.total();
        let expected = match (segment.stop, segment.pacing) {
            (Stop::Requests(count), _) => Some(count),
            (_, Pacing::Open { .. }) => reading.offered.map(|offered| offered.due),
            _ => None,
        };
        if expected.is_some_and(|expected| expected != ended) {
            let (requests, errors) = (reading.requests, reading.errors);
            found.push(format!("{expected:?} are {requests} and {errors:?}"));
        }
    }
    if good > answers {
        found.push(format!("{good} answers are good, {answers} were given"));
    }
    found
}

#[test]
fn however_servers_refuse_every_request_ends_in_time_and_is_counted_once() {
    let of = Of::Answers;
    try_random(150, file!(), &(job(of), habits()), |(job, habits)| {
        go_through::<Http>(of, &job, habits)
    });
}

#[test]
fn so_does_every_call_and_every_stream_of_events() {
    for of in [Of::Grpc, Of::Events] {
        try_random(100, file!(), &(job(of), habits()), |(job, habits)| {
            go_through::<Lasting>(of, &job, habits)
        });
    }
}

#[test]
fn a_server_that_refuses_everything_ends_a_segment_in_time() {
    for habit in [Habit::Refuse, Habit::GoAway, Habit::Close] {
        for of in [Of::Answers, Of::Grpc, Of::Events] {
            let target = Target {
                http2: Some(Http2 { streams: 3 }),
                ..of.target()
            };
            let mut job = Job::to(target.with_connections(2))
                .segment(Segment::closed(Stop::After(Duration::from_millis(100))));
            (job.timeout, job.connect_timeout) = (ms(TIMEOUT_MS), ms(CONNECT_TIMEOUT_MS));
            let found = match of {
                Of::Answers => go_through::<Http>(of, &job, vec![habit]),
                _ => go_through::<Lasting>(of, &job, vec![habit]),
            };
            assert!(found.is_empty(), "{habit:?}, {of:?}: {found:?}");
        }
    }
}
