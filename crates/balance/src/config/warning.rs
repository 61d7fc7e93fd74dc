//! What a configuration says that is accepted, but not as it may be meant.

use std::fmt;

/// Something to know about a configuration that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The file.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

/// What a [`Warning`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// No text of a Crossroads manual could be read on it, so that Crossroads may mean something
    /// else.
    Unconfirmed {
        /// The keyword or what is written.
        what: String,
        /// What it is taken to mean here.
        taken_as: &'static str,
    },
    /// It has no meaning here.
    Ignored {
        /// The keyword.
        what: String,
        /// Why it is of no use.
        why: &'static str,
    },
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
