//! Readings made up for the tests.

pub(crate) use crate::stats::normal::Normal;
use readings::{
    ClientReading, Condition, LoadReading, Outcome, Pacing, Reading, RunHeader, ThreadReading,
    Trial,
};

use crate::{Analysis, Comparison, Metric, Rules, analyse_with};

pub fn analyse(header: &RunHeader, trials: &[Trial]) -> Analysis {
    analyse_with(&Rules::of(header), header, trials)
}

pub fn header(blocks: u32) -> RunHeader {
    RunHeader {
        weigh_version: "0.1.0".into(),
        experiment: "proxy-cost".into(),
        title: "What a balancer costs".into(),
        baseline: "direct".into(),
        subjects: vec!["direct".into(), "balance".into()],
        conditions: vec![condition(96)],
        blocks,
        ..RunHeader::default()
    }
}

pub fn condition(connections: u32) -> Condition {
    Condition::from([("connections".to_owned(), connections.to_string())])
}

/// A valid closed loop of 10 s.
pub fn closed(requests_per_s: f64) -> LoadReading {
    let requests = (requests_per_s * 10.0).round() as u64;
    LoadReading {
        connections: 32,
        requests,
        duration_s: 10.0,
        bytes_read: requests * 200,
        requests_all: requests,
        connects: 32,
        connections_open_min: 32,
        client: ClientReading {
            cpu_s: 4.0,
            threads: vec![ThreadReading {
                cpu: 0.4,
                requests,
                ..ThreadReading::default()
            }],
            ..ClientReading::default()
        },
        ..LoadReading::empty(Pacing::Closed)
    }
}

/// A valid open loop of 10 s whose answers all took about the same time.
pub fn open(rate_per_s: f64, median_us: f64) -> LoadReading {
    let mut load = closed(rate_per_s);
    load.pacing = Pacing::Open { rate_per_s };
    for i in 0..load.requests.min(20_000) {
        // One in fifty takes twice as long.
        let factor = if i % 50 == 0 { 2.0 } else { 1.0 };
        load.response.record_ns((median_us * 1e3 * factor) as u64);
    }
    load
}

pub fn trial(block: u32, subject: &str, baseline_copy: bool, outcome: Outcome) -> Trial {
    Trial {
        trial: block * 10 + u32::from(baseline_copy) + 2 * u32::from(subject != "direct"),
        block,
        condition: condition(96),
        subject: subject.into(),
        baseline_copy,
        attempt: 1,
        outcome,
    }
}

pub fn done(throughput: Option<LoadReading>, latency: Option<LoadReading>) -> Outcome {
    Outcome::Done(Box::new(Reading {
        throughput,
        latency,
        ..Reading::default()
    }))
}

/// Blocks of direct, direct again and balance, from (direct, balance) rates.
pub fn throughput_blocks(rates: &[(f64, f64)]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (block, (direct, balance)) in (1..).zip(rates) {
        let again = direct * if block % 2 == 0 { 1.004 } else { 0.996 };
        trials.push(in_closed(block, "direct", closed(*direct)));
        let copy = done(Some(closed(again)), None);
        trials.push(trial(block, "direct", true, copy));
        trials.push(in_closed(block, "balance", closed(*balance)));
    }
    trials
}

/// What a trial measured.
#[track_caller]
pub fn reading(trial: &mut Trial) -> &mut Reading {
    measured(&mut trial.outcome)
}

#[track_caller]
pub fn measured(outcome: &mut Outcome) -> &mut Reading {
    match outcome {
        Outcome::Done(reading) => reading,
        Outcome::Failed { reason, .. } => panic!("{reason}"),
    }
}

#[track_caller]
pub fn throughput(trial: &mut Trial) -> &mut LoadReading {
    reading(trial).throughput.as_mut().unwrap()
}

/// A trial of a closed loop.
pub fn in_closed(block: u32, subject: &str, load: LoadReading) -> Trial {
    trial(block, subject, false, done(Some(load), None))
}

/// A trial of an open loop.
pub fn in_open(block: u32, subject: &str, load: LoadReading) -> Trial {
    trial(block, subject, false, done(None, Some(load)))
}

/// The first comparison on a metric.
#[track_caller]
pub fn compared(analysis: &Analysis, metric: Metric) -> &Comparison {
    let mut all = analysis.comparisons.iter();
    all.find(|one| one.metric == metric).unwrap()
}
