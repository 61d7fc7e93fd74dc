use super::*;
use crate::fixtures::{Normal, analyse, closed, header, in_closed};
use crate::{Warning, WarningEffect};
use readings::Trial;
use testing::Text as _;

const SLICES: usize = 10;

/// Slices whose rate at a moment of the block, 0 to 1, is this factor, with noise of 12% of which a
/// part is carried from one to the next.
fn slices(speed: impl Fn(f64) -> f64, carried: f64, normal: &mut Normal) -> Vec<Slice> {
    let mut noise = normal.next();
    let of_one = |i: usize| {
        noise = carried * noise + (1.0 - carried * carried).sqrt() * normal.next();
        let rate = 10_000.0 * speed((i as f64 + 0.5) / SLICES as f64) * (0.12 * noise).exp();
        // Short and long ones alternate.
        let duration_s = [0.2, 0.4][i % 2];
        Slice {
            duration_s,
            requests: (rate * duration_s) as u64,
            ..Slice::default()
        }
    };
    (0..SLICES).map(of_one).collect()
}

/// A run of two subjects, of which the second has this speed over its blocks.
fn run(blocks: u32, speed: fn(f64) -> f64, carried: f64, normal: &mut Normal) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=blocks {
        for (subject, speed) in [("direct", (|_| 1.0) as fn(f64) -> f64), ("balance", speed)] {
            let mut load = closed(10_000.0 * (0.12 * normal.next()).exp());
            load.slices = slices(speed, carried, normal);
            trials.push(in_closed(block, subject, load));
        }
    }
    trials
}

fn drifts(trials: &[Trial], blocks: u32) -> Vec<(String, Drift)> {
    let warnings = analyse(&header(blocks), trials).warnings.into_iter();
    let drifts = warnings.filter_map(|warning| match warning {
        Warning::Drifts { at, found } => Some((at.subject, found)),
        _ => None,
    });
    drifts.collect()
}

/// In which share of simulated runs one of two subjects is said to change; the other is steady.
fn found(runs: u32, blocks: u32, speed: fn(f64) -> f64, carried: f64) -> f64 {
    let mut normal = Normal::with_seed(u64::from(blocks));
    let mut is_found = |speed: fn(f64) -> f64| {
        let changes = (0..blocks).filter_map(|_| Change::of(&slices(speed, carried, &mut normal)));
        beyond_chance(&changes.collect::<Vec<_>>(), 1.03_f64.ln(), 2).is_some()
    };
    let runs_found = (0..runs).filter(|_| is_found(speed) | is_found(|_| 1.0));
    runs_found.count() as f64 / f64::from(runs)
}

#[test]
fn steady_servers_are_seldom_said_to_change() {
    for blocks in [3, 5, 10, 30] {
        let share = found(2000, blocks, |_| 1.0, 0.0);
        assert!(share <= 0.05, "{share} of {blocks} blocks");
    }
    // Noise with a memory, as what disturbs one slice may disturb the next, is told less well.
    let share = found(2000, 5, |_| 1.0, 0.5);
    assert!(share <= 0.1, "{share} with a memory");
}

#[test]
fn a_server_that_warms_up_in_its_window_is_found() {
    let warms = |t: f64| 1.5 - 0.5 * (-t / 0.3).exp();
    for (blocks, least) in [(3, 0.55), (5, 0.95), (10, 0.99)] {
        let share = found(1000, blocks, warms, 0.0);
        assert!(share >= least, "{share} of {blocks} blocks");
    }
    let leaks = |t: f64| 1.0 - 0.4 * t;
    assert!(found(1000, 5, leaks, 0.0) > 0.95);
}

#[test]
fn what_is_found_has_its_size_and_is_the_first_that_changes_the_answer() {
    let mut normal = Normal::with_seed(1);
    let trials = run(8, |t| 1.0 + 0.5 * t, 0.0, &mut normal);
    let all = drifts(&trials, 8);
    let [(subject, found)] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!((subject.as_str(), found.blocks), ("balance", 8));
    // From 1.08 on average to 1.43.
    assert!((found.late_over_early - 1.31).abs() < 0.12, "{found:?}");
    assert!(found.interval.0 < 1.31 && found.interval.1 > 1.31);
    let warnings = analyse(&header(8), &trials).warnings;
    let first = crate::with_effect(&warnings, WarningEffect::ChangesAnswer)[0];
    assert!(matches!(first, Warning::Drifts { .. }), "{first:?}");
    let said = crate::words::warning(first);
    said.has("balance");
    said.has("it was not warm");
}

#[test]
fn a_change_below_twice_the_margin_is_let_pass() {
    let mut normal = Normal::with_seed(2);
    let trials = run(60, |t| 1.0 + 0.04 * t, 0.0, &mut normal);
    assert_eq!(drifts(&trials, 60), []);
}

#[test]
fn one_look_tells_a_cold_server_from_a_warm_one() {
    let mut normal = Normal::with_seed(3);
    let mut share = |speed: fn(f64) -> f64| {
        let is_found = |_: &u32| still_warming(&slices(speed, 0.0, &mut normal), 1).is_some();
        f64::from((0..400).filter(is_found).count() as u32) / 400.0
    };
    let steady = share(|_| 1.0);
    assert!(steady < 0.15, "{steady}");
    let cold = share(|t| 1.5 - 0.5 * (-t / 0.3).exp());
    assert!(cold > 0.7, "{cold}");
    assert_eq!(share(|t| 1.0 - 0.5 * t), 0.0);
    assert_eq!(still_warming(&[], 1), None);
}
