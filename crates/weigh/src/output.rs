//! What several verbs share when they print.

use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// As the standard library's, which panics where standard error cannot be written: notes and
/// progress are dropped then, and what was measured is not lost with them. In the whole program it
/// takes the other's place.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::note(format_args!($($text)*)) };
}

/// As [`eprint!`], with the end of a line.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::output::note_line(format_args!($($text)*)) };
}

/// Writes on standard error, if that can be.
pub fn note(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Writes a line on standard error, if that can be.
pub fn note_line(text: Arguments<'_>) {
    note(format_args!("{text}\n"));
}

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
