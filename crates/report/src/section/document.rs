//! A report of one study: its sentences, drawing and table, then lists, in every form.

use super::{Part, Section};
use crate::markdown;
use crate::text::section::{self, Lists};
use crate::text::visible::one_line;

/// A whole report of a study.
pub(crate) struct Document<'a> {
    pub title: String,
    /// Sentences first, then a drawing and a table, as far as there are any.
    pub parts: Vec<Part<'a>>,
    pub sections: Vec<Section<'a>>,
    pub end: Option<String>,
    /// What only a document that is kept needs.
    pub footer: Option<String>,
}

impl Document<'_> {
    /// For a terminal of `width` columns.
    pub fn terminal(&self, width: usize) -> String {
        let mut out = format!("{}\n", one_line(&self.title));
        if !self.parts.is_empty() {
            out.push_str(&format!(
                "\n{}",
                section::parts(&self.parts, width, Lists::Plain)
            ));
        }
        for one in &self.sections {
            let items = section::parts(&one.parts, width, Lists::Dashed);
            out.push_str(&format!("\n{}\n{items}", one_line(&one.title)));
        }
        if let Some(end) = &self.end {
            out.push_str(&format!("\n{end}\n"));
        }
        out
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", markdown::escaped(&self.title));
        if !self.parts.is_empty() {
            out.push_str(&format!("\n{}", markdown::section::parts(&self.parts)));
        }
        for one in &self.sections {
            out.push_str(&markdown::section::section(one));
        }
        if let Some(end) = &self.end {
            out.push_str(&format!("\n{end}\n"));
        }
        if let Some(footer) = &self.footer {
            out.push_str(&format!("\n---\n\n{footer}\n"));
        }
        out
    }
}
