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
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: std::io::Error },
    #[error("driver `{driver}`: `{place}` cannot be rendered: {why}")]
    Template {
        driver: String,
        place: String,
        why: String,
    },
    /// A parameter is missing, unknown or out of its limits.
    #[error("driver `{driver}`, parameter `{param}`: {why}")]
    Param {
        driver: String,
        param: String,
        why: String,
    },
}

config::shown_as!(DriverError: Open, Mistakes);
