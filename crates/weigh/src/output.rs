//! What several verbs share when they print.

use std::io::{IsTerminal, Write};

use serde_json::Value;

/// Prints one JSON document on standard output.
pub fn print_json(value: &Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    print_text(&(text + "\n"));
}

/// Prints text on standard output; a reader that has gone is no error.
pub fn print_text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Columns to print for.
pub fn width() -> usize {
    std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .or_else(|| net::os::terminal_columns().map(usize::from))
        .unwrap_or(100)
        .clamp(60, 160)
}

/// Whether to colour what goes to standard output (see no-color.org).
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
