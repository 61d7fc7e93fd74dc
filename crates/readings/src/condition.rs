//! Conditions: combinations of factor levels.

use std::collections::BTreeMap;

/// One combination of factor levels, such as `connections = 96`; empty without factors.
pub type Condition = BTreeMap<String, String>;

/// A condition as `connections=96, from=client`; empty without factors.
pub fn condition_text(condition: &Condition) -> String {
    let levels: Vec<String> = condition.iter().map(|(k, v)| format!("{k}={v}")).collect();
    levels.join(", ")
}

/// A condition as ` at connections=96, from=client`, for the middle of a sentence; empty without
/// factors.
pub fn at_condition(condition: &Condition) -> String {
    match condition_text(condition) {
        text if text.is_empty() => text,
        text => format!(" at {text}"),
    }
}
