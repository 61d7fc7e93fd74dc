//! What all pages share: names of files, links, the frame.

use std::collections::BTreeSet;

use readings::Utc;
use report::drawing::{escaped, shell_with};
use serde_json::Value;

use crate::File;

const STYLE: &str = include_str!("style/board.css");
const SCRIPT: &str = include_str!("style/board.js");

pub(crate) const PAGE_BYTES_MAX: usize = 980_000;

/// A page without its frame.
pub(crate) struct Content {
    pub title: String,
    pub main: String,
}

pub(crate) fn page(name: &str, content: &Content) -> File {
    File {
        name: format!("{name}.html"),
        text: shell_with(&content.title, &content.main, STYLE, SCRIPT),
    }
}

pub(crate) fn document(name: &str, document: &Value) -> File {
    // Cannot fail: keys are strings.
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    File {
        name: format!("{name}.json"),
        text: report::visible_json(&text).into_owned() + "\n",
    }
}

/// How many bytes the frame of a page takes.
pub(crate) fn frame_bytes() -> usize {
    shell_with("", "", STYLE, SCRIPT).len() + 4_000
}

/// Names that are safe in files and URLs, each once.
#[derive(Default)]
pub(crate) struct Slugs(BTreeSet<String>);

impl Slugs {
    /// `kind-name`, with a number where that was given already. Case makes no difference, as on some
    /// file systems.
    pub fn of(&mut self, kind: &str, name: &str) -> String {
        const LENGTH_MAX: usize = 80;
        let text = format!("{kind}-{name}").to_lowercase();
        let kept = text.chars().map(|c| match c {
            'a'..='z' | '0'..='9' | '-' | '_' => c,
            _ => '-',
        });
        let slug: String = kept.take(LENGTH_MAX).collect();
        let numbered = (2..).map(|number| format!("{slug}-{number}"));
        let mut all = std::iter::once(slug.clone()).chain(numbered);
        // Cannot end: there are more numbers than names.
        let free = all.find(|one| !self.0.contains(one)).unwrap_or(slug);
        self.0.insert(free.clone());
        free
    }
}

pub(crate) fn link(to: &str, text: &str) -> String {
    format!("<a href=\"{to}\">{}</a>", escaped(text))
}

/// The way back to the index, and to the data of the page.
pub(crate) fn above(name: &str) -> String {
    format!(
        "<p class=\"above\"><a href=\"index.html\">All experiments</a> <a href=\"{name}.json\">Data \
         of this page</a></p>\n"
    )
}

/// `2026-03-01`; nothing where the journal does not say.
pub(crate) fn day(unix_s: u64) -> String {
    match unix_s {
        0 => String::new(),
        unix_s => {
            let at = Utc::of(unix_s);
            format!("{:04}-{:02}-{:02}", at.year, at.month, at.day)
        }
    }
}

/// A table from a head and rows of cells that are HTML already. The columns of `numbers` stand to the
/// right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], numbers: &[usize]) -> String {
    let class = |at: usize| match numbers.contains(&at) {
        true => " class=\"n\"",
        false => "",
    };
    let heads = head.iter().enumerate();
    let heads = heads.map(|(at, text)| format!("<th scope=\"col\"{}>{text}</th>", class(at)));
    let row = |cells: &Vec<String>| {
        let cells = cells.iter().enumerate();
        let cells = cells.map(|(at, cell)| match at {
            0 => format!("<th scope=\"row\">{cell}</th>"),
            at => format!("<td{} data-label=\"{}\">{cell}</td>", class(at), head[at]),
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    format!(
        "<table class=\"sorts\">\n<thead>\n<tr>{}</tr>\n</thead>\n<tbody>\n{}</tbody>\n</table>\n",
        heads.collect::<String>(),
        rows.iter().map(row).collect::<String>()
    )
}
