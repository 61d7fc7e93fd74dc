//! Templates of recipes and drivers.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};

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
