//! A TOML document as a tree whose every part knows where it was written.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A position in a source: bytes `start..end` of the source with that number.
///
/// Source 0 is the file; the others were added to its reader. The default is the beginning of the
/// file, for values without a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The source's number.
    pub source: usize,
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its position.
    pub place: Place,
    /// The value.
    pub tree: Tree,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Tree {
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A whole number beyond 64 bits, as written.
    Huge(String),
    /// Any other number.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or a time, as written.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A TOML table, its entries in the order they were written.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its content.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub name: String,
    /// The key's position.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The entry of a key.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The entry of a key.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.name == name)
    }

    /// The table under a key, which is made where the key is absent; `None` where it holds
    /// something else.
    pub fn table_mut(&mut self, name: &str, place: Place) -> Option<&mut Table> {
        if self.get(name).is_none() {
            self.entries.push(Entry {
                name: name.to_owned(),
                place,
                node: Node {
                    place,
                    tree: Tree::Table(Table::default()),
                },
            });
        }
        match &mut self.get_mut(name)?.node.tree {
            Tree::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.name == name)?;
        Some(self.entries.remove(at))
    }

    /// Replaces the entry of the same name, or appends.
    pub fn put(&mut self, entry: Entry) {
        match self.get_mut(&entry.name) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Self {
        Tree::Text(text.to_owned())
    }
}

impl From<String> for Tree {
    fn from(text: String) -> Self {
        Tree::Text(text)
    }
}

impl From<u32> for Tree {
    fn from(number: u32) -> Self {
        Tree::Integer(number.into())
    }
}

impl From<f64> for Tree {
    fn from(number: f64) -> Self {
        Tree::Float(number)
    }
}

impl From<Vec<u32>> for Tree {
    fn from(numbers: Vec<u32>) -> Self {
        let node = |number: u32| Node {
            place: Place::default(),
            tree: number.into(),
        };
        Tree::Array(numbers.into_iter().map(node).collect())
    }
}

impl From<Vec<String>> for Tree {
    fn from(texts: Vec<String>) -> Self {
        let node = |text: String| Node {
            place: Place::default(),
            tree: Tree::Text(text),
        };
        Tree::Array(texts.into_iter().map(node).collect())
    }
}

impl From<bool> for Tree {
    fn from(value: bool) -> Self {
        Tree::Boolean(value)
    }
}

impl Tree {
    /// What kind of value it is, as a message says it.
    pub fn kind(&self) -> &'static str {
        match self {
            Tree::Text(_) => "a string",
            Tree::Integer(_) | Tree::Huge(_) => "a whole number",
            Tree::Float(_) => "a number",
            Tree::Boolean(_) => "a boolean",
            Tree::Date(_) => "a date",
            Tree::Array(_) => "an array",
            Tree::Table(_) => "a table",
        }
    }
}

/// The tree of a parsed table.
pub fn table(source: usize, parsed: &DeTable<'_>) -> Table {
    let entries = parsed
        .iter()
        .map(|(key, value)| Entry {
            name: key.get_ref().to_string(),
            place: place(source, key),
            node: node(source, value),
        })
        .collect();
    Table { entries }
}

/// The tree of a parsed value. Depth is bounded by the TOML parser, which refuses deep nesting.
pub fn node(source: usize, parsed: &Spanned<DeValue<'_>>) -> Node {
    let tree = match parsed.get_ref() {
        DeValue::String(text) => Tree::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) => Tree::Integer(value),
            Err(_) => Tree::Huge(number.to_string()),
        },
        DeValue::Float(number) => Tree::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Tree::Boolean(*value),
        DeValue::Datetime(date) => Tree::Date(date.to_string()),
        DeValue::Array(items) => Tree::Array(items.iter().map(|item| node(source, item)).collect()),
        DeValue::Table(inner) => Tree::Table(table(source, inner)),
    };
    Node {
        place: place(source, parsed),
        tree,
    }
}

fn place<T>(source: usize, spanned: &Spanned<T>) -> Place {
    let span = spanned.span();
    Place {
        source,
        start: span.start,
        end: span.end,
    }
}
