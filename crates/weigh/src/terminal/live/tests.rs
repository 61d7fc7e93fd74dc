//! What the live view shows of fabricated loads.

use std::time::Duration;

use load::{Expect, Job, Progress, Row, Segment, Stage, Stop, Target, Wait};
use net::IoKind;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use readings::{Histogram, LoadRow, Pacing};

use super::charts::{bar, bins};
use super::draw::draw;
use super::state::{Phase, State};

fn job(pacing: Pacing, stop: Stop, threads: usize) -> Job {
    let address: std::net::SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let target = Target::new(address, Vec::new(), Expect::default()).with_connections(64);
    let segment = Segment {
        pacing,
        ..Segment::closed(stop)
    };
    Job {
        threads,
        io: Some(IoKind::Epoll),
        rows: Some(Duration::from_secs(1)),
        ..Job::to(target).segment(segment)
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn row(number: u64, due: u64, answers_ns: &[(u64, u64)], errors: u64) -> Progress {
    let mut response = Histogram::new();
    for &(ns, times) in answers_ns {
        response.record_many_ns(ns, times);
    }
    Progress::Row(Box::new(Row {
        segment: 0,
        reading: 0,
        row: LoadRow {
            start_s: number as f64,
            duration_s: 1.0,
            due,
            requests: response.count(),
            late: 0,
            due_before: [0; 3],
            errors,
            bytes_read: 0,
            latency_us: response.quantiles(),
        },
        response,
    }))
}

fn tick(thread: usize, requests: u64, errors: u64) -> Progress {
    Progress::Tick {
        thread,
        segment: 0,
        requests,
        errors,
        messages: 0,
    }
}

/// So many seconds of a load of 1,000 answers a second, by two threads, with one error a second.
fn running(job: &Job, seconds: u64) -> State {
    let mut state = State::new(job, "http://127.0.0.1:8080/", true);
    state.take(&Progress::SegmentBegins { segment: 0 }, ms(0));
    state.take(&Progress::WindowOpens { segment: 0 }, ms(0));
    let open = matches!(job.segments[0].pacing, Pacing::Open { .. });
    for second in 0..seconds {
        for quarter in 1..=4 {
            let now = ms(second * 1000 + quarter * 250);
            state.take(&tick(0, 150, 0), now);
            state.take(&tick(1, 100, u64::from(quarter == 1)), now);
        }
        let slow = 4_000_000 * (second + 1);
        let due = if open { 1_010 } else { 0 };
        let answers = [(400_000, 950), (slow, 50)];
        state.take(&row(second, due, &answers, 1), ms(second * 1000 + 1000));
    }
    state.refresh();
    state
}

fn drawn(state: &State, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let text: Vec<String> = buffer
        .content()
        .chunks(columns as usize)
        .map(|line| {
            let line: String = line.iter().map(|cell| cell.symbol()).collect();
            line.trim_end().to_owned()
        })
        .collect();
    text.join("\n")
}

fn closed() -> Job {
    job(Pacing::Closed, Stop::After(Duration::from_secs(10)), 2)
}

fn open() -> Job {
    let pacing = Pacing::Open {
        rate_per_s: 1_010.0,
    };
    job(pacing, Stop::After(Duration::from_secs(10)), 2)
}

#[track_caller]
fn shows(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn the_smallest_terminal_has_the_figures() {
    let text = drawn(&running(&open(), 4), 40, 10);
    assert_eq!(
        text,
        "\
http://127.0.0.1:8080/           q stops
open loop at 1,010/s, 64 connections
4.0 s of 10.0 s, 6.0 s left ████▊░░░░░░░
1,000 requests/s of 1,010 due
4,000 good answers, 4 errors
Latency           p50      p99      max
Last 1.00s      400us  16.0ms?   16.0ms
So far          400us  16.0ms?   16.0ms
Client: 2 threads
"
    );
}

#[test]
fn a_usual_terminal_has_charts_and_bars_too() {
    let text = drawn(&running(&closed(), 4), 80, 24);
    shows(
        &text,
        &[
            "closed loop, 64 connections, 2 threads, epoll",
            "4.0 s of 10.0 s, 6.0 s left ████████████░",
            "1,000 requests/s, mean 1,000\n",
            "4,000 good answers, 4 errors\n",
            "p50      p75      p90      p99    p99.9      max",
            // The rate is even: one straight line at the top of its chart, for 4 of 10 seconds.
            "1,000│   ⠈⠉⠉⠉⠉⠉⠉⠉⠉⠉⠁    ",
            "Latency  ⠒ p50  • p99",
            "   400us to  1.01ms  95.00% ████████",
            "  2.53ms to  6.36ms   1.25% ▋\n",
        ],
    );
    // The tail rises, the median does not.
    let dots = |line: &str| line.matches('•').count();
    let charts: Vec<&str> = text.lines().skip(10).take(6).collect();
    assert!(
        charts.iter().map(|line| dots(line)).sum::<usize>() >= 10,
        "{text}"
    );
    assert!(charts[5].contains("⠤⠤⠤⠤⠤⠤⠤⠤"), "{text}");
}

#[test]
fn a_large_terminal_is_filled() {
    let text = drawn(&running(&open(), 4), 120, 40);
    shows(
        &text,
        &[
            "1,000 requests/s of 1,010 due, mean 1,000\n",
            "4,000 good answers, 4 errors, 36 unanswered\n",
            "Requests/s  • due",
            "1,500│",
        ],
    );
    let wide = text.lines().map(|line| line.chars().count()).max();
    assert!(wide > Some(110), "{text}");
}

#[test]
fn an_overloaded_target_is_told_while_the_load_runs() {
    let mut state = State::new(&open(), "http://127.0.0.1:8080/", true);
    state.take(&Progress::SegmentBegins { segment: 0 }, ms(0));
    state.take(&Progress::WindowOpens { segment: 0 }, ms(0));
    for second in 0..3 {
        let told = drawn(&state, 120, 40);
        assert!(!told.contains("overloaded"), "after {second} s: {told}");
        // Half of the due requests.
        state.take(&row(second, 1_010, &[(400_000, 505)], 0), ms(1000));
        state.refresh();
    }
    shows(
        &drawn(&state, 120, 40),
        &["no errors, 1,515 unanswered: overloaded\n"],
    );
}

#[test]
fn any_size_can_be_drawn_at_any_time() {
    let states = [
        State::new(&closed(), "http://h/", true),
        running(&closed(), 0),
        running(&open(), 1),
        running(&closed(), 600),
    ];
    for state in &states {
        for columns in (1..140).step_by(13) {
            for lines in (1..45).step_by(2) {
                drawn(state, columns, lines);
            }
        }
    }
    assert!(drawn(&states[3], 30, 5).starts_with("1,000 requests/s, q stops"));
}

#[test]
fn without_colours_nothing_is_coloured() {
    let coloured = |colour| {
        let mut state = running(&open(), 4);
        state.colour = colour;
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &state)).unwrap();
        let buffer = terminal.backend().buffer();
        let mut cells = buffer.content().iter();
        cells.any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(coloured(true));
    assert!(!coloured(false));
}

#[test]
fn the_present_rate_is_that_of_the_last_second() {
    let mut state = running(&closed(), 2);
    assert_eq!(state.per_s().round(), 1_000.0);
    // One thread is done, the other goes on at another speed.
    for quarter in 1..=12 {
        state.take(&tick(0, 50, 0), ms(2_000 + quarter * 250));
    }
    assert_eq!(state.per_s().round(), 200.0);
    assert_eq!(state.requests, 2_000 + 600);
}

#[test]
fn quantiles_are_those_of_all_answers() {
    let state = running(&closed(), 4);
    assert_eq!(state.overall.count, 4_000);
    // Of 4,000 answers 200 are slow: 50 each of 4, 8, 12 and 16 ms. A mean of the rows' p99 would
    // say 10 ms.
    assert!(
        (state.overall.p99 - 16_000.0).abs() < 20.0,
        "{:?}",
        state.overall
    );
    assert!((state.last.unwrap().1.p99 - 16_000.0).abs() < 20.0);
    assert_eq!(state.mean_per_s(), Some(1_000.0));
}

#[test]
fn answers_after_the_end_are_counted_and_are_no_row() {
    let mut state = running(&open(), 2);
    let Progress::Row(mut late) = row(2, 2, &[(9_000_000, 2)], 0) else {
        panic!("no row")
    };
    late.row.duration_s = 0.0;
    state.take(&Progress::Row(late), ms(2_100));
    state.refresh();
    assert_eq!(state.overall.count, 2_002);
    assert_eq!(state.points.len(), 2);
    assert_eq!(state.last.unwrap().0, 1.0);
    assert_eq!(state.mean_per_s(), Some(1_001.0));
}

#[test]
fn memory_does_not_grow_with_the_length() {
    let mut state = running(&closed(), 1_000);
    assert_eq!(state.points.len(), 512);
    assert_eq!(state.points.back().unwrap().end_s, 1_000.0);
    assert_eq!(state.overall.count, 1_000_000);
    assert_eq!(state.points.capacity(), 512);
    state.refresh();
    assert_eq!(state.span_s(), (0.0, 1_000.0));
    let mut long = closed();
    long.segments[0].stop = Stop::After(Duration::from_secs(36_000));
    assert_eq!(running(&long, 600).span_s(), (89.0, 600.0));
}

#[test]
fn stages_offer_what_they_say() {
    let mut job = open();
    let stage = |from_per_s, to_per_s| Stage {
        duration: Duration::from_secs(4),
        from_per_s,
        to_per_s,
    };
    job.segments[0].stages = vec![stage(0.0, 1_000.0), stage(1_000.0, 1_000.0)];
    job.segments[0].ramp_up = Duration::from_secs(1);
    let mut state = State::new(&job, "http://h/", true);
    state.take(&Progress::SegmentBegins { segment: 0 }, ms(100));
    state.take(&tick(0, 1, 0), ms(600));
    assert_eq!(state.phase, Phase::WarmingUp);
    assert_eq!(state.progress(), "warming up, 0.5 s of 1.0 s");
    state.take(&Progress::WindowOpens { segment: 0 }, ms(1_100));
    let offered = |state: &mut State, at: u64| {
        state.take(&tick(0, 1, 0), ms(at));
        state.offered_per_s().unwrap()
    };
    assert_eq!(offered(&mut state, 1_100), 0.0);
    assert_eq!(offered(&mut state, 3_100), 500.0);
    assert_eq!(offered(&mut state, 6_000), 1_000.0);
    assert_eq!(offered(&mut state, 9_500), 0.0);
    shows(&drawn(&state, 80, 24), &["open loop in 2 stages"]);
}

#[test]
fn a_count_is_what_remains_and_drains() {
    let job = job(Pacing::Closed, Stop::EachConnection(100), 2);
    let mut state = running(&job, 2);
    assert_eq!(
        state.progress(),
        "2.0 s, 2,002 of 6,400 requests, 4,398 left"
    );
    assert!((state.share_done() - 2_002.0 / 6_400.0).abs() < 1e-9);
    state.take(&Progress::WindowCloses { segment: 0 }, ms(2_500));
    assert_eq!(state.progress(), "2.5 s, waiting for the last answers");
}

#[test]
fn the_client_says_when_it_is_the_bottleneck() {
    let mut state = running(&closed(), 2);
    state.client.cpu = Some(0.43);
    shows(&drawn(&state, 80, 24), &["Client: 2 threads at 43% CPU\n"]);
    state.client.cpu = Some(0.97);
    shows(
        &drawn(&state, 80, 24),
        &["97% CPU, probably the bottleneck"],
    );
    let mut job = open();
    job.wait = Wait::Spin;
    let mut state = running(&job, 2);
    state.client.cpu = Some(0.99);
    shows(&drawn(&state, 80, 24), &["Client: 2 threads, polling"]);
}

#[test]
fn bars_hold_every_answer() {
    assert!(bins(&[], 5).is_empty());
    let all = [(100.0, 5), (200.0, 3), (400.0, 1), (1_600.0, 1)];
    for most in 1..8 {
        let bins = bins(&all, most);
        assert_eq!(bins.len(), most.min(4));
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 10);
        assert_eq!(bins[0].from_us, 100.0);
    }
    let two = bins(&all, 2);
    assert_eq!((two[0].count, two[1].count), (8, 2));
    assert_eq!(bins(&[(7.0, 3)], 4)[0].count, 3);
    assert_eq!(
        [bar(0.0), bar(0.01), bar(1.5), bar(2.0)],
        ["", "▏", "█▌", "██"]
    );
}
