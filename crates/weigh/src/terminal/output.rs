//! What several verbs share when they print.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use report::{visible, visible_in_colour, visible_json};
use serde_json::Value;

use crate::failure::Failure;

/// Why a result could not be printed, once one could not: `main` asks for it at the end, so that
/// no verb can forget to.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// As the standard library's, which panics where standard error cannot be written: notes and
/// progress are dropped then, and what was measured is not lost with them. In the whole program it
/// takes the other's place.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::terminal::output::note(format_args!($($text)*)) };
}

/// As [`eprint!`], with the end of a line.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::terminal::output::note_line(format_args!($($text)*)) };
}

/// Writes to standard error, if possible. Control characters are made visible.
pub fn note(text: Arguments<'_>) {
    let text = text.to_string();
    let _ = io::stderr().lock().write_all(visible(&text).as_bytes());
}

/// As [`note_line`], for text that was coloured here.
pub fn coloured_note(text: &str) {
    let text = visible_in_colour(text);
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a line on standard error, if that can be.
pub fn note_line(text: Arguments<'_>) {
    note(format_args!("{text}\n"));
}

/// Says that epoll took the place of io_uring, if it did.
pub fn note_fallback() {
    if net::uring_lacked_memory() {
        let why = match net::os::locked_memory() {
            Some(bytes) => format!(
                "locked memory is limited to {} KiB for all programs of a user (ulimit -l), or the \
                 machine or a control group has none left; raise the limit",
                bytes / 1024
            ),
            None => "the machine or a control group has none left; free some".to_owned(),
        };
        note_line(format_args!(
            "weigh: io_uring gets no memory, so epoll is used: {why}, or ask for a loop by --io"
        ));
    }
}

/// Prints one JSON document on standard output.
pub fn print_json(value: &Value) {
    print_text(&(json_text(value) + "\n"));
}

/// A JSON document on several lines, without characters that control a terminal.
pub fn json_text(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    visible_json(&text).into_owned()
}

/// Prints text on standard output, with control characters made visible. A closed pipe is not an
/// error; any other error is kept for [`all_written`].
pub fn print_text(text: &str) {
    print(&visible(text));
}

/// As [`print_text`], for text that was coloured here if [`colour`] said so.
pub fn print_coloured(text: &str) {
    match colour() {
        true => print(&visible_in_colour(text)),
        false => print_text(text),
    }
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    keep(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Keeps why a result could not be printed.
pub fn keep(printed: io::Result<()>) {
    match printed {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            // The first reason is the one to tell.
            let _ = UNWRITTEN.set(e);
        }
        _ => {}
    }
}

/// Whether all results were printed.
///
/// # Errors
/// When one was not.
pub fn all_written() -> Result<(), Failure> {
    match UNWRITTEN.get() {
        None => Ok(()),
        Some(e) => Err(Failure::failed(format!(
            "the result could not be written on standard output: {e}"
        ))),
    }
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
