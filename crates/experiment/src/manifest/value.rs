//! The values that a recipe's parameters take.

use std::fmt;

use config::units;

/// A parameter's value, or a factor's level.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number; no parameter takes one, but a factor that only fills in text may.
    Float(f64),
    Text(String),
    /// True or false.
    Boolean(bool),
    List(Vec<String>),
    /// A size in bytes.
    Size(u64),
}

impl Value {
    /// The value as a template sees it: sizes are bytes.
    pub(crate) fn to_template(&self) -> minijinja::Value {
        match self {
            Self::Integer(number) => (*number).into(),
            Self::Float(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Boolean(value) => (*value).into(),
            Self::List(items) => items.clone().into(),
            Self::Size(bytes) => (*bytes).into(),
        }
    }

    /// The value as it is written in an experiment file.
    pub(crate) fn to_toml(&self) -> toml::Value {
        match self {
            Self::Integer(number) => toml::Value::Integer(*number),
            Self::Float(number) => toml::Value::Float(*number),
            Self::Text(text) => toml::Value::String(text.clone()),
            Self::Boolean(value) => toml::Value::Boolean(*value),
            Self::List(items) => {
                toml::Value::Array(items.iter().cloned().map(toml::Value::String).collect())
            }
            Self::Size(bytes) => toml::Value::String(units::size_text(*bytes)),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => f.write_str(text),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::List(items) => f.write_str(&items.join(",")),
            Self::Size(bytes) => f.write_str(&units::size_text(*bytes)),
        }
    }
}
