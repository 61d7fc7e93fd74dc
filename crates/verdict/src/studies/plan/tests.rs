//! Pilots whose variance components are known.

mod decides;
mod latency;
mod slice_length;

use super::*;
use crate::fixtures::{Normal, closed, done, header, in_closed, reading, trial};
use crate::stats::sample::Sample;
use readings::{MachineMetrics, ServerMetrics, Slice, SystemMetrics};

/// The standard deviations of a block's log ratio: of slices (of the whole window's mean), and of
/// starts; and a trend over blocks.
#[derive(Clone, Copy)]
struct Truth {
    slices: f64,
    starts: f64,
    trend: f64,
}

fn varying(slices: f64, starts: f64) -> Truth {
    Truth {
        slices,
        starts,
        trend: 0.0,
    }
}

const SLICES: u32 = 30;

/// A closed loop of 10 s whose slices have these log rates.
fn sliced(logs: &[f64]) -> readings::LoadReading {
    let per_s = 1e6;
    let slices: Vec<Slice> = logs
        .iter()
        .enumerate()
        .map(|(at, log)| Slice {
            start_s: 0.02,
            at_s: Some(at as f64),
            duration_s: 10.0 / f64::from(SLICES),
            requests: (per_s * log.exp() * 10.0 / f64::from(SLICES)) as u64,
            ..Slice::default()
        })
        .collect();
    let requests: u64 = slices.iter().map(|slice| slice.requests).sum();
    let mut load = closed(requests as f64 / 10.0);
    load.slices = slices;
    load
}

fn trials(truth: Truth, blocks: u32, random: &mut Normal) -> Vec<Trial> {
    let mut all = Vec::new();
    for block in 1..=blocks {
        let start = truth.starts * random.next()
            + truth.trend * (f64::from(block) - f64::from(blocks) / 2.0);
        let mut log = |level: f64| -> Vec<f64> {
            let each = truth.slices * f64::from(SLICES).sqrt();
            (0..SLICES).map(|_| level + each * random.next()).collect()
        };
        let (ours, theirs) = (log(start), vec![0.0; SLICES as usize]);
        all.push(in_closed(block, "direct", sliced(&theirs)));
        all.push(in_closed(block, "balance", sliced(&ours)));
    }
    all
}

fn journal(trials: Vec<Trial>, blocks: u32) -> Journal {
    Journal::of_trials(header(blocks), trials)
}

fn advice(truth: Truth, blocks: u32, seed: u64) -> PlanAdvice {
    let mut random = Normal::with_seed(seed);
    plan(
        &journal(trials(truth, blocks, &mut random), blocks),
        Some(30.0),
    )
}

#[test]
fn the_plan_uses_the_noise_floor_if_it_varies_more() {
    let truth = varying(0.0, 0.01);
    let with_copies = |copies: f64| {
        let mut random = Normal::with_seed(1);
        let mut all = trials(truth, 8, &mut random);
        for block in 1..=8 {
            let ours = vec![copies * random.next(); SLICES as usize];
            let copy = done(Some(sliced(&ours)), None);
            all.push(trial(block, "direct", true, copy));
        }
        let advice = plan(&journal(all, 8), Some(30.0));
        let row = advice.rows[0].clone();
        (row.spread.unwrap(), row.targets[0].needed.unwrap().blocks)
    };
    let (steady, few) = with_copies(0.001);
    assert!(!steady.from_noise_floor);
    assert!((steady.sd - steady.components.total.sqrt()).abs() < 1e-12);
    let (disturbed, many) = with_copies(0.03);
    assert!(disturbed.from_noise_floor);
    assert!((0.015..0.06).contains(&disturbed.sd), "{}", disturbed.sd);
    assert_eq!(disturbed.components, steady.components);
    assert!(many > 3 * few, "{few} and {many} blocks");
}

/// The mean of each component over pilots: slices, starts, drift.
fn components(truth: Truth, blocks: u32) -> [f64; 3] {
    const PILOTS: u64 = 30;
    let mut sums = [0.0; 3];
    for seed in 0..PILOTS {
        let found = advice(truth, blocks, seed).rows[0]
            .spread
            .unwrap()
            .components;
        let each = [found.slices.unwrap(), found.starts, found.drift];
        let total: f64 = each.iter().sum();
        assert!((total - found.total).abs() < 1e-12);
        for (sum, one) in sums.iter_mut().zip(each) {
            *sum += one / PILOTS as f64;
        }
    }
    sums
}

#[test]
fn variance_of_slices_starts_and_drift_is_recovered() {
    let near = |found: f64, truth: f64| (0.7..1.3).contains(&(found / truth));
    let of_slices = components(varying(0.02, 0.0), 12);
    assert!(near(of_slices[0], 0.02_f64.powi(2)), "{of_slices:?}");
    assert!(of_slices[1] < 0.3 * of_slices[0], "{of_slices:?}");
    let of_starts = components(varying(0.002, 0.02), 12);
    assert!(near(of_starts[1], 0.02_f64.powi(2)), "{of_starts:?}");
    assert!(of_starts[0] < 0.05 * of_starts[1], "{of_starts:?}");
    let of_both = components(varying(0.02, 0.03), 12);
    assert!(near(of_both[1], 0.03_f64.powi(2)), "{of_both:?}");
    let truth = Truth {
        slices: 0.002,
        starts: 0.005,
        trend: 0.01,
    };
    let of_trend = components(truth, 12);
    // A line of 12 blocks has a variance of 13 steps squared.
    assert!(near(of_trend[2], 13.0 * 0.01_f64.powi(2)), "{of_trend:?}");
}

#[test]
fn drift_is_seen_where_it_is_and_rarely_where_it_is_not() {
    let mut random = Normal::with_seed(1);
    let mut seen = |trend: f64| {
        let is_seen = |_: &u32| {
            let logs: Vec<f64> = (0..12)
                .map(|at| 0.01 * random.next() + trend * f64::from(at))
                .collect();
            Components::of(&logs, None).drift_seen
        };
        (0..1000).filter(is_seen).count()
    };
    let falsely = seen(0.0);
    assert!((25..75).contains(&falsely), "{falsely} of 1000");
    assert!(seen(0.02) > 990);
}

/// Log ratios with a standard deviation of 2.2%.
fn logs(mean: f64, blocks: u32, random: &mut Normal) -> Vec<f64> {
    (0..blocks).map(|_| mean + 0.022 * random.next()).collect()
}

/// The share of runs that settle 3%, each with so many blocks as a pilot of its own asked for.
fn settled(pilot: u32, mean: f64) -> f64 {
    const PILOTS: u32 = 300;
    let rules = Rules::of(&header(pilot));
    let delta = rules.delta();
    let mut random = Normal::with_seed(u64::from(pilot));
    let mut settled = 0;
    for _ in 0..PILOTS {
        let sd = Components::of(&logs(mean, pilot, &mut random), None)
            .total
            .sqrt();
        let spread = Spread::new(sd, f64::from(pilot) - 1.0);
        let needed = needed(&spread, 0.03, &rules, 1, None);
        let blocks = needed.map_or(MOST_BLOCKS, |needed| needed.blocks);
        let run = Sample::of(&logs(mean, blocks, &mut random)).unwrap();
        let inside = |(low, high): (f64, f64)| low > -delta && high < delta;
        settled += u32::from(match mean == 0.0 {
            true => run.interval(0.9).is_some_and(inside),
            false => run.interval(0.95).is_some_and(|(low, _)| low > 0.0),
        });
    }
    f64::from(settled) / f64::from(PILOTS)
}

#[test]
fn the_blocks_that_a_pilot_asks_for_settle_it_nine_times_in_ten() {
    // Whole blocks, at least three of them, and the shifted t ask for a little more than is needed.
    for pilot in [4, 8] {
        let same = settled(pilot, 0.0);
        assert!((0.84..0.99).contains(&same), "{same} after {pilot}");
        let different = settled(pilot, 0.03_f64.ln_1p());
        assert!(
            (0.84..0.99).contains(&different),
            "{different} after {pilot}"
        );
    }
}

#[test]
fn the_range_of_a_short_pilot_is_wide_and_holds_the_truth_as_often_as_said() {
    let mut random = Normal::with_seed(2);
    let spread = Spread::new(1.0, 3.0);
    let (low, high) = spread.range;
    assert!(high > 2.0 * low, "{low} {high}");
    let holds = |_: &u32| {
        let logs: Vec<f64> = (0..4).map(|_| 0.02 * random.next()).collect();
        let sd = Components::of(&logs, None).total.sqrt();
        (sd * low..sd * high).contains(&0.02)
    };
    let held = (0..2000).filter(holds).count();
    assert!((1540..1660).contains(&held), "{held} of 2000");
    let truth = varying(0.0, 0.02);
    let needed = advice(truth, 4, 1).rows[0].targets[1].needed.unwrap();
    assert!(needed.low < needed.blocks, "{needed:?}");
    assert!(
        needed.high.is_none_or(|high| high > needed.low),
        "{needed:?}"
    );
    let time_s = needed.time_s.unwrap();
    assert!((time_s - 30.0 * f64::from(needed.blocks)).abs() < 1e-9);
}

#[test]
fn too_few_blocks_promise_nothing_and_a_planned_number_is_never_one_of_several_looks() {
    let truth = varying(0.0, 0.02);
    let of_two = advice(truth, 2, 1);
    assert!(of_two.rows[0].spread.is_none() && of_two.rows[0].targets.is_empty());
    let goal = blocks::Goal {
        delta: 0.03_f64.ln_1p(),
        alpha: 0.05,
        comparisons: 1,
    };
    let asked: Vec<u32> = (1..120)
        .filter_map(|at| goal.blocks(|chance| chance(f64::from(at) * 1e-3)))
        .collect();
    assert!(asked.contains(&29) && asked.contains(&31) && !asked.contains(&30));
}

#[test]
fn longer_windows_are_advised_where_slices_dominate_and_blocks_where_starts_do() {
    let of = |truth: Truth| advice(truth, 12, 5).remedies;
    let slices = of(varying(0.03, 0.001));
    let dominates = |remedies: &[Remedy], what: Dominant| {
        let is_it = |one: &Remedy| matches!(one, Remedy::Dominant { from, .. } if *from == what);
        assert!(remedies.iter().any(is_it), "{remedies:?}");
    };
    dominates(&slices, Dominant::Slices);
    let starts = of(varying(0.001, 0.03));
    dominates(&starts, Dominant::Starts);
    // Then a long window is time lost.
    let shorter = |one: &Remedy| {
        matches!(one, Remedy::Windows { window_s, better_window_s, time_s, present_time_s, .. }
            if better_window_s < window_s && time_s < present_time_s)
    };
    assert!(starts.iter().any(shorter), "{starts:?}");
    // A block that costs much more than its window wants a longer one.
    let mut random = Normal::with_seed(5);
    let truth = varying(0.03, 0.001);
    let costly = plan(&journal(trials(truth, 12, &mut random), 12), Some(300.0)).remedies;
    let longer = |one: &Remedy| matches!(one, Remedy::Windows { window_s, better_window_s, .. } if better_window_s > window_s);
    assert!(costly.iter().any(longer), "{costly:?}");
}

#[test]
fn time_of_blocks_and_other_programs_are_read_from_the_samples() {
    let mut random = Normal::with_seed(9);
    let truth = varying(0.0, 0.02);
    let of = |busy_s: f64, random: &mut Normal| {
        let mut all = trials(truth, 4, random);
        for trial in &mut all {
            let from_unix_s = 1000.0 + 42.0 * f64::from(trial.block);
            let server = ServerMetrics {
                user_s: 3.0,
                ..ServerMetrics::default()
            };
            reading(trial).probed = Some(SystemMetrics {
                from_unix_s,
                looked_s: 10.0,
                servers: [("s".to_owned(), server)].into(),
                machine: MachineMetrics {
                    cpus: 4,
                    busy_s: Some(busy_s),
                    ..MachineMetrics::default()
                },
                ..SystemMetrics::default()
            });
        }
        plan(&journal(all, 4), Some(30.0))
    };
    // The client takes 4 s, the server 3 s.
    let quiet = of(7.2, &mut random);
    assert_eq!((quiet.block_s, quiet.block_measured), (Some(42.0), true));
    let told = |advice: &PlanAdvice| {
        advice.remedies.iter().find_map(|one| match one {
            Remedy::QuieterMachine { others_cpus } => Some(*others_cpus),
            _ => None,
        })
    };
    assert_eq!(told(&quiet), None);
    let busy = told(&of(16.0, &mut random)).unwrap();
    assert!((busy - 0.9).abs() < 1e-9, "{busy}");
}
