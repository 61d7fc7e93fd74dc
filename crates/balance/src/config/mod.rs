//! The balancer's configuration: two file forms, one model.
//!
//! A file whose name ends in `.toml` is in the native form ([`Syntax::Native`]); every other file is
//! a Crossroads 1.x configuration ([`Syntax::Crossroads`]). [`toml`](write::toml) prints a
//! configuration in the native form with every default written out, whichever form it came from.

mod address;
mod crossroads;
mod lists;
pub mod model;
mod native;
mod template;
mod validate;
mod warning;
pub mod write;

use std::fmt;
use std::path::Path;

use miette::{Diagnostic, LabeledSpan, SourceCode};
use written::reader::{Fault, Reader};
use written::{Mistakes, OpenError, open};

pub use crossroads::Includes;
pub use lists::access_rules;
pub use model::Config;
pub use template::{Part, Placeholders, Template, TemplateError};
pub use warning::{Warning, WarningKind};

/// Averages are kept over at most this many connections: each takes 8 bytes per back end and
/// thread.
pub const OVER_MAX: u32 = 65_536;

/// A form of configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML, with all that the balancer can do.
    Native,
    /// Crossroads 1.x.
    Crossroads,
}

impl Syntax {
    /// The form of a file of that name.
    pub fn of(path: &Path) -> Syntax {
        match path.extension() {
            Some(end) if end.eq_ignore_ascii_case("toml") => Syntax::Native,
            _ => Syntax::Crossroads,
        }
    }
}

/// A configuration that cannot be used as it is written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read as text.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There are mistakes, each with its place.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

impl ConfigError {
    /// The mistakes, in the order of their places; none when the file could not be read.
    pub fn mistakes(&self) -> &[written::Mistake] {
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

/// Reads a configuration file, of the form that its name tells, and the files that it includes.
///
/// # Errors
/// When a file cannot be read, or with all mistakes that were found.
pub fn parse_file(path: &Path) -> Result<(Config, Vec<Warning>), ConfigError> {
    let text = open::open(path)?;
    parse_text_with(
        &path.display().to_string(),
        &text,
        Syntax::of(path),
        &mut crossroads::FromDisk,
    )
}

/// Reads a configuration from a text; `name` is what messages call it. Nothing is included: a
/// directive that asks for it is a mistake.
///
/// # Errors
/// With all mistakes that were found.
pub fn parse_text(
    name: &str,
    text: &str,
    form: Syntax,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    parse_text_with(name, text, form, &mut crossroads::NoIncludes)
}

/// Reads a configuration from a text, and what it includes from `includes`.
///
/// # Errors
/// With all mistakes that were found.
pub fn parse_text_with(
    name: &str,
    text: &str,
    form: Syntax,
    includes: &mut dyn Includes,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut reader = Reader::new(name, text);
    let mut warnings = Vec::new();
    let config = match form {
        Syntax::Native => native::parse(&mut reader, text),
        Syntax::Crossroads => crossroads::parse(&mut reader, includes, &mut warnings),
    };
    let config = config.unwrap_or_else(|| {
        if reader.is_clean() {
            // Both give nothing only after a mistake was noted; say so rather than panic.
            reader.fault(Fault::of_the_file("the configuration could not be read"));
        }
        Config::new()
    });
    match reader.finish() {
        None => Ok((config, warnings)),
        Some(mistakes) => Err(mistakes.into()),
    }
}
