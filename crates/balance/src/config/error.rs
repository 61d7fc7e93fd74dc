//! Why a configuration cannot be used.

use std::fmt;

use ::config::{Mistakes, OpenError};
use miette::{Diagnostic, LabeledSpan, SourceCode};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

impl ConfigError {
    /// The errors, by location; none if the file could not be read.
    pub fn mistakes(&self) -> &[::config::Mistake] {
        match self {
            Self::Open(_) => &[],
            Self::Mistakes(mistakes) => mistakes.all(),
        }
    }

    fn inner(&self) -> &dyn Diagnostic {
        match self {
            Self::Open(inner) => inner,
            Self::Mistakes(inner) => inner,
        }
    }
}

impl Diagnostic for ConfigError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.inner().help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.inner().source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.inner().labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        self.inner().related()
    }
}
