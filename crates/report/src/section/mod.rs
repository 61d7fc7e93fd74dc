//! What a report holds, whatever form it takes: sections of parts, which [`text`](crate::text),
//! [`markdown`](crate::markdown) and [`html`](crate::html) each render.

pub(crate) mod by_request;
pub(crate) mod columns;
pub(crate) mod curve_table;
pub(crate) mod document;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod tiers;

use crate::section::columns::Columns;

pub(crate) struct Section<'a> {
    /// Its anchor on a page.
    pub id: &'static str,
    pub title: String,
    pub parts: Vec<Part<'a>>,
}

pub(crate) enum Part<'a> {
    /// Sentences, an item each.
    List(Vec<String>),
    /// Sentences on what stands before them.
    Notes(Vec<String>),
    /// Sentences below a summary, folded on a page.
    Folded(&'static str, Vec<String>),
    /// Lines of which a terminal names the first few.
    Named(Vec<String>),
    /// A table, with what a screen reader calls it.
    Table(Columns, &'static str),
    /// A long table with its legend, folded on a page.
    Points(Columns, String),
    /// What stands for what in the table before.
    Legend(String),
    /// A drawing in characters for a width, below its caption.
    Drawing(String, Box<dyn Fn(usize) -> String + 'a>),
    /// What a terminal has no room for.
    Long(Box<Part<'a>>),
    /// A line before a table.
    Lead(String),
}

impl<'a> Part<'a> {
    pub fn long(self) -> Self {
        Part::Long(Box::new(self))
    }

    fn is_empty(&self) -> bool {
        match self {
            Part::List(items)
            | Part::Notes(items)
            | Part::Folded(_, items)
            | Part::Named(items) => items.is_empty(),
            Part::Table(columns, _) | Part::Points(columns, _) => columns.rows.is_empty(),
            Part::Long(part) => part.is_empty(),
            Part::Legend(_) | Part::Lead(_) | Part::Drawing(..) => false,
        }
    }
}

impl<'a> Section<'a> {
    /// A section of the parts that hold anything; `None` if none does.
    pub fn of(id: &'static str, title: impl Into<String>, parts: Vec<Part<'a>>) -> Option<Self> {
        let parts: Vec<Part<'a>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| Section {
            id,
            title: title.into(),
            parts,
        })
    }

    /// A section of sentences.
    pub fn list(
        id: &'static str,
        title: &str,
        items: impl Iterator<Item = String>,
    ) -> Option<Self> {
        Self::of(id, title, vec![Part::List(items.collect())])
    }
}
