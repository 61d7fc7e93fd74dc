//! Sections of the page.

use super::picture::svg::escaped;
use super::table::{folded, list, section as framed, table};
use crate::section::{Part, Section};

/// A section with its heading; empty without one.
pub(crate) fn section(of: Option<&Section<'_>>) -> String {
    of.map_or_else(String::new, |one| {
        framed(one.id, &one.title, &parts(&one.parts))
    })
}

/// Parts of a section, one after another.
pub(crate) fn parts(all: &[Part<'_>]) -> String {
    all.iter().map(part).collect()
}

pub(crate) fn part(part: &Part<'_>) -> String {
    match part {
        Part::List(items) | Part::Named(items) => list(items.iter().cloned()),
        Part::Notes(items) => {
            let items = items.iter();
            items
                .map(|text| format!("<p class=\"sub\">{}</p>\n", escaped(text)))
                .collect()
        }
        Part::Folded(summary, items) => folded(summary, &list(items.iter().cloned())),
        Part::Table(columns, label) => table(columns, label),
        Part::Points(columns, _) => folded("All points", &table(columns, "all points")),
        Part::Legend(text) => format!("<p class=\"sub\">({})</p>\n", escaped(text)),
        // The page has a picture instead.
        Part::Drawing(..) => String::new(),
        Part::Lead(text) => format!("<p class=\"sub\">{}</p>\n", escaped(text)),
        Part::Long(inner) => self::part(inner),
    }
}
