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

use ::config::reader::{Problem, Reader};

use super::model::Config;
use super::validate::{self, HelpTerms};
use super::warning::Warning;
pub use preprocess::Includes;
pub(super) use preprocess::{FromDisk, NoIncludes};
use values::Diagnostics;

/// Parses the first source. `None` after reporting an error.
pub(super) fn parse(
    reader: &mut Reader,
    includes: &mut dyn Includes,
    warnings: &mut Vec<Warning>,
) -> Option<Config> {
    if is_of_version_2(reader.source(0)?.1) {
        reader.report(
            Problem::of_the_file("Crossroads 2.x has options of `xr`, and no files of this kind")
                .help("write the options as TOML, into a file whose name ends in `.toml`"),
        );
        return None;
    }
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

/// Whether a text is a command line of `xr`, or the XML of `xrctl`.
fn is_of_version_2(text: &str) -> bool {
    let has_xr = |line: &str| {
        let mut words = line.split_whitespace().take(4);
        words.any(|word| word == "xr" || word.ends_with("/xr"))
    };
    let is_of_1 = |line: &str| line.trim_start().starts_with("service ");
    !text.lines().any(is_of_1) && (text.contains("<configuration") || text.lines().any(has_xr))
}
