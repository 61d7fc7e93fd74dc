//! The configuration: two syntaxes, one model.
//!
//! Files that end in `.toml` are TOML ([`Syntax::Native`]), all others are Crossroads 1.x
//! ([`Syntax::Crossroads`]). [`toml`](write::toml) prints a configuration as TOML with every
//! default.

mod address;
mod crossroads;
mod error;
mod lists;
pub mod model;
mod native;
mod template;
pub mod tls;
mod validate;
mod warning;
pub mod write;

use std::path::Path;

use ::config::open;
use ::config::reader::{Problem, Reader};

pub use crossroads::Includes;
pub use error::ConfigError;
pub use lists::access_rules;
pub use model::{Config, OVER_MAX};
pub use template::{Part, Placeholders, Template, TemplateError};
pub use warning::{Warning, WarningKind};

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
