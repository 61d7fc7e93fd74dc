//! `weigh plan`: how many blocks an experiment needs here, from a pilot or a run's folder.

use std::path::{Path, PathBuf};

use experiment::catalogue;
use experiment::plan::Plan;
use run::default_folder;
use verdict::plan::Noise;

use crate::cli::{GateArgs, PILOT_BLOCKS, PlanArgs, PlanFormat};
use crate::failure::Failure;
use crate::measure::run::{Wanted, carry_out, note_counters};
use crate::recipes::recipes;
use crate::show::run_facts::stored_experiment;
use crate::terminal::output::{print_json, print_text, width};

/// Runs a pilot, or takes the run in a folder, and says what a longer run needs.
pub fn plan(args: &PlanArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    let of_folder = Path::new(&args.experiment);
    if of_folder.is_dir() {
        if let Some(option) = args.pilot_options().first() {
            return Err(Failure::words(format!(
                "`{option}` is for a pilot, but `{}` is the folder of a run, and nothing is measured",
                args.experiment
            )));
        }
        return show(of_folder, &recipes, args.format);
    }
    let mut experiment =
        catalogue::open_experiment(&args.experiment, &args.set, args.quick, &recipes)
            .map_err(Failure::file)?;
    note_counters(&mut experiment);
    experiment.design.blocks = args.pilot.unwrap_or(PILOT_BLOCKS);
    experiment.design.within = None;
    experiment.find_bottlenecks(false);
    let folder: PathBuf = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&format!("{}-pilot", experiment.name)));
    let stopped = carry_out(&Wanted {
        experiment: &experiment,
        recipes: &recipes,
        noise: Noise::assumed(),
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        folder: folder.clone(),
        resume: false,
        format: crate::cli::Format::Text,
        verbose: false,
        cache: None,
        profile: None,
        gates: &GateArgs::default(),
        label: None,
    })?;
    let status = show(&folder, &recipes, args.format)?;
    Ok(stopped.unwrap_or(status))
}

fn show(folder: &Path, recipes: &experiment::Recipes, format: PlanFormat) -> Result<u8, Failure> {
    let journal = run::journal::read(folder).map_err(Failure::words)?;
    let header = &journal.header;
    // A folder without it still tells what its journal has.
    let experiment = stored_experiment(folder, recipes);
    let estimated_s = experiment.map(|mut experiment| {
        note_counters(&mut experiment);
        let estimated = Plan::new(&experiment, header.seed).estimated;
        estimated.as_secs_f64() / f64::from(experiment.design.blocks.max(1))
    });
    let advice = verdict::plan::plan(&journal, estimated_s);
    match format {
        PlanFormat::Text => print_text(&report::plan_terminal(header, &advice, width())),
        PlanFormat::Md => print_text(&report::plan_markdown(header, &advice)),
        PlanFormat::Json => print_json(&report::plan_json(header, &advice)),
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn a_folder_takes_no_options_of_a_pilot() {
        let folder = std::env::temp_dir();
        let folder = folder.to_str().unwrap();
        let refused = |option: &str, value: Option<&str>| {
            let words = ["weigh", "plan", folder, option].into_iter().chain(value);
            let Verb::Plan(args) = Cli::try_parse_from(words).unwrap().verb else {
                panic!("another verb");
            };
            match plan(&args) {
                Err(Failure::Words(text)) => text,
                _ => panic!("{option} is not refused"),
            }
        };
        for (option, value) in [
            ("--set", Some("design.window=2s")),
            ("--pilot", Some("8")),
            ("--seed", Some("1")),
            ("--out", Some("x")),
            ("--quick", None),
        ] {
            let text = refused(option, value);
            assert!(
                text.starts_with(&format!("`{option}` is for a pilot")),
                "{text}"
            );
        }
    }
}
