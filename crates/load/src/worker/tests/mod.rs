//! The loop of a worker in simulated time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use readings::LoadReading;

use super::*;
use crate::http::Http;
use crate::job::expect::Expect;
use crate::job::target::Target;
use crate::job::{Segment, Stage, Wait};
use crate::record::merge::merge;
use sim::{MS, SimClock, SimIo};

mod filled;
mod flights;
mod late;
mod lines;
mod open_loop;
mod refusals;
mod sim;
mod simulated;
mod users;
mod websockets;

/// The clock of a simulated network.
struct NetworkClock(Rc<Cell<u64>>);

impl Clock for NetworkClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.0.get() / 2
    }

    fn thread_waited_ns(&self) -> u64 {
        0
    }

    fn sleep_until(&self, at_ns: u64) {
        self.0.set(self.0.get().max(at_ns));
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn job(connections: u32, segment: Segment) -> Job {
    let address: std::net::SocketAddr = "127.0.0.1:80".parse().unwrap();
    let request = b"GET / HTTP/1.1\r\n\r\n".to_vec();
    let target = Target::new(address, request, Expect::default());
    Job::to(target.with_connections(connections)).segment(segment)
}

/// An open loop of 1,000 requests/s in a window of so many ms.
fn open_loop(connections: u32, window_ms: u64) -> Job {
    job(
        connections,
        Segment::open(1_000.0, Stop::After(ms(window_ms))),
    )
}

struct Done {
    /// The first one.
    reading: LoadReading,
    /// When each segment ended, ns.
    ends: Vec<u64>,
    /// The times at which requests were sent, ns.
    sent: Vec<u64>,
    /// The requests that were filled in.
    texts: Vec<String>,
    messages: Receiver<Message>,
    end: u64,
}

impl Done {
    fn rows(&self) -> Vec<readings::LoadRow> {
        let mut rows = crate::record::rows::Rows::new(1, 1);
        for message in self.messages.try_iter() {
            if let Message::Rows(message) = message {
                rows.take(message, &mut |_| {});
            }
        }
        rows.readings.remove(0).rows
    }
}

/// Runs one thread of a job; its server answers in 300 us, unless `change` says otherwise.
fn run_thread(job: &Job, thread: usize, change: impl FnOnce(&mut SimIo)) -> Done {
    let clock = SimClock::default();
    let mut io = SimIo::new(&clock, 300_000);
    change(&mut io);
    let (sent, texts) = (io.sent.clone(), io.texts.clone());
    let stop = io.stop_at.as_ref().map(|(_, stop)| stop.clone());
    let (sender, messages) = mpsc::channel();
    let mut worker =
        Worker::<_, _, Http>::new(io, clock.clone(), Arc::new(job.clone()), thread, sender);
    let stop = stop.unwrap_or_default();
    let mut ends = Vec::new();
    for number in 0..job.segments.len() {
        worker.settle().unwrap();
        let start = clock.now_ns();
        worker.segment(number, start, &stop).unwrap();
        ends.push(clock.now_ns());
    }
    let mut recorders = worker.into_recorders();
    recorders.truncate(1);
    let connections = u64::from(job.targets[0].connections);
    Done {
        reading: merge(recorders, Default::default(), connections, None, "sim", &[]).unwrap(),
        ends,
        sent: sent.borrow().iter().map(|(at, _)| *at).collect(),
        texts: texts.borrow().clone(),
        messages,
        end: clock.now_ns(),
    }
}

fn run(job: &Job) -> Done {
    run_thread(job, 0, |_| {})
}

#[test]
fn the_ramp_up_is_not_measured() {
    let segment = Segment {
        ramp_up: ms(50),
        ..Segment::open(1_000.0, Stop::After(ms(100)))
    };
    let open = run(&job(4, segment.clone()));
    assert_eq!(open.sent.len(), 150);
    assert_eq!(
        (open.reading.requests, open.reading.requests_all),
        (100, 150)
    );
    assert_eq!(open.reading.slices[0].start_s, 0.05);
    // By count: as many requests as asked for, after the ramp-up.
    let closed = run(&job(
        4,
        Segment {
            pacing: Pacing::Closed,
            stop: Stop::Requests(77),
            ..segment
        },
    ));
    let reading = closed.reading;
    assert_eq!(reading.requests, 77);
    let before = 4 * 50_000 / 300;
    assert!(
        reading.requests_all.abs_diff(before + 77) < 20,
        "{reading:?}"
    );
}

#[test]
fn a_segment_begins_after_its_time_without_load() {
    let mut job = job(1, Segment::closed(Stop::After(ms(10))));
    job.segments.push(Segment {
        idle_before: ms(50),
        ..job.segments[0].clone()
    });
    let clock = SimClock::default();
    let io = SimIo::new(&clock, 300_000);
    let worker = Worker::<_, _, Http>::new(io, clock, Arc::new(job), 0, mpsc::channel().0);
    assert_eq!(worker.common_start(0, 7), 7);
    assert_eq!(worker.common_start(1, 7), 50 * MS + 7);
}

#[test]
fn connections_are_opened_even_if_the_thread_wakes_after_the_window() {
    let opening = Segment::closed(Stop::After(ms(1))).on(0, None);
    let job = job(4, opening).segment(Segment::closed(Stop::After(ms(10))));
    let clock = SimClock::default();
    let io = SimIo::new(&clock, 300_000);
    let mut worker =
        Worker::<_, _, Http>::new(io, clock.clone(), Arc::new(job), 0, mpsc::channel().0);
    clock.sleep_until(5 * MS);
    worker.segment(0, MS, &AtomicBool::new(false)).unwrap();
    assert!(worker.conns.iter().all(|conn| conn.id.is_some()));
}

#[test]
fn many_connections_are_not_opened_all_at_once() {
    let opening = Segment::closed(Stop::After(ms(1))).on(0, None);
    let many = job(2_000, opening).segment(Segment::closed(Stop::After(ms(50))));
    for refuses in [false, true] {
        let mut most = Default::default();
        let done = run_thread(&many, 0, |io| {
            io.refuses = refuses;
            most = Rc::clone(&io.most_opening);
        });
        // All that was refused is tried again after a pause.
        if !refuses {
            assert_eq!(most.get(), OPENING_MAX);
            assert_eq!(done.reading.connections_open_min, 2_000);
            assert_eq!(done.reading.errors_all.total(), 0);
        }
    }
    // Without an opening, in the ramp-up.
    let segment = Segment {
        ramp_up: ms(20),
        ..Segment::closed(Stop::After(ms(50)))
    };
    let done = run(&job(2_000, segment));
    assert_eq!(
        (done.reading.connects, done.reading.connections_open_min),
        (2_000, 2_000)
    );
}

#[test]
fn the_rate_of_stages_is_that_of_their_time() {
    let stage = |from_per_s, to_per_s| Stage {
        duration: ms(100),
        from_per_s,
        to_per_s,
    };
    let segment = Segment {
        ramp_up: ms(10),
        stages: vec![stage(1_000.0, 1_000.0), stage(1_000.0, 3_000.0)],
        ..Segment::open(1_500.0, Stop::After(ms(200)))
    };
    let reading = run(&job(4, segment)).reading;
    let due: Vec<u64> = reading.stages.iter().map(|stage| stage.due).collect();
    assert_eq!(due, [100, 200]);
    assert_eq!((reading.requests, reading.requests_all), (300, 310));
}

#[test]
fn a_count_is_shared_over_threads_by_their_connections() {
    let mut job = job(5, Segment::closed(Stop::Requests(1_003)));
    job.threads = 2;
    let counts = [0, 1].map(|thread| run_thread(&job, thread, |_| {}).reading.requests);
    assert_eq!(counts, [602, 401]);
    job.segments[0] = Segment::open(1_000.0, Stop::Requests(1_003));
    let open = [0, 1].map(|thread| run_thread(&job, thread, |_| {}));
    assert_eq!(open.each_ref().map(|done| done.reading.requests), counts);
    // Together the threads send one request each millisecond.
    let mut sent: Vec<u64> = open.iter().flat_map(|done| done.sent.clone()).collect();
    sent.sort_unstable();
    let due = |number: usize| number as u64 * MS;
    let late = sent.iter().enumerate().map(|(number, at)| at - due(number));
    assert!(late.max().unwrap() <= 2_000);
}

#[test]
fn each_connection_has_its_count() {
    let reading = run(&job(7, Segment::closed(Stop::EachConnection(9)))).reading;
    let fairness = reading.fairness.unwrap();
    assert_eq!((reading.requests, fairness.min, fairness.max), (63, 9, 9));
}

#[test]
fn a_closed_loop_sends_as_fast_as_it_is_answered() {
    let reading = run(&job(3, Segment::closed(Stop::After(ms(300))))).reading;
    // 1,000 answers for each of 3 connections, one of which began a moment late.
    assert!(
        reading.requests.abs_diff(3_000) <= 6,
        "{}",
        reading.requests
    );
    assert!((reading.requests_per_s() - 10_000.0).abs() < 20.0);
    assert!((reading.client.cpu_s - 0.15).abs() < 0.001);
}

#[test]
fn a_stop_from_outside_ends_the_window_and_gives_up_on_late_answers() {
    let stop_at = |io: &mut SimIo, at: u64| io.stop_at = Some((at, Arc::default()));
    for segment in [
        Segment::closed(Stop::After(ms(60_000))),
        Segment::closed(Stop::Requests(1_000_000)),
        Segment::open(1_000.0, Stop::After(ms(60_000))),
    ] {
        let done = run_thread(&job(2, segment.clone()), 0, |io| stop_at(io, 100 * MS));
        assert!(done.reading.requests > 80, "{segment:?}");
        let duration_s = done.reading.slices[0].duration_s;
        assert!((0.1..0.121).contains(&duration_s), "{duration_s}");
        assert!(done.end < 125 * MS);
        // An answer that does not come is awaited for a while only.
        let mut held_up = job(2, segment);
        held_up.timeout = ms(30_000);
        let done = run_thread(&held_up, 0, |io| {
            stop_at(io, 100 * MS);
            io.service_ns = 10_000 * MS;
        });
        assert!((300 * MS..350 * MS).contains(&done.end), "{}", done.end);
    }
}

#[test]
fn rows_are_as_long_as_asked_and_the_last_has_the_late_answers() {
    let mut job = open_loop(64, 250);
    job.rows = Some(ms(100));
    let done = run_thread(&job, 0, |io| io.service_ns = 60_500_000);
    let rows = done.rows();
    let starts: Vec<f64> = rows.iter().map(|row| row.start_s).collect();
    assert_eq!(starts, [0.0, 0.1, 0.2]);
    let due: Vec<u64> = rows.iter().map(|row| row.due).collect();
    let answered: Vec<u64> = rows.iter().map(|row| row.requests).collect();
    assert_eq!((due, answered), (vec![100, 100, 50], vec![40, 100, 110]));
    let before: Vec<[u64; 3]> = rows.iter().map(|row| row.due_before).collect();
    assert_eq!(before, [[0; 3], [60, 0, 0], [60, 0, 0]]);
    // Until the answer to the request that was due at 249 ms.
    let last_s = rows[2].duration_s;
    assert!((0.108..0.110).contains(&last_s), "{last_s}");
}

#[test]
fn a_server_that_refuses_connections_is_asked_at_intervals() {
    let job = job(2, Segment::closed(Stop::After(ms(300))));
    let reading = run_thread(&job, 0, |io| io.refuses = true).reading;
    let attempts = reading.errors_all.connect;
    // A pause of 10 ms, and a check every 20 ms.
    assert!((28..=32).contains(&attempts), "{attempts}");
    assert!(reading.wrong[0].found.contains("refused"));
}

#[test]
fn an_answer_that_does_not_come_is_a_timeout_and_its_connection_is_replaced() {
    let mut job = job(2, Segment::closed(Stop::After(ms(200))));
    job.timeout = ms(50);
    let done = run_thread(&job, 0, |io| io.service_ns = 1_000 * MS);
    assert_eq!(done.reading.requests, 0);
    // After 50 ms, at the next check of the timeouts: three times within the window.
    assert_eq!(done.reading.errors.timeout, 6);
    assert_eq!(done.reading.connects, 8);
}

#[test]
fn a_thread_that_waits_for_its_cpu_is_saturated() {
    let of = |job: &Job, percent| {
        run_thread(job, 0, |io| io.clock.percent.set(percent))
            .reading
            .client
    };
    let closed = job(3, Segment::closed(Stop::After(ms(300))));
    let client = of(&closed, (55, 40));
    assert!(client.saturated, "it wanted 95% of a CPU");
    let thread = client.threads[0];
    assert!((thread.cpu - 0.55).abs() < 0.001 && (thread.waited - 0.4).abs() < 0.001);
    assert!((client.waited_s - 0.12).abs() < 0.001);
    assert!(!of(&closed, (55, 10)).saturated);
    // A thread that polls always wants a CPU: its schedule lag tells whether it was late.
    let mut polling = open_loop(4, 100);
    polling.wait = Wait::Spin;
    assert!(!of(&polling, (55, 40)).saturated);
    assert!(of(&open_loop(4, 100), (55, 40)).saturated);
}
