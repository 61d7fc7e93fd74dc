//! Templates of recipes and drivers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};

use super::{Param, Value};

/// A template environment as recipes have it: nothing is escaped, an unknown name is an error,
/// and a line with only a block tag is removed.
pub(crate) fn environment<'source>() -> Environment<'source> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment
}

/// A template engine's complaint in one line.
pub(crate) fn complaint(error: &minijinja::Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

/// The parameters as templates see them: those without a value are none.
pub(crate) fn params_seen<'p>(
    params: &'p [Param],
    given: &BTreeMap<String, Value>,
) -> BTreeMap<&'p str, minijinja::Value> {
    let value = |name: &String| {
        let value = given.get(name);
        value.map_or(minijinja::Value::from(()), Value::to_template)
    };
    params
        .iter()
        .map(|param| (param.name.as_str(), value(&param.name)))
        .collect()
}

/// The programs as templates see them: one that was not found by its first name.
pub(crate) fn programs_seen<'p>(
    programs: &'p [(String, Vec<String>)],
    found: &BTreeMap<String, PathBuf>,
) -> BTreeMap<&'p str, String> {
    programs
        .iter()
        .map(|(name, names)| {
            let path = match found.get(name) {
                Some(path) => path.to_string_lossy().into_owned(),
                None => names.first().unwrap_or(name).clone(),
            };
            (name.as_str(), path)
        })
        .collect()
}
