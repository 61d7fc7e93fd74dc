//! How well the search for the capacity finds it, by simulation:
//! `cargo run --profile dist -p weigh-verdict --example capacity_searches`.
//!
//! Each line is a scenario, searched 300 times (or as often as the first argument says) with fixed
//! seeds.

use verdict::capacity::{SearchOptionsError, SearchScenario, SimulatedSearch};

fn main() -> Result<(), SearchOptionsError> {
    let searches = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(300)
        .max(1);
    println!("{searches} searches each; chances that the objective holds at the answer\n");
    println!(
        "{:>11} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "correlation",
        "beside",
        "spread",
        "mean",
        "median",
        "lowest5",
        "covered",
        "width",
        "trials"
    );
    for (correlation, beside) in [(0.0, 1), (0.5, 1), (0.8, 1), (0.5, 0), (0.8, 0)] {
        for spread in [0.003, 0.01, 0.03, 0.1] {
            let scenario = SearchScenario {
                spread,
                correlation,
                beside,
            };
            show(&scenario, searches)?;
        }
    }
    Ok(())
}

fn show(scenario: &SearchScenario, searches: u64) -> Result<(), SearchOptionsError> {
    let runs = (0..searches).map(|seed| scenario.search(seed));
    let runs = runs.collect::<Result<Vec<SimulatedSearch>, _>>()?;
    let mean =
        |of: fn(&SimulatedSearch) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let mut chances: Vec<f64> = runs.iter().map(|run| run.chance).collect();
    chances.sort_by(f64::total_cmp);
    println!(
        "{:>11} {:>6} {:>7} {:>7.3} {:>7.3} {:>7.3} {:>7.3} {:>7.3} {:>7.1}",
        scenario.correlation,
        scenario.beside,
        scenario.spread,
        mean(|run| run.chance),
        chances[chances.len() / 2],
        chances[chances.len() / 20],
        mean(|run| f64::from(u8::from(run.is_covered))),
        mean(|run| run.width),
        mean(|run| f64::from(run.trials)),
    );
    Ok(())
}
