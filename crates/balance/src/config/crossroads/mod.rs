//! The syntax of Crossroads 1.x.
//!
//! ```text
//! file      = { service }
//! service   = "service" identifier "{" { statement | backend } "}"
//! backend   = "backend" identifier "{" { statement } "}"
//! statement = keyword string ";"
//! ```
//!
//! Stages: lexer ([`lexer`]), preprocessor ([`preprocess`]), parser ([`parse`]), which gives blocks
//! of statements ([`ast`]), and conversion to the model ([`service`], [`backend`]). Each stage
//! reports errors and goes on.

mod ast;
mod backend;
mod keywords;
mod lexer;
mod parse;
mod preprocess;
mod service;
#[cfg(test)]
mod tests;
mod values;

use std::path::Path;

use ::config::open;
use ::config::reader::{Problem, Reader};
use ::config::tree::Place;

use super::model::Config;
use super::validate::{self, HelpTerms};
use super::warning::Warning;

/// Resolves `#include`.
pub trait Includes {
    /// Reads the file `name`, included by `from`. Returns its name for messages, and its text of at
    /// most 1 MiB.
    ///
    /// # Errors
    /// Why it cannot be read, as a fragment.
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String>;
}

/// Reads files; relative paths start at the including file.
pub(super) struct FromDisk;

impl Includes for FromDisk {
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = open::open(&path).map_err(|error| error.to_string())?;
        Ok((path.display().to_string(), text))
    }
}

pub(super) struct NoIncludes;

impl Includes for NoIncludes {
    fn read(&mut self, _: &str, name: &str) -> Result<(String, String), String> {
        Err(format!(
            "{name} cannot be included: there are no files here"
        ))
    }
}

/// Parses the first source. `None` after reporting an error.
pub(super) fn parse(
    reader: &mut Reader,
    includes: &mut dyn Includes,
    warnings: &mut Vec<Warning>,
) -> Option<Config> {
    let tokens = preprocess::tokens(reader, includes);
    let file = parse::file(reader, &tokens);
    if file.services.is_empty() && reader.is_clean() {
        reader.report(Problem::of_the_file("expected a service, found none").help(
            "a minimal file: service web { port 8080; backend one { server \
                 127.0.0.1:8081; } }",
        ));
    }
    let mut diagnostics = Diagnostics {
        reader,
        warnings: Vec::new(),
    };
    let located = service::services(&mut diagnostics, &file);
    let mut config = Config::new();
    let terms = HelpTerms { http: "type http;" };
    validate::check(diagnostics.reader, &located, &config, &terms);
    *warnings = diagnostics.warnings;
    config.services = located.into_iter().map(|located| located.service).collect();
    reader.is_clean().then_some(config)
}

struct Diagnostics<'r> {
    reader: &'r mut Reader,
    warnings: Vec<Warning>,
}

impl Diagnostics<'_> {
    fn report(&mut self, fault: Problem) {
        self.reader.report(fault);
    }

    fn warn(&mut self, place: Place, kind: super::warning::WarningKind) {
        // As many as errors: noise could give thousands.
        const WARNINGS_MAX: usize = 1000;
        if self.warnings.len() >= WARNINGS_MAX {
            return;
        }
        self.warnings.push(Warning::at(self.reader, place, kind));
    }
}
