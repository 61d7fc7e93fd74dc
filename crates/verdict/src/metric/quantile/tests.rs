use readings::{LoadReading, Pacing, Peaks};

use super::*;
use crate::fixtures::Normal;
use crate::stats::sample::Sample;

const P99: f64 = 0.99;
/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_348;

fn load(response: Histogram) -> LoadReading {
    LoadReading {
        duration_s: 10.0,
        response: response.compact(),
        ..LoadReading::empty(Pacing::Open { rate_per_s: 100.0 })
    }
}

fn of_us(each: impl IntoIterator<Item = f64>) -> LoadReading {
    let mut response = Histogram::new();
    for us in each {
        response.record_ns((us * 1e3) as u64);
    }
    load(response)
}

/// Blocks of lognormal latencies around `median_us`: of so many answers, whose logarithms have this
/// spread, beside what each block has of its own and with its pair.
fn blocks(
    normal: &mut Normal,
    (answers, median_us): (usize, f64),
    (spread, of_block): (f64, f64),
    with_pair: &[f64],
) -> Vec<LoadReading> {
    let mut one = |shared: &f64| {
        let effect = shared + of_block * normal.next();
        let answer = |_| median_us * (effect + spread * normal.next()).exp();
        of_us((0..answers).map(answer))
    };
    with_pair.iter().map(&mut one).collect()
}

#[test]
fn intervals_from_pooled_quantiles_hold_the_true_ratio() {
    let mut normal = Normal::with_seed(11);
    let runs = 100;
    let (mut held_in_all, mut all) = (0, 0);
    let cases = [(3, 3400), (3, 5000), (5, 2000), (10, 1000)];
    for (count, answers) in cases {
        for of_block in [0.0, 0.1] {
            for true_log in [0.0, 0.2f64] {
                let mut held = 0;
                for _ in 0..runs {
                    let shared: Vec<f64> = (0..count).map(|_| 0.1 * normal.next()).collect();
                    let mut side = |median_us| {
                        let spread = (0.5, of_block);
                        blocks(&mut normal, (answers, median_us), spread, &shared)
                    };
                    let ours = side(400.0 * true_log.exp());
                    let theirs = side(400.0);
                    assert!(!resolves(&ours[0], P99));
                    let (ours, theirs) = (ours.iter().collect(), theirs.iter().collect());
                    let logs = log_ratios(P99, ours, theirs).unwrap();
                    let (low, high) = Sample::of(&logs).unwrap().interval(0.95).unwrap();
                    held += u32::from(low <= true_log && true_log <= high);
                }
                // Where there is no difference, one that does not hold it is a false one.
                let share = f64::from(held) / f64::from(runs);
                assert!(share >= 0.93, "{share}: {count} of {answers}, {of_block}");
                (held_in_all, all) = (held_in_all + held, all + runs);
            }
        }
    }
    let share = f64::from(held_in_all) / f64::from(all);
    println!("{share} of {all} held");
    assert!(share >= 0.96, "{share}");
}

#[test]
fn a_bound_seldom_excludes_the_truth() {
    let mut normal = Normal::with_seed(12);
    let runs = 300;
    for (count, answers) in [(3, 300), (3, 1000), (3, 3000), (5, 1900)] {
        for of_block in [0.0, 0.1] {
            let (mut wrong, mut told) = (0, 0);
            let (mut too_high, mut told_least) = (0, 0);
            // Blocks are lognormal too.
            let true_us = 400.0 * (Z99 * (0.5f64 * 0.5 + of_block * of_block).sqrt()).exp();
            for _ in 0..runs {
                let spread = (0.5, of_block);
                let each = blocks(&mut normal, (answers, 400.0), spread, &vec![0.0; count]);
                let evidence = QuantileEvidence::of(P99, each.iter().collect());
                assert!(!evidence.resolves());
                let bound = evidence.bound();
                if let Some(us) = bound.at_most_us {
                    told += 1;
                    wrong += u32::from(us < true_us);
                }
                if let Some(us) = bound.at_least_us {
                    told_least += 1;
                    too_high += u32::from(us > true_us);
                }
            }
            let share = f64::from(wrong) / f64::from(runs);
            println!("{count} {answers} {of_block}: {wrong} wrong, {told} told of {runs}");
            assert!(share <= 0.065, "{share}: {count} of {answers}, {of_block}");
            let share = f64::from(too_high) / f64::from(runs);
            println!("{count} {answers} {of_block}: {too_high} too high, {told_least} told");
            assert!(share <= 0.065, "{share}: {count} of {answers}, {of_block}");
            assert!(told_least > runs / 2, "{told_least}: {count} of {answers}");
            assert!(told > runs / 5, "{told}: {count} of {answers}, {of_block}");
        }
    }
}

#[test]
fn a_worked_example_of_a_bound() {
    // All blocks have as many slow answers. Of 300, none lies above the quantile with a chance of
    // 0.99^300, 4.9%, and of 297 with one of 5.1%.
    let evidence = |answers: u32| {
        let each: Vec<LoadReading> = (0..3)
            .map(|_| of_us((1..=answers).map(f64::from)))
            .collect();
        QuantileEvidence::of(P99, each.iter().collect()).bound()
    };
    assert!((evidence(100).at_most_us.unwrap() - 100.0).abs() < 0.1);
    let few = evidence(99);
    assert_eq!(few.at_most_us, None);
    assert!((few.highest_us - 99.0).abs() < 0.1);
    // 10,000 answers are 33.3 times 300.
    assert_eq!(
        (few.resolved_by.window_s, few.resolved_by.blocks),
        (360.0, 102)
    );
}

#[test]
fn answers_that_one_pause_delayed_count_once() {
    // 2,500 answers in each of 4 blocks, 2% of them slow: in one pause, or here and there.
    let evidence = |is_slow: &dyn Fn(usize) -> bool| {
        let us = |at: usize| {
            if is_slow(at) {
                800.0 + at as f64 / 100.0
            } else {
                400.0
            }
        };
        let mut one = of_us((0..2_500).map(us));
        one.peaks = Peaks::new(0.01, (0..2_500).map(us));
        let each = vec![one; 4];
        let evidence = QuantileEvidence::of(P99, each.iter().collect());
        (evidence.resolves(), evidence.bound())
    };
    let (resolved, bound) = evidence(&|at| (500..550).contains(&at));
    assert!(!resolved, "four occasions");
    assert_eq!(bound.resolved_by.blocks, 20, "five times as many");
    assert_eq!(
        bound.at_most_us, None,
        "10,000 answers over 25 or more are too few"
    );
    let (resolved, _) = evidence(&|at| at % 50 == 0);
    assert!(resolved, "two hundred occasions");
}

#[test]
fn contributions_of_blocks_have_the_mean_of_the_figure() {
    let mut normal = Normal::with_seed(13);
    let each = blocks(&mut normal, (3_000, 400.0), (0.5, 0.1), &[0.0; 4]);
    let evidence = QuantileEvidence::of(P99, each.iter().collect());
    let mean = evidence.contributions().iter().sum::<f64>() / 4.0;
    assert!((mean - evidence.value_us().ln()).abs() < 1e-12);
    assert_eq!(evidence.figure(), Ok(evidence.value_us()));
    let alone = QuantileEvidence::of(P99, vec![&each[0]]);
    assert_eq!(alone.contributions().len(), 1);
    assert_eq!(
        alone.bound().at_most_us,
        None,
        "one block says nothing of others"
    );
}
