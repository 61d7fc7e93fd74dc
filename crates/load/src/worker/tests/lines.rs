//! A kind of exchange with messages, driven by the worker as HTTP is: a line asks for so many
//! messages, each comes on a line with the time at which it is due, and a last line counts them.

use std::num::ParseIntError;
use testing::Text as _;

use net::simulated::{Driver, Network, SimIo};
use readings::{HttpVersion, LagBase, LastingReading, Wrong, WrongKind};

use super::*;
use crate::exchange::{Due, Ending, Kind, Message, Note, Overdue, Times};
use crate::http::session::Fields;
use crate::job::target::Request;
use crate::record::Recorder;

/// The state of an exchange of lines.
#[derive(Default)]
struct Lines {
    unread: Vec<u8>,
    messages: u64,
    /// When the last came.
    last: u64,
    is_open: bool,
    /// What the last line says.
    announced: Option<u64>,
}

/// A line that is not one of the protocol.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("a line that is no message")]
    Unknown,
    #[error("a number: {0}")]
    Number(#[from] ParseIntError),
}

impl Lines {
    fn line(
        &mut self,
        line: &str,
        times: Times,
        mut note: impl FnMut(Note),
    ) -> Result<(), LineError> {
        match line.split_once(' ').ok_or(LineError::Unknown)? {
            ("message", after_us) => {
                let at = times.intended + after_us.parse::<u64>()? * 1_000;
                let base = LagBase::Sender;
                note(Note::Message(Message {
                    arrived: times.arrived,
                    due: Some(Due { at, base }),
                    gap: (self.messages > 0).then(|| times.arrived - self.last),
                    bytes: line.len() as u64,
                    ..Message::default()
                }));
                self.messages += 1;
                self.last = times.arrived;
            }
            ("end", count) => self.announced = Some(count.parse()?),
            _ => return Err(LineError::Unknown),
        }
        Ok(())
    }
}

fn asked(request: &Request) -> u64 {
    let text = String::from_utf8_lossy(&request.bytes);
    text.trim_end().parse().unwrap()
}

impl Kind for Lines {
    type Error = LineError;

    const HAS_MESSAGES: bool = true;

    fn new(_: &Target) -> Self {
        Self::default()
    }

    fn expected(_: HttpVersion) -> String {
        "lines".to_owned()
    }

    fn is_repeatable(_: &Request) -> bool {
        false
    }

    fn begin(&mut self, _: &Request) {
        *self = Self::default();
    }

    fn reset(&mut self) {
        self.unread.clear();
    }

    fn take(
        &mut self,
        _: &Request,
        times: Times,
        bytes: &[u8],
        mut note: impl FnMut(Note),
    ) -> Result<bool, LineError> {
        if !std::mem::replace(&mut self.is_open, true) {
            note(Note::Opened);
        }
        self.unread.extend_from_slice(bytes);
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            self.line(&line, times, &mut note)?;
        }
        Ok(self.announced.is_some())
    }

    fn end(&mut self) -> bool {
        false
    }

    fn take_head(&mut self, _: u16, _: &Fields, _: Times, _: impl FnMut(Note)) {}

    fn take_content(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
        note: impl FnMut(Note),
    ) {
        // What is wrong with it shows in the count.
        let _ = self.take(request, times, bytes, note);
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn last_sign(&self) -> u64 {
        self.last
    }

    fn over(&mut self, times: Times, is_complete: bool, mut note: impl FnMut(Note)) {
        if std::mem::take(&mut self.is_open) && !is_complete {
            let pace = EVERY_US * 1_000;
            let (at, base) = (times.intended + self.messages * pace, LagBase::Sender);
            let first = Due { at, base };
            note(Note::Overdue(Overdue { first, pace }));
        }
    }

    fn ending(&self) -> Option<Ending> {
        Some(Ending {
            how: "end".into(),
            is_cut: false,
        })
    }

    fn status(&self) -> Option<u16> {
        None
    }

    fn judge(&self, request: &Request) -> Option<Wrong> {
        let good = self.announced == Some(self.messages) && self.messages == asked(request);
        (!good).then(|| Wrong {
            kind: WrongKind::Content,
            expected: format!("{} messages", asked(request)),
            found: format!("{} messages", self.messages),
        })
    }

    fn keeps_connection(&self) -> bool {
        true
    }
}

/// Messages are due at intervals of this time, the first with the request, and the end after the
/// last.
const EVERY_US: u64 = 10_000;

/// A server that sends messages when they are due, and what else happens.
#[derive(Default)]
struct Sender {
    /// How late it is.
    lag_us: u64,
    /// It sends nothing from this time on until that one, ns.
    stall: Option<(u64, u64)>,
    /// It loses the second message of each exchange.
    loses: bool,
    /// It sends this instead of the last line, or closes without one.
    last_line: Option<&'static str>,
    coming: Vec<(u64, ConnId, String)>,
    asked: Vec<u64>,
}

impl Sender {
    fn answer(&mut self, now: u64, conn: ConnId, count: u64) {
        self.asked.push(now);
        for number in 0..=count {
            let due_us = number * EVERY_US;
            let mut at = now + (due_us + self.lag_us) * 1_000;
            if let Some((from, until)) = self.stall
                && (from..until).contains(&at)
            {
                at = until;
            }
            let line = match number == count {
                true => self
                    .last_line
                    .map_or(format!("end {count}\n"), str::to_owned),
                false => format!("message {due_us}\n"),
            };
            if !(self.loses && number == 1) {
                self.coming.push((at, conn, line));
            }
        }
    }
}

impl Driver for Sender {
    fn turn(&mut self, network: &mut Network, wait_ns: Option<u64>) -> std::io::Result<()> {
        let opening = network.opening();
        if !opening.is_empty() {
            opening
                .into_iter()
                .for_each(|conn| network.decide(conn, None));
            network.advance(1_000);
            return Ok(());
        }
        for conn in network.open() {
            let sent = String::from_utf8(network.take_sent(conn)).unwrap();
            for line in sent.lines() {
                self.answer(network.now_ns(), conn, line.parse().unwrap());
            }
        }
        // Stable: lines of one time stay in order.
        self.coming.sort_by_key(|(at, ..)| *at);
        let until = network.now_ns() + wait_ns.unwrap_or(0).max(1_000);
        let next = self.coming.first().map_or(until, |(at, ..)| *at);
        network.advance(next.min(until).saturating_sub(network.now_ns()).max(1_000));
        let due = self
            .coming
            .partition_point(|(at, ..)| *at <= network.now_ns());
        for (_, conn, line) in self.coming.drain(..due) {
            match line.is_empty() {
                true => network.end(conn),
                // In two pieces.
                false => {
                    let (first, rest) = line.split_at(3);
                    network.arrive(conn, first.as_bytes());
                    network.arrive(conn, rest.as_bytes());
                }
            }
        }
        Ok(())
    }
}

/// Exchanges of three messages over so many connections.
fn job_of(connections: u32, segment: Segment) -> Job {
    let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
    let target = Target::new(address, b"3\n".to_vec(), Expect::default());
    Job::to(target.with_connections(connections)).segment(segment)
}

/// Carries out the job on one thread. Returns its recordings, and when it had sent its requests.
fn carried_out(job: Job, sender: Sender) -> (Recorder, Vec<u64>) {
    let io = SimIo::new(io_options(&job, 0), 0, sender);
    let clock = NetworkClock(io.network.clock());
    let (events, _messages) = mpsc::channel();
    let mut worker = Worker::<_, _, Lines>::new(io, clock, Arc::new(job), 0, events);
    worker.segment(0, 0, &AtomicBool::new(false)).unwrap();
    let asked = std::mem::take(&mut worker.io.driver.asked);
    (worker.into_recorders().remove(0), asked)
}

fn ends(lasting: &LastingReading) -> Vec<(&str, u64)> {
    let ends = lasting.ends.iter();
    ends.map(|end| (end.how.as_str(), end.count)).collect()
}

/// The lags of the messages, us.
fn lag_us(recorder: &Recorder, quantile: f64) -> f64 {
    let messages = recorder.messages.as_ref().unwrap();
    messages.lag.quantile_us(quantile)
}

fn count(recorder: &Recorder) -> u64 {
    recorder.messages.as_ref().unwrap().count
}

#[test]
fn a_count_of_exchanges_has_all_their_messages_with_the_lag_of_each() {
    for stop in [Stop::Requests(6), Stop::EachConnection(3)] {
        let sender = Sender {
            lag_us: 2_000,
            ..Sender::default()
        };
        let (done, asked) = carried_out(job_of(2, Segment::closed(stop)), sender);
        assert_eq!((done.requests, done.errors.total(), asked.len()), (6, 0, 6));
        assert_eq!((count(&done), done.by_conn.as_slice()), (18, &[3, 3][..]));
        // The opening of a connection takes a moment.
        for quantile in [0.0, 1.0] {
            let lag_us = lag_us(&done, quantile);
            assert!((1_990.0..2_015.0).contains(&lag_us), "{lag_us}");
        }
        // The first sign is the first message, the end comes after the last.
        let first_us = done.first_byte.quantile_us(1.0);
        assert!((1_990.0..2_015.0).contains(&first_us), "{first_us}");
        let whole_us = done.response.quantile_us(1.0);
        assert!((31_900.0..32_100.0).contains(&whole_us), "{whole_us}");
    }
}

#[test]
fn a_window_counts_the_messages_that_arrive_in_it() {
    // The first exchange takes 30 ms, and so does the second. The third has two messages before the
    // end of the window, the last at 70 ms, and is cut there.
    let segment = Segment::closed(Stop::After(ms(75)));
    let (done, asked) = carried_out(job_of(1, segment), Sender::default());
    assert_eq!((asked.len(), done.requests, done.requests_all), (3, 2, 2));
    assert_eq!((count(&done), done.errors_all.total()), (8, 0));
    let lasting = done.messages.unwrap().reading();
    assert_eq!((lasting.opened, lasting.open_min), (3, 1));
    assert_eq!(ends(&lasting), [("end", 2), ("window", 1)]);
    assert_eq!((lasting.first_message.count(), lasting.gap.count()), (3, 5));
}

#[test]
fn messages_of_an_open_loop_are_charged_from_when_they_were_due() {
    // An exchange each 20 ms, which takes 30 ms, on one connection: the fourth waits for 30 ms.
    let segment = Segment::open(50.0, Stop::Requests(4));
    let (done, _) = carried_out(job_of(1, segment.clone()), Sender::default());
    assert_eq!((done.requests, count(&done)), (4, 12));
    let most_us = lag_us(&done, 1.0);
    assert!((29_900.0..30_100.0).contains(&most_us), "{most_us}");
    assert!(done.schedule_lag.quantile_us(1.0) < 10.0);
    // With connections enough only a stall is late: of 60 ms for what was due when it began.
    let sender = Sender {
        stall: Some((15_000_000, 75_000_000)),
        ..Sender::default()
    };
    let (done, asked) = carried_out(job_of(4, segment), sender);
    assert!(
        asked
            .iter()
            .zip(0..)
            .all(|(at, number)| at - number * 20_000_000 < 20_000)
    );
    assert_eq!((done.requests, count(&done)), (4, 12));
    let (least_us, most_us) = (lag_us(&done, 0.0), lag_us(&done, 1.0));
    assert!(least_us < 20.0, "{least_us}");
    assert!((54_900.0..55_100.0).contains(&most_us), "{most_us}");
}

#[test]
fn an_exchange_is_judged_by_its_kind() {
    let run = |sender| {
        let (done, _) = carried_out(job_of(1, Segment::closed(Stop::Requests(2))), sender);
        assert_eq!(done.requests, 0);
        let wrong = done.wrong[0].clone();
        (done, wrong)
    };
    let (done, wrong) = run(Sender {
        loses: true,
        ..Sender::default()
    });
    assert_eq!((done.errors.verify, count(&done)), (2, 4));
    assert_eq!(
        (&*wrong.expected, &*wrong.found),
        ("3 messages", "2 messages")
    );
    let (done, wrong) = run(Sender {
        last_line: Some("over\n"),
        ..Sender::default()
    });
    assert_eq!((done.errors.read, done.connects), (2, 2));
    assert_eq!(
        (&*wrong.expected, &*wrong.found),
        ("lines", "a line that is no message")
    );
    let (done, wrong) = run(Sender {
        last_line: Some(""),
        ..Sender::default()
    });
    assert_eq!((done.errors.read, count(&done)), (2, 6));
    wrong.found.begins("the connection closed after");
}

#[test]
fn the_messages_of_threads_are_added_up() {
    let segment = Segment::closed(Stop::Requests(6));
    let (mut sum, _) = carried_out(job_of(2, segment.clone()), Sender::default());
    let slow = Sender {
        lag_us: 5_000,
        ..Sender::default()
    };
    sum.merge(carried_out(job_of(2, segment), slow).0);
    assert_eq!((sum.requests, count(&sum)), (12, 36));
    let (least_us, most_us) = (lag_us(&sum, 0.0), lag_us(&sum, 1.0));
    assert!(
        least_us < 10.0 && (4_990.0..5_020.0).contains(&most_us),
        "{least_us} {most_us}"
    );
    let reading = merge(vec![sum], Default::default(), 2, None, "sim", &[]).unwrap();
    assert_eq!((reading.requests, reading.statuses.len()), (12, 0));
}

#[test]
fn a_count_of_streams_without_an_end_ends() {
    for stop in [Stop::Requests(6), Stop::EachConnection(3)] {
        for rate_per_s in [None, Some(100.0)] {
            let segment = match rate_per_s {
                Some(_) if stop == Stop::EachConnection(3) => continue,
                Some(rate_per_s) => Segment::open(rate_per_s, stop),
                None => Segment::closed(stop),
            };
            let mut job = job_of(2, segment);
            // Streams of 10 s.
            job.targets[0].requests[0].bytes = b"1000\n".to_vec();
            job.timeout = ms(100);
            let (done, asked) = carried_out(job, Sender::default());
            assert_eq!((done.requests, asked.len()), (0, 2), "{stop:?}");
            let shown = format!("{stop:?} {rate_per_s:?} {:?}", done.errors);
            let all = if rate_per_s.is_some() { 6 } else { 2 };
            assert_eq!(done.errors.timeout, all, "{shown}");
            let lasting = done.messages.unwrap().reading();
            assert_eq!(ends(&lasting), [("window", 2)], "{shown}");
            assert!(done.wrong[0].found.contains("needs a duration"), "{shown}");
        }
    }
}

#[test]
fn what_is_due_and_held_back_at_the_end_is_overdue() {
    // Messages each 10 ms; from 15 ms on none comes.
    let sender = Sender {
        stall: Some((15_000_000, 175_000_000)),
        ..Sender::default()
    };
    let mut job = job_of(1, Segment::open(1.0, Stop::After(ms(75))));
    job.targets[0].requests[0].bytes = b"100\n".to_vec();
    let (done, _) = carried_out(job, sender);
    // Due at 20 to 70 ms.
    let most_us = lag_us(&done, 1.0);
    assert!((54_900.0..55_200.0).contains(&most_us), "{most_us}");
    let lasting = done.messages.unwrap().reading();
    assert_eq!(
        (lasting.opened, lasting.messages, lasting.overdue),
        (1, 2, 6)
    );
    assert_eq!(lasting.lag.count(), 8);
    assert_eq!(ends(&lasting), [("window", 1)]);
}
