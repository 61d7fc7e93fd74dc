//! Values of parameters and levels of factors in TOML.

use config::reader::Reader;
use config::tree::{Node, Tree};

use super::Value;

/// Reads what only experiments and recipes have.
pub(crate) trait ReadValue {
    /// A value that a recipe's parameter or a factor's level can be.
    fn value(&mut self, node: &Node, path: &str) -> Option<Value>;
}

impl ReadValue for Reader {
    fn value(&mut self, node: &Node, path: &str) -> Option<Value> {
        Some(match &node.tree {
            Tree::Text(text) => Value::Text(text.clone()),
            Tree::Integer(number) => Value::Integer(*number),
            Tree::Boolean(value) => Value::Boolean(*value),
            Tree::Float(number) if number.is_finite() => Value::Float(*number),
            Tree::Array(_) => Value::List(
                self.texts(node, path)?
                    .into_iter()
                    .map(|(text, _)| text)
                    .collect(),
            ),
            _ => {
                self.expected(
                    node,
                    path,
                    "a string, a number, a boolean or a list of strings",
                );
                return None;
            }
        })
    }
}
