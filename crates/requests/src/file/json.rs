//! JSON lines as the tree of a file.

use std::ops::Range;

use config::reader::Reader;
use config::tree::{Entry, Node, Place, Table, Tree};
use serde_json::{Map, Value};

use super::TOP;
use crate::feed::{json_lines, object};

/// The tree of a file with these lines; everything in a line has the line's place.
pub(super) fn table(reader: &mut Reader, text: &str) -> Table {
    let mut top = Table::default();
    let mut requests = Vec::new();
    for (at, line) in json_lines(text) {
        let place = place(&at);
        match object(line, &at) {
            Err(fault) => reader.report(fault.in_source(0)),
            Ok(object) if object.keys().any(|key| TOP.contains(&key.as_str())) => {
                let entries = table_of(object, place).entries;
                entries.into_iter().for_each(|entry| top.put(entry));
            }
            Ok(object) => requests.push(Node {
                place,
                tree: Tree::Table(table_of(object, place)),
            }),
        }
    }
    if !requests.is_empty() {
        top.put(Entry {
            name: "request".to_owned(),
            place: Place::default(),
            node: Node {
                place: Place::default(),
                tree: Tree::Array(requests),
            },
        });
    }
    top
}

fn place(at: &Range<usize>) -> Place {
    Place {
        source: 0,
        start: at.start,
        end: at.end,
    }
}

fn table_of(object: Map<String, Value>, place: Place) -> Table {
    let entry = |(name, value): (String, Value)| {
        let node = node(value, place)?;
        Some(Entry { name, place, node })
    };
    Table {
        entries: object.into_iter().filter_map(entry).collect(),
    }
}

/// A value; `null` is none.
fn node(value: Value, place: Place) -> Option<Node> {
    let tree = match value {
        Value::Null => return None,
        Value::Bool(value) => Tree::Boolean(value),
        Value::String(text) => Tree::Text(text),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Tree::Integer(whole),
            (None, Some(_)) => Tree::Huge(number.to_string()),
            (None, None) => Tree::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Array(all) => {
            Tree::Array(all.into_iter().filter_map(|one| node(one, place)).collect())
        }
        Value::Object(object) => Tree::Table(table_of(object, place)),
    };
    Some(Node { place, tree })
}

/// A value of a file as JSON.
pub(super) fn value(tree: &Tree) -> Value {
    match tree {
        Tree::Text(text) | Tree::Huge(text) | Tree::Date(text) => Value::from(text.as_str()),
        Tree::Integer(number) => Value::from(*number),
        Tree::Float(number) => Value::from(*number),
        Tree::Boolean(value) => Value::from(*value),
        Tree::Array(all) => all.iter().map(|one| value(&one.tree)).collect(),
        Tree::Table(table) => {
            let entries = table.entries.iter();
            let pairs = entries.map(|one| (one.name.clone(), value(&one.node.tree)));
            Value::Object(pairs.collect())
        }
    }
}
