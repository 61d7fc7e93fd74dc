//! Loads that were made by something else than the engine.

use readings::ToolLatency;
use readings::{DriverReading, DriverRun, ErrorCounts, Outcome, Pacing, Reading, Trial};

use crate::fixtures::{analyse, closed, compared, header, trial};
use crate::summary::*;
use crate::{Metric, Note, Verdict};

/// A trial whose driver took `cpu_us` per request and told `median_us`, if any.
fn outside(driver: &str, rate: f64, cpu_us: f64, median_us: Option<f64>) -> Outcome {
    let mut load = closed(rate);
    load.client.saturated = true;
    let run = DriverRun {
        pacing: Pacing::Closed,
        command: vec![driver.into()],
        requests: load.requests,
        duration_s: load.duration_s,
        errors: ErrorCounts::default(),
        latency: ToolLatency {
            quantiles_us: median_us.map(|us| (0.5, us)).into_iter().collect(),
            ..ToolLatency::default()
        },
        wall_s: load.duration_s,
        cpu_s: cpu_us * load.requests as f64 / 1e6,
        max_rss_bytes: Some((cpu_us * 1e6) as u64),
    };
    Outcome::Done(Box::new(Reading {
        throughput: Some(load),
        driver: Some(DriverReading {
            driver: driver.into(),
            runs: vec![run],
            ..DriverReading::default()
        }),
        ..Reading::default()
    }))
}

/// Six blocks of direct, direct again and balance, each with its driver and median.
fn blocks(direct: (&str, Option<f64>), balance: (&str, Option<f64>)) -> Vec<Trial> {
    (1..=6)
        .flat_map(|block| {
            let wobble = 1.0 + 0.004 * f64::from(block % 3);
            let direct = |again| {
                let median = direct.1.map(|us| us * wobble);
                let outcome = outside(direct.0, 20_000.0 * wobble, 8.0 * wobble, median);
                trial(block, "direct", again, outcome)
            };
            let outcome = outside(balance.0, 10_000.0, 16.0, balance.1);
            [
                direct(false),
                direct(true),
                trial(block, "balance", false, outcome),
            ]
        })
        .collect()
}

fn clock(subject: &str, baseline: &str) -> Note {
    Note::Clock {
        subject: subject.into(),
        baseline: baseline.into(),
        closed_loop: true,
    }
}

fn metrics(analysis: &Analysis) -> Vec<Metric> {
    analysis.comparisons.iter().map(|c| c.metric).collect()
}

#[test]
fn with_one_driver_the_servers_are_compared_and_its_clock_is_named() {
    let trials = blocks(("tool", Some(700.0)), ("tool", Some(1400.0)));
    let analysis = analyse(&header(6), &trials);
    let expected = [Metric::RequestsPerS, Metric::LatencyUsP50];
    assert_eq!(metrics(&analysis), expected, "{analysis:?}");
    let [throughput, latency] = analysis.comparisons.as_slice() else {
        panic!("two comparisons");
    };
    assert_eq!(throughput.verdict, Verdict::Inconclusive);
    assert!(throughput.notes.contains(&Note::ClientLimits(None)));
    assert_eq!(latency.verdict, Verdict::Slower);
    assert!(latency.notes.contains(&clock("tool", "tool")));
    assert!((latency.subject_value.unwrap() - 1400.0).abs() < 1e-6);
    let metrics: Vec<Metric> = analysis.noise_floor.iter().map(|f| f.metric).collect();
    assert_eq!(metrics, expected);
    let row = &analysis.table[0];
    assert_eq!(row.driver.as_deref(), Some("tool"));
    assert!((row.latency_us_p50.unwrap() / 702.8 - 1.0).abs() < 0.01);
    assert_eq!(row.latency_us_p99, None, "it was not told");
}

#[test]
fn drivers_that_differ_are_compared_by_what_they_cost() {
    let trials = blocks(("tool", Some(700.0)), ("other", Some(1400.0)));
    let analysis = analyse(&header(6), &trials);
    let expected = [
        Metric::RequestsPerS,
        Metric::LatencyUsP50,
        Metric::DriverCpuUsPerRequest,
        Metric::DriverMaxRssBytes,
    ];
    assert_eq!(metrics(&analysis), expected);
    let of = |metric| compared(&analysis, metric);
    let cpu = of(Metric::DriverCpuUsPerRequest);
    assert_eq!(cpu.verdict, Verdict::Slower);
    assert!((cpu.subject_value.unwrap() - 16.0).abs() < 1e-6);
    assert_eq!(of(Metric::DriverMaxRssBytes).verdict, Verdict::Slower);
    let throughput = of(Metric::RequestsPerS);
    assert!(throughput.notes.is_empty(), "the drivers are the question");
    let latency = of(Metric::LatencyUsP50);
    assert!(latency.notes.contains(&clock("other", "tool")));
    let at_least = |warning: &Warning| matches!(warning, Warning::AtLeast { .. });
    assert!(!analysis.warnings.iter().any(at_least));
}

#[test]
fn a_median_that_one_side_does_not_tell_is_not_compared() {
    for (direct, balance) in [(Some(700.0), None), (None, Some(700.0)), (None, None)] {
        let analysis = analyse(&header(6), &blocks(("tool", direct), ("tool", balance)));
        assert_eq!(metrics(&analysis), [Metric::RequestsPerS]);
    }
}
