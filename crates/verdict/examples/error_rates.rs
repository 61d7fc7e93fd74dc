//! How often verdicts err, by simulation: `cargo run --release -p verdict --example error_rates`.
//!
//! Each line is a scenario carried out 2,000 times (or as often as the first argument says) from
//! fixed seeds, so that the table comes out the same each time.

use verdict::simulate::{Drift, Noise, Outliers, Scenario, Tally, simulate, simulate_with};
use verdict::{Looks, Rules};

fn main() {
    let experiments = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2000);
    println!("{experiments} experiments each; shares in percent\n");
    println!(
        "{:<58} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "scenario", "false", "found", "same", "open", "cover", "plain", "blocks"
    );
    for (seed, (name, scenario)) in (1..).zip(scenarios()) {
        show(name, &simulate(&scenario, experiments, seed));
    }
    println!(
        "\nthe nominal level of Pocock's boundary, 2.21% at each of three looks, instead of 1.67%"
    );
    let rules = Rules {
        baseline: "direct".into(),
        matters: 0.03,
        matters_failures: 0.001,
        confidence: 1.0 - 3.0 * 0.0221,
        looks: Looks::of(30),
    };
    for (seed, (name, scenario)) in (1..).zip(scenarios()) {
        if scenario.blocks == 30 {
            show(name, &simulate_with(&rules, &scenario, experiments, seed));
        }
    }
}

fn show(name: &str, tally: &Tally) {
    let last = &tally.subjects[tally.subjects.len() - 1];
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    println!(
        "{name:<58} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6.1}",
        percent(tally.false_difference()),
        percent(if last.speed == 1.0 { 0.0 } else { last.found() }),
        percent(last.same()),
        percent(f64::from(last.inconclusive) / f64::from(last.comparisons)),
        percent(last.coverage()),
        percent(last.plain_coverage()),
        tally.mean_blocks()
    );
}

fn scenarios() -> Vec<(&'static str, Scenario)> {
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
                }),
                ..loud.clone()
            },
        ),
        (
            "equal, noise 15%, half carried to the next block",
            Scenario {
                noise: Noise {
                    carried: 0.5,
                    ..loud.noise
                },
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
                }),
                ..twice.clone()
            },
        ),
        ("10% slower, noise 3%", Scenario::of(0.9)),
    ]
}
