//! How often a history reports a change where there is none, and how soon where there is one:
//! `cargo run --profile dist -p weigh-history --example changes [SERIES [CSV]]`.
//!
//! Prints the tables of `docs/src/method/history.md` from seeds 0 to SERIES - 1 (1,000). A second
//! argument names a file for the series themselves, for other programs: scenario, seed, run, ratio.

#[path = "../tests/all/simulate.rs"]
mod simulate;

use std::fmt::Write as _;

use history::change::{LEVEL, Point};
use simulate::{RUNS, Random, Scenario, alarms, run};

/// The standard deviations between runs, in standard errors.
const BETWEEN: [f64; 3] = [0.0, 1.0, 2.0];
/// Steps, with the standard error of a run.
const STEPS: [(f64, f64); 2] = [(0.02, 0.005), (0.05, 0.015)];

fn steady(between: f64) -> Scenario {
    Scenario {
        step: 0.0,
        standard_error: 0.005,
        between,
    }
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let series = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1000);
    if let Some(path) = arguments.next() {
        return std::fs::write(path, csv(series));
    }
    println!("{series} series of {RUNS} runs, in percent\n");
    println!(
        "| without a change | reported, ever | confirmed, ever | confirmed, end |\n|---|---|---|---|"
    );
    for between in BETWEEN {
        let shares = alarms(series, LEVEL, |r| draw(steady(between), r));
        row(
            &format!("runs differ by {between} standard errors more"),
            shares,
        );
    }
    row(
        "one run in twenty is off by 20%",
        alarms(series, LEVEL, spikes),
    );
    for correlation in [0.2, 0.5] {
        let name = format!("runs resemble the ones before, by {correlation}");
        row(&name, alarms(series, LEVEL, |r| drift(r, correlation)));
    }
    println!(
        "\n| step | standard error | between runs | reported after 1, 2, 3, 5 runs | confirmed after 3, 5 |\n|---|---|---|---|---|"
    );
    for (step, standard_error) in STEPS {
        for between in BETWEEN {
            let scenario = Scenario {
                step,
                standard_error,
                between,
            };
            let [reported, confirmed] = scenario.found(series, LEVEL);
            let [_, _, three, five] = confirmed;
            println!(
                "| {}% | {}% | {between} | {} | {} |",
                100.0 * step,
                100.0 * standard_error,
                percent(&reported),
                percent(&[three, five])
            );
        }
    }
    Ok(())
}

fn row(name: &str, [end, confirmed, reported]: [f64; 3]) {
    let shares = [reported, confirmed, end].map(|share| percent(&[share]));
    println!("| {name} | {} |", shares.join(" | "));
}

fn percent(shares: &[f64]) -> String {
    let one = |share: &f64| format!("{:.1}%", 100.0 * share);
    shares.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A series of the scenario without a step.
fn draw(scenario: Scenario, random: &mut Random) -> Vec<Point> {
    let (se, between) = (scenario.standard_error, scenario.between);
    (0..RUNS)
        .map(|_| run(random, 0.0, se, between * se))
        .collect()
}

fn spikes(random: &mut Random) -> Vec<Point> {
    let mut points = draw(steady(0.0), random);
    for point in &mut points {
        if random.chance(0.05) {
            point.value += 0.2 * random.normal();
        }
    }
    points
}

/// Runs that differ by twice their standard errors, each correlated with the one before.
fn drift(random: &mut Random, correlation: f64) -> Vec<Point> {
    let (se, mut level) = (0.005, 0.0);
    let sd = 2.0 * se * (1.0 - correlation * correlation).sqrt();
    let mut next = || {
        level = correlation * level + sd * random.normal();
        run(random, level, se, 0.0)
    };
    (0..RUNS).map(|_| next()).collect()
}

fn csv(series: u64) -> String {
    let mut out = String::from("step,standard_error,between,seed,run,ratio\n");
    let steps = [(0.0, 0.005)].into_iter().chain(STEPS);
    for (step, standard_error) in steps {
        for between in BETWEEN {
            let scenario = Scenario {
                step,
                standard_error,
                between,
            };
            for seed in 0..series {
                for (at, point) in scenario.series(seed).iter().enumerate() {
                    let (run, ratio) = (at + 1, point.value.exp());
                    // Writing to a string cannot fail.
                    let _ = writeln!(
                        out,
                        "{step},{standard_error},{between},{seed},{run},{ratio}"
                    );
                }
            }
        }
    }
    out
}
