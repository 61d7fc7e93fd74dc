//! The recipes and drivers of the program and of the user.

use std::path::PathBuf;

use experiment::Recipes;

use crate::cli::OwnFolders;
use crate::failure::Failure;

/// All recipes and drivers. The user's are in the folders named, in those of `$WEIGH_RECIPES` and
/// `$WEIGH_DRIVERS`, and in `servers/` and `drivers/` of the user's configuration folder.
///
/// # Errors
/// When one of them has a mistake.
pub fn recipes(own: &OwnFolders) -> Result<Recipes, Failure> {
    let recipe_dirs = folders("servers", "WEIGH_RECIPES", &own.recipes);
    let driver_dirs = folders("drivers", "WEIGH_DRIVERS", &own.drivers);
    Recipes::load(&recipe_dirs, &driver_dirs).map_err(Failure::file)
}

/// The user's folders of one kind; where names are equal the later wins.
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

/// The running program, which recipes and drivers name `weigh`.
pub fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::failed(format!("cannot find its own program: {e}")))
}
