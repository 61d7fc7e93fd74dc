//! A run made up for tests: six blocks of direct, direct again, balance and lighttpd.

use std::collections::BTreeMap;

use readings::{
    ClientReading, Condition, CurveChoice, CurvePoint, Histogram, Journal, JournalRow, LoadReading,
    Offered, Outcome, Pacing, Reading, RunHeader, ServerMetrics, ServerReading, SystemMetrics,
    ThreadReading, Trial, Wrong, WrongKind,
};

pub fn journal() -> Journal {
    Journal::of_trials(header(), trials())
}

pub fn header() -> RunHeader {
    RunHeader {
        weigh_version: "0.1.0".into(),
        experiment: "proxy-cost".into(),
        title: "What a <balancer> costs".into(),
        seed: 42,
        baseline: "direct".into(),
        subjects: vec!["direct".into(), "balance".into(), "lighttpd".into()],
        conditions: vec![condition()],
        blocks: 6,
        started_unix_s: 1_700_000_000,
        ..RunHeader::default()
    }
}

fn condition() -> Condition {
    Condition::from([("connections".to_owned(), "96".to_owned())])
}

/// A load of 10 s; `rate_per_s` makes it an open loop with answers around `median_us`.
pub fn load(requests_per_s: f64, median_us: f64, rate_per_s: Option<f64>) -> LoadReading {
    let requests = (requests_per_s * 10.0).round() as u64;
    let mut response = Histogram::new();
    for i in 0..requests.min(20_000) {
        // A long tail: one in a hundred ten times as slow, one in ten twice.
        let factor = match i % 100 {
            0 => 10.0,
            i if i % 10 == 0 => 2.0,
            i => 0.9 + i as f64 / 500.0,
        };
        response.record_ns((median_us * 1e3 * factor) as u64);
    }
    let mut service = Histogram::new();
    service.merge(&response);
    let pacing = rate_per_s.map_or(Pacing::Closed, |rate_per_s| Pacing::Open { rate_per_s });
    LoadReading {
        connections: 96,
        requests,
        duration_s: 10.0,
        bytes_read: requests * 200,
        requests_all: requests,
        connects: 96,
        connections_open_min: 96,
        response,
        service,
        client: ClientReading {
            cpu_s: 4.0,
            saturated: false,
            threads: vec![ThreadReading {
                cpu: 0.4,
                requests,
                ..ThreadReading::default()
            }],
            io: "epoll".into(),
            cpus: vec![1],
            ..ClientReading::default()
        },
        ..LoadReading::empty(pacing)
    }
}

pub fn bad_gateway() -> LoadReading {
    let mut bad = load(0.0, 0.0, None);
    bad.errors.status = 31_204;
    bad.errors_all.status = 31_204;
    bad.wrong = vec![Wrong {
        kind: WrongKind::Status,
        expected: "200".into(),
        found: "502".into(),
    }];
    bad
}

/// What was seen of the origin, and of the balancer where the path goes through it.
fn probed(balanced: bool) -> SystemMetrics {
    let server = |switches| ServerMetrics {
        user_s: 1.0,
        system_s: 3.0,
        switches_voluntary: switches,
        faults_minor: 1_000 - u64::from(balanced) * 500,
        rss_bytes_max: 8 << 20,
        ..ServerMetrics::default()
    };
    let mut servers = BTreeMap::from([("origin".to_owned(), server(5_000))]);
    if balanced {
        servers.insert("balance".to_owned(), server(30_000));
    }
    SystemMetrics {
        looked_s: 10.0,
        requests: 20_000,
        looks: 70,
        cpu_s: 0.05,
        servers,
        ..SystemMetrics::default()
    }
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=6u32 {
        let wobble = 1.0 + 0.01 * (f64::from(block % 3) - 1.0);
        let mut add = |subject: &str, baseline_copy: bool, outcome: Outcome| {
            trials.push(Trial {
                trial: block * 10 + trials.len() as u32 % 4,
                block,
                condition: condition(),
                subject: subject.into(),
                baseline_copy,
                attempt: 1,
                outcome,
            });
        };
        let both = |share: f64, latency: f64| {
            Outcome::Done(Box::new(Reading {
                throughput: Some(load(20_000.0 * share, 4_800.0 / share, None)),
                latency: Some(load(2_000.0, 400.0 * latency, Some(2_000.0))),
                servers: vec![ServerReading {
                    server: "origin".into(),
                    cpu_s: 2.0,
                    ..ServerReading::default()
                }],
                upstream_connections_per_request: Some(0.002),
                probed: Some(probed(share < 0.9)),
                ..Reading::default()
            }))
        };
        add("direct", false, both(1.0, 1.0));
        add("direct", true, both(wobble, 1.0));
        add("balance", false, both(0.69 * wobble, 1.09 * wobble));
        let lighttpd = if block == 6 {
            Outcome::failed(
                "did not become ready within 10 s",
                readings::FailureCause::Subject,
            )
        } else {
            Outcome::Done(Box::new(Reading {
                throughput: Some(bad_gateway()),
                ..Reading::default()
            }))
        };
        add("lighttpd", false, lighttpd);
    }
    trials
}

/// Two queues over six rates, four blocks: nginx answers sooner and carries 10,000/s, haproxy takes
/// half a millisecond more and carries 20,000/s.
pub fn curve_journal() -> Journal {
    let rates = [1e3, 3e3, 5e3, 7e3, 9e3, 12e3];
    let mut rows = vec![JournalRow::Curve(CurveChoice {
        condition: Condition::new(),
        rates_per_s: rates.to_vec(),
        shares: vec![0.5, 0.9],
        capacities_per_s: [("nginx".to_owned(), 1e4), ("haproxy".to_owned(), 2e4)].into(),
        client_per_s: Some(12_300.0),
        bounds_us: vec![1_000.0, 5_000.0],
    })];
    for block in 1..=4u32 {
        let wobble = 1.0 + 0.02 * (f64::from(block) - 2.5);
        for (subject, capacity, delay_us) in [("nginx", 1e4, 0.0), ("haproxy", 2e4, 500.0)] {
            let point = |rate: f64, share: Option<f64>| {
                let mut point = CurvePoint {
                    rate_per_s: rate,
                    share,
                    duration_s: 2.0,
                    ramp_up_s: 0.5,
                    slices: 10,
                    due: (rate * 2.0) as u64,
                    answered: (rate * 2.0) as u64,
                    ..CurvePoint::default()
                };
                let waiting = (2.0 * (rate - capacity).max(0.0)) as u64;
                point.offered = Some(Offered {
                    due: point.due,
                    answered_within: point.due - waiting,
                    backlog: [1, 2, 3, 4, 5].map(|quarter| waiting * quarter / 4),
                });
                let mean_us = 1e6 / (capacity * 1.02 - rate).max(100.0);
                for i in 0..2_000 {
                    let us = -mean_us * (1.0 - (f64::from(i) + 0.5) / 2_000.0).ln() + delay_us;
                    point.response.record_ns((us * wobble * 1e3) as u64);
                }
                point
            };
            let shares = [0.5, 0.9].map(|share| point(share * capacity, Some(share)));
            let curve = rates.into_iter().map(|rate| point(rate, None));
            rows.push(JournalRow::Trial(Box::new(Trial {
                trial: 2 * block + u32::from(delay_us > 0.0),
                block,
                condition: Condition::new(),
                subject: subject.into(),
                baseline_copy: false,
                attempt: 1,
                outcome: Outcome::Done(Box::new(Reading {
                    throughput: Some(load(capacity, 400.0, None)),
                    curve: curve.chain(shares).collect(),
                    ..Reading::default()
                })),
            })));
        }
    }
    let header = RunHeader {
        baseline: "nginx".into(),
        subjects: vec!["nginx".into(), "haproxy".into()],
        blocks: 4,
        ..header()
    };
    Journal::new(header, rows)
}
