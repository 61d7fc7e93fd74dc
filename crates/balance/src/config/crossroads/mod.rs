//! The form of Crossroads 1.x.
//!
//! ```text
//! file      = { service }
//! service   = "service" identifier "{" { statement | backend } "}"
//! backend   = "backend" identifier "{" { statement } "}"
//! statement = keyword string ";"
//! ```
//!
//! The text goes through a lexer ([`lexer`]), `#include` and `#define` ([`preprocess`]), the
//! grammar ([`parse`]), which gives blocks of statements ([`ast`]), and is then turned into the
//! model ([`service`], [`backend`]). Mistakes are noted on the way; each stage goes on after one as
//! well as it can.

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

use written::open;
use written::reader::{Fault, Reader};
use written::tree::Place;

use super::model::Config;
use super::validate::{self, HelpTerms};
use super::warning::Warning;

/// Where `#include` finds its files.
pub trait Includes {
    /// Reads the file that a file called `from` names. Returns what messages call it, and its
    /// text of at most 1 MiB.
    ///
    /// # Errors
    /// Why it cannot be read, as a fragment.
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String>;
}

/// Files on the disk, by their path or beside the file that includes them.
pub(super) struct FromDisk;

impl Includes for FromDisk {
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String> {
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let text = open::open(&path).map_err(|error| error.to_string())?;
        Ok((path.display().to_string(), text))
    }
}

/// No files: for texts that stand in none.
pub(super) struct NoIncludes;

impl Includes for NoIncludes {
    fn read(&mut self, _: &str, name: &str) -> Result<(String, String), String> {
        Err(format!(
            "{name} cannot be included: there are no files here"
        ))
    }
}

/// Reads the reader's first source. `None`: there was a mistake, and it was noted.
pub(super) fn parse(
    reader: &mut Reader,
    includes: &mut dyn Includes,
    warnings: &mut Vec<Warning>,
) -> Option<Config> {
    let tokens = preprocess::tokens(reader, includes);
    let file = parse::file(reader, &tokens);
    if file.services.is_empty() && reader.is_clean() {
        reader.fault(Fault::of_the_file("expected a service, found none").help(
            "the least there can be: service web { port 8080; backend one { server \
                 127.0.0.1:8081; } }",
        ));
    }
    let mut diagnostics = Diagnostics {
        reader,
        warnings: Vec::new(),
    };
    let located = service::services(&mut diagnostics, &file);
    let mut config = Config::new();
    let words = HelpTerms { http: "type http;" };
    validate::check(diagnostics.reader, &located, &config, &words);
    *warnings = diagnostics.warnings;
    config.services = located.into_iter().map(|located| located.service).collect();
    reader.is_clean().then_some(config)
}

/// The reader that mistakes are noted in, and the warnings so far.
struct Diagnostics<'r> {
    reader: &'r mut Reader,
    warnings: Vec<Warning>,
}

impl Diagnostics<'_> {
    fn fault(&mut self, fault: Fault) {
        self.reader.fault(fault);
    }

    fn warn(&mut self, place: Place, kind: super::warning::WarningKind) {
        // As many as mistakes are kept; a file of noise would give thousands.
        const MOST: usize = 1000;
        if self.warnings.len() >= MOST {
            return;
        }
        let (name, text) = self.reader.source(place.source).unwrap_or_default();
        let (line, column) = written::reader::line_and_column(text, place.start);
        self.warnings.push(Warning {
            kind,
            file: name.to_owned(),
            line,
            column,
        });
    }
}
