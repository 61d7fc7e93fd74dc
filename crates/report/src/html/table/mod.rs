//! Tables of the page. A click sorts them, and none is wider than the page.

pub(crate) mod bottlenecks;
pub(crate) mod profiles;
pub(crate) mod proof;
pub(crate) mod settings_table;
pub(crate) mod summary_table;
pub(crate) mod verdicts;

use crate::html::picture::svg::{escaped, prose};
use crate::section::columns::Columns;

/// A column with at least this many characters gets the width of a line of text.
const LONG: usize = 24;

/// Columns as a table that can be sorted, in a box that scrolls where it is wider than the page.
pub(crate) fn table(columns: &Columns, label: &str) -> String {
    boxed(&plain_table(columns), label, "scroll")
}

/// A box for a table that can be reached with the keyboard.
pub fn boxed(table: &str, label: &str, class: &str) -> String {
    format!(
        "<div class=\"{class}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{table}</div>\n",
        escaped(label)
    )
}

fn plain_table(columns: &Columns) -> String {
    let long: Vec<bool> = (0..columns.head.len())
        .map(|at| {
            let cells = columns.rows.iter().filter_map(|row| row.get(at));
            !columns.numeric[at] && cells.map(|cell| cell.chars().count()).max() > Some(LONG)
        })
        .collect();
    let row = |cells: &[String], tag: &str, scope: &str| {
        let cells = cells.iter().enumerate().map(|(at, cell)| {
            let class = match (columns.numeric[at], long[at]) {
                (true, _) => " class=\"n\"",
                (_, true) => " class=\"long\"",
                _ => "",
            };
            format!("<{tag}{scope}{class}>{}</{tag}>", escaped(cell))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let head = row(&columns.head, "th", " scope=\"col\"");
    let body: String = columns.rows.iter().map(|r| row(r, "td", "")).collect();
    format!("<table class=\"sorts\">\n<thead>\n{head}</thead>\n<tbody>\n{body}</tbody>\n</table>\n")
}

/// A section of the page; nothing without a body.
pub fn section(id: &str, title: &str, body: &str) -> String {
    match body.is_empty() {
        true => String::new(),
        false => format!(
            "<section id=\"{id}\">\n<h2>{}</h2>\n{body}</section>\n",
            escaped(title)
        ),
    }
}

/// Items as a list; nothing without an item.
pub fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items
        .map(|item| format!("<li>{}</li>\n", prose(&item)))
        .collect();
    match items.is_empty() {
        true => items,
        false => format!("<ul>\n{items}</ul>\n"),
    }
}

/// A folded part; empty without a body.
pub fn folded(summary: &str, body: &str) -> String {
    match body.is_empty() {
        true => String::new(),
        false => format!(
            "<details>\n<summary>{}</summary>\n{body}</details>\n",
            escaped(summary)
        ),
    }
}
