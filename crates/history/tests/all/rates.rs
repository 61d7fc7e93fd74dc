//! How often a change is reported where there is none, and how soon where there is one.

use history::change::LEVEL;

use crate::simulate::{RUNS, Random, Scenario, alarms, run};

fn steady(random: &mut Random, se: f64, between: f64) -> Vec<history::change::Point> {
    (0..RUNS).map(|_| run(random, -0.5, se, between)).collect()
}

/// The shares that the method page states. `level` is for one series; a history divides it by the
/// number of its series.
#[test]
fn series_without_a_change_rarely_have_an_alarm() {
    let series = 250;
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
    // What the page promises, possible changes with them.
    assert!(plain[2] <= 0.02, "{plain:?}");
    assert!(between[2] <= 0.02, "{between:?}");
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

/// The aims of the method page, with room for chance in 300 series.
#[test]
fn planted_changes_are_found_within_three_runs() {
    let found = |step, standard_error, level| {
        let scenario = Scenario {
            step,
            standard_error,
            between: 0.0,
        };
        let [reported, confirmed] = scenario.found(300, level);
        println!("{step} at {standard_error}: {reported:?}, confirmed {confirmed:?}");
        [reported[2], confirmed[2], confirmed[3]]
    };
    let [reported, confirmed, fifth] = found(0.02, 0.005, LEVEL);
    assert!(reported > 0.87 && confirmed > 0.85 && fifth > 0.97);
    let [reported, confirmed, fifth] = found(0.05, 0.015, LEVEL);
    assert!(reported > 0.62 && confirmed > 0.58 && fifth > 0.88);
    for (step, standard_error) in [(0.02, 0.004), (0.05, 0.01), (0.10, 0.02)] {
        let [reported, ..] = found(step, standard_error, LEVEL);
        assert!(reported >= 0.95, "{reported}");
        // One of six series.
        let [_, _, fifth] = found(step, standard_error, LEVEL / 6.0);
        assert!(fifth >= 0.95, "{fifth}");
    }
}
