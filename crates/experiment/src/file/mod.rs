//! The experiment file: a question about servers, as domain types.
//!
//! [`Experiment::parse`] turns the text of a file into an [`Experiment`] in which every name
//! refers to something and every value has its type and unit, or into an [`ExperimentError`] that
//! shows each mistake in its place. `docs/src/reference/experiments.md` describes the format.

mod design;
mod error;
mod events;
mod factors;
mod gates;
mod hosts;
mod load;
mod names;
mod parse;
mod servers;
mod write;

use std::path::Path;

pub use error::ExperimentError;
pub use hosts::read_hosts;
pub(crate) use names::VARIED_LOAD_KEYS;
pub use parse::ExperimentBuilder;
pub use servers::{COMMAND, RATE_LIMIT, WEIGHTS};

use crate::recipes::Recipes;
use crate::spec::Experiment;

impl Experiment {
    /// Reads an experiment from the text of its file.
    ///
    /// `source_name` is shown in messages, and its last part without `.toml` is the experiment's
    /// name where the file gives none. `sets` are overrides as given on the command line, such as
    /// `("design.blocks", "3")`; they are applied last. `quick` puts the file's `[quick]` values
    /// in the place of the others.
    ///
    /// # Errors
    /// [`ExperimentError::Mistakes`] with every mistake that was found.
    pub fn parse(
        source_name: &str,
        text: &str,
        sets: &[(String, String)],
        quick: bool,
        recipes: &Recipes,
    ) -> Result<Self, ExperimentError> {
        parse::parse(source_name, text, sets, quick, recipes)
    }

    /// Reads an experiment from a file, as [`Experiment::parse`] does from its text.
    ///
    /// # Errors
    /// [`ExperimentError::Open`] when the file cannot be read, is larger than a mebibyte or is
    /// not UTF-8; otherwise those of [`Experiment::parse`].
    pub fn read(
        path: &Path,
        sets: &[(String, String)],
        quick: bool,
        recipes: &Recipes,
    ) -> Result<Self, ExperimentError> {
        let text = config::open::open(path)?;
        Self::parse(&path.display().to_string(), &text, sets, quick, recipes)
    }
}
