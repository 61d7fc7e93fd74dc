//! Journals whose truth is known, and in which the interval of the blocks alone says too much.

use crate::fixtures::{
    analyse, closed, compared, done, header, in_closed, in_open, measured, open, reading,
    throughput, throughput_blocks, trial,
};
use crate::summary::*;
use crate::{Bound, Metric, Note, Verdict};
use readings::{FailureCause, ServerMetrics, ServerReading, SystemMetrics};

/// Ten blocks in which the balancer keeps `share` of the throughput; the client is the bottleneck
/// for the sides named in the blocks named.
fn limited(share: f64, is_limited: impl Fn(u32, &str) -> bool) -> crate::Comparison {
    let balance = |i: u32| 20_000.0 * share * (1.0 + 0.002 * f64::from(i % 3));
    let rates: Vec<(f64, f64)> = (0..10).map(|i| (20_000.0, balance(i))).collect();
    let mut trials = throughput_blocks(&rates);
    for one in &mut trials {
        throughput(one).client.saturated = is_limited(one.block, &one.subject);
    }
    analyse(&header(10), &trials).comparisons.remove(0)
}

#[test]
fn a_baseline_that_the_client_limited_leaves_only_slower_and_an_upper_end() {
    // In one block of ten.
    let slower = limited(0.35, |block, subject| block == 3 && subject == "direct");
    assert_eq!(
        (slower.verdict, slower.bound),
        (Verdict::Slower, Some(Bound::AtMost))
    );
    assert!(slower.low.is_none() && slower.high.unwrap() < 0.36);
    for share in [1.0, 1.5] {
        let other = limited(share, |_, subject| subject == "direct");
        assert_eq!(other.verdict, Verdict::Inconclusive, "{share}: {other:?}");
    }
}

#[test]
fn a_subject_that_the_client_limited_leaves_only_faster_and_a_lower_end() {
    let faster = limited(1.5, |_, subject| subject == "balance");
    assert_eq!(
        (faster.verdict, faster.bound),
        (Verdict::Faster, Some(Bound::AtLeast))
    );
    assert!(faster.high.is_none() && faster.low.unwrap() > 1.49);
    for share in [1.0, 0.5] {
        let other = limited(share, |_, subject| subject == "balance");
        assert_eq!(other.verdict, Verdict::Inconclusive, "{share}: {other:?}");
    }
}

#[test]
fn with_the_client_as_the_limit_of_both_nothing_follows() {
    for share in [0.5, 1.0, 1.5] {
        // Each in one half of the blocks.
        let c = limited(share, |block, subject| {
            (block % 2 == 0) == (subject == "direct")
        });
        assert_eq!(c.verdict, Verdict::Inconclusive);
        assert_eq!(c.interval(), None);
        assert_eq!(c.notes, [Note::ClientLimits(None)]);
    }
}

/// Eight blocks in which half of the balancer's starts lose 4% of the requests and 30% of the rate,
/// and are made again until one goes well.
fn bad_starts(subject: &str) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=8 {
        for attempt in 1..=2 {
            for name in ["direct", "balance"] {
                let mut load = closed(20_000.0 * (1.0 + 0.001 * f64::from(block % 3)));
                if attempt == 1 && name == subject {
                    load.requests = load.requests * 7 / 10;
                    load.errors_all.timeout = load.requests_all / 24;
                }
                let mut one = in_closed(block, name, load);
                one.attempt = attempt;
                trials.push(one);
            }
        }
    }
    trials
}

#[test]
fn starts_that_failed_and_were_made_again_are_counted_and_withhold_same() {
    for subject in ["balance", "direct"] {
        let analysis = analyse(&header(8), &bad_starts(subject));
        let c = &analysis.comparisons[0];
        assert_eq!(c.verdict, Verdict::Inconclusive, "{c:?}");
        let [Note::FailedStarts(sides)] = c.notes.as_slice() else {
            panic!("{c:?}");
        };
        assert_eq!(
            (sides[0].0.as_str(), sides[0].1.failed, sides[0].1.all),
            (subject, 8, 16)
        );
        let row = analysis
            .table
            .iter()
            .find(|row| row.subject == subject)
            .unwrap();
        assert_eq!((row.starts.failed, row.starts.all), (8, 16));
    }
}

#[test]
fn what_the_machine_spoilt_counts_as_nobodys_failure() {
    let mut trials = bad_starts("balance");
    for one in trials.iter_mut().filter(|one| one.attempt == 1) {
        one.outcome = Outcome::failed("an agent was lost", FailureCause::Other);
    }
    let c = &analyse(&header(8), &trials).comparisons[0];
    assert_eq!((c.verdict, c.subject_starts.all), (Verdict::Same, 8));
}

/// Six blocks in which a driver that prints whole milliseconds saw 10.4 and 10.6 ms.
#[test]
fn figures_in_whole_milliseconds_differ_by_no_less() {
    let mut trials = Vec::new();
    for block in 1..=6 {
        for (name, ms) in [("direct", 10.4_f64), ("balance", 10.6)] {
            let load = closed(1000.0);
            let mut outcome = done(Some(load), None);
            let reading = measured(&mut outcome);
            reading.driver = Some(readings::DriverReading {
                driver: "tool".into(),
                latency_step_us: Some(1000.0),
                runs: vec![readings::DriverRun {
                    pacing: readings::Pacing::Closed,
                    command: vec!["tool".into()],
                    requests: 10_000,
                    duration_s: 10.0,
                    errors: readings::ErrorCounts::default(),
                    latency: readings::ToolLatency {
                        quantiles_us: vec![(0.5, ms.round() * 1e3)],
                        ..readings::ToolLatency::default()
                    },
                    wall_s: 10.0,
                    cpu_s: 1.0,
                    max_rss_bytes: None,
                }],
                ..readings::DriverReading::default()
            });
            trials.push(trial(block, name, false, outcome));
        }
    }
    let analysis = analyse(&header(6), &trials);
    let c = compared(&analysis, Metric::LatencyUsP50);
    assert_eq!(c.verdict, Verdict::Inconclusive, "{c:?}");
    let (low, high) = c.interval().unwrap();
    assert!(low < 1.019 && 1.019 < high, "{low} {high}");
}

#[test]
fn figures_that_are_all_alike_have_an_interval_with_a_width() {
    let c = &analyse(&header(6), &throughput_blocks(&[(1000.0, 900.0); 6])).comparisons[0];
    let (low, high) = c.interval().unwrap();
    assert!(low < 0.9 && 0.9 < high);
}

/// The first attempt measured only the baseline well, the second only the subject, on a machine that
/// was 20% slower by then; the third measured both.
#[test]
fn both_figures_of_a_ratio_come_from_one_attempt() {
    let failed = |cause| Outcome::failed("not measured", cause);
    let mut trials = Vec::new();
    for block in 1..=5 {
        let wobble = 1.0 + 0.002 * f64::from(block % 3);
        let rows = [
            (1, "direct", done(Some(closed(20_000.0)), None)),
            (1, "balance", failed(FailureCause::Other)),
            (2, "direct", failed(FailureCause::Other)),
            (2, "balance", done(Some(closed(16_000.0)), None)),
            (3, "direct", done(Some(closed(16_000.0)), None)),
            (3, "balance", done(Some(closed(16_000.0 * wobble)), None)),
        ];
        // Without the third attempt in one block there is no ratio of it.
        let rows = rows.into_iter().take(if block == 5 { 4 } else { 6 });
        for (attempt, name, outcome) in rows {
            let mut one = trial(block, name, false, outcome);
            one.attempt = attempt;
            trials.push(one);
        }
    }
    let c = &analyse(&header(5), &trials).comparisons[0];
    assert_eq!((c.verdict, c.blocks), (Verdict::Same, 4), "{c:?}");
}

#[test]
fn differences_within_a_biased_floor_are_withheld_and_larger_ones_stand() {
    for (share, expected) in [
        (0.81, Verdict::Inconclusive),
        (1.0, Verdict::Inconclusive),
        (0.5, Verdict::Slower),
    ] {
        let mut trials = throughput_blocks(&[(1000.0, 1000.0 * share); 10]);
        for (i, one) in trials.iter_mut().enumerate() {
            if let (Outcome::Done(reading), true) = (&mut one.outcome, one.baseline_copy) {
                let load = reading.throughput.as_mut().unwrap();
                load.requests = load.requests * (800 + (i as u64 % 7)) / 1000;
            }
        }
        let c = &analyse(&header(10), &trials).comparisons[0];
        assert_eq!(c.verdict, expected, "{share}: {c:?}");
        let within = matches!(c.notes.last(), Some(Note::WithinFloor(_)));
        assert_eq!(within, expected == Verdict::Inconclusive);
    }
}

/// The copy of the baseline has servers of its own: those of the first are kept busy by both subjects,
/// and memory may grow with every request.
#[test]
fn memory_of_servers_that_subjects_share_has_no_noise_floor() {
    let floors = |balance_on: &str| {
        let mut trials = throughput_blocks(&[(1000.0, 990.0); 5]);
        for one in &mut trials {
            let server = match one.subject.as_str() {
                "direct" => "origin",
                _ => balance_on,
            };
            let metrics = ServerMetrics {
                rss_bytes_max: if one.baseline_copy { 140 } else { 240 } * 1_000_000,
                ..ServerMetrics::default()
            };
            measured(&mut one.outcome).probed = Some(SystemMetrics {
                servers: [(server.to_owned(), metrics)].into(),
                ..SystemMetrics::default()
            });
        }
        let floors = analyse(&header(5), &trials).noise_floor;
        let of_memory = floors
            .iter()
            .filter(|one| one.metric == Metric::ServerRssBytesMax);
        (floors.len(), of_memory.count())
    };
    let (all, of_memory) = floors("balance");
    assert_eq!(of_memory, 1);
    assert_eq!(floors("origin"), (all - 1, 0));
}

/// Latencies of 115 and 117 us of which 90 us are the client's lag: the servers took 25 and 27 us.
#[test]
fn a_lag_that_hides_a_difference_makes_nothing_the_same() {
    let blocks = |lag_us: f64, service: [f64; 2]| {
        let mut trials = Vec::new();
        for block in 1..=6 {
            let wobble = 1.0 + 0.001 * f64::from(block % 3);
            for (name, service_us) in ["direct", "balance"].into_iter().zip(service) {
                let mut load = open(1000.0, (lag_us + service_us) * wobble);
                for _ in 0..10_000 {
                    load.service.record_ns((service_us * wobble * 1e3) as u64);
                    load.schedule_lag.record_ns((lag_us * 1e3) as u64);
                }
                trials.push(in_open(block, name, load));
            }
        }
        compared(&analyse(&header(6), &trials), Metric::LatencyUsP50).clone()
    };
    let c = blocks(90.0, [25.0, 27.0]);
    assert!((c.ratio.unwrap() - 117.0 / 115.0).abs() < 0.005);
    assert_eq!(c.verdict, Verdict::Inconclusive);
    let [
        Note::ClientLag {
            share,
            service_ratio: Some(ratio),
            ..
        },
    ] = c.notes.as_slice()
    else {
        panic!("{c:?}");
    };
    assert!((share - 0.78).abs() < 0.02 && (ratio - 1.08).abs() < 0.005);
    assert_eq!(blocks(90.0, [25.0, 25.0]).verdict, Verdict::Same);
    // A lag that is small against the margin hides nothing.
    assert_eq!(blocks(1.0, [115.0, 117.0]).verdict, Verdict::Same);
}

#[test]
fn servers_are_compared_by_cpu_time_and_memory() {
    let mut trials = throughput_blocks(&[
        (1000.0, 900.0),
        (1010.0, 905.0),
        (990.0, 896.0),
        (1000.0, 899.0),
    ]);
    for (i, one) in trials.iter_mut().enumerate() {
        let us = if one.subject == "balance" { 29.2 } else { 27.5 };
        let reading = reading(one);
        let requests = reading.throughput.as_ref().unwrap().requests as f64;
        let cpu_s = requests * us * (1.0 + 0.001 * (i % 4) as f64) / 1e6;
        reading.servers = vec![ServerReading {
            server: "origin".into(),
            cpu_s,
            ..ServerReading::default()
        }];
    }
    let analysis = analyse(&header(4), &trials);
    let cpu = compared(&analysis, Metric::ServerCpuUsPerRequest);
    assert_eq!(cpu.verdict, Verdict::Slower, "{cpu:?}");
    assert!((cpu.baseline_value.unwrap() - 27.5).abs() < 0.1);
    let floors: Vec<Metric> = analysis.noise_floor.iter().map(|f| f.metric).collect();
    assert!(floors.contains(&Metric::ServerCpuUsPerRequest));
}

#[test]
fn slices_or_blocks_that_are_too_few_for_the_steady_state_say_so() {
    let unchecked = |blocks: usize, slices: usize| {
        let mut trials = throughput_blocks(&[(1000.0, 900.0); 3][..blocks]);
        for one in &mut trials {
            let load = throughput(one);
            let slice = readings::Slice {
                duration_s: 0.5,
                requests: load.requests / 20,
                ..readings::Slice::default()
            };
            load.slices = vec![slice; slices];
        }
        let warnings = analyse(&header(3), &trials).warnings;
        let is_it = |one: &Warning| matches!(one, Warning::SteadyStateUnchecked { .. });
        warnings.into_iter().find(is_it)
    };
    assert_eq!(unchecked(3, 10), None, "the default window has ten");
    let expected = |blocks, slices| Warning::SteadyStateUnchecked {
        slices: [slices, 6],
        blocks: [blocks, 3],
    };
    assert_eq!(unchecked(3, 5), Some(expected(3, 5)));
    assert_eq!(unchecked(2, 10), Some(expected(2, 10)));
}

#[test]
fn cpu_time_is_shared_among_answers_by_the_part_of_their_time_inside_the_slices() {
    // Answers of a fifth of a slice: of one and the same work, 24 or 26 end inside.
    let mut trials = throughput_blocks(&[(2.5, 2.5), (2.5, 2.5), (2.5, 2.5), (2.5, 2.5)]);
    for (i, one) in trials.iter_mut().enumerate() {
        let reading = reading(one);
        let more = if i % 3 == 0 { 1.0 } else { -1.0 };
        let load = reading.throughput.as_mut().unwrap();
        load.requests = (25.0 + more) as u64;
        load.slices = vec![readings::Slice {
            duration_s: 10.0,
            requests: load.requests,
            edges: -more,
            ..readings::Slice::default()
        }];
        reading.servers = vec![ServerReading {
            server: "origin".into(),
            cpu_s: 5.0 * (1.0 + 1e-4 * (i % 4) as f64),
            ..ServerReading::default()
        }];
    }
    let analysis = analyse(&header(4), &trials);
    let cpu = compared(&analysis, Metric::ServerCpuUsPerRequest);
    assert!((cpu.ratio.unwrap() - 1.0).abs() < 1e-3, "{cpu:?}");
    assert_eq!(cpu.verdict, Verdict::Same, "{cpu:?}");
    let row = &analysis.table[0];
    let in_table = row.server_cpu_us_per_request["origin"];
    assert!((in_table / 200_000.0 - 1.0).abs() < 1e-3, "{in_table}");
}
