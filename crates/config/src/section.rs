//! Typed access to a table of a tree; each accessor reports a value of the wrong type.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::nearest::suggestion;
use super::reader::{Problem, Reader};
use super::tree::{Entry, Node, Place, Table, Tree};
use super::units;

/// A table, its dotted name for messages, and the place that names it.
#[derive(Clone, Debug)]
pub struct Section<'t> {
    /// Its dotted name; empty for the whole file.
    pub path: String,
    /// The key that names it.
    pub place: Place,
    /// Its content.
    pub table: &'t Table,
}

impl<'t> Section<'t> {
    /// The whole file.
    pub fn whole(table: &'t Table) -> Self {
        Self {
            path: String::new(),
            place: Place::default(),
            table,
        }
    }

    /// The dotted name of a key in this table.
    pub fn name_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The entry of a key and its dotted name.
    pub fn entry(&self, key: &str) -> Option<(&'t Entry, String)> {
        self.table.get(key).map(|entry| (entry, self.name_of(key)))
    }

    /// The place of a key's value, or of the table where the key is absent.
    pub fn value_place(&self, key: &str) -> Place {
        self.table
            .get(key)
            .map_or(self.place, |entry| entry.node.place)
    }

    /// The place of a nested key, for a mistake that is found after reading.
    pub fn place_of(&self, path: &[&str]) -> Option<Place> {
        let (last, parents) = path.split_last()?;
        let mut table = self.table;
        for part in parents {
            match &table.get(part)?.node.tree {
                Tree::Table(inner) => table = inner,
                _ => return None,
            }
        }
        table.get(last).map(|entry| entry.node.place)
    }

    /// The table under a key.
    pub fn section(&self, reader: &mut Reader, key: &str) -> Option<Section<'t>> {
        let (entry, path) = self.entry(key)?;
        reader.section(entry, path)
    }

    /// Reports every key that is not `known`.
    pub fn only(&self, reader: &mut Reader, known: &[&str]) {
        for entry in &self.table.entries {
            if known.contains(&entry.name.as_str()) {
                continue;
            }
            if reader.is_full() {
                reader.pass_over(1);
            } else {
                let of = if self.path.is_empty() {
                    String::new()
                } else {
                    format!(" in `{}`", self.path)
                };
                reader.advise(
                    entry.place,
                    format!("unknown key `{}`{of}", units::shown(&entry.name)),
                    "no such key",
                    suggestion(&entry.name, "keys", known.iter().copied()),
                );
            }
        }
    }

    /// The string under a key.
    pub fn text(&self, reader: &mut Reader, key: &str) -> Option<String> {
        let (entry, path) = self.entry(key)?;
        reader.text(&entry.node, &path)
    }

    /// The string under a required key.
    pub fn required_text(&self, reader: &mut Reader, key: &str, example: &str) -> Option<String> {
        if self.table.get(key).is_none() {
            reader.advise(
                self.place,
                format!("`{}` is missing", self.name_of(key)),
                format!("`{key}` is expected here"),
                format!("add a line such as: {key} = {example}"),
            );
        }
        self.text(reader, key)
    }

    /// The boolean under a key.
    pub fn boolean(&self, reader: &mut Reader, key: &str) -> Option<bool> {
        let (entry, path) = self.entry(key)?;
        reader.boolean(&entry.node, &path)
    }

    /// The whole number under a key.
    pub fn integer(
        &self,
        reader: &mut Reader,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let (entry, path) = self.entry(key)?;
        reader.integer(&entry.node, &path, range)
    }

    /// The duration under a key.
    pub fn duration(
        &self,
        reader: &mut Reader,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let (entry, path) = self.entry(key)?;
        reader.duration(&entry.node, &path, range)
    }

    /// The share under a key, as a fraction between 0 and 1.
    pub fn share(&self, reader: &mut Reader, key: &str) -> Option<f64> {
        let (entry, path) = self.entry(key)?;
        reader.share(&entry.node, &path)
    }

    /// The list of strings under a key.
    pub fn texts(&self, reader: &mut Reader, key: &str) -> Option<Vec<(String, Place)>> {
        let (entry, path) = self.entry(key)?;
        reader.texts(&entry.node, &path)
    }

    /// The string under a key, one of a few words.
    pub fn word(&self, reader: &mut Reader, key: &str, words: &[&'static str]) -> Option<String> {
        let (entry, path) = self.entry(key)?;
        let text = reader.text(&entry.node, &path)?;
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        reader.advise(
            entry.node.place,
            format!("`{path}` cannot be `{}`", units::shown(&text)),
            "unknown word",
            suggestion(&text, "words", words.iter().copied()),
        );
        None
    }
}

impl Reader {
    /// The table in an entry.
    pub fn section<'t>(&mut self, entry: &'t Entry, path: String) -> Option<Section<'t>> {
        match &entry.node.tree {
            Tree::Table(table) => Some(Section {
                path,
                place: entry.place,
                table,
            }),
            _ => {
                self.expected(&entry.node, &path, "a table");
                None
            }
        }
    }

    /// Reports a value of the wrong type.
    pub fn expected(&mut self, node: &Node, path: &str, what: &str) {
        self.report(Problem::at(
            node.place,
            format!("`{path}` is {}, not {what}", node.tree.kind()),
            format!("expected {what}"),
        ));
    }

    pub fn text(&mut self, node: &Node, path: &str) -> Option<String> {
        match &node.tree {
            Tree::Text(text) => Some(text.clone()),
            _ => {
                self.expected(node, path, "a string in quotes");
                None
            }
        }
    }

    pub fn boolean(&mut self, node: &Node, path: &str) -> Option<bool> {
        match node.tree {
            Tree::Boolean(value) => Some(value),
            _ => {
                self.expected(node, path, "true or false");
                None
            }
        }
    }

    /// A whole number.
    pub fn integer(&mut self, node: &Node, path: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let limits = format!("a whole number from {} to {}", range.start(), range.end());
        match &node.tree {
            Tree::Integer(value) if range.contains(value) => Some(*value),
            Tree::Integer(value) => {
                self.report(Problem::at(
                    node.place,
                    format!("`{path}` is out of range: {value}"),
                    format!("expected {limits}"),
                ));
                None
            }
            Tree::Huge(value) => {
                self.report(Problem::at(
                    node.place,
                    format!("`{path}` is out of range: {}", units::shown(value)),
                    format!("expected {limits}"),
                ));
                None
            }
            _ => {
                self.expected(node, path, &limits);
                None
            }
        }
    }

    /// A duration with its unit.
    pub fn duration(
        &mut self,
        node: &Node,
        path: &str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let value = self.quantity(
            node,
            path,
            "duration",
            units::DURATION_FORM,
            units::duration,
        )?;
        if range.contains(&value) {
            return Some(value);
        }
        self.report(Problem::at(
            node.place,
            format!("`{path}` is out of range: {}", units::duration_text(value)),
            format!(
                "expected {} to {}",
                units::duration_text(*range.start()),
                units::duration_text(*range.end())
            ),
        ));
        None
    }

    /// A share with its percent sign, as a fraction between 0 and 1.
    pub fn share(&mut self, node: &Node, path: &str) -> Option<f64> {
        let value = self.quantity(node, path, "share", units::SHARE_FORM, units::share)?;
        if (0.0..=1.0).contains(&value) {
            return Some(value);
        }
        self.report(Problem::at(
            node.place,
            format!("`{path}` is out of range: {}", units::share_text(value)),
            "expected 0% to 100%",
        ));
        None
    }

    /// A quantity written as a string with a unit.
    pub fn quantity<T>(
        &mut self,
        node: &Node,
        path: &str,
        noun: &str,
        form: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (found, reason) = match &node.tree {
            Tree::Text(text) => match parse(text) {
                Ok(value) => return Some(value),
                Err(reason) => (units::shown(text), reason),
            },
            Tree::Integer(number) => (number.to_string(), "the unit is missing".to_owned()),
            Tree::Float(number) => (number.to_string(), "the unit is missing".to_owned()),
            _ => {
                self.expected(node, path, &format!("a {noun}"));
                return None;
            }
        };
        self.advise(
            node.place,
            format!("`{path}` is not a valid {noun}: `{found}`"),
            reason,
            format!("a {noun} is {form}"),
        );
        None
    }

    /// A list of strings.
    pub fn texts(&mut self, node: &Node, path: &str) -> Option<Vec<(String, Place)>> {
        let Tree::Array(items) = &node.tree else {
            self.expected(node, path, "a list of strings, such as [\"a\", \"b\"]");
            return None;
        };
        items
            .iter()
            .map(|item| {
                self.text(item, &format!("{path}[]"))
                    .map(|text| (text, item.place))
            })
            .collect()
    }
}
