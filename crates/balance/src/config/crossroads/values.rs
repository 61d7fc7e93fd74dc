//! Values of statements: numbers, booleans, addresses, templates.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ::config::nearest::suggestion;
use ::config::reader::{Problem, Reader};
use ::config::tree::Place;
use ::config::units::shown;

use super::ast::{Block, Statement};
use super::keywords::repeats;
use crate::config::template::{Part, Template};
use crate::config::validate::is_printable;
use crate::config::warning::{Warning, WarningKind};

/// Where the parts of a configuration report what is wrong with them.
pub(super) struct Diagnostics<'r> {
    pub(super) reader: &'r mut Reader,
    pub(super) warnings: Vec<Warning>,
}

/// Reports repeated keywords.
pub(super) fn once_each(diagnostics: &mut Diagnostics<'_>, block: &Block) {
    let mut seen: HashMap<&str, &Statement> = HashMap::new();
    for statement in &block.statements {
        if repeats(&statement.keyword) {
            continue;
        }
        if let Some(first) = seen.insert(&statement.keyword, statement) {
            diagnostics.report(
                Problem::at(
                    statement.place,
                    format!(
                        "`{}` is given twice in `{}`",
                        statement.keyword,
                        shown(&block.name)
                    ),
                    "the second time",
                )
                .and(first.place, "the first time"),
            );
        }
    }
}

impl Diagnostics<'_> {
    pub(super) fn report(&mut self, fault: Problem) {
        self.reader.report(fault);
    }

    fn warn(&mut self, place: Place, kind: WarningKind) {
        // As many as errors: noise could give thousands.
        const WARNINGS_MAX: usize = 1000;
        if self.warnings.len() >= WARNINGS_MAX {
            return;
        }
        self.warnings.push(Warning::at(self.reader, place, kind));
    }

    /// Reports an invalid value.
    pub fn expected(&mut self, statement: &Statement, what: &str) -> Problem {
        let found = match statement.value.as_str() {
            "" => "nothing".to_owned(),
            other => format!("`{}`", shown(other)),
        };
        let fault = Problem::at(
            statement.value_place,
            format!("`{}` takes {what}, found {found}", statement.keyword),
            format!("expected {what}"),
        );
        // A value over two lines: the first `;` is missing.
        let (_, text) = self
            .reader
            .source(statement.value_place.source)
            .unwrap_or_default();
        let lines = text
            .get(statement.value_place.start..statement.value_place.end)
            .is_some_and(|value| value.contains('\n'));
        if lines {
            fault.help("is a `;` missing at the end of the first line?")
        } else {
            fault
        }
    }

    pub fn number(&mut self, statement: &Statement, range: RangeInclusive<u64>) -> Option<u64> {
        let text = &statement.value;
        let what = format!("a number from {} to {}", range.start(), range.end());
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Anything over 64 bits is out of range.
        let number = text.parse::<u64>().ok().filter(|n| range.contains(n));
        if !plain || number.is_none() {
            let fault = self.expected(statement, &what);
            self.report(fault);
            return None;
        }
        number
    }

    pub fn count(&mut self, statement: &Statement, range: RangeInclusive<u32>) -> Option<u32> {
        self.number(
            statement,
            u64::from(*range.start())..=u64::from(*range.end()),
        )
        .and_then(|number| u32::try_from(number).ok())
    }

    /// Seconds, up to a week.
    pub fn seconds(&mut self, statement: &Statement) -> Option<std::time::Duration> {
        const WEEK_S: u64 = 7 * 24 * 3600;
        self.number(statement, 0..=WEEK_S)
            .map(std::time::Duration::from_secs)
    }

    /// A limit; 0 is taken for none.
    pub fn limit(&mut self, statement: &Statement) -> Option<u32> {
        let number = self.count(statement, 0..=u32::MAX)?;
        if number == 0 {
            self.unconfirmed(statement, "0", "no limit");
            return None;
        }
        Some(number)
    }

    pub fn boolean(&mut self, statement: &Statement) -> Option<bool> {
        match statement.value.as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            other => {
                let fault = self.expected(statement, "true, yes, on, false, no or off");
                self.report(fault.help(suggestion(
                    other,
                    "booleans",
                    ["true", "yes", "on", "false", "no", "off"],
                )));
                None
            }
        }
    }

    /// Text that is not empty and has no control characters.
    pub fn text(&mut self, statement: &Statement, what: &str) -> Option<String> {
        let text = &statement.value;
        if !is_printable(text) {
            let fault = self.expected(statement, what);
            self.report(fault);
            return None;
        }
        Some(text.clone())
    }

    pub fn path(&mut self, statement: &Statement) -> Option<PathBuf> {
        self.text(statement, "the name of a file")
            .map(PathBuf::from)
    }

    /// Text with placeholders.
    pub fn template(&mut self, statement: &Statement, text: &str) -> Option<Template> {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => {
                self.report(
                    Problem::at(
                        statement.value_place,
                        format!("`{}`: {error}", statement.keyword),
                        "a percent sign that is to stay one is doubled",
                    )
                    .help("%r is the client's address, %b the back end's name, %s the service's"),
                );
                return None;
            }
        };
        for (part, letter, taken_as) in [
            (Part::Backend, "%b", "the back end's name"),
            (Part::Service, "%s", "the service's name"),
        ] {
            if template.parts().contains(&part) {
                self.unconfirmed(statement, letter, taken_as);
            }
        }
        Some(template)
    }

    /// Warns about a meaning that no manual confirms.
    pub fn unconfirmed(&mut self, statement: &Statement, what: &str, taken_as: &'static str) {
        self.warn(
            statement.place,
            WarningKind::Unconfirmed {
                what: format!("{} {what}", statement.keyword)
                    .trim_end()
                    .to_owned(),
                taken_as,
            },
        );
    }

    /// Warns about a keyword without effect.
    pub fn ignored(&mut self, statement: &Statement, why: &'static str) {
        self.warn(
            statement.place,
            WarningKind::Ignored {
                what: statement.keyword.clone(),
                why,
            },
        );
    }
}
