//! Warnings about an accepted configuration.

use std::fmt;

use ::config::reader::{Reader, line_and_column};
use ::config::tree::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

/// What a [`Warning`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// No Crossroads manual confirms the meaning used here.
    Unconfirmed {
        /// The keyword or value.
        what: String,
        /// The meaning used here.
        taken_as: &'static str,
    },
    /// It has no effect here.
    Ignored {
        /// The keyword.
        what: String,
        why: &'static str,
    },
}

impl Warning {
    /// About what stands at a place.
    pub(super) fn at(reader: &Reader, place: Place, kind: WarningKind) -> Self {
        let (name, text) = reader.source(place.source).unwrap_or_default();
        let (line, column) = line_and_column(text, place.start);
        Self {
            kind,
            file: name.to_owned(),
            line,
            column,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        match &self.kind {
            WarningKind::Unconfirmed { what, taken_as } => {
                write!(f, "`{what}` is unconfirmed; here it means: {taken_as}")
            }
            WarningKind::Ignored { what, why } => write!(f, "`{what}` is ignored: {why}"),
        }
    }
}
