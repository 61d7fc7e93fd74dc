//! What a row of the table rests on.

use super::*;
use crate::fixtures::{closed, done, header, in_closed, in_open, measured, open, reading, trial};
use readings::{ServerMetrics, ServerReading};

#[test]
fn a_row_gathers_the_valid_trials_of_a_subject() {
    let mut bad = closed(9_000.0);
    bad.errors.status = 90_000;
    bad.errors_all.status = 90_000;
    let mut trials = vec![
        trial(
            1,
            "direct",
            false,
            done(Some(closed(1000.0)), Some(open(500.0, 400.0))),
        ),
        trial(
            2,
            "direct",
            false,
            done(Some(closed(4000.0)), Some(open(500.0, 900.0))),
        ),
        in_closed(3, "direct", bad),
    ];
    for (t, cpu_s) in trials.iter_mut().zip([0.5, 2.0]) {
        let reading = reading(t);
        reading.servers = vec![ServerReading {
            server: "origin".into(),
            cpu_s,
            ..ServerReading::default()
        }];
        reading.upstream_connections_per_request = Some(cpu_s);
        let seen = ServerMetrics {
            user_s: 1.0,
            system_s: 3.0,
            switches_voluntary: (cpu_s * 100.0) as u64,
            switches_involuntary: 50,
            faults_minor: 25,
            rss_bytes_max: (cpu_s * 1e6) as u64,
            ..ServerMetrics::default()
        };
        reading.probed = Some(SystemMetrics {
            requests: 100,
            looked_s: 1.0,
            servers: [("origin".to_owned(), seen)].into(),
            ..SystemMetrics::default()
        });
    }
    let header = header(3);
    let rows = table(&Cells::of(&header, &trials));
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.trials, 3);
    assert!((row.requests_per_s.unwrap() - 2000.0).abs() < 1e-6);
    assert!((row.latency_us_p50.unwrap() / 600.0 - 1.0).abs() < 2e-3);
    // 5,000 requests do not resolve it, and both trials' do: 100 took longer than 900 us.
    assert!((row.latency_us_p99.unwrap() / 900.0 - 1.0).abs() < 2e-3);
    assert_eq!(row.latency_us_p99_bound, None);
    assert_eq!(row.errors.status, 90_000);
    assert!((row.server_cpu_us_per_request["origin"] - 50.0).abs() < 1e-9);
    assert!((row.server_cpu_user_us_per_request["origin"] - 12.5).abs() < 1e-9);
    assert!((row.server_cpu_system_us_per_request["origin"] - 37.5).abs() < 1e-9);
    assert!((row.server_switches_per_request["origin"] - 1.75).abs() < 1e-9);
    assert!((row.server_faults_per_request["origin"] - 0.25).abs() < 1e-9);
    // The geometric mean of 500,000 and 2,000,000.
    assert_eq!(row.server_rss_bytes_max["origin"], 1_000_000);
    let probed = row.probed.as_ref().unwrap();
    assert_eq!(probed.requests, 200, "of two valid trials");
    assert_eq!(probed.servers["origin"].faults_minor, 50);
    assert_eq!(row.upstream_connections_per_request, Some(1.25));
    assert!((row.client_cpu.unwrap() - 0.4).abs() < 1e-9);
    assert!(!row.at_least);
}

/// Half of the answers of one trial are wrong, and its server holds fifty times the memory.
#[test]
fn memory_in_the_table_and_in_its_comparison_is_of_the_same_trials() {
    let mut trials = Vec::new();
    for block in 1..=4_u32 {
        for (subject, bytes) in [("direct", 8_000_000), ("balance", 20_000_000)] {
            let is_bad = block == 4 && subject == "balance";
            let mut load = closed(1_000.0);
            if is_bad {
                load.errors_all.status = 10_000;
            }
            let mut outcome = done(Some(load), None);
            let reading = measured(&mut outcome);
            let seen = ServerMetrics {
                rss_bytes_max: bytes * u64::from(block) * if is_bad { 50 } else { 1 },
                ..ServerMetrics::default()
            };
            reading.probed = Some(SystemMetrics {
                servers: [(subject.to_owned(), seen)].into(),
                ..SystemMetrics::default()
            });
            trials.push(trial(block, subject, false, outcome));
        }
    }
    let analysis = crate::fixtures::analyse(&header(4), &trials);
    let mut compared = analysis.comparisons.iter();
    let compared = compared.find(|c| c.metric == Metric::ServerRssBytesMax);
    let row = analysis.table.iter().find(|row| row.subject == "balance");
    let of_table = row.unwrap().server_rss_bytes_max["balance"] as f64;
    // The geometric mean of one, two and three times 20 MB.
    assert!((of_table / (20e6 * 6_f64.powf(1.0 / 3.0)) - 1.0).abs() < 1e-6);
    assert!((compared.unwrap().subject_value.unwrap() / of_table - 1.0).abs() < 1e-6);
    assert!((row.unwrap().figures[&Metric::ServerRssBytesMax] / of_table - 1.0).abs() < 1e-6);
}

#[test]
fn a_p99_that_most_trials_cannot_be_used_for_is_no_figure() {
    let trials_of = |late: u32| -> Vec<readings::Trial> {
        let of_block = |block| {
            let mut load = open(2_000.0, 400.0);
            // One in twenty is sent 50 ms late, as when the machine stops the client.
            for i in 0..2_000 {
                let is_late = block <= late && i % 20 == 0;
                load.schedule_lag
                    .record_ns(if is_late { 50_000_000 } else { 1_000 });
            }
            in_open(block, "direct", load)
        };
        (1..=4).map(of_block).collect()
    };
    let header = header(4);
    let row = |late| table(&Cells::of(&header, &trials_of(late))).remove(0);
    assert!(row(2).latency_us_p99.is_some());
    assert_eq!(row(3).latency_us_p99, None);
    assert!(row(3).latency_us_p50.is_some());
}

/// Of each block's two attempts the first is spoilt for one subject, and the second, made in a
/// busier minute, is spoilt in the other's open loop.
#[test]
fn the_figures_of_a_block_are_of_one_attempt() {
    let mut wrong = closed(1_000.0);
    wrong.errors_all.status = 9_000;
    let mut late = open(500.0, 400.0);
    late.client.saturated = true;
    let mut trials = Vec::new();
    for block in 1..=3 {
        let good = || Some(open(500.0, 400.0));
        let mut add = |attempt, subject, rate: Option<f64>, open| {
            let load = rate.map_or(wrong.clone(), closed);
            let one = trial(block, subject, false, done(Some(load), open));
            trials.push(readings::Trial { attempt, ..one });
        };
        add(1, "direct", None, good());
        add(1, "balance", Some(1_200.0), good());
        add(2, "direct", Some(1_000.0), good());
        add(2, "balance", Some(950.0), Some(late.clone()));
    }
    let analysis = crate::fixtures::analyse(&header(3), &trials);
    let compared = analysis.comparisons.iter();
    let compared = compared.filter(|c| c.metric == crate::Metric::RequestsPerS);
    let ratio = compared.map(|c| c.ratio.unwrap()).next().unwrap();
    assert!((ratio - 0.95).abs() < 1e-9, "{ratio}");
    let of = |subject: &str| {
        let row = analysis.table.iter().find(|row| row.subject == subject);
        row.unwrap().requests_per_s.unwrap()
    };
    let of_table = of("balance") / of("direct");
    assert!((of_table - ratio).abs() < 1e-9, "{of_table}");
}
