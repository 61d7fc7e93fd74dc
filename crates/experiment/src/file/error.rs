//! Why an experiment cannot be used.

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
    #[error("no experiment is called `{name}`, and no such file exists")]
    Unknown {
        name: String,
        /// The nearest name, or all names.
        help: String,
    },
}

config::shown_as!(ExperimentError: Open, Mistakes; Self::Unknown { help, .. } => help);
