//! Whole experiments with a known truth, to see how often the verdicts err.
//!
//! A [`Scenario`] says how fast each subject really is, what noise lies between and within
//! blocks, and how the machine changes while the run goes on. [`simulate`] makes the rows that a
//! journal would hold, hands them to the same [`analyse`](crate::analyse) that judges real runs,
//! stops where a real run would stop, and counts the verdicts.
//!
//! Everything follows from the seed.

mod model;
mod scenario;
mod tally;

pub use scenario::{BadStarts, Drift, Noise, Outliers, Scenario, Shape};
pub use tally::{SubjectTally, Tally};

use crate::comparison::draft::in_run;
use crate::comparison::tiers::tiers;
use crate::trial::cells::Cells;
use crate::{Analysis, Rules, Tiers, analyse_with, settled};
use model::Model;

/// Carries a scenario out so many times and counts the verdicts that it ends with.
pub fn simulate(scenario: &Scenario, experiments: u32, seed: u64) -> Tally {
    let rules = Rules::of(&model::header(scenario));
    simulate_with(&rules, scenario, experiments, seed)
}

/// [`simulate`], judged by other rules than the scenario's own.
pub fn simulate_with(rules: &Rules, scenario: &Scenario, experiments: u32, seed: u64) -> Tally {
    let mut model = Model::new(scenario, seed);
    let mut tally = Tally::new(scenario);
    for _ in 0..experiments {
        model.begin();
        for block in 1..=scenario.blocks {
            model.measure(block);
            if rules.looks.look_at(block).is_none() {
                continue;
            }
            let analysis = analyse_with(rules, &model.header, model.rows());
            if settled(&analysis) || rules.looks.next_look(block).is_none() {
                let mut analysis = analysis;
                if scenario.pairs {
                    analysis.tiers = pairs(rules, &model, &analysis);
                }
                tally.count(&analysis);
                break;
            }
        }
    }
    tally
}

fn pairs(rules: &Rules, model: &Model, analysis: &Analysis) -> Vec<Tiers> {
    let cells = Cells::of(&model.header, model.rows());
    in_run(rules, &cells, |run| tiers(run, &analysis.comparisons))
}

#[cfg(test)]
mod tests;
