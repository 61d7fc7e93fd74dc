//! The loop of a worker in simulated time: what is open at the end of a slice, and connections that
//! end.

use super::*;

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

/// Requests of an open loop with a pause of so many ms, on a server that closes connections which were
/// idle for 1.5 s.
fn with_a_pause(pause_ms: u64) -> Done {
    let stage = |duration_ms, per_s| Stage {
        duration: ms(duration_ms),
        from_per_s: per_s,
        to_per_s: per_s,
    };
    let mut segment = Segment::open(1_000.0, Stop::After(ms(200 + pause_ms)));
    segment.stages = vec![
        stage(100, 1_000.0),
        stage(pause_ms, 0.0),
        stage(100, 1_000.0),
    ];
    run_thread(&job(4, segment), 0, |io| io.idle_limit = Some(1_500 * MS))
}

#[test]
fn requests_behind_a_pause_are_sent_when_they_are_due_and_on_new_connections_where_the_old_ended() {
    for (pause_ms, reopened) in [(1_000, 0), (3_000, 4)] {
        let done = with_a_pause(pause_ms);
        assert_eq!(
            done.reading.errors_all.total(),
            0,
            "{:?}",
            done.reading.wrong
        );
        assert_eq!(done.reading.requests, 200);
        let resent = done.reading.resent;
        assert_eq!((resent, done.reading.connects), (reopened, 4 + reopened));
        let due = |number: u64| match number {
            0..100 => number * MS,
            _ => (number + pause_ms) * MS,
        };
        for number in 0..200 {
            // A poll without events, or one that waits for a microsecond at least.
            let is_sent = |sent: &&u64| (0..=2_000).contains(&sent.wrapping_sub(due(number)));
            assert!(done.sent.iter().any(|sent| is_sent(&sent)), "{number}");
        }
        assert_eq!(done.sent.len() as u64, 200 + resent);
        // The time until the server closes counts as a part of the answer.
        let longest_us = done.reading.response.quantile_us(1.0);
        let most_us = if resent > 0 { 610.0 } else { 305.0 };
        assert!(longest_us < most_us, "{longest_us}");
        assert!(done.reading.schedule_lag.quantile_us(1.0) < 3.0);
    }
}
