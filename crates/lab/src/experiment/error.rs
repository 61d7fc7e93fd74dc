//! What can be wrong with an experiment.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use super::source::{Mistakes, OpenError};

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

impl Diagnostic for ExperimentError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            Self::Unknown { help, .. } => Some(Box::new(help)),
            other => other.inner().and_then(Diagnostic::help),
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.inner().and_then(Diagnostic::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.inner().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        self.inner().and_then(Diagnostic::related)
    }
}
