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

mod flights;
mod lines;
mod sim;
mod simulated;

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
    let sent = io.sent.clone();
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
        messages,
        end: clock.now_ns(),
    }
}

fn run(job: &Job) -> Done {
    run_thread(job, 0, |_| {})
}

#[test]
fn requests_of_an_open_loop_are_sent_when_they_are_due() {
    for wait in [Wait::Sleep, Wait::Spin] {
        let mut job = open_loop(4, 100);
        job.wait = wait;
        let done = run(&job);
        assert_eq!(done.sent.len(), 100);
        for (number, sent) in done.sent.iter().enumerate() {
            let late = sent - number as u64 * MS;
            // A poll without events, or one that waits for a microsecond at least.
            assert!(late <= 2_000, "{number}: {late} ns late");
        }
        assert_eq!(done.reading.requests, 100);
        assert!(done.reading.response.quantile_us(1.0) < 303.0);
        assert_eq!(done.reading.slices[0].duration_s, 0.1);
    }
}

#[test]
fn a_late_loop_charges_its_delay_to_the_response_and_not_to_the_service() {
    let stalled = |io: &mut SimIo| io.stall = Some((20 * MS, 30 * MS));
    let done = run_thread(&open_loop(64, 100), 0, stalled);
    let reading = done.reading;
    assert_eq!(reading.requests, 100);
    // Due just after the stall began: 30 ms late, then answered in 300 us.
    let longest_us = reading.response.quantile_us(1.0);
    assert!((29_000.0..31_000.0).contains(&longest_us), "{longest_us}");
    let lag_us = reading.schedule_lag.quantile_us(1.0);
    assert!((28_900.0..30_100.0).contains(&lag_us), "{lag_us}");
    // Some 30 requests became due meanwhile, from 30 to 0 ms late.
    let median_of_late = reading.response.quantile_us(0.85);
    assert!((10_000.0..20_000.0).contains(&median_of_late));
    // What was under way when the stall began was answered in it, and read after it.
    assert!(reading.service.quantile_us(0.95) < 303.0);
}

#[test]
fn a_request_that_waits_for_a_connection_is_no_lag_of_the_loop() {
    // One connection, 5 ms for each answer, a request each ms.
    let done = run_thread(&open_loop(1, 20), 0, |io| io.service_ns = 5 * MS);
    let reading = done.reading;
    assert_eq!(reading.requests, 20);
    assert!(reading.schedule_lag.quantile_us(1.0) < 3.0);
    // The last was due at 19 ms, and answered when all 20 were.
    let longest_us = reading.response.quantile_us(1.0);
    assert!((80_500.0..81_500.0).contains(&longest_us), "{longest_us}");
    assert!(reading.service.quantile_us(1.0) < 5_050.0);
    // The window ends when it should; the backlog at its end is served after it.
    assert_eq!(reading.slices[0].duration_s, 0.02);
    assert!(done.end >= 100 * MS);
}

#[test]
fn a_backlog_that_nobody_serves_is_counted_as_timeouts() {
    let mut job = open_loop(1, 20);
    job.timeout = ms(30);
    job.requests_per_connection = Some(1);
    let done = run_thread(&job, 0, |io| io.service_ns = 10_000 * MS);
    assert_eq!(done.reading.requests, 0);
    assert_eq!(done.reading.errors.timeout, 20);
    assert!(done.end < 200 * MS, "{}", done.end);
}

#[test]
fn a_backlog_that_memory_has_no_room_for_ends_the_load() {
    // As on 1,024 threads, of which this one has the only connection: it keeps 32,768 due times.
    let mut job = job(1, Segment::open(1e7, Stop::After(ms(100))));
    job.threads = 1_024;
    let clock = SimClock::default();
    let io = SimIo::new(&clock, 10_000 * MS);
    let (sender, _messages) = mpsc::channel();
    let mut worker = Worker::<_, _, Http>::new(io, clock.clone(), Arc::new(job), 0, sender);
    let done = worker.segment(0, clock.now_ns(), &AtomicBool::new(false));
    let is_full = |e: &LoadError| matches!(e, LoadError::Backlog { waiting: 32_768 });
    assert!(done.as_ref().is_err_and(is_full), "{done:?}");
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

#[test]
fn the_backlog_of_an_overload_grows_and_that_of_a_slow_server_does_not() {
    // Half of 1,000 requests/s.
    let half = |io: &mut SimIo| {
        io.is_single = true;
        io.service_ns = 2 * MS;
    };
    for (connections, stop) in [
        (2_000, Stop::After(ms(1_000))),
        // Most of them wait for a connection.
        (4, Stop::After(ms(1_000))),
        (4, Stop::Requests(1_000)),
    ] {
        let job = job(connections, Segment::open(1_000.0, stop));
        let reading = run_thread(&job, 0, half).reading;
        let offered = reading.offered.unwrap();
        assert_eq!(offered.due, 1_000);
        assert!(offered.answered_within.abs_diff(500) <= 2, "{offered:?}");
        // Not the 1,000 that were answered in the end.
        let per_s = reading.requests_per_s();
        assert!((per_s - 500.0).abs() < 5.0, "{per_s} of {stop:?}");
        let answered = reading.answered().unwrap();
        assert_eq!(answered.within + answered.after, 1_000);
        let took_s = reading.duration_s + answered.after_s;
        assert!((took_s - 2.0).abs() < 0.01, "{took_s} of {stop:?}");
        for (quarter, backlog) in (0..).zip(offered.backlog) {
            assert!(backlog.abs_diff(quarter * 125) <= 12, "{offered:?}");
        }
    }
    let slow = |io: &mut SimIo| io.service_ns = 200 * MS;
    let offered = run_thread(&open_loop(500, 1_000), 0, slow).reading.offered;
    let offered = offered.unwrap();
    assert!(offered.answered_within.abs_diff(800) <= 2, "{offered:?}");
    for backlog in &offered.backlog[1..] {
        assert!(backlog.abs_diff(200) <= 12, "{offered:?}");
    }
}

#[test]
fn each_stage_and_each_slice_has_its_backlog() {
    let stage = |per_s| Stage {
        duration: ms(200),
        from_per_s: per_s,
        to_per_s: per_s,
    };
    let segment = Segment {
        stages: vec![stage(250.0), stage(1_000.0)],
        ..Segment::open(625.0, Stop::After(ms(400)))
    };
    let half = |io: &mut SimIo| {
        io.is_single = true;
        io.service_ns = 2 * MS;
    };
    let reading = run_thread(&job(400, segment), 0, half).reading;
    let of = |stage: usize| reading.stages[stage].offered.unwrap();
    assert_eq!((of(0).due, of(1).due), (50, 200));
    assert!(of(0).backlog_end() <= 2 && of(1).backlog_start() <= 2);
    assert!(of(1).backlog_end().abs_diff(100) <= 12, "{:?}", of(1));
    assert_eq!(reading.offered.unwrap().due, 250);
    // Two slices of one reading: sums.
    let slice = Segment::open(1_000.0, Stop::After(ms(200)));
    let slices = job(400, slice.clone()).segment(slice);
    let offered = run_thread(&slices, 0, half).reading.offered.unwrap();
    assert_eq!(offered.due, 400);
    assert!(offered.backlog_end().abs_diff(200) <= 24, "{offered:?}");
    assert_eq!(
        offered.backlog_start(),
        0,
        "each slice starts when the last is answered"
    );
}

#[test]
fn slices_of_an_open_loop_are_counted_in_batches() {
    let slice = Segment::open(1_000.0, Stop::After(ms(50)));
    let slices =
        |count| (1..count).fold(job(400, slice.clone()), |job, _| job.segment(slice.clone()));
    let reading = run_thread(&slices(4), 0, |_| {}).reading;
    let of_slices: Vec<u64> = reading.slices.iter().map(|one| one.requests).collect();
    let of_batches: Vec<u64> = reading.batches.iter().map(|one| one.requests).collect();
    assert_eq!((of_batches.len(), of_batches), (4, of_slices));
    assert_eq!(reading.response.count(), reading.requests);
    // Two say nothing of their variance.
    assert_eq!(run_thread(&slices(2), 0, |_| {}).reading.batches, []);
}

#[test]
fn a_pause_of_the_client_is_recorded_and_its_section_left_out() {
    for wait in [Wait::Spin, Wait::Sleep] {
        let mut job = open_loop(64, 1_000);
        job.wait = wait;
        let stalled = |io: &mut SimIo| io.stall = Some((420 * MS, 30 * MS));
        let reading = run_thread(&job, 0, stalled).reading;
        let pauses = reading.pauses.clone().unwrap();
        assert_eq!(pauses.count, 1, "{wait:?}");
        let pause = pauses.pauses[0];
        assert!((pause.start_s - 0.42).abs() < 0.002, "{pause:?}");
        assert!((pause.duration_s - 0.03).abs() < 0.002, "{pause:?}");
        assert_eq!((pauses.sections, pauses.sections_left_out), (10, 1));
        assert!(reading.response.quantile_us(0.99) > 10_000.0);
        assert!(pauses.latency_us_without.p99 < 305.0);
        // However many requests it delayed, it is one occasion.
        assert_eq!(reading.exceedances(10_000.0), Some(1));
        assert_eq!(run(&job).reading.pauses, None);
    }
}

/// Slices of a closed loop of 100 ms that alternate between two targets with so many connections.
fn alternating(connections: u32, slices: usize) -> Job {
    let slice = Segment::closed(Stop::After(ms(100)));
    let mut job = job(connections, slice.clone());
    job.targets.push(job.targets[0].clone());
    for number in 1..slices {
        let target = number % 2;
        job = job.segment(slice.clone().on(target, Some(target)));
    }
    job
}

#[test]
fn a_slice_ends_in_time_although_a_request_is_never_answered() {
    let mut job = alternating(4, 8);
    job.timeout = ms(700);
    let done = run_thread(&job, 0, |io| io.slow = Some((9, 60_000 * MS)));
    let mut start = 0;
    for (number, end) in done.ends.iter().enumerate() {
        let took_ms = (end - start) as f64 / 1e6;
        // The last slice ends with the load.
        assert!(took_ms < 151.0 || number == 7, "{number}: {took_ms} ms");
        start = *end;
    }
    assert!(done.end < 1_050 * MS, "{}", done.end);
    // It exceeded its time limit between the slices of its target, and is no error of these.
    let errors = done.reading.errors_all;
    assert_eq!((errors.timeout, errors.total()), (1, 1));
    assert_eq!(done.reading.connects, 5, "its connection was replaced");
}

#[test]
fn the_load_ends_when_the_requests_of_earlier_slices_have_ended_too() {
    for (timeout_ms, errors) in [(400, 1), (2_000, 0)] {
        let mut job = alternating(4, 2);
        job.timeout = ms(timeout_ms);
        let done = run_thread(&job, 0, |io| io.slow = Some((9, 1_000 * MS)));
        assert!(done.ends[0] < 151 * MS);
        assert_eq!(done.reading.errors_all.total(), errors);
        assert!(done.end > timeout_ms.min(1_000) * MS, "{}", done.end);
        assert!(done.end < (timeout_ms.min(1_000) + 50) * MS);
    }
    // A stop from outside ends it after the time for outstanding answers.
    let stop = Arc::new(AtomicBool::new(false));
    let done = run_thread(&alternating(4, 2), 0, |io| {
        io.slow = Some((9, 1_000 * MS));
        io.stop_at = Some((200 * MS, stop));
    });
    assert!(done.end < 225 * MS + STOP_DRAIN_NS, "{}", done.end);
}

#[test]
fn a_late_answer_counts_with_the_part_of_its_time_that_lies_in_slices() {
    // One connection, 10 ms for an answer, but the request sent at 50 ms needs longer. The first
    // slice ends at 150 ms, the second slice of this target lasts from 250 to 350 ms.
    for (slow_ms, expected, longest_ms) in [
        (30, 5.0 + 1.0 + 2.0 + 10.0, 30.0),
        // Answered in the time for the last answers.
        (80, 5.0 + 50.0 / 80.0 + 10.0, 10.0),
        // Answered beside a slice of the other target.
        (170, 5.0 + 50.0 / 170.0 + 10.0, 10.0),
        // Answered in the next slice of its own.
        (250, 5.0 + 50.0 / 250.0 + 50.0 / 250.0 + 5.0, 250.0),
    ] {
        let done = run_thread(&alternating(1, 4), 0, |io| {
            io.service_ns = 10 * MS;
            io.slow = Some((5, slow_ms * MS));
        });
        let slices = &done.reading.slices;
        let counted: f64 = slices
            .iter()
            .map(|one| one.requests as f64 + one.edges)
            .sum();
        assert!(
            (counted - expected).abs() < 0.1,
            "{slow_ms}: {counted} {expected}"
        );
        assert_eq!(done.reading.errors_all.total(), 0);
        let longest_us = done.reading.response.quantile_us(1.0);
        assert!(
            (longest_us / 1e3 / longest_ms - 1.0).abs() < 0.05,
            "{slow_ms}: {longest_us}"
        );
        assert_eq!(
            done.reading.requests_all + 20,
            done.sent.len() as u64,
            "{slow_ms}"
        );
    }
}

#[test]
fn a_request_that_meets_the_end_of_an_idle_connection_is_sent_again_if_that_is_safe() {
    let idle_limit = Some(1_500 * MS);
    let run = |idle_ms, method: &str| {
        let slice = Segment::closed(Stop::After(ms(100)));
        let mut job = alternating(2, 1);
        job.targets[0].requests[0].bytes = format!("{method} / HTTP/1.1\r\n\r\n").into_bytes();
        let other = Segment::closed(Stop::After(ms(idle_ms))).on(1, Some(1));
        let job = job.segment(other).segment(slice);
        let done = run_thread(&job, 0, |io| io.idle_limit = idle_limit);
        let failed = done.reading.errors_all.total();
        (failed, done.reading.resent, done.reading.connects)
    };
    assert_eq!(run(1_000, "GET"), (0, 0, 2), "the server keeps them");
    assert_eq!(run(2_000, "GET"), (0, 2, 4));
    assert_eq!(run(2_000, "POST"), (2, 0, 4), "it may have been processed");
}

#[test]
fn a_connection_that_ends_before_an_answer_and_was_not_idle_is_an_error() {
    let slice = Segment::closed(Stop::After(ms(100)));
    let job = job(2, slice.clone()).segment(slice);
    let done = run_thread(&job, 0, |io| io.idle_limit = Some(0));
    assert!(done.reading.errors_all.read > 0);
    assert_eq!(done.reading.resent, 0);
}
