//! Fourteen subjects in three and five blocks.

use verdict::simulate::{Drift, Noise, Outliers, Scenario, Shape, Tally};

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
    let equal = |blocks: u32, between: f64| Scenario {
        speeds: vec![1.0; 13],
        blocks,
        matters: 0.05,
        pairs: true,
        noise: Noise {
            between,
            ..Scenario::of(1.0).noise
        },
        ..Scenario::of(1.0)
    };
    let steps: Vec<f64> = (1..14)
        .map(|step| 8f64.powf(f64::from(step) / 13.0))
        .collect();
    let halves: Vec<f64> = (0..13).map(|at| if at < 6 { 1.0 } else { 2.0 }).collect();
    let mut all = Vec::new();
    for blocks in [3, 5] {
        let mut add =
            |name: &str, scenario| all.push((format!("{name}, {blocks} blocks"), scenario));
        let base = || equal(blocks, 0.12);
        let noise = |change: fn(&mut Noise)| {
            let mut scenario = base();
            change(&mut scenario.noise);
            scenario
        };
        let of = |speeds: &[f64], between| Scenario {
            speeds: speeds.to_vec(),
            ..equal(blocks, between)
        };
        let loudness = vec![5.0];
        add("fourteen equal, noise 12%", base());
        add("0.3 carried to the next block", noise(|n| n.carried = 0.3));
        add("0.5 carried to the next block", noise(|n| n.carried = 0.5));
        add(
            "heavy tails (t with 3 degrees)",
            noise(|n| n.shape = Shape::HeavyTails),
        );
        add(
            "exponential blocks of the subjects",
            noise(|n| n.shape = Shape::Exponential),
        );
        add(
            "lognormal blocks of the subjects",
            noise(|n| n.shape = Shape::Lognormal),
        );
        let louder = Scenario {
            loudness: loudness.clone(),
            ..base()
        };
        add("one has five times the noise", louder);
        let loud_half = Scenario {
            loudness: [1.0, 0.1].repeat(7),
            ..base()
        };
        add("every second has a tenth of the noise", loud_half);
        let felt = Scenario {
            drift: Drift::HalfOfSubjects(2.0),
            ..base()
        };
        add("every second feels a change of each block", felt);
        let one_sided = Some(Outliers {
            share: 0.1,
            speed: 0.6,
            one_sided: true,
        });
        add(
            "subjects lose 40% in 10% of blocks",
            Scenario {
                outliers: one_sided,
                ..base()
            },
        );
        let mut speeds = vec![1.0; 13];
        speeds[0] = 0.3;
        let broken = Scenario {
            loudness: loudness.clone(),
            ..of(&speeds, 0.12)
        };
        add("one is broken: a third, five times the noise", broken);
        for between in [0.03, 0.06, 0.12] {
            let percent = between * 100.0;
            add(
                &format!("steps from 1 to 8, noise {percent}%"),
                of(&steps, between),
            );
            add(
                &format!("half are twice as quick, noise {percent}%"),
                of(&halves, between),
            );
        }
        let louder = Scenario {
            loudness,
            ..of(&steps, 0.06)
        };
        add("steps from 1 to 8, noise 6%, one five times", louder);
    }
    all
}
