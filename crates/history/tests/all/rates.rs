//! How often a change is reported where there is none, and how soon where there is one.

use history::change::{LEVEL, Point, changes};

/// Normal and Student numbers from a seed.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn with_seed(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.0.f64(), self.0.f64());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n)
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.0.f64() < p
    }
}

/// Blocks of each simulated run.
const BLOCKS: usize = 5;

/// A run: the mean of its blocks' log ratios, whose standard error is `se`, and what runs differ by
/// beside that.
pub fn run(random: &mut Random, level: f64, se: f64, between: f64) -> Point {
    let sd = se * (BLOCKS as f64).sqrt();
    let start = level + between * random.normal();
    let blocks: Vec<f64> = (0..BLOCKS).map(|_| start + sd * random.normal()).collect();
    let mean = blocks.iter().sum::<f64>() / BLOCKS as f64;
    let squares: f64 = blocks.iter().map(|x| (x - mean).powi(2)).sum();
    let degrees = BLOCKS as f64 - 1.0;
    Point {
        value: mean,
        standard_error: (squares / degrees / BLOCKS as f64).sqrt(),
        degrees,
    }
}

/// Shares of `series` in which a change is confirmed after the last run, in which one was confirmed
/// after any, and in which one was possible after any.
fn alarms(series: u64, level: f64, mut make: impl FnMut(&mut Random) -> Vec<Point>) -> [f64; 3] {
    let mut counts = [0; 3];
    for seed in 0..series {
        let points = make(&mut Random::with_seed(seed));
        let mut any = [false; 3];
        for runs in 4..=points.len() {
            let found = changes(&points[..runs], level, true);
            any[0] = found.iter().any(|c| c.confirmed);
            any[1] |= any[0];
            any[2] |= !found.is_empty();
        }
        for (count, any) in counts.iter_mut().zip(any) {
            *count += u32::from(any);
        }
    }
    counts.map(|count| f64::from(count) / series as f64)
}

const RUNS: usize = 60;

fn steady(random: &mut Random, se: f64, between: f64) -> Vec<Point> {
    (0..RUNS).map(|_| run(random, -0.5, se, between)).collect()
}

/// The shares that the method page states. `level` is for one series; a history divides it by the
/// number of its series.
#[test]
fn series_without_a_change_rarely_have_an_alarm() {
    let series = 500;
    let plain = alarms(series, LEVEL, |r| steady(r, 0.01, 0.0));
    println!("without a change, end, any time, possible: {plain:?}");
    let between = alarms(series, LEVEL, |r| steady(r, 0.005, 0.01));
    println!("runs differ by twice their standard errors: {between:?}");
    let spikes = alarms(series, LEVEL, |r| {
        let mut points = steady(r, 0.01, 0.0);
        // Two, not beside each other.
        for half in 0..2 {
            points[half * 30 + r.below(28)].value += 0.2 * r.normal();
        }
        points
    });
    println!("two spikes: {spikes:?}");
    let uneven = alarms(series, LEVEL, |r| {
        let se = |r: &mut Random| if r.chance(0.3) { 0.03 } else { 0.005 };
        (0..RUNS)
            .map(|_| {
                let se = se(r);
                run(r, -0.5, se, 0.0)
            })
            .collect()
    });
    println!("some runs six times less exact: {uneven:?}");
    for [end, any, _] in [plain, between, spikes, uneven] {
        assert!(end <= 0.02 && any <= 0.03, "{end} {any}");
    }
    assert!(plain[1] <= 0.015, "{plain:?}");
}

/// No bound is asserted: the page says how many alarms there are.
#[test]
fn runs_that_resemble_the_ones_before_cost_false_alarms() {
    let of = |correlation: f64| {
        alarms(300, LEVEL, |r| {
            let mut drift = 0.0;
            let sd = 0.01 * (1.0 - correlation * correlation).sqrt();
            let mut next = |r: &mut Random| {
                drift = correlation * drift + sd * r.normal();
                run(r, -0.5 + drift, 0.005, 0.0)
            };
            (0..RUNS).map(|_| next(r)).collect()
        })
    };
    let shares: Vec<[f64; 3]> = [0.2, 0.5].into_iter().map(of).collect();
    println!("correlation 0.2 and 0.5 from run to run: {shares:?}");
    assert!(shares[0][0] < 0.05, "{shares:?}");
}

/// How often a change after run 30 is confirmed by run 33, 34, 35 and 38.
fn power(change: f64, se: f64, level: f64) -> [f64; 4] {
    let series = 300;
    let mut found = [0; 4];
    for seed in 0..series {
        let r = &mut Random::with_seed(10_000 + seed);
        let points: Vec<Point> = (0..RUNS)
            .map(|i| run(r, if i < 30 { 0.0 } else { change }, se, 0.0))
            .collect();
        for (i, after) in [3, 4, 5, 8].into_iter().enumerate() {
            let is_it = |c: &history::change::Change| c.confirmed && c.at.abs_diff(30) <= 1;
            let all = changes(&points[..30 + after], level, true);
            found[i] += u32::from(all.iter().any(is_it));
        }
    }
    found.map(|n| f64::from(n) / series as f64)
}

#[test]
fn planted_changes_are_found_within_three_runs() {
    for (change, se) in [(0.02, 0.004), (0.05, 0.01), (0.10, 0.02)] {
        let found = power(f64::ln_1p(change), se, LEVEL);
        println!("{change} at a standard error of {se}: {found:?}");
        assert!(found[0] >= 0.95, "{change} at {se}: {found:?}");
        let many = power(f64::ln_1p(change), se, LEVEL / 6.0);
        println!("   one of six series: {many:?}");
        assert!(many[1] >= 0.9, "{change} at {se}: {many:?}");
    }
    for se in [0.005, 0.007, 0.01] {
        println!(
            "0.02 at a standard error of {se}: {:?}",
            power(0.02_f64.ln_1p(), se, LEVEL)
        );
    }
}
