//! `weigh doctor` and `weigh list`: what this machine has, lacks, and spoils.

use std::path::PathBuf;

use ::doctor::{self as examination, listing};
use experiment::Recipes;
use experiment::catalogue;

use crate::cli::{DoctorArgs, Format, ListArgs, OwnFolders};
use crate::failure::Failure;
use crate::output::{print_json, print_text};
use crate::{doctor, list};

/// The recipes and drivers of the program and of the user: the folders named, `$WEIGH_RECIPES`
/// and `$WEIGH_DRIVERS`, and `servers/` and `drivers/` in the user's configuration folder.
///
/// # Errors
/// When one of them has a mistake.
pub fn recipes(own: &OwnFolders) -> Result<Recipes, Failure> {
    let recipe_dirs = folders("servers", "WEIGH_RECIPES", &own.recipes);
    let driver_dirs = folders("drivers", "WEIGH_DRIVERS", &own.drivers);
    Recipes::load(&recipe_dirs, &driver_dirs).map_err(Failure::file)
}

/// The user's folders of one kind; where names meet the later wins.
fn folders(kind: &str, variable: &str, named: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    if let Some(folder) = config.map(|config| config.join("weigh").join(kind))
        && folder.is_dir()
    {
        folders.push(folder);
    }
    if let Some(paths) = std::env::var_os(variable) {
        folders.extend(std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()));
    }
    folders.extend(named.iter().cloned());
    folders
}

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::failed(format!("cannot find its own program: {e}")))
}

/// Looks what would spoil a measurement.
pub fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    let experiment = match &args.experiment {
        None => None,
        Some(name) => {
            Some(catalogue::open_experiment(name, &[], false, &recipes).map_err(Failure::file)?)
        }
    };
    let found = examination::examine(experiment.as_ref(), &recipes, &own_program()?);
    match args.format {
        Format::Json => print_json(&serde_json::to_value(&found).unwrap_or_default()),
        Format::Text => print_text(&doctor::text(&found)),
    }
    Ok(0)
}

/// Lists what can be run.
pub fn list(args: &ListArgs) -> Result<u8, Failure> {
    let weigh = own_program()?;
    let found = listing::list(&recipes(&args.own)?, &weigh);
    match args.format {
        Format::Json => print_json(&serde_json::to_value(&found).unwrap_or_default()),
        Format::Text => print_text(&list::text(&found)),
    }
    Ok(0)
}
