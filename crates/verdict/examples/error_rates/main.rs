//! How often verdicts err, by simulation: `cargo run --profile dist -p weigh-verdict --example error_rates`.
//!
//! Each line is a scenario carried out 6,000 times (or as often as the first argument says) from
//! fixed seeds, so that the table comes out the same each time.

mod fourteen;

use readings::RunHeader;
use verdict::simulate::{
    BadStarts, Drift, Outliers, Scenario, Shape, Tally, simulate, simulate_with,
};
use verdict::{Looks, Rules};

fn main() {
    let experiments = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(6000);
    println!("{experiments} experiments each; shares in percent\n");
    println!(
        "{:<58} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "scenario", "false", "found", "same", "open", "cover", "plain", "blocks"
    );
    let part = std::env::args().nth(2).unwrap_or_default();
    let chosen = || {
        let numbered = (1..).zip(scenarios());
        numbered.filter(|(_, (name, _))| name.contains(&part))
    };
    for (seed, (name, scenario)) in chosen() {
        show(&name, &simulate(&scenario, experiments, seed));
    }
    println!(
        "\npower: six subjects, four conditions, so many blocks; found among 5 with the baseline, in percent\n\
         {:<44} {:>6} {:>6} {:>6} {:>6} {:>6} | {:>5} {:>6} {:>6} {:>6}",
        "blocks and noise", "1.1", "1.25", "1.5", "2", "3", "false", "pairs", "x2", "apart"
    );
    for (seed, (name, scenario)) in (1..).zip(powers()) {
        if name.contains(&part) {
            show_power(&name, &simulate(&scenario, experiments / 6, seed));
        }
    }
    println!(
        "\nfourteen subjects: false among those with the baseline, among all pairs; of pairs twofold apart told"
    );
    for (seed, (name, scenario)) in (1..).zip(fourteen::scenarios()) {
        if name.contains(&part) {
            fourteen::show(&name, &simulate(&scenario, experiments / 6, seed));
        }
    }
    println!(
        "\nthe nominal level of Pocock's boundary, 2.21% at each of three looks, instead of 1.67%"
    );
    let rules = Rules {
        baseline: "direct".into(),
        confidence: 1.0 - 3.0 * 0.0221,
        looks: Looks::of(30),
        ..Rules::of(&RunHeader::default())
    };
    for (seed, (name, scenario)) in chosen() {
        if scenario.blocks == 30 {
            show(&name, &simulate_with(&rules, &scenario, experiments, seed));
        }
    }
}

fn show(name: &str, tally: &Tally) {
    let last = &tally.subjects[tally.subjects.len() - 1];
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    println!(
        "{name:<58} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6.1}",
        percent(tally.false_in_question()),
        percent(if last.speed == 1.0 { 0.0 } else { last.found() }),
        percent(last.same()),
        percent(f64::from(last.inconclusive) / f64::from(last.comparisons)),
        percent(last.coverage()),
        percent(last.plain_coverage()),
        tally.mean_blocks()
    );
}

/// The share found of each gap, and how often equal ones were called different.
fn show_power(name: &str, tally: &Tally) {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let of = |part: u32, all: u32| percent(f64::from(part) / f64::from(all.max(1)));
    let found: Vec<String> = tally
        .subjects
        .iter()
        .map(|one| match one.speed == 1.0 {
            true => String::new(),
            false => format!("{:>6}", percent(one.found())),
        })
        .collect();
    println!(
        "{name:<44} {} | {:>5} {:>6} {:>6} {:>6}",
        found.join(" "),
        percent(tally.false_in_question()),
        of(tally.questions_with_false_pair, tally.questions),
        percent(tally.false_difference()),
        of(tally.pairs_of_twofold_found, tally.pairs_of_twofold),
    );
}

/// Six subjects under four conditions: gaps, and none.
fn powers() -> Vec<(String, Scenario)> {
    let mut all = Vec::new();
    for blocks in [3, 5, 10] {
        for between in [0.03, 0.12] {
            let mut add = |what: &str, speeds: Vec<f64>, carried: f64| {
                let mut scenario = Scenario {
                    speeds,
                    conditions: 4,
                    blocks,
                    pairs: true,
                    ..Scenario::of(1.0)
                };
                (scenario.noise.between, scenario.noise.carried) = (between, carried);
                let noise = between * 100.0;
                all.push((format!("{blocks} blocks, noise {noise}%, {what}"), scenario));
            };
            add("gaps", vec![1.1, 1.25, 1.5, 2.0, 3.0], 0.0);
            add("equal", vec![1.0; 5], 0.0);
            add("equal, 0.5 carried", vec![1.0; 5], 0.5);
        }
    }
    all
}

fn scenarios() -> Vec<(String, Scenario)> {
    let covered = covered().into_iter();
    let mut all: Vec<(String, Scenario)> = covered
        .map(|(name, scenario)| (name.to_owned(), scenario))
        .collect();
    // What the t interval alone would not stand, in each design.
    for blocks in [30, 10, 5] {
        let hostile = hostile().into_iter();
        all.extend(hostile.map(|(name, scenario)| {
            let scenario = Scenario { blocks, ..scenario };
            (format!("{name}, {blocks} blocks"), scenario)
        }));
    }
    all
}

fn outliers(share: f64, one_sided: bool) -> Option<Outliers> {
    Some(Outliers {
        share,
        speed: 0.6,
        one_sided,
    })
}

type Named = (&'static str, Scenario);

/// Adds a baseline and a subject of this speed, with this noise between blocks and other changes.
fn add(
    all: &mut Vec<Named>,
    name: &'static str,
    (speed, between): (f64, f64),
    change: fn(&mut Scenario),
) {
    let mut scenario = Scenario::of(speed);
    scenario.noise.between = between;
    change(&mut scenario);
    all.push((name, scenario));
}

/// Scenarios whose blocks are not independent, not symmetrical or not what they seem.
fn hostile() -> Vec<Named> {
    let mut all = Vec::new();
    let mut add = |name, of, change| add(&mut all, name, of, change);
    let (quiet, loud) = ((1.0, 0.03), (1.0, 0.15));
    let one_sided: fn(&mut Scenario) = |s| s.outliers = outliers(0.1, true);
    add("equal, noise 15%", loud, |_| {});
    add("0.3 carried to the next block", loud, |s| {
        s.noise.carried = 0.3
    });
    add("0.5 carried to the next block", loud, |s| {
        s.noise.carried = 0.5
    });
    add("exponential blocks of the subject", loud, |s| {
        s.noise.shape = Shape::Exponential;
    });
    add("lognormal blocks of the subject", loud, |s| {
        s.noise.shape = Shape::Lognormal;
    });
    add(
        "subject loses 40% in 10% of blocks, noise 3%",
        quiet,
        one_sided,
    );
    add(
        "subject loses 40% in 10% of blocks, noise 15%",
        loud,
        one_sided,
    );
    add("half of the subject's starts fail, repeated", quiet, |s| {
        s.bad_starts = Some(BadStarts {
            share: 0.5,
            speed: 0.7,
            failed: 0.04,
        });
    });
    add("30% slower, client limits both", (0.7, 0.03), |s| {
        s.client = Some(0.5)
    });
    add("30% slower, client limits the baseline", (0.7, 0.03), |s| {
        s.client = Some(0.75);
    });
    add("30% faster, client limits the subject", (1.3, 0.03), |s| {
        s.client = Some(1.1);
    });
    let late = (1.0 / 1.019, 0.002);
    add("latency 1.9% higher, in steps of a tenth", late, |s| {
        (s.latency, s.latency_step) = (true, Some(1.0 / 10.4));
    });
    add("6% faster, noise 3%", (1.06, 0.03), |_| {});
    add("3% faster, noise 1%", (1.03, 0.01), |_| {});
    add("equal, noise 1%", (1.0, 0.01), |_| {});
    all
}

fn covered() -> Vec<Named> {
    let mut all = Vec::new();
    let mut add = |name, of, change| add(&mut all, name, of, change);
    let (loud, delta, twice) = ((1.0, 0.15), (1.03, 0.03), (1.03 * 1.03, 0.03));
    let linear: fn(&mut Scenario) = |s| s.drift = Drift::Linear(2.0);
    let step: fn(&mut Scenario) = |s| s.drift = Drift::Step(2.0);
    let ten: fn(&mut Scenario) = |s| s.blocks = 10;
    let slow: fn(&mut Scenario) = |s| s.outliers = outliers(0.05, false);
    add("equal, noise 3%", (1.0, 0.03), |_| {});
    add("equal, noise 15%", loud, |_| {});
    add("equal, noise 15%, linear drift 2 sigma", loud, linear);
    add("equal, noise 15%, step drift 2 sigma", loud, step);
    add("equal, noise 15%, linear drift, one slice", loud, |s| {
        (s.drift, s.noise.slices) = (Drift::Linear(2.0), 1);
    });
    add("equal, noise 15%, step drift, one slice", loud, |s| {
        (s.drift, s.noise.slices) = (Drift::Step(2.0), 1);
    });
    add("equal, noise 15%, 10 blocks", loud, ten);
    add("equal, noise 15%, 5 blocks", loud, |s| s.blocks = 5);
    add("equal, noise 15%, 5 subjects x 3 conditions", loud, |s| {
        (s.speeds, s.conditions) = (vec![1.0; 5], 3);
    });
    add("equal, noise 15%, throughput and latency", loud, |s| {
        s.latency = true
    });
    add(
        "equal, noise 15%, outliers: 5% of trials lose 40%",
        loud,
        slow,
    );
    add("delta, noise 1%", (1.03, 0.01), |_| {});
    add("delta, noise 2%", (1.03, 0.02), |_| {});
    add("delta, noise 3%", delta, |_| {});
    add("delta, noise 3%, 10 blocks", delta, ten);
    add("delta, noise 3%, linear drift 2 sigma", delta, linear);
    add("delta, noise 3%, outliers", delta, slow);
    add("2 delta, noise 3%", twice, |_| {});
    add("2 delta, noise 3%, 10 blocks", twice, ten);
    add("2 delta, noise 5%", (twice.0, 0.05), |_| {});
    add("2 delta, noise 3%, linear drift", twice, linear);
    add("2 delta, noise 3%, step drift", twice, step);
    add("2 delta, noise 3%, 5 subjects x 3 conditions", twice, |s| {
        (s.speeds, s.conditions) = (vec![1.0, 1.0, 1.0, 1.0, 1.03 * 1.03], 3);
    });
    add("2 delta, noise 3%, outliers", twice, slow);
    add("10% slower, noise 3%", (0.9, 0.03), |_| {});
    all
}
