//! The experiments that are in the program.

use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::file::ExperimentError;
use crate::recipes::Recipes;
use crate::spec::Experiment;
use config::nearest::suggestion;
use config::open::open;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/experiments");

/// An experiment's file: one of the catalogue, or the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFile {
    /// What to call it in messages.
    pub source_name: String,
    pub text: String,
}

/// The names of the catalogue's experiments, in alphabetical order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = EMBEDDED
        .files()
        .filter_map(|file| file.path().to_str()?.strip_suffix(".toml"))
        .collect();
    names.sort_unstable();
    names
}

/// The text of an experiment of the catalogue.
pub fn text(name: &str) -> Option<&'static str> {
    EMBEDDED
        .get_file(format!("{name}.toml"))
        .and_then(|file| file.contents_utf8())
}

/// Finds an experiment by its name in the catalogue, or else by the path of its file.
///
/// A text with a `/` or a final `.toml` is always a path, so that
/// `./proxy-cost.toml` is the user's own.
///
/// # Errors
/// [`ExperimentError::Unknown`] with the nearest name, or [`ExperimentError::Open`] when the file
/// is there and cannot be read as text.
pub fn find(name_or_path: &str) -> Result<ExperimentFile, ExperimentError> {
    let like_a_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
    if !like_a_path && let Some(text) = text(name_or_path) {
        return Ok(ExperimentFile {
            source_name: format!("catalogue/{name_or_path}.toml"),
            text: text.to_owned(),
        });
    }
    let path = Path::new(name_or_path);
    if path.exists() {
        return Ok(ExperimentFile {
            source_name: name_or_path.to_owned(),
            text: open(path)?,
        });
    }
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or(name_or_path);
    Err(ExperimentError::Unknown {
        name: config::units::shown(name_or_path),
        help: suggestion(stem, "experiments", names()),
    })
}

/// Finds an experiment as [`find`] does, and reads it as [`Experiment::parse`] does.
///
/// # Errors
/// Those of both.
pub fn open_experiment(
    name_or_path: &str,
    sets: &[(String, String)],
    quick: bool,
    recipes: &Recipes,
) -> Result<Experiment, ExperimentError> {
    let found = find(name_or_path)?;
    Experiment::parse(&found.source_name, &found.text, sets, quick, recipes)
}
