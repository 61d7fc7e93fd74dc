//! Opening a file that a person wrote, and parsing its TOML.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::mistake::Mistakes;
use super::reader::{Problem, Reader, line_and_column};
use super::tree::{self, Place, Table};

/// Files of this kind are a few kilobytes; anything beyond this is something else.
pub const LARGEST_BYTES: u64 = 1024 * 1024;

/// A file that could not be opened as text.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: std::io::Error },
    #[error("{} is a folder, not a file", path.display())]
    Folder { path: PathBuf },
    #[error("{} holds {bytes} bytes; a file of this kind has at most {LARGEST_BYTES}", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{} is not UTF-8 text: invalid byte {offset} in line {line}", path.display())]
    NotText {
        path: PathBuf,
        offset: usize,
        line: usize,
        help: String,
    },
}

impl miette::Diagnostic for OpenError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            Self::Unreadable { .. } => None,
            Self::Folder { .. } => Some(Box::new("name a file inside it")),
            Self::TooLarge { .. } => Some(Box::new("check that it is the right file")),
            Self::NotText { help, .. } => Some(Box::new(help)),
        }
    }
}

/// Reads a text file of at most [`LARGEST_BYTES`].
///
/// The size is taken from the file's metadata before anything is read; what has no size there
/// (a pipe, a device) is read up to the same limit.
pub fn open(path: &Path) -> Result<String, OpenError> {
    let unreadable = |why| OpenError::Unreadable {
        path: path.to_owned(),
        why,
    };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        return Err(OpenError::Folder {
            path: path.to_owned(),
        });
    }
    let too_large = |bytes| OpenError::TooLarge {
        path: path.to_owned(),
        bytes,
    };
    if about.len() > LARGEST_BYTES {
        return Err(too_large(about.len()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|error| not_text(path, &error))
}

fn not_text(path: &Path, error: &std::string::FromUtf8Error) -> OpenError {
    let offset = error.utf8_error().valid_up_to();
    let bytes = error.as_bytes();
    let sixteen = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    OpenError::NotText {
        path: path.to_owned(),
        offset,
        line: bytes[..offset].iter().filter(|b| **b == b'\n').count() + 1,
        help: if sixteen {
            "it looks like UTF-16: save it as UTF-8".to_owned()
        } else {
            "save it as UTF-8".to_owned()
        },
    }
}

/// Parses a file and turns it into a value with `build`, unless either found a mistake.
///
/// # Errors
/// All mistakes.
pub fn read<T>(
    name: &str,
    text: &str,
    build: impl FnOnce(&mut Reader, Table) -> T,
) -> Result<T, Mistakes> {
    let mut reader = Reader::new(name, text);
    let table = parse(&mut reader, text).unwrap_or_default();
    if reader.is_clean() {
        let value = build(&mut reader, table);
        if reader.is_clean() {
            return Ok(value);
        }
    }
    Err(reader.into_mistakes())
}

/// Parses the reader's file. Returns `None` for invalid TOML, which it reports.
pub fn parse(reader: &mut Reader, text: &str) -> Option<Table> {
    if text.len() as u64 > LARGEST_BYTES {
        reader.report(Problem::of_the_file(format!(
            "{} bytes of text; a file of this kind has at most {LARGEST_BYTES}",
            text.len()
        )));
        return None;
    }
    let (parsed, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        // A file of noise has an error per byte, and describing one means counting its lines.
        if reader.is_full() {
            reader.pass_over(1);
        } else {
            reader.report(syntax(text, error));
        }
    }
    errors.is_empty().then(|| tree::table(0, parsed.get_ref()))
}

fn syntax(text: &str, error: &toml::de::Error) -> Problem {
    let (said, expected) = match error.message().split_once(", expected ") {
        Some((said, expected)) => (said, Some(expected)),
        None => (error.message(), None),
    };
    let Some(span) = error.span() else {
        return Problem::of_the_file(format!("this is not TOML: {said}"));
    };
    let place = Place {
        source: 0,
        start: span.start,
        end: span.end,
    };
    let (line, _) = line_and_column(text, span.start);
    if said == "duplicate key" {
        return Problem::at(
            place,
            format!("duplicate key in line {line}"),
            "already given above",
        )
        .help("keep one of the two, or rename one");
    }
    // A word without quotes is the commonest slip, and the parser takes it for a boolean.
    if said.starts_with("invalid boolean") || said.contains("must be quoted") {
        return Problem::at(
            place,
            format!("line {line} is not TOML: a string without quotes, or a missing value"),
            "expected a value",
        )
        .help("put strings in quotes: \"like this\"; true, false and numbers have none");
    }
    Problem::at(
        place,
        format!("line {line} is not TOML: {said}"),
        expected.map_or_else(
            || "not expected here".to_owned(),
            |what| format!("expected {what}"),
        ),
    )
}
