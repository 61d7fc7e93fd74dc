//! What can be wrong with an experiment.

use miette::Diagnostic;

use config::{Mistakes, OpenError};

/// An experiment that cannot be run as it is written.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file could not be read as text.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// Neither an experiment of the catalogue nor a file.
    #[error("no experiment is called `{name}`, and no such file is there")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, or all names.
        help: String,
    },
}

impl ExperimentError {
    fn inner(&self) -> Option<&dyn Diagnostic> {
        match self {
            Self::Open(inner) => Some(inner),
            Self::Mistakes(inner) => Some(inner),
            Self::Unknown { .. } => None,
        }
    }
}

shows_its_inner!(ExperimentError, |error| match error {
    ExperimentError::Unknown { help, .. } => Some(help),
    _ => None,
});
