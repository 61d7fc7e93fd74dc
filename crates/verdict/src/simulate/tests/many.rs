//! Fourteen subjects in three blocks: what all pairs of them say.

use super::*;

/// Each draws what 91 pairs show by chance.
const FEW: u32 = 60;

/// Fourteen subjects and these speeds over the baseline, which is one of them.
fn many(speeds: &[f64], between: f64) -> Scenario {
    let mut scenario = Scenario {
        speeds: speeds.to_vec(),
        blocks: 3,
        matters: 0.05,
        pairs: true,
        ..Scenario::of(1.0)
    };
    scenario.noise.between = between;
    scenario
}

fn false_pairs(scenario: &Scenario, seed: u64) -> f64 {
    let tally = simulate(scenario, FEW, seed);
    let of = |part: u32| f64::from(part) / f64::from(tally.questions);
    of(tally.questions_with_false_pair).max(tally.false_in_question())
}

#[test]
fn equal_subjects_are_rarely_told_apart() {
    let equal = many(&[1.0; 13], 0.12);
    let mut louder = equal.clone();
    louder.loudness = vec![5.0];
    let mut heavy = equal.clone();
    heavy.noise.shape = Shape::HeavyTails;
    let felt = Scenario {
        drift: Drift::HalfOfSubjects(2.0),
        ..equal.clone()
    };
    let mut broken = many(&[0.3, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.12);
    broken.loudness = vec![5.0];
    for (scenario, seed) in [
        (equal, 41),
        (louder, 42),
        (heavy, 43),
        (felt, 44),
        (broken, 45),
    ] {
        let share = false_pairs(&scenario, seed);
        let most = at_most(0.05, FEW);
        assert!(share <= most, "{share}: {scenario:?}");
    }
}

#[test]
fn blocks_that_are_carried_over_rarely_tell_equal_subjects_apart() {
    for (subjects, seed) in [(13, 46), (5, 47)] {
        let mut scenario = many(&vec![1.0; subjects], 0.12);
        scenario.noise.carried = 0.5;
        let share = false_pairs(&scenario, seed);
        let most = at_most(0.08, FEW);
        assert!(share <= most, "{share} of {subjects}");
    }
}

#[test]
fn nine_in_ten_pairs_twofold_apart_are_told_by_three_blocks() {
    // From 1 to 8 in equal steps.
    let speeds: Vec<f64> = (1..14)
        .map(|step| 8f64.powf(f64::from(step) / 13.0))
        .collect();
    for (between, least) in [(0.03, 0.99), (0.06, 0.99), (0.12, 0.9)] {
        let tally = simulate(&many(&speeds, between), 20, 48);
        let found = f64::from(tally.pairs_of_twofold_found) / f64::from(tally.pairs_of_twofold);
        assert!(found >= least, "{found} at {between}");
    }
}
