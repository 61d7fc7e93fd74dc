//! Error rates of the verdicts on simulated runs.

use super::*;

mod many;

/// Experiments of each scenario. `cargo run --profile dist -p weigh-verdict --example error_rates` carries
/// out 6,000 and prints the shares.
const EXPERIMENTS: u32 = 120;

/// The highest share that a true rate would show among so many, but for one case in a thousand.
fn at_most(rate: f64, experiments: u32) -> f64 {
    rate + 3.1 * (rate * (1.0 - rate) / f64::from(experiments)).sqrt()
}

/// The lowest share that a true rate would show among so many, but for one case in a thousand.
fn at_least(rate: f64, experiments: u32) -> f64 {
    rate - 3.1 * (rate * (1.0 - rate) / f64::from(experiments)).sqrt()
}

/// Subjects that are alike, so noisy that the margin holds no false call back.
fn alike() -> Scenario {
    let mut scenario = Scenario::of(1.0);
    scenario.noise.between = 0.15;
    scenario
}

fn few_false_differences(scenario: &Scenario, seed: u64) {
    let tally = simulate(scenario, EXPERIMENTS, seed);
    let share = tally.false_difference();
    assert!(share <= at_most(0.05, EXPERIMENTS), "{share}: {tally:?}");
}

#[test]
fn noise_alone_is_rarely_called_a_difference_however_often_it_is_looked_at() {
    few_false_differences(&alike(), 1);
}

#[test]
fn noise_alone_is_rarely_called_a_difference_in_a_fixed_design() {
    for blocks in [5, 10] {
        few_false_differences(&Scenario { blocks, ..alike() }, 2);
    }
}

#[test]
fn a_machine_that_drifts_or_steps_makes_no_differences() {
    for drift in [Drift::Linear(2.0), Drift::Step(2.0)] {
        few_false_differences(&Scenario { drift, ..alike() }, 3);
        // Also where subjects are measured one after the other.
        let mut scenario = Scenario { drift, ..alike() };
        scenario.noise.slices = 1;
        few_false_differences(&scenario, 4);
    }
}

#[test]
fn many_comparisons_make_no_differences() {
    let scenario = Scenario {
        speeds: vec![1.0; 4],
        conditions: 2,
        ..alike()
    };
    let share = simulate(&scenario, 20, 5).false_difference();
    assert!(share <= at_most(0.05, 20), "{share}");
    let scenario = Scenario {
        latency: true,
        ..alike()
    };
    let tally = simulate(&scenario, 20, 5);
    assert_eq!(tally.subjects[0].comparisons, 40, "both metrics");
    assert!(tally.false_difference() <= at_most(0.05, 20));
}

#[test]
fn a_difference_as_large_as_what_matters_is_rarely_called_the_same() {
    for (between, blocks, seed) in [(0.01, 30, 6), (0.03, 30, 7), (0.02, 10, 8)] {
        let mut scenario = Scenario::of(1.03);
        scenario.noise.between = between;
        scenario.blocks = blocks;
        let same = simulate(&scenario, EXPERIMENTS, seed).subjects[0].same();
        assert!(same <= at_most(0.05, EXPERIMENTS), "{same} at {between}");
    }
}

#[test]
fn twice_what_matters_is_found_by_the_last_look() {
    for (speed, seed) in [(1.03 * 1.03, 9), (1.0 / 1.03 / 1.03, 10)] {
        for drift in [Drift::Steady, Drift::Linear(2.0), Drift::Step(2.0)] {
            let scenario = Scenario {
                drift,
                ..Scenario::of(speed)
            };
            let tally = simulate(&scenario, EXPERIMENTS, seed);
            let found = tally.subjects[0].found();
            assert!(found >= 0.9, "{found} of {speed} with {drift:?}");
            assert!(tally.mean_blocks() < 20.0, "{}", tally.mean_blocks());
        }
    }
}

#[test]
fn no_difference_is_called_the_same_and_ends_early() {
    let mut scenario = Scenario::of(1.0);
    scenario.noise.between = 0.01;
    let tally = simulate(&scenario, EXPERIMENTS, 11);
    assert!(tally.subjects[0].same() > 0.95, "{tally:?}");
    assert!(tally.mean_blocks() < 18.0, "{tally:?}");
}

#[test]
fn intervals_hold_the_truth_at_a_fixed_number_of_blocks_and_where_looking_stops_early() {
    for (blocks, seed) in [(5, 12), (10, 13), (20, 14), (30, 15)] {
        let mut scenario = Scenario::of(1.03 * 1.03);
        scenario.blocks = blocks;
        let tally = simulate(&scenario, EXPERIMENTS, seed);
        let coverage = tally.subjects[0].coverage();
        let least = at_least(0.95, EXPERIMENTS);
        assert!(coverage >= least, "{coverage} after {blocks}");
    }
}

/// A design and noise that hide nothing: a false difference would show.
fn loud(blocks: u32) -> Scenario {
    Scenario { blocks, ..alike() }
}

/// False differences in at most 8% of experiments; the old plain t interval had 10 to 30%.
fn at_most_eight_percent(scenario: &Scenario, seed: u64) {
    let experiments = 300;
    let share = simulate(scenario, experiments, seed).false_difference();
    assert!(share <= at_most(0.08, experiments), "{share}: {scenario:?}");
}

#[test]
fn blocks_that_depend_on_the_ones_before_make_few_differences() {
    for (carried, blocks, seed) in [(0.5, 10, 21), (0.5, 5, 22), (0.3, 10, 23)] {
        let mut scenario = loud(blocks);
        scenario.noise.carried = carried;
        at_most_eight_percent(&scenario, seed);
    }
}

#[test]
fn starts_that_go_wrong_on_one_side_in_a_tenth_of_the_blocks_make_few_differences() {
    let outliers = Some(Outliers {
        share: 0.1,
        speed: 0.6,
        one_sided: true,
    });
    for (blocks, seed) in [(10, 24), (20, 25)] {
        let quiet = Scenario {
            blocks,
            ..Scenario::of(1.0)
        };
        at_most_eight_percent(&Scenario { outliers, ..quiet }, seed);
        at_most_eight_percent(
            &Scenario {
                outliers,
                ..loud(blocks)
            },
            seed,
        );
    }
}

#[test]
fn blocks_with_a_long_tail_on_one_side_make_few_differences() {
    for (shape, seed) in [(Shape::Exponential, 26), (Shape::Lognormal, 27)] {
        for blocks in [5, 10, 20] {
            let mut scenario = loud(blocks);
            scenario.noise.shape = shape;
            at_most_eight_percent(&scenario, seed);
        }
    }
}

#[test]
fn a_repeated_start_and_a_saturated_client_stand_in_the_rows() {
    let mut scenario = Scenario::of(1.3);
    scenario.client = Some(1.1);
    scenario.bad_starts = Some(BadStarts {
        share: 0.5,
        speed: 0.7,
        failed: 0.04,
    });
    let mut model = model::Model::new(&scenario, 28);
    model.begin();
    for block in 1..=30 {
        model.measure(block);
    }
    let rows: Vec<_> = model.rows().collect();
    let failed = rows.iter().filter(|row| {
        let readings::Outcome::Done(reading) = &row.outcome else {
            return false;
        };
        reading.throughput.as_ref().unwrap().errors_all.read > 0
    });
    assert!((10..80).contains(&failed.count()));
    let rows_of = |subject: &str| {
        let rows = rows.iter().filter(move |row| row.subject == subject);
        rows.filter(|row| {
            let readings::Outcome::Done(reading) = &row.outcome else {
                return false;
            };
            reading.throughput.as_ref().unwrap().client.saturated
        })
        .count()
    };
    assert!(rows_of("subject-1") > 25);
    assert!(rows_of("direct") < 10);
}

#[test]
fn the_same_seed_gives_the_same_experiments() {
    let scenario = Scenario::of(1.03);
    let experiments = |seed| simulate(&scenario, 20, seed);
    assert_eq!(experiments(3), experiments(3));
    assert_ne!(experiments(3), experiments(4));
}
