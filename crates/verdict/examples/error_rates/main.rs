//! How often verdicts err, by simulation: `cargo run --profile dist -p weigh-verdict --example error_rates`.
//!
//! Each line is a scenario carried out 6,000 times (or as often as the first argument says) from
//! fixed seeds, so that the table comes out the same each time.

mod fourteen;

use verdict::simulate::{
    BadStarts, Drift, Noise, Outliers, Scenario, Shape, Tally, simulate, simulate_with,
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
        matters: 0.03,
        matters_failures: 0.001,
        matters_ms: None,
        confidence: 1.0 - 3.0 * 0.0221,
        looks: Looks::of(30),
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
            let of = |speeds: Vec<f64>, carried: f64| Scenario {
                speeds,
                conditions: 4,
                blocks,
                pairs: true,
                noise: Noise {
                    between,
                    carried,
                    ..Scenario::of(1.0).noise
                },
                ..Scenario::of(1.0)
            };
            let name = |what: &str| format!("{blocks} blocks, noise {}%, {what}", between * 100.0);
            let gaps = vec![1.1, 1.25, 1.5, 2.0, 3.0];
            all.push((name("gaps"), of(gaps, 0.0)));
            all.push((name("equal"), of(vec![1.0; 5], 0.0)));
            all.push((name("equal, 0.5 carried"), of(vec![1.0; 5], 0.5)));
        }
    }
    all
}

fn scenarios() -> Vec<(String, Scenario)> {
    let mut all: Vec<(String, Scenario)> = covered()
        .into_iter()
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

/// Scenarios whose blocks are not independent, not symmetrical or not what they seem.
fn hostile() -> Vec<(&'static str, Scenario)> {
    let with = |noise: Noise| Scenario {
        noise,
        ..Scenario::of(1.0)
    };
    let usual = Scenario::of(1.0).noise;
    let loud = Noise {
        between: 0.15,
        ..usual
    };
    let one_sided = Some(Outliers {
        share: 0.1,
        speed: 0.6,
        one_sided: true,
    });
    let shape = |shape| with(Noise { shape, ..loud });
    let carried = |carried| with(Noise { carried, ..loud });
    let client = |speed: f64, most: f64| Scenario {
        client: Some(most),
        ..Scenario::of(speed)
    };
    vec![
        ("equal, noise 15%", with(loud)),
        ("0.3 carried to the next block", carried(0.3)),
        ("0.5 carried to the next block", carried(0.5)),
        (
            "exponential blocks of the subject",
            shape(Shape::Exponential),
        ),
        ("lognormal blocks of the subject", shape(Shape::Lognormal)),
        (
            "subject loses 40% in 10% of blocks, noise 3%",
            Scenario {
                outliers: one_sided,
                ..with(usual)
            },
        ),
        (
            "subject loses 40% in 10% of blocks, noise 15%",
            Scenario {
                outliers: one_sided,
                ..with(loud)
            },
        ),
        (
            "half of the subject's starts fail, repeated",
            Scenario {
                bad_starts: Some(BadStarts {
                    share: 0.5,
                    speed: 0.7,
                    failed: 0.04,
                }),
                ..Scenario::of(1.0)
            },
        ),
        ("30% slower, client limits both", client(0.7, 0.5)),
        ("30% slower, client limits the baseline", client(0.7, 0.75)),
        ("30% faster, client limits the subject", client(1.3, 1.1)),
        (
            "latency 1.9% higher, in steps of a tenth",
            Scenario {
                latency: true,
                latency_step: Some(1.0 / 10.4),
                noise: Noise {
                    between: 0.002,
                    ..usual
                },
                ..Scenario::of(1.0 / 1.019)
            },
        ),
        ("6% faster, noise 3%", Scenario::of(1.06)),
        (
            "3% faster, noise 1%",
            Scenario {
                noise: Noise {
                    between: 0.01,
                    ..usual
                },
                ..Scenario::of(1.03)
            },
        ),
        (
            "equal, noise 1%",
            with(Noise {
                between: 0.01,
                ..usual
            }),
        ),
    ]
}

fn covered() -> Vec<(&'static str, Scenario)> {
    let noise = |between| Noise {
        between,
        ..Scenario::of(1.0).noise
    };
    let equal = Scenario::of(1.0);
    let loud = Scenario {
        noise: noise(0.15),
        ..Scenario::of(1.0)
    };
    let drift = |drift| Scenario {
        drift,
        ..loud.clone()
    };
    let one_by_one = Noise {
        slices: 1,
        ..loud.noise
    };
    let delta = Scenario::of(1.03);
    let twice = Scenario::of(1.03 * 1.03);
    vec![
        ("equal, noise 3%", equal.clone()),
        ("equal, noise 15%", loud.clone()),
        (
            "equal, noise 15%, linear drift 2 sigma",
            drift(Drift::Linear(2.0)),
        ),
        (
            "equal, noise 15%, step drift 2 sigma",
            drift(Drift::Step(2.0)),
        ),
        (
            "equal, noise 15%, linear drift, one slice",
            Scenario {
                noise: one_by_one,
                ..drift(Drift::Linear(2.0))
            },
        ),
        (
            "equal, noise 15%, step drift, one slice",
            Scenario {
                noise: one_by_one,
                ..drift(Drift::Step(2.0))
            },
        ),
        (
            "equal, noise 15%, 10 blocks",
            Scenario {
                blocks: 10,
                ..loud.clone()
            },
        ),
        (
            "equal, noise 15%, 5 blocks",
            Scenario {
                blocks: 5,
                ..loud.clone()
            },
        ),
        (
            "equal, noise 15%, 5 subjects x 3 conditions",
            Scenario {
                speeds: vec![1.0; 5],
                conditions: 3,
                ..loud.clone()
            },
        ),
        (
            "equal, noise 15%, throughput and latency",
            Scenario {
                latency: true,
                ..loud.clone()
            },
        ),
        (
            "equal, noise 15%, outliers: 5% of trials lose 40%",
            Scenario {
                outliers: Some(Outliers {
                    share: 0.05,
                    speed: 0.6,
                    one_sided: false,
                }),
                ..loud.clone()
            },
        ),
        (
            "delta, noise 1%",
            Scenario {
                noise: noise(0.01),
                ..delta.clone()
            },
        ),
        (
            "delta, noise 2%",
            Scenario {
                noise: noise(0.02),
                ..delta.clone()
            },
        ),
        ("delta, noise 3%", delta.clone()),
        (
            "delta, noise 3%, 10 blocks",
            Scenario {
                blocks: 10,
                ..delta.clone()
            },
        ),
        (
            "delta, noise 3%, linear drift 2 sigma",
            Scenario {
                drift: Drift::Linear(2.0),
                ..delta.clone()
            },
        ),
        (
            "delta, noise 3%, outliers",
            Scenario {
                outliers: Some(Outliers {
                    share: 0.05,
                    speed: 0.6,
                    one_sided: false,
                }),
                ..delta.clone()
            },
        ),
        ("2 delta, noise 3%", twice.clone()),
        (
            "2 delta, noise 3%, 10 blocks",
            Scenario {
                blocks: 10,
                ..twice.clone()
            },
        ),
        (
            "2 delta, noise 5%",
            Scenario {
                noise: noise(0.05),
                ..twice.clone()
            },
        ),
        (
            "2 delta, noise 3%, linear drift",
            Scenario {
                drift: Drift::Linear(2.0),
                ..twice.clone()
            },
        ),
        (
            "2 delta, noise 3%, step drift",
            Scenario {
                drift: Drift::Step(2.0),
                ..twice.clone()
            },
        ),
        (
            "2 delta, noise 3%, 5 subjects x 3 conditions",
            Scenario {
                speeds: vec![1.0, 1.0, 1.0, 1.0, 1.03 * 1.03],
                conditions: 3,
                ..twice.clone()
            },
        ),
        (
            "2 delta, noise 3%, outliers",
            Scenario {
                outliers: Some(Outliers {
                    share: 0.05,
                    speed: 0.6,
                    one_sided: false,
                }),
                ..twice.clone()
            },
        ),
        ("10% slower, noise 3%", Scenario::of(0.9)),
    ]
}
