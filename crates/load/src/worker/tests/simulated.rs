//! Property tests of a worker against simulated servers that do anything at any time: every wait
//! ends, every request is counted once, and all buffers and connections are returned.
//!
//! `WEIGH_SIMULATED_S` is for how many seconds random sequences are tried; without it, a few
//! hundred are tried. A sequence that breaks a rule is shrunk, and stored in
//! `proptest-regressions`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use net::simulated::{Driver, Network, SimIo, try_random};
use net::{ConnId, IoOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use readings::Pacing;

use super::sim::MS;
use super::*;
use crate::http::Http;
use crate::job::Segment;
use crate::job::expect::Expect;
use crate::job::target::{Request, Target};
use crate::record::merge::merge;

const EMFILE: i32 = 24;
const ECONNREFUSED: i32 = 111;
/// How long a segment may take, ns: 40 requests on one connection, each with both time limits.
const SEGMENT_NS: u64 = 8_000 * MS;

/// A step of the servers. An index means one of the connections that exist at that time: it is
/// taken modulo their number.
#[derive(Clone, Debug)]
enum Step {
    /// The next connection fails, or hangs.
    NextConnect { errno: Option<i32> },
    /// There is no descriptor for the next connection.
    NoDescriptor,
    /// The oldest request is answered, or one of which only a part has come; so many bytes of the
    /// answer arrive at once.
    Answer { conn: u8, what: Answer, bytes: u16 },
    /// More of what a server has to send arrives.
    Send { conn: u8, bytes: u16 },
    /// A server sends an answer without a request.
    Stray { conn: u8 },
    /// A server shuts down its side, or resets.
    End { conn: u8, is_reset: bool },
    /// A server accepts so many more bytes, and then none.
    Room { conn: u8, bytes: u16 },
    /// A server accepts all bytes from now on.
    AllRoom { conn: u8 },
    /// The load is stopped.
    Stop,
    /// The load polls, after so much time.
    Turn {
        us: u16,
        is_late: bool,
        is_reversed: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Length { bytes: u16 },
    Chunked,
    UntilClose,
    Close,
    Error,
    Malformed,
    Surplus,
}

impl Answer {
    fn text(self, is_head: bool) -> String {
        let body = |bytes: u16| match is_head {
            true => String::new(),
            false => "x".repeat(bytes.into()),
        };
        match self {
            Answer::Length { bytes } => {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{}",
                    body(bytes)
                )
            }
            Answer::Chunked => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let body = if is_head { "" } else { "3\r\nabc\r\n0\r\n\r\n" };
                format!("{head}{body}")
            }
            Answer::UntilClose => "HTTP/1.1 200 OK\r\n\r\nabc".to_owned(),
            Answer::Close => {
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            Answer::Error => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Answer::Malformed => "HTTP/1.1 abc\r\n\r\n".to_owned(),
            Answer::Surplus => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore".to_owned(),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let conn = any::<u8>;
    let bytes = || prop_oneof![3 => Just(u16::MAX), 1 => 0..60u16];
    let answer = prop_oneof![
        8 => (0..300u16).prop_map(|bytes| Answer::Length { bytes }),
        2 => Just(Answer::Chunked),
        1 => Just(Answer::UntilClose),
        1 => Just(Answer::Close),
        1 => Just(Answer::Error),
        1 => Just(Answer::Malformed),
        1 => Just(Answer::Surplus),
    ];
    let errno = prop_oneof![Just(None), Just(Some(ECONNREFUSED))];
    let step = prop_oneof![
        1 => errno.prop_map(|errno| Step::NextConnect { errno }),
        1 => Just(Step::NoDescriptor),
        20 => (conn(), answer, bytes())
            .prop_map(|(conn, what, bytes)| Step::Answer { conn, what, bytes }),
        3 => (conn(), bytes()).prop_map(|(conn, bytes)| Step::Send { conn, bytes }),
        1 => conn().prop_map(|conn| Step::Stray { conn }),
        1 => (conn(), any::<bool>()).prop_map(|(conn, is_reset)| Step::End { conn, is_reset }),
        1 => (conn(), 0..60u16).prop_map(|(conn, bytes)| Step::Room { conn, bytes }),
        1 => conn().prop_map(|conn| Step::AllRoom { conn }),
        12 => (prop_oneof![4 => 0..300u16, 1 => any::<u16>()], any::<bool>(), any::<bool>())
            .prop_map(|(us, is_late, is_reversed)| Step::Turn { us, is_late, is_reversed }),
    ];
    (
        vec(step, 0..150),
        proptest::option::weighted(0.1, any::<usize>()),
    )
        .prop_map(|(mut steps, stop)| {
            if let Some(at) = stop {
                steps.insert(at % (steps.len() + 1), Step::Stop);
            }
            steps
        })
}

fn segment() -> impl Strategy<Value = Segment> {
    let stop = || {
        prop_oneof![
            (1..200u64).prop_map(|ms| Stop::After(Duration::from_millis(ms))),
            (1..40u64).prop_map(Stop::Requests),
        ]
    };
    let each = (1..8u64).prop_map(Stop::EachConnection);
    prop_oneof![
        prop_oneof![stop(), each].prop_map(Segment::closed),
        (10..2_000u32, stop()).prop_map(|(rate, stop)| Segment::open(rate.into(), stop)),
    ]
}

fn job() -> impl Strategy<Value = Job> {
    let segments = vec(segment(), 1..4);
    let each = proptest::option::weighted(0.3, 1..4u64);
    let flags = (any::<bool>(), any::<bool>());
    (1..5u32, segments, each, flags).prop_map(|(connections, segments, each, flags)| {
        let (spins, alternates) = flags;
        let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
        let get = b"GET / HTTP/1.1\r\n\r\n".to_vec();
        let mut target = Target::new(address, get, Expect::default());
        let head = b"HEAD / HTTP/1.1\r\n\r\n".to_vec();
        target.requests.push(Request::new(head, Expect::default()));
        let target = target.with_connections(connections);
        let mut job = Job::to_all([target.clone(), target]);
        for (number, one) in segments.into_iter().enumerate() {
            let target = if alternates { number % 2 } else { 0 };
            job = job.segment(one.on(target, Some(number)));
        }
        job.requests_per_connection = each;
        job.timeout = Duration::from_millis(50);
        job.connect_timeout = Duration::from_millis(30);
        job.wait = if spins { Wait::Spin } else { Wait::Sleep };
        job
    })
}

struct Server {
    conn: ConnId,
    got: Vec<u8>,
    outgoing: VecDeque<u8>,
    /// Whether each request that is not answered is a HEAD.
    waiting: VecDeque<bool>,
    /// Whether the request that is coming was answered before its end.
    is_answered: bool,
}

impl Server {
    /// Whether the next request to answer is a HEAD; `None` if there is none.
    fn next_is_head(&self) -> Option<bool> {
        let is_begun = self.got.len() >= 4 && !self.is_answered;
        let begun = is_begun.then(|| self.got.starts_with(b"HEAD"));
        self.waiting.front().copied().or(begun)
    }
}

struct Servers {
    steps: VecDeque<Step>,
    servers: Vec<Server>,
    next_connects: VecDeque<Option<i32>>,
    hanging: Vec<ConnId>,
    /// The number of answers that were sent, at least in part.
    answers: u64,
    stop: Arc<AtomicBool>,
}

impl Servers {
    fn new(steps: Vec<Step>, stop: Arc<AtomicBool>) -> Servers {
        Servers {
            steps: steps.into(),
            servers: Vec::new(),
            next_connects: VecDeque::new(),
            hanging: Vec::new(),
            answers: 0,
            stop,
        }
    }

    fn look(&mut self, network: &mut Network) {
        for conn in network.opening() {
            if self.hanging.contains(&conn) {
                continue;
            }
            match self.next_connects.pop_front() {
                Some(None) => {
                    self.hanging.push(conn);
                    continue;
                }
                Some(errno) => network.decide(conn, errno),
                None => network.decide(conn, None),
            }
            self.servers.push(Server {
                conn,
                got: Vec::new(),
                outgoing: VecDeque::new(),
                waiting: VecDeque::new(),
                is_answered: false,
            });
        }
        for server in &mut self.servers {
            server.got.extend(network.take_sent(server.conn));
            while let Some(end) = server.got.windows(4).position(|part| part == b"\r\n\r\n") {
                if !std::mem::take(&mut server.is_answered) {
                    server.waiting.push_back(server.got.starts_with(b"HEAD"));
                }
                server.got.drain(..end + 4);
            }
        }
    }

    fn carry_out(&mut self, network: &mut Network, step: Step) {
        let conn = match step {
            Step::NextConnect { errno } => return self.next_connects.push_back(errno),
            Step::NoDescriptor => return network.socket_errors.push_back(EMFILE),
            Step::Stop => return self.stop.store(true, Ordering::Relaxed),
            Step::Turn { .. } => return,
            Step::Answer { conn, .. } => conn,
            Step::Send { conn, .. }
            | Step::Stray { conn }
            | Step::End { conn, .. }
            | Step::Room { conn, .. }
            | Step::AllRoom { conn } => conn,
        };
        let open = network.open();
        let mut those: Vec<&mut Server> = self
            .servers
            .iter_mut()
            .filter(|one| open.contains(&one.conn))
            .filter(|one| !matches!(step, Step::Answer { .. }) || one.next_is_head().is_some())
            .collect();
        let Some(at) = usize::from(conn).checked_rem(those.len()) else {
            return;
        };
        let server = &mut *those[at];
        let conn = server.conn;
        let mut some = |server: &mut Server, bytes: u16| {
            let taken = server.outgoing.len().min(bytes.into());
            let bytes: Vec<u8> = server.outgoing.drain(..taken).collect();
            network.arrive(conn, &bytes);
        };
        match step {
            Step::Answer { what, bytes, .. } => {
                let Some(is_head) = server.next_is_head() else {
                    return;
                };
                server.is_answered |= server.waiting.pop_front().is_none();
                self.answers += 1;
                server.outgoing.extend(what.text(is_head).as_bytes());
                some(server, bytes);
                if matches!(what, Answer::UntilClose | Answer::Close) {
                    some(server, u16::MAX);
                    network.end(conn);
                }
            }
            Step::Send { bytes, .. } => some(server, bytes),
            Step::Stray { .. } => {
                self.answers += 1;
                network.arrive(conn, Answer::Length { bytes: 3 }.text(false).as_bytes());
            }
            Step::End { is_reset: true, .. } => network.reset(conn),
            Step::End {
                is_reset: false, ..
            } => network.end(conn),
            Step::Room { bytes, .. } => network.set_room(conn, bytes.into()),
            _ => network.set_room(conn, usize::MAX / 2),
        }
    }
}

impl Driver for Servers {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        let wait_ns = wait_ns.unwrap_or(0);
        self.look(network);
        while let Some(step) = self.steps.pop_front() {
            if let Step::Turn {
                us,
                is_late,
                is_reversed,
            } = step
            {
                network.advance((u64::from(us) * 1_000).clamp(1_000, wait_ns.max(1_000)));
                (network.is_late, network.is_reversed) = (is_late, is_reversed);
                return Ok(());
            }
            self.carry_out(network, step);
        }
        // The servers are silent from now on. Time also passes in a turn that does not wait.
        network.advance(wait_ns.max(500_000));
        if network.now_ns() > 3 * SEGMENT_NS {
            return Err(std::io::Error::other("it does not end"));
        }
        Ok(())
    }
}

/// Runs a worker through the job. Returns the rules that were broken.
fn go_through(job: &Job, steps: Vec<Step>) -> Vec<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let options = IoOptions {
        buffers: 2,
        buffer_size: 64,
        ..io_options(job, 0)
    };
    let io = SimIo::new(options, 0, Servers::new(steps, stop.clone()));
    let clock = io.network.clock();
    let (sender, _messages) = mpsc::channel();
    let job = Arc::new(job.clone());
    let mut worker =
        Worker::<_, _, Http>::new(io, NetworkClock(clock.clone()), job.clone(), 0, sender);
    let mut found = Vec::new();
    for number in 0..job.segments.len() {
        let start = clock.get();
        let done = worker
            .settle()
            .and_then(|()| worker.segment(number, start, &stop));
        if let Err(error) = done {
            found.push(format!("segment {number}: {error}"));
        }
        let took_ms = (clock.get() - start) / MS;
        if took_ms > SEGMENT_NS / MS {
            found.push(format!("segment {number} took {took_ms} ms"));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let lent = worker.io.network.lent();
    if lent > 0 {
        found.push(format!("{lent} buffers are lent"));
    }
    let mut known: Vec<ConnId> = worker.conns.iter().filter_map(|conn| conn.id).collect();
    known.sort_by_key(|conn| conn.slot());
    let mut open = worker.io.network.open();
    open.sort_by_key(|conn| conn.slot());
    if known != open {
        found.push(format!("{open:?} are open, {known:?} are known"));
    }
    if worker.conns.iter().any(|conn| conn.is_busy()) {
        found.push("a connection waits after the end".to_owned());
    }
    let answers = worker.io.driver.answers;
    let was_stopped = stop.load(Ordering::Relaxed);
    let connections = u64::from(job.targets[0].connections);
    let mut recorders = worker.into_recorders();
    let mut good = 0;
    for (segment, recorder) in job.segments.iter().zip(recorders.drain(..)) {
        let reading = merge(
            vec![recorder],
            Default::default(),
            connections,
            None,
            "sim",
            &[],
        );
        let Some(reading) = reading else { continue };
        good += reading.requests_all;
        let ended = reading.requests + reading.errors.total();
        let expected = match segment.stop {
            Stop::Requests(count) => Some(count),
            Stop::EachConnection(each) => Some(each * connections),
            Stop::After(_) => match segment.pacing {
                Pacing::Open { .. } => reading.offered.map(|offered| offered.due),
                Pacing::Closed => None,
            },
        };
        if let Some(expected) = expected
            && ended != expected
            && !was_stopped
        {
            let (requests, errors) = (reading.requests, reading.errors);
            found.push(format!("{expected} requests are {requests} and {errors:?}"));
        }
    }
    if good > answers {
        found.push(format!("{good} answers are good, {answers} were given"));
    }
    found
}

/// How many sequences are tried at a time.
const CASES: u32 = 150;

#[test]
fn whatever_servers_do_every_wait_ends_and_every_request_is_counted_once() {
    try_random(CASES, file!(), &(job(), steps()), |(job, steps)| {
        go_through(&job, steps)
    });
}
