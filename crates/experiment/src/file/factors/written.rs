//! `[factors]` as it was written, before it is known what each factor changes.

use crate::manifest::{Param, ReadValue as _, Value};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Node, Place, Tree};
use config::units::shown;

/// More conditions than this would run for weeks.
const MOST_CONDITIONS: usize = 1000;
const MOST_FACTORS: usize = 16;

/// A factor as it was written, before it is known what it changes.
#[derive(Debug)]
pub(crate) struct WrittenFactor {
    pub name: String,
    pub place: Place,
    pub levels: Vec<WrittenLevel>,
}

#[derive(Debug)]
pub(crate) struct WrittenLevel {
    pub node: Node,
    pub value: Value,
    pub text: String,
}

/// Reads names and levels. Nested tables were made dotted names before.
pub(crate) fn read(reader: &mut Reader, top: &Section<'_>) -> Vec<WrittenFactor> {
    let Some(section) = top.section(reader, "factors") else {
        return Vec::new();
    };
    let entries = &section.table.entries;
    if entries.len() > MOST_FACTORS {
        reader.report(Problem::at(
            entries[MOST_FACTORS].place,
            format!("{} factors are too many", entries.len()),
            format!("expected at most {MOST_FACTORS}"),
        ));
    }
    let mut factors = Vec::new();
    let mut conditions = 1usize;
    for entry in entries.iter().take(MOST_FACTORS) {
        let path = section.name_of(&entry.name);
        let Tree::Array(items) = &entry.node.tree else {
            reader.expected(&entry.node, &path, "a list of levels, such as [96, 400]");
            continue;
        };
        if items.is_empty() {
            reader.advise(
                entry.node.place,
                format!("the factor `{}` is empty", shown(&entry.name)),
                "expected at least one level",
                "remove the factor if it varies nothing",
            );
        }
        conditions = conditions.saturating_mul(items.len().max(1));
        if conditions > MOST_CONDITIONS {
            reader.report(Problem::at(
                entry.node.place,
                format!("the factors make more than {MOST_CONDITIONS} conditions"),
                "too many levels with those above",
            ));
            break;
        }
        factors.push(WrittenFactor {
            name: entry.name.clone(),
            place: entry.place,
            levels: levels(reader, &path, items),
        });
    }
    factors
}

/// A level as text; reading it gives the same.
pub(crate) fn level_text(node: &Node) -> String {
    match &node.tree {
        Tree::Text(text) | Tree::Huge(text) | Tree::Date(text) => text.clone(),
        Tree::Integer(number) => number.to_string(),
        Tree::Float(number) => format!("{number:?}"),
        Tree::Boolean(value) => value.to_string(),
        Tree::Array(items) => items.iter().map(level_text).collect::<Vec<_>>().join(","),
        Tree::Table(table) => {
            let part = |entry: &Entry| format!("{} {}", entry.name, level_text(&entry.node));
            table
                .entries
                .iter()
                .map(part)
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

fn levels(reader: &mut Reader, path: &str, items: &[Node]) -> Vec<WrittenLevel> {
    let mut levels: Vec<WrittenLevel> = Vec::new();
    for item in items {
        let value = match &item.tree {
            Tree::Table(_) => Value::Text(level_text(item)),
            _ => match reader.value(item, &format!("{path}[]")) {
                Some(value) => value,
                None => continue,
            },
        };
        let text = value.to_string();
        if let Some(first) = levels.iter().find(|level| level.text == text) {
            reader.report(
                Problem::at(
                    item.place,
                    format!("`{path}` lists the level `{}` twice", shown(&text)),
                    "the second",
                )
                .and(first.node.place, "the first"),
            );
            continue;
        }
        levels.push(WrittenLevel {
            node: item.clone(),
            value,
            text,
        });
    }
    levels
}

/// A level as the value of a parameter.
pub(crate) fn accept(
    reader: &mut Reader,
    param: &Param,
    level: &WrittenLevel,
    path: &str,
) -> Option<Value> {
    match param.accept(&level.value) {
        Ok(value) => Some(value),
        Err(refusal) => {
            let mut problem = Problem::at(
                level.node.place,
                format!(
                    "`{path}` does not fit the parameter `{}`: {}",
                    param.name,
                    shown(&level.text)
                ),
                refusal.expected,
            );
            if let Some(help) = refusal.help {
                problem = problem.help(help);
            }
            reader.report(problem);
            None
        }
    }
}

/// The names of factors, for a suggestion.
pub(crate) fn factor_names(factors: &[WrittenFactor]) -> impl Iterator<Item = &str> {
    factors.iter().map(|factor| factor.name.as_str())
}
