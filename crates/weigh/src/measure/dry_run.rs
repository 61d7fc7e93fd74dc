//! `weigh run --dry-run`.

use doctor::missing;
use experiment::plan::Plan;
use experiment::{Experiment, Recipes};
use run::CpuPlacement;
use serde_json::{Value, json};
use verdict::Looks;

use crate::cli::Format;
use crate::failure::Failure;
use crate::measure::before::Before;
use crate::terminal::output::{print_json, print_text};

/// Prints what would be measured.
pub fn dry_run(
    experiment: &Experiment,
    recipes: &Recipes,
    seed: u64,
    before: &Before,
    format: Format,
) -> Result<u8, Failure> {
    let plan = Plan::new(experiment, seed);
    let mut missing = missing(experiment, recipes);
    if experiment.hosts_are_apart() {
        missing.extend(hosts::lacking(&experiment.hosts));
    }
    let placement = CpuPlacement::of(experiment);
    missing.extend(placement.err().map(|why| why.to_string()));
    match format {
        Format::Text => {
            let mut lines: String = before.lines().into_iter().map(|line| line + "\n").collect();
            if !lines.is_empty() {
                lines.push('\n');
            }
            print_text(&(lines + &plan.describe(&missing) + &notes(experiment, recipes)));
        }
        Format::Json => {
            let mut document = json!({
            "title": plan.title,
            "seed": plan.seed,
            "estimated_s": (plan.estimated + plan.searches).as_secs_f64(),
            "is_least": plan.is_least,
            "gates": experiment.gates.iter().map(readings::Gate::full_text).collect::<Vec<_>>(),
            "compared": plan.compared,
            "missing": missing,
            "drivers": plan.drivers.iter().map(|driver| json!({
                "driver": driver.name,
                "label": driver.label,
                "subjects": if driver.subjects.is_empty() {
                    experiment.subjects.iter().map(|s| s.name.clone()).collect()
                } else {
                    driver.subjects.clone()
                },
                "notes": recipes.driver(&driver.name).map_or(&[][..], |d| &d.notes),
            })).collect::<Vec<Value>>(),
            "trials": plan.groups().flat_map(|(block, group)| {
                group.trials.iter().map(move |planned| json!({
                    "trial": planned.trial,
                    "block": block,
                    "condition": group.condition,
                    "subject": planned.subject,
                    "baseline_copy": planned.baseline_copy,
                }))
            }).collect::<Vec<Value>>(),
            });
            for (key, value) in before.json() {
                document[key] = value;
            }
            print_json(&document);
        }
    }
    Ok(0)
}

/// Notes on the drivers of an experiment, to be known before their figures are used.
fn notes(experiment: &Experiment, recipes: &Recipes) -> String {
    let mut text = String::new();
    let looks = Looks::of(experiment.design.blocks);
    if !looks.is_fixed() {
        let after: Vec<String> = looks.blocks().iter().map(u32::to_string).collect();
        text.push_str(&format!(
            "\nit looks at its data after {} blocks, and ends when everything is settled\n",
            after.join(", ")
        ));
    }
    if !experiment.gates.is_empty() {
        let gates = experiment.gates.iter().map(readings::Gate::full_text);
        let gates: Vec<String> = gates.collect();
        text.push_str(&format!("\ngates: {}\n", gates.join(", ")));
    }
    for driver in recipes.drivers_of(experiment) {
        if !driver.notes.is_empty() {
            text.push_str(&format!("\nabout the driver {}:\n", driver.name));
        }
        for note in &driver.notes {
            text.push_str(&format!("  {note}\n"));
        }
    }
    text
}
