//! Why files could not be read.

use std::path::PathBuf;

use config::{Mistakes, OpenError};

/// Files of requests, feeds or logs that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RequestsError {
    /// A file that cannot be opened as text.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Mistakes in a file.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A file that is not there, or may not be read.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable {
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// A file that is too large to be kept in memory.
    #[error("{} is larger than {} MiB, the limit for this kind of file", path.display(), most >> 20)]
    TooLarge { path: PathBuf, most: u64 },
    /// A file that is not UTF-8.
    #[error(
        "{}, line {line}, column {column}: this is not UTF-8 text; save the file as UTF-8",
        path.display()
    )]
    NotText {
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// A recording, or a log, with nothing to send, or too much.
    #[error("{}: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
}

config::shown_as!(RequestsError: Open, Mistakes);
