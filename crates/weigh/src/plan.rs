//! `weigh plan`: how many blocks an experiment needs here, from a pilot or a run's folder.

use std::path::{Path, PathBuf};

use experiment::Experiment;
use experiment::catalogue;
use experiment::plan::Plan;
use run::default_folder;

use crate::cli::{GateArgs, PlanArgs, PlanFormat};
use crate::failure::Failure;
use crate::output::{print_json, print_text, width};
use crate::recipes::recipes;
use crate::run::{Wanted, carry_out, note_counters};

/// Runs a pilot, or takes the run in a folder, and says what a longer run needs.
pub fn plan(args: &PlanArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    let of_folder = Path::new(&args.experiment);
    if of_folder.is_dir() {
        return show(of_folder, &recipes, args.format);
    }
    let mut experiment =
        catalogue::open_experiment(&args.experiment, &args.set, args.quick, &recipes)
            .map_err(Failure::file)?;
    note_counters(&mut experiment);
    experiment.design.blocks = args.pilot;
    experiment.design.within = None;
    experiment.find_bottlenecks(false);
    let folder: PathBuf = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&format!("{}-pilot", experiment.name)));
    let stopped = carry_out(&Wanted {
        experiment: &experiment,
        recipes: &recipes,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
        folder: folder.clone(),
        resume: false,
        format: crate::cli::Format::Text,
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
    let file = folder.join("experiment.toml");
    // A folder without it still tells what its journal has.
    let experiment = Experiment::read(&file, &[], false, recipes).ok();
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
