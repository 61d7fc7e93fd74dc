//! Sections in Markdown.

use super::{escaped, table};
use crate::section::{Part, Section};

const DRAWING_WIDTH: usize = 90;

/// A section with its heading, and a blank line before it.
pub(crate) fn section(section: &Section<'_>) -> String {
    format!("\n## {}\n\n{}", section.title, parts(&section.parts))
}

/// Parts, with a blank line between each two.
pub(crate) fn parts(all: &[Part<'_>]) -> String {
    let parts: Vec<String> = all.iter().map(rendered).collect();
    parts.join("\n")
}

fn rendered(part: &Part<'_>) -> String {
    match part {
        Part::List(items) | Part::Notes(items) | Part::Folded(_, items) | Part::Named(items) => {
            let items = items.iter().map(|item| format!("- {}\n", escaped(item)));
            items.collect()
        }
        Part::Table(columns, _) => table(columns),
        Part::Points(columns, legend) => format!("{}\n({})\n", table(columns), escaped(legend)),
        Part::Legend(text) => format!("({})\n", escaped(text)),
        Part::Drawing(caption, draw) => format!("{caption}\n\n```\n{}```\n", draw(DRAWING_WIDTH)),
        Part::Lead(text) => format!("{}\n", escaped(text)),
        Part::Long(part) => rendered(part),
    }
}
