//! What can be wrong with a driver.

use std::path::PathBuf;

use config::{Mistakes, OpenError};

/// A driver that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// Its `driver.toml` could not be read as text.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its `driver.toml` has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A folder of drivers cannot be read.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// A template cannot be filled in.
    #[error("driver `{driver}`: `{place}` cannot be rendered: {why}")]
    Template {
        driver: String,
        /// The key or the word.
        place: String,
        /// What the template engine says.
        why: String,
    },
    /// A parameter is missing, unknown or out of its limits.
    #[error("driver `{driver}`, parameter `{param}`: {why}")]
    Param {
        driver: String,
        /// The parameter.
        param: String,
        /// What was expected.
        why: String,
    },
}

config::shown_as!(DriverError: Open, Mistakes);
