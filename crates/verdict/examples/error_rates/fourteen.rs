//! Fourteen subjects in three and five blocks.

use verdict::simulate::{Drift, Scenario, Shape, Tally};

pub fn show(name: &str, tally: &Tally) {
    let of = |part: u32, all: u32| 100.0 * f64::from(part) / f64::from(all.max(1));
    println!(
        "{name:<58} {:>6.1} {:>6.1} {:>6.1}",
        100.0 * tally.false_in_question(),
        of(tally.questions_with_false_pair, tally.questions),
        of(tally.pairs_of_twofold_found, tally.pairs_of_twofold),
    );
}

/// Fourteen subjects in three and five blocks: equal ones, and such as lie twofold apart.
pub fn scenarios() -> Vec<(String, Scenario)> {
    let steps: Vec<f64> = (1..14)
        .map(|step| 8f64.powf(f64::from(step) / 13.0))
        .collect();
    let halves: Vec<f64> = (0..13).map(|at| if at < 6 { 1.0 } else { 2.0 }).collect();
    let mut all = Vec::new();
    for blocks in [3, 5] {
        let mut add = |name: &str, between: f64, change: &dyn Fn(&mut Scenario)| {
            let mut one = Scenario {
                speeds: vec![1.0; 13],
                blocks,
                matters: 0.05,
                pairs: true,
                ..Scenario::of(1.0)
            };
            one.noise.between = between;
            change(&mut one);
            all.push((format!("{name}, {blocks} blocks"), one));
        };
        let mut equal = |name: &str, change: fn(&mut Scenario)| add(name, 0.12, &change);
        equal("fourteen equal, noise 12%", |_| {});
        equal("0.3 carried to the next block", |s| s.noise.carried = 0.3);
        equal("0.5 carried to the next block", |s| s.noise.carried = 0.5);
        equal("heavy tails (t with 3 degrees)", |s| {
            s.noise.shape = Shape::HeavyTails;
        });
        equal("exponential blocks of the subjects", |s| {
            s.noise.shape = Shape::Exponential;
        });
        equal("lognormal blocks of the subjects", |s| {
            s.noise.shape = Shape::Lognormal;
        });
        equal("one has five times the noise", |s| s.loudness = vec![5.0]);
        equal("every second has a tenth of the noise", |s| {
            s.loudness = [1.0, 0.1].repeat(7);
        });
        equal("every second feels a change of each block", |s| {
            s.drift = Drift::HalfOfSubjects(2.0);
        });
        equal("subjects lose 40% in 10% of blocks", |s| {
            s.outliers = crate::outliers(0.1, true);
        });
        equal("one is broken: a third, five times the noise", |s| {
            (s.speeds[0], s.loudness) = (0.3, vec![5.0]);
        });
        for between in [0.03, 0.06, 0.12] {
            let percent = between * 100.0;
            let name = format!("steps from 1 to 8, noise {percent}%");
            add(&name, between, &|s| s.speeds.clone_from(&steps));
            let name = format!("half are twice as quick, noise {percent}%");
            add(&name, between, &|s| s.speeds.clone_from(&halves));
        }
        add("steps from 1 to 8, noise 6%, one five times", 0.06, &|s| {
            (s.speeds, s.loudness) = (steps.clone(), vec![5.0]);
        });
    }
    all
}
