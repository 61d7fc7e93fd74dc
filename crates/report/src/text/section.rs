//! Sections for a terminal.

use crate::section::Part;
use crate::text::grid::{grid, wrapped};

/// How many lines of a long list are named one by one.
const NAMED_MAX: usize = 8;

#[derive(Clone, Copy)]
pub(crate) enum Lists {
    /// Indented below the heading.
    Indented,
    /// Each item after a dash.
    Dashed,
    /// Each item a paragraph of its own.
    Plain,
}

/// Those parts that a terminal has room for, at most `width` columns wide; the heading is
/// the caller's. Empty where there is none.
pub(crate) fn parts(all: &[Part<'_>], width: usize, lists: Lists) -> String {
    let mut out = String::new();
    for part in all {
        let is_first = out.is_empty();
        out.push_str(&rendered(part, width, lists, is_first));
    }
    out
}

fn rendered(part: &Part<'_>, width: usize, lists: Lists, is_first: bool) -> String {
    let item = |text: &String| match lists {
        Lists::Indented => wrapped("  ", text, 4, width),
        Lists::Dashed => wrapped("- ", text, 2, width),
        Lists::Plain => wrapped("", text, 0, width),
    };
    // A line apart from the sentences before.
    let apart = |text: String| match is_first {
        true => text,
        false => format!("\n{text}"),
    };
    match part {
        Part::List(items) | Part::Notes(items) | Part::Folded(_, items) => {
            items.iter().map(item).collect()
        }
        Part::Named(items) => {
            let more = items.len().saturating_sub(NAMED_MAX);
            let named: String = items.iter().take(NAMED_MAX).map(item).collect();
            match more {
                0 => named,
                more => format!("{named}  and {more} more\n"),
            }
        }
        Part::Table(columns, _) => apart(grid(columns, width)),
        Part::Points(columns, legend) => {
            apart(grid(columns, width)) + &wrapped("  ", &format!("({legend})"), 2, width)
        }
        Part::Legend(text) => wrapped("  ", text, 2, width),
        Part::Drawing(caption, draw) => apart(wrapped("", caption, 0, width)) + &draw(width),
        Part::Lead(text) => apart(wrapped("", text, 0, width)),
        Part::Long(_) => String::new(),
    }
}
