//! Pilots whose latencies vary by known amounts within blocks and between them.

use super::*;
use crate::fixtures::{in_open, open};
use readings::{Batch, Histogram, JournalRow, LoadReading};

/// How latencies vary: standard deviations of logarithms.
#[derive(Clone, Copy, Debug)]
struct Noise {
    requests: u32,
    slice: f64,
    /// Of a pair of slices: what the machine does to both subjects.
    pair: f64,
    /// Of a block of one subject.
    start: f64,
    /// The share of requests that a slice delays twentyfold, on average.
    delayed: f64,
}

const SLICES: u32 = 20;
const REQUEST: f64 = 0.3;
/// Just enough requests for a 99th percentile.
const NONE: Noise = Noise {
    requests: 500,
    slice: 0.0,
    pair: 0.0,
    start: 0.0,
    delayed: 0.0,
};
const SLICES_DOMINATE: Noise = Noise {
    slice: 0.15,
    start: 0.002,
    ..NONE
};
const STARTS_DOMINATE: Noise = Noise {
    slice: 0.02,
    start: 0.06,
    ..NONE
};

/// An open loop of 10 s with so many requests in each slice. `slices` has the log level of each, and
/// the share of its requests that are delayed.
fn load(requests: u32, slices: &[(f64, f64)], random: &mut Normal) -> LoadReading {
    let mut load = open(f64::from(requests * SLICES) / 10.0, 1_000.0);
    load.response = Histogram::new();
    let mut before = Histogram::empty();
    let mut batches = Vec::new();
    for (level, delayed) in slices {
        for number in 0..requests {
            let is_delayed = f64::from(number) < delayed * f64::from(requests);
            let delay = if is_delayed { 20.0 } else { 1.0 };
            let log = level + REQUEST * random.next();
            load.response.record_ns((delay * 1e6 * log.exp()) as u64);
        }
        batches.push(load.response.since(&before));
        before = load.response.compact();
    }
    load.batches = Batch::of(&batches);
    load
}

fn pilot(noise: Noise, blocks: u32, random: &mut Normal) -> Journal {
    let mut all = Vec::new();
    for block in 1..=blocks {
        let start = noise.start * random.next();
        let pairs: Vec<f64> = (0..SLICES).map(|_| noise.pair * random.next()).collect();
        for (subject, level) in [("direct", 0.0), ("balance", start)] {
            let slices = pairs.iter().map(|pair| {
                let level = level + pair + noise.slice * random.next();
                (level, noise.delayed * (1.0 + random.next()).max(0.0))
            });
            let slices: Vec<(f64, f64)> = slices.collect();
            let load = load(noise.requests, &slices, random);
            all.push(in_open(block, subject, load));
        }
    }
    journal(all, blocks)
}

#[test]
fn the_slices_of_a_block_tell_the_variance_that_they_give_it() {
    const BLOCKS: u32 = 100;
    let slice = Noise {
        slice: 0.15,
        ..NONE
    };
    // What the machine does to both subjects cancels.
    let pair = Noise {
        slice: 0.05,
        pair: 0.2,
        ..NONE
    };
    // As many as decide the 99th percentile, and in some slices far more than in others.
    let delayed = Noise {
        delayed: 0.01,
        ..NONE
    };
    for noise in [NONE, slice, pair, delayed] {
        let journal = pilot(noise, BLOCKS, &mut Normal::with_seed(7));
        let trials: Vec<&Trial> = journal.trials().collect();
        for quantile in [0.5, 0.99] {
            let mut logs = Vec::new();
            let mut within = 0.0;
            for pair in trials.chunks(2) {
                let load = |at: usize| {
                    crate::studies::plan::reading(&pair[at])
                        .unwrap()
                        .latency
                        .as_ref()
                        .unwrap()
                };
                let (theirs, ours) = (load(0), load(1));
                let us = |load: &LoadReading| load.response.quantile_us(quantile);
                logs.push((us(ours) / us(theirs)).ln());
                within += within::of_quantile(ours, theirs, quantile).unwrap() / f64::from(BLOCKS);
            }
            let truth = Components::of(&logs, None).total;
            let found = within / truth;
            assert!(
                (0.7..1.3).contains(&found),
                "{found} of p{quantile} with {noise:?}"
            );
        }
    }
}

const METRICS: [Metric; 2] = [Metric::LatencyUsP50, Metric::LatencyUsP99];

/// The mean over pilots of the total variance, and of the parts of slices and of starts.
fn parts(noise: Noise, metric: Metric) -> [f64; 3] {
    const PILOTS: u64 = 10;
    let mut sums = [0.0; 3];
    for seed in 0..PILOTS {
        let advice = plan(&pilot(noise, 12, &mut Normal::with_seed(seed)), Some(30.0));
        let mut rows = advice.rows.iter();
        let row = rows.find(|row| row.metric == metric).unwrap();
        let found = row.spread.unwrap().components;
        let each = [found.total, found.slices.unwrap(), found.starts];
        for (sum, one) in sums.iter_mut().zip(each) {
            *sum += one / PILOTS as f64;
        }
    }
    sums
}

#[test]
fn the_variance_of_a_quantile_is_taken_apart_into_slices_and_starts() {
    for metric in METRICS {
        let [total, slices, starts] = parts(SLICES_DOMINATE, metric);
        assert!(slices > 0.55 * total, "{metric:?} {slices} of {total}");
        assert!(starts < 0.3 * total, "{metric:?} {starts} of {total}");
        let [total, slices, starts] = parts(STARTS_DOMINATE, metric);
        assert!(slices < 0.2 * total, "{metric:?} {slices} of {total}");
        let found = starts / STARTS_DOMINATE.start.powi(2);
        assert!((0.7..1.3).contains(&found), "{metric:?} {found}");
    }
}

fn remedies(noise: Noise, block_s: f64) -> Vec<Remedy> {
    plan(&pilot(noise, 12, &mut Normal::with_seed(3)), Some(block_s)).remedies
}

/// What dominates, if it is said of a latency.
fn dominant(remedies: &[Remedy]) -> Option<Dominant> {
    remedies.iter().find_map(|one| match one {
        Remedy::Dominant { from, metric, .. } if METRICS.contains(metric) => Some(*from),
        _ => None,
    })
}

/// The better windows of the open loop over the present ones, if any.
fn windows(remedies: &[Remedy]) -> Option<f64> {
    remedies.iter().find_map(|one| match one {
        Remedy::Windows {
            metric,
            window_s,
            better_window_s,
            ..
        } if METRICS.contains(metric) => Some(better_window_s / window_s),
        _ => None,
    })
}

#[test]
fn longer_windows_of_the_open_loop_are_advised_where_slices_dominate() {
    let found = remedies(SLICES_DOMINATE, 300.0);
    assert_eq!(dominant(&found), Some(Dominant::Slices), "{found:?}");
    assert!(
        windows(&found).is_some_and(|times| times > 1.0),
        "{found:?}"
    );
}

#[test]
fn shorter_windows_are_advised_where_starts_dominate_and_quantiles_stay_resolved() {
    // Shorter windows would have too few requests for the 99th percentile.
    let found = remedies(STARTS_DOMINATE, 30.0);
    assert_eq!(dominant(&found), Some(Dominant::Starts), "{found:?}");
    assert_eq!(windows(&found), None, "{found:?}");
    // So few resolve the median only: p99 is that of all blocks anyway.
    let median = Noise {
        requests: 400,
        ..STARTS_DOMINATE
    };
    let found = remedies(median, 30.0);
    assert_eq!(dominant(&found), Some(Dominant::Starts), "{found:?}");
    assert!(
        windows(&found).is_some_and(|times| times < 1.0),
        "{found:?}"
    );
}

#[test]
fn without_batches_a_latency_says_nothing_of_slices() {
    let mut journal = pilot(STARTS_DOMINATE, 4, &mut Normal::with_seed(1));
    for row in &mut journal.rows {
        let JournalRow::Trial(trial) = row else {
            continue;
        };
        let reading = reading(trial);
        reading.latency.as_mut().unwrap().batches.clear();
    }
    let advice = plan(&journal, Some(30.0));
    let parts = advice.rows[0].spread.unwrap().components;
    assert_eq!(parts.slices, None);
    assert_eq!(dominant(&advice.remedies), None);
}
