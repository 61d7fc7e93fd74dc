//! The loop of a worker in simulated time: open loops.

use super::*;

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
