//! How often verdicts on counts of failures err, by simulation:
//! `cargo run --profile dist -p weigh-verdict --example failure_rates`.
//!
//! Each line is a scenario carried out 2,000 times (or as often as the first argument says) from
//! fixed seeds. Each side has 20,000 requests in a block.

use readings::RunHeader;
use verdict::{FailureScenario, Looks, Rules, simulate_failures};

fn main() {
    let experiments = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2000);
    println!("{experiments} experiments each; shares in percent\n");
    println!(
        "{:>10} {:>10} {:>10} {:>7} {:>10} {:>6} {:>6}",
        "subject", "baseline", "variance", "blocks", "different", "same", "cover"
    );
    for overdispersion in [1.0, 3.0, 10.0] {
        for blocks in [3, 5, 10] {
            for baseline in [0.0, 0.3, 1.0, 3.0, 10.0, 30.0] {
                // Equal shares, where every difference matters; and shares that differ by what
                // matters.
                let show = |subject: f64, matters_failures: f64| {
                    let expected = (subject, baseline);
                    show(
                        expected,
                        overdispersion,
                        blocks,
                        matters_failures,
                        experiments,
                    );
                };
                show(baseline, 1e-9);
                show(baseline + 20.0, 0.001);
            }
        }
    }
}

fn show(
    expected: (f64, f64),
    overdispersion: f64,
    blocks: usize,
    matters_failures: f64,
    experiments: u32,
) {
    let rules = Rules {
        baseline: "direct".into(),
        matters_failures,
        looks: Looks::of(10),
        ..Rules::of(&RunHeader::default())
    };
    let scenario = FailureScenario {
        blocks,
        requests: 20_000,
        expected,
        overdispersion,
    };
    let tally = simulate_failures(&rules, &scenario, experiments, 15);
    let percent = |count| format!("{:.1}", tally.share(count) * 100.0);
    println!(
        "{:>10} {:>10} {overdispersion:>10} {blocks:>7} {:>10} {:>6} {:>6}",
        expected.0,
        expected.1,
        percent(tally.different),
        percent(tally.same),
        percent(tally.covered),
    );
}
