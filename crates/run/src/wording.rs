//! Parts of messages.

use readings::Condition;

/// A condition as ` at connections=96, from=client`; empty without factors.
pub(crate) fn at(condition: &Condition) -> String {
    let levels: Vec<String> = condition.iter().map(|(k, v)| format!("{k}={v}")).collect();
    match levels.is_empty() {
        true => String::new(),
        false => format!(" at {}", levels.join(", ")),
    }
}
