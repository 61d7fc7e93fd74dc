//! Gates whose truth is known: how often they err.

use readings::{Condition, Gate, GateBound, GateMetric};

use super::evidence::bound_test;
use super::tests_of_bound::MarginOverBound;
use super::{Draft, GateOutcome, GateResult, decide, failures};
use crate::Rules;
use crate::comparison::events::Side;
use crate::fixtures::{Normal, header};
use crate::stats::sample::Sample;

fn gate() -> Gate {
    Gate {
        name: "g".to_owned(),
        text: "throughput > -3%".to_owned(),
        subject: None,
        metric: GateMetric::Throughput,
        bound: GateBound::Relative(-0.03),
    }
}

/// Decides gates of 3% on figures with these log ratios over blocks.
fn judged(figures: &[Vec<f64>], planned: u32) -> Vec<GateResult> {
    let (rules, gate) = (Rules::of(&header(planned)), gate());
    let draft = |logs: &Vec<f64>| {
        let sample = Sample::of(logs).unwrap();
        let margin = MarginOverBound::of(&sample, 0.97_f64.ln(), true);
        Draft {
            gate: &gate,
            condition: Condition::new(),
            subject: "head".to_owned(),
            blocks: logs.len(),
            rate_per_s: None,
            test: bound_test(&sample, &margin, rules.look_alpha(), |log| log.exp_m1()),
        }
    };
    let drafts = figures.iter().map(draft).collect();
    decide(&rules, drafts, None)
}

/// How the blocks of a figure differ.
#[derive(Clone, Copy)]
struct Noise {
    sd: f64,
    /// The correlation of a block with the next.
    correlation: f64,
    /// The share of blocks in which the subject is 10% slower or faster.
    outliers: f64,
}

const QUIET: Noise = Noise {
    sd: 0.02,
    correlation: 0.0,
    outliers: 0.0,
};

fn logs(random: &mut Normal, blocks: u32, truth: f64, noise: Noise) -> Vec<f64> {
    let mut last = random.next();
    let each = (0..blocks).map(|_| {
        let rho = noise.correlation;
        last = rho * last + (1.0 - rho * rho).sqrt() * random.next();
        let draw = random.next();
        // A tenth of a normal distribution, as many as `outliers`, lies beyond this value.
        let far = match noise.outliers > 0.0 && draw.abs() > 1.645 {
            true => 0.1 * draw.signum(),
            false => 0.0,
        };
        truth.ln() + noise.sd * last + far
    });
    each.collect()
}

/// The share of gates that are breached in simulated runs, and of runs in which every gate is passed.
fn shares(runs: u32, gates: usize, blocks: u32, truth: f64, noise: Noise, seed: u64) -> (f64, f64) {
    let mut random = Normal::with_seed(seed);
    let (mut breached, mut passed) = (0, 0_u32);
    for _ in 0..runs {
        let figures = (0..gates).map(|_| logs(&mut random, blocks, truth, noise));
        let results = judged(&figures.collect::<Vec<_>>(), blocks);
        let is = |outcome: GateOutcome| move |one: &GateResult| one.outcome == outcome;
        breached += results
            .iter()
            .filter(|one| is(GateOutcome::Breached)(one))
            .count();
        passed += u32::from(results.iter().all(is(GateOutcome::Passed)));
    }
    let gates_judged = f64::from(runs) * gates as f64;
    let shares = (
        breached as f64 / gates_judged,
        f64::from(passed) / f64::from(runs),
    );
    println!(
        "{gates} gates, {blocks} blocks, truth {truth:.3}, noise {}, correlation {}, outliers {}: \
         {:.3} breached, {:.3} passed",
        noise.sd, noise.correlation, noise.outliers, shares.0, shares.1
    );
    shares
}

#[test]
fn a_figure_at_its_bound_breaches_its_gate_at_most_once_in_twenty() {
    for (gates, blocks, seed) in [(1, 5, 1), (1, 10, 2), (3, 5, 3), (3, 10, 4), (10, 10, 5)] {
        let (breached, passed) = shares(800, gates, blocks, 0.97, QUIET, seed);
        // Two standard errors of 800 runs are 1.5%.
        assert!(breached <= 0.065, "{breached}");
        assert!(passed <= 0.065, "{passed}");
    }
}

#[test]
fn neither_correlated_blocks_nor_outliers_make_gates_err_much_more() {
    for (noise, seed) in [
        (
            Noise {
                correlation: 0.5,
                ..QUIET
            },
            6,
        ),
        (
            Noise {
                outliers: 0.1,
                ..QUIET
            },
            7,
        ),
    ] {
        let (breached, passed) = shares(800, 1, 10, 0.97, noise, seed);
        // As for verdicts: at most 8%.
        assert!(breached <= 0.1 && passed <= 0.1, "{breached} {passed}");
    }
}

#[test]
fn a_run_of_no_change_breaches_nothing_and_passes_where_the_noise_is_small() {
    let noisy = Noise { sd: 0.03, ..QUIET };
    let (breached, _) = shares(800, 2, 10, 1.0, noisy, 8);
    assert!(breached <= 0.005, "{breached}");
    let small = Noise { sd: 0.015, ..QUIET };
    let (breached, passed) = shares(400, 2, 10, 1.0, small, 9);
    assert_eq!(breached, 0.0);
    assert!(passed >= 0.9, "{passed}");
}

#[test]
fn twice_the_bound_is_found() {
    let (breached, passed) = shares(400, 2, 10, 0.97 * 0.97, QUIET, 10);
    assert!(breached >= 0.9, "{breached}");
    assert_eq!(passed, 0.0);
}

#[test]
fn the_looks_of_a_long_run_share_the_error_rate() {
    let mut random = Normal::with_seed(11);
    let runs = 600;
    let mut errors = [0_u32, 0];
    for _ in 0..runs {
        let all = logs(&mut random, 30, 0.97, QUIET);
        let outcomes = [10, 20, 30].map(|blocks| judged(&[all[..blocks].to_vec()], 30)[0].outcome);
        errors[0] += u32::from(outcomes.contains(&GateOutcome::Breached));
        errors[1] += u32::from(outcomes.contains(&GateOutcome::Passed));
    }
    for count in errors {
        let share = f64::from(count) / f64::from(runs);
        assert!(share <= 0.07, "{errors:?}");
    }
}

#[test]
fn the_blocks_that_an_unsettled_gate_asks_for_settle_it_nine_times_in_ten() {
    // The truth is within the bound by 1.5%; a pilot knows the spread from four blocks.
    let truth: f64 = 0.97 * 1.015;
    let noise = Noise { sd: 0.015, ..QUIET };
    let mut random = Normal::with_seed(12);
    let (mut asked, mut settled) = (0_u32, 0_u32);
    for _ in 0..300 {
        let pilot = logs(&mut random, 4, truth, noise);
        let shift = truth.ln() - pilot.iter().sum::<f64>() / 4.0;
        let pilot = pilot.iter().map(|log| log + shift).collect();
        let result = judged(&[pilot], 4).remove(0);
        let Some(needed) = result.needed else {
            continue;
        };
        let blocks = needed.blocks.min(200);
        asked += 1;
        let run = logs(&mut random, blocks, truth, noise);
        settled += u32::from(judged(&[run], blocks)[0].outcome == GateOutcome::Passed);
    }
    let share = f64::from(settled) / f64::from(asked);
    println!("{share} of {asked} settled");
    // The others were settled after the pilot.
    assert!(asked > 200, "{asked}");
    // The robust companion and skewness withhold some.
    assert!(share >= 0.83, "{share} of {asked}");
}

/// Eight blocks in which a share of 100,000 requests fails, in clusters of `clumped`.
fn failing(random: &mut fastrand::Rng, share: f64, clumped: u64) -> Vec<Side> {
    let of_block = |_| {
        let clumps = 1e5 * share / clumped as f64;
        // Many small chances approximate a Poisson distribution.
        let hits = (0..2_000).filter(|_| random.f64() < clumps / 2_000.0);
        Side {
            failed: hits.count() as u64 * clumped,
            requests: 100_000,
        }
    };
    (0..8).map(of_block).collect()
}

#[test]
fn a_share_of_failures_at_its_bound_breaches_rarely_also_where_failures_come_together() {
    let mut random = fastrand::Rng::with_seed(13);
    let runs = 400;
    let mut shares = |share: f64, clumped: u64| {
        let (mut breached, mut passed) = (0_u32, 0_u32);
        for _ in 0..runs {
            let blocks = failing(&mut random, share, clumped);
            let test = failures::test(&blocks, 0.001, 0.05).unwrap();
            breached += u32::from(test.p_breach < 0.05);
            passed += u32::from(test.p_pass < 0.05);
        }
        let of = |count: u32| f64::from(count) / f64::from(runs);
        println!(
            "failures {share}, {clumped} together: {} breached, {} passed",
            of(breached),
            of(passed)
        );
        (of(breached), of(passed))
    };
    for clumped in [1, 40] {
        let (breached, passed) = shares(0.001, clumped);
        // A few clumps are skewed: t errs a little more below than above.
        assert!(breached <= 0.075 && passed <= 0.12, "{breached} {passed}");
        let (breached, _) = shares(0.004, clumped);
        assert!(breached >= 0.8, "{breached} of {clumped}");
        let (_, passed) = shares(0.000_2, clumped);
        assert!(passed >= 0.8, "{passed} of {clumped}");
    }
}
