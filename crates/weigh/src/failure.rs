//! How a verb fails: a message and an exit status.

use std::fmt::Display;

use builds::BuildError;
use readings::url::without_users;

use crate::terminal::output::coloured_note;

/// Exit status when it could not be done.
const FAILED: u8 = 1;
/// Exit status when the arguments or files are wrong.
const WRONG_WORDS: u8 = 2;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// It could not be done on this machine.
    Failed(String),
    /// The arguments are wrong.
    Words(String),
    /// A file of the caller's is wrong, shown in the file.
    File(Box<miette::Report>),
    /// What a server needs before the run cannot be prepared.
    Build(Box<BuildError>),
    /// A signal came before there was anything to show; this is its exit status.
    Stopped(u8),
}

impl Failure {
    /// It could not be done.
    pub fn failed(why: impl Display) -> Self {
        Failure::Failed(why.to_string())
    }

    /// The arguments are wrong.
    pub fn words(why: impl Display) -> Self {
        Failure::Words(why.to_string())
    }

    /// A file of the caller's is wrong.
    pub fn file(why: impl miette::Diagnostic + Send + Sync + 'static) -> Self {
        Failure::File(Box::new(miette::Report::new(why)))
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Failed(_) => FAILED,
            Failure::Build(error) if !error.is_callers() => FAILED,
            Failure::Words(_) | Failure::File(_) | Failure::Build(_) => WRONG_WORDS,
            Failure::Stopped(status) => *status,
        }
    }

    /// Prints the message to standard error, with the users of URLs hidden.
    pub fn print(&self) {
        match self {
            Failure::Failed(text) | Failure::Words(text) => {
                eprintln!("weigh: {}", without_users(text));
            }
            Failure::Build(error) => eprintln!("weigh: {}", without_users(&error.to_string())),
            Failure::File(report) => coloured_note(&without_users(&format!("{report:?}"))),
            Failure::Stopped(_) => eprintln!("weigh: stopped before anything was measured"),
        }
    }
}
