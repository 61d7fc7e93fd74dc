//! The configuration: two syntaxes, one model.
//!
//! Files that end in `.toml` are TOML ([`Syntax::Native`]), all others are Crossroads 1.x
//! ([`Syntax::Crossroads`]). [`toml`](write::toml) prints a configuration as TOML with every
//! default.

mod address;
mod crossroads;
mod lists;
pub mod model;
mod native;
mod template;
pub mod tls;
mod validate;
mod warning;
pub mod write;

use std::fmt;
use std::path::Path;

use ::config::reader::{Problem, Reader};
use ::config::{Mistakes, OpenError, open};
use miette::{Diagnostic, LabeledSpan, SourceCode};

pub use crossroads::Includes;
pub use lists::access_rules;
pub use model::Config;
pub use template::{Part, Placeholders, Template, TemplateError};
pub use warning::{Warning, WarningKind};

/// Limit of `over`, which takes 8 bytes per value, back end and thread.
pub const OVER_MAX: u32 = 65_536;

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML, with every feature.
    Native,
    /// Crossroads 1.x.
    Crossroads,
}

impl Syntax {
    /// The syntax of a file, by its name.
    pub fn of(path: &Path) -> Syntax {
        match path.extension() {
            Some(end) if end.eq_ignore_ascii_case("toml") => Syntax::Native,
            _ => Syntax::Crossroads,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read as text.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has errors.
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

/// Reads a configuration file and what it includes.
///
/// # Errors
/// When a file cannot be read, or with all errors found.
pub fn parse_file(path: &Path) -> Result<(Config, Vec<Warning>), ConfigError> {
    let text = open::open(path)?;
    parse_text_with(
        &path.display().to_string(),
        &text,
        Syntax::of(path),
        &mut crossroads::FromDisk,
    )
}

/// Parses a configuration; `name` is used in messages. Includes are errors.
///
/// # Errors
/// With all errors found.
pub fn parse_text(
    name: &str,
    text: &str,
    form: Syntax,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    parse_text_with(name, text, form, &mut crossroads::NoIncludes)
}

/// Parses a configuration, with includes from `includes`.
///
/// # Errors
/// With all errors found.
pub fn parse_text_with(
    name: &str,
    text: &str,
    form: Syntax,
    includes: &mut dyn Includes,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut reader = Reader::new(name, text);
    let mut warnings = Vec::new();
    let config = match form {
        Syntax::Native => native::parse(&mut reader, text, &mut warnings),
        Syntax::Crossroads => crossroads::parse(&mut reader, includes, &mut warnings),
    };
    let config = config.unwrap_or_else(|| {
        if reader.is_clean() {
            // A parser without a result has reported an error; otherwise report one here rather
            // than panic.
            reader.report(Problem::of_the_file("the configuration could not be read"));
        }
        Config::new()
    });
    match reader.finish() {
        None => Ok((config, warnings)),
        Some(mistakes) => Err(mistakes.into()),
    }
}
