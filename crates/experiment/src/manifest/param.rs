//! A recipe's parameters: their types, limits and defaults.

use std::collections::BTreeMap;

use super::Value;
use config::nearest::suggestion;
use config::units;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// A string.
    Text,
    /// True or false.
    Boolean,
    /// A list of strings.
    List,
    /// A number of bytes, written with its unit.
    Size,
}

impl Kind {
    /// The words of a recipe file for the types.
    pub(crate) const WORDS: [&'static str; 5] = ["integer", "string", "boolean", "list", "size"];

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "integer" => Self::Integer,
            "string" => Self::Text,
            "boolean" => Self::Boolean,
            "list" => Self::List,
            "size" => Self::Size,
            _ => return None,
        })
    }

    /// The word of a recipe file for this type.
    pub fn word(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Text => "string",
            Self::Boolean => "boolean",
            Self::List => "list",
            Self::Size => "size",
        }
    }

    /// Whether a factor can fill in a part of it.
    pub(crate) fn holds_text(self) -> bool {
        matches!(self, Self::Text | Self::List)
    }
}

/// One parameter of a recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Its value when an experiment does not give one; without it the parameter is left out
    /// (templates see `none`) when it is `optional`, and has to be given otherwise.
    pub default: Option<Value>,
    /// Whether it may be left out.
    pub optional: bool,
    /// The least value: of an integer, or of a size in bytes.
    pub min: Option<i64>,
    /// The greatest value: of an integer, or of a size in bytes.
    pub max: Option<i64>,
    /// The only values that a string, or each item of a list, may have; empty when all may.
    pub one_of: Vec<String>,
    /// The settings that are not known once it is given, since its text goes into the server's
    /// configuration as it is.
    pub overrides: Vec<String>,
    /// What it does, in a sentence.
    pub doc: String,
}

/// Why a value does not fit a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What was expected, for the place of the value.
    pub expected: String,
    /// What may help.
    pub help: Option<String>,
}

impl Param {
    /// The value in the parameter's own type.
    ///
    /// # Errors
    /// When it is of another type, out of range, or not one of the allowed words.
    pub(crate) fn accept(&self, value: &Value) -> Result<Value, Refusal> {
        match (self.kind, value) {
            (Kind::Integer, Value::Integer(number)) if self.within(*number) => Ok(value.clone()),
            (Kind::Boolean, Value::Boolean(_)) => Ok(value.clone()),
            (Kind::Text, Value::Text(text)) => {
                self.allowed(text)?;
                Ok(value.clone())
            }
            (Kind::List, Value::List(items)) => {
                items.iter().try_for_each(|item| self.allowed(item))?;
                Ok(value.clone())
            }
            (Kind::Size, Value::Size(bytes)) => self.size(*bytes),
            (Kind::Size, Value::Text(text)) => match units::size(text) {
                Ok(bytes) => self.size(bytes),
                Err(reason) => Err(Refusal {
                    expected: reason,
                    help: Some(format!("a size is {}", units::SIZE_FORM)),
                }),
            },
            _ => Err(self.refusal(None)),
        }
    }

    /// What the parameter takes, in words: "a whole number from 1 to 64".
    pub fn takes(&self) -> String {
        let limits = match (self.min, self.max) {
            (Some(min), Some(max)) => format!(" from {} to {}", self.limit(min), self.limit(max)),
            (Some(min), None) => format!(" of at least {}", self.limit(min)),
            (None, Some(max)) => format!(" of at most {}", self.limit(max)),
            (None, None) => String::new(),
        };
        let words = self
            .one_of
            .iter()
            .map(|word| format!("\"{word}\""))
            .collect::<Vec<_>>()
            .join(", ");
        match self.kind {
            Kind::Integer => format!("a whole number{limits}"),
            Kind::Boolean => "true or false".to_owned(),
            Kind::Text if words.is_empty() => "a string".to_owned(),
            Kind::Text => format!("one of {words}"),
            Kind::List if words.is_empty() => "a list of strings".to_owned(),
            Kind::List => format!("a list of {words}"),
            Kind::Size => format!("a size such as \"64KiB\"{limits}"),
        }
    }

    fn limit(&self, number: i64) -> String {
        match (self.kind, u64::try_from(number)) {
            (Kind::Size, Ok(bytes)) => units::size_text(bytes),
            _ => number.to_string(),
        }
    }

    fn within(&self, number: i64) -> bool {
        self.min.is_none_or(|min| number >= min) && self.max.is_none_or(|max| number <= max)
    }

    fn size(&self, bytes: u64) -> Result<Value, Refusal> {
        if i64::try_from(bytes).is_ok_and(|number| self.within(number)) {
            Ok(Value::Size(bytes))
        } else {
            Err(self.refusal(None))
        }
    }

    fn allowed(&self, text: &str) -> Result<(), Refusal> {
        if self.one_of.is_empty() || self.one_of.iter().any(|one| one == text) {
            return Ok(());
        }
        let words = self.one_of.iter().map(String::as_str);
        Err(self.refusal(Some(suggestion(text, "values", words))))
    }

    fn refusal(&self, help: Option<String>) -> Refusal {
        let help = help
            .or_else(|| (!self.doc.is_empty()).then(|| format!("`{}`: {}", self.name, self.doc)));
        Refusal {
            expected: format!("expected {}", self.takes()),
            help,
        }
    }
}

/// The parameters with the given ones checked and all others at their defaults.
///
/// # Errors
/// The parameter, and what is wrong with it: a name that is not known, a value that does not fit,
/// or one that has to be given and was not.
pub(crate) fn fill(
    params: &[Param],
    given: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>, (String, String)> {
    let known = |name: &str| params.iter().any(|param| param.name == name);
    if let Some(unknown) = given.keys().find(|name| !known(name)) {
        return Err((unknown.clone(), "no such parameter".to_owned()));
    }
    let mut all = BTreeMap::new();
    for param in params {
        let value = match given.get(&param.name) {
            Some(value) => Some(param.accept(value).map_err(|refusal| {
                let why = format!("{}, found {value}", refusal.expected);
                (param.name.clone(), why)
            })?),
            None => param.default.clone(),
        };
        match value {
            Some(value) => {
                all.insert(param.name.clone(), value);
            }
            None if param.optional => {}
            None => return Err((param.name.clone(), format!("expected {}", param.takes()))),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(kind: Kind) -> Param {
        Param {
            name: "p".to_owned(),
            kind,
            default: None,
            optional: false,
            min: None,
            max: None,
            one_of: Vec::new(),
            overrides: Vec::new(),
            doc: String::new(),
        }
    }

    #[test]
    fn limits_hold_at_their_ends() {
        let workers = Param {
            min: Some(1),
            max: Some(64),
            ..param(Kind::Integer)
        };
        assert!(workers.accept(&Value::Integer(1)).is_ok());
        assert!(workers.accept(&Value::Integer(64)).is_ok());
        assert!(workers.accept(&Value::Integer(0)).is_err());
        assert!(workers.accept(&Value::Integer(65)).is_err());
        let refusal = workers.accept(&Value::Text("4".to_owned())).unwrap_err();
        assert_eq!(refusal.expected, "expected a whole number from 1 to 64");
    }

    #[test]
    fn sizes_carry_units_and_become_bytes() {
        let buffer = Param {
            max: Some(1 << 20),
            ..param(Kind::Size)
        };
        let text = |t: &str| Value::Text(t.to_owned());
        assert_eq!(buffer.accept(&text("64KiB")), Ok(Value::Size(65_536)));
        assert!(buffer.accept(&text("2MiB")).is_err());
        assert!(buffer.accept(&Value::Integer(65_536)).is_err());
        assert_eq!(buffer.takes(), "a size such as \"64KiB\" of at most 1MiB");
    }

    #[test]
    fn each_item_of_a_list_is_checked() {
        let cgi = Param {
            one_of: vec!["second.pl".to_owned()],
            ..param(Kind::List)
        };
        assert!(cgi.accept(&Value::List(vec![])).is_ok());
        let refusal = cgi
            .accept(&Value::List(vec!["secnd.pl".to_owned()]))
            .unwrap_err();
        assert_eq!(refusal.help.unwrap(), "did you mean `second.pl`?");
    }
}
