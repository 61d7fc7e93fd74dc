//! Feeds: rows of data for requests, from CSV with a header line, or from JSON lines.

use std::io::Read as _;
use std::path::Path;

use config::Mistakes;
use config::reader::Reader;
use readings::requests::{Feed, FeedOrder};

use crate::error::RequestsError;
use crate::fault::Fault;
use crate::placeholder::is_name;

mod csv;
mod lines;

pub(crate) use lines::{json_lines, object};
#[cfg(test)]
mod tests;

/// Most bytes of a feed: all rows stay in memory.
pub const LARGEST_BYTES: u64 = 256 * 1024 * 1024;

/// What a file of a feed holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// How a file of a feed is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForm {
    /// Comma-separated values (RFC 4180), or tab-separated ones, with a header line.
    Separated { by: u8 },
    /// A JSON object per line.
    JsonLines,
}

impl FeedForm {
    /// By the file's extension; otherwise JSON lines if the text begins with `{`.
    pub fn of(path: &Path, text: &str) -> Self {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match extension.to_str() {
            Some("csv") => Self::Separated { by: b',' },
            Some("tsv") => Self::Separated { by: b'\t' },
            Some("jsonl" | "ndjson" | "json") => Self::JsonLines,
            _ if text.trim_start().starts_with('{') => Self::JsonLines,
            _ => Self::Separated { by: b',' },
        }
    }
}

/// Mistakes after which the rest of a feed is not read: as many as are shown.
const FAULTS_MAX: usize = 20;

/// Reads the text of a feed.
///
/// # Errors
/// The mistakes in it: no rows, a column twice, too few or too many values.
pub fn parse(text: &str, form: FeedForm) -> Result<Rows, Vec<Fault>> {
    match form {
        FeedForm::Separated { by } => csv::parse(text, by),
        FeedForm::JsonLines => lines::parse(text),
    }
}

/// Reads a feed from a file.
///
/// # Errors
/// When the file cannot be read, or has mistakes.
pub fn open(name: &str, path: &Path, order: FeedOrder) -> Result<Feed, RequestsError> {
    let text = read_text(path, LARGEST_BYTES)?;
    match parse(&text, FeedForm::of(path, &text)) {
        Ok(rows) => Ok(feed(name, order, rows)),
        Err(faults) => Err(mistakes(&path.display().to_string(), &text, faults).into()),
    }
}

pub(crate) fn feed(name: &str, order: FeedOrder, rows: Rows) -> Feed {
    Feed {
        name: name.to_owned(),
        columns: rows.columns,
        rows: rows.rows,
        order,
    }
}

/// The name of a feed that is given without one: the file's, without its extension.
pub fn name_of(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str().filter(|name| is_name(name))
}

/// Faults in a text that is a whole file.
pub(crate) fn mistakes(name: &str, text: &str, faults: Vec<Fault>) -> Mistakes {
    let mut reader = Reader::new(name, text);
    for fault in faults {
        reader.report(fault.in_source(0));
    }
    reader.into_mistakes()
}

/// The text of a file of at most so many bytes; `-` is standard input.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, RequestsError> {
    let bytes = read_bytes(path, most)?;
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&bytes[..valid]);
        let (line, column) = config::reader::line_and_column(&before, before.len());
        RequestsError::NotText {
            path: path.to_owned(),
            line,
            column,
        }
    })
}

pub(crate) fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, RequestsError> {
    let unreadable = |why| RequestsError::Unreadable {
        path: path.to_owned(),
        why,
    };
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().take(most + 1).read_to_end(&mut bytes),
        false => {
            std::fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        }
    };
    read.map_err(unreadable)?;
    match bytes.len() as u64 > most {
        true => Err(RequestsError::TooLarge {
            path: path.to_owned(),
            most,
        }),
        false => Ok(bytes),
    }
}
