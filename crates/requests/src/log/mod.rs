//! Access logs, as requests with the times that they had.
//!
//! nginx and Apache in the combined and the common format, JSON lines with the names of nginx's
//! variables, Caddy's JSON, and HAProxy's HTTP log. The format is found in the first lines.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use config::units::shown;
use readings::requests::RequestSet;

use crate::error::RequestsError;

mod clf;
mod haproxy;
mod json;
mod line;
mod replay;
#[cfg(test)]
mod tests;
mod time;

pub use line::{Entry, LogFormat, Unusable};
pub use time::Moment;

use replay::Collector;
pub(crate) use time::Time;

/// Most lines that are replayed.
pub const LINES_MAX: usize = 5_000_000;
/// Most bytes of methods and paths of distinct requests.
const TEXT_MAX: usize = 256 << 20;
/// Bytes of a line beyond which the rest of it is left out.
const LINE_MAX: u64 = 64 * 1024;
/// Lines in which the format is looked for.
const LOOKED_AT: usize = 100;

/// What is taken from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// Methods besides GET and HEAD.
    pub methods: Vec<String>,
    /// How many times as fast as the log; above 0.
    pub speed: f64,
    /// From this time on.
    pub from: Option<Moment>,
    /// Until before this time.
    pub to: Option<Moment>,
    /// The host that absolute URLs may name.
    pub host: Option<String>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            methods: Vec::new(),
            speed: 1.0,
            from: None,
            to: None,
            host: None,
        }
    }
}

/// Reads a log from a file; `-` is standard input.
///
/// # Errors
/// When it cannot be read, has no known format, or nothing or too much in it is replayed.
pub fn open(path: &Path, options: &LogOptions) -> Result<RequestSet, RequestsError> {
    let unreadable = |why| RequestsError::Unreadable {
        path: path.to_owned(),
        why,
    };
    let unusable = |fault| match fault {
        LogFault::Read(why) => unreadable(why),
        LogFault::Unusable(why) => RequestsError::Unusable {
            path: path.to_owned(),
            why,
        },
    };
    match path.as_os_str() == "-" {
        true => read(std::io::stdin().lock(), options).map_err(unusable),
        false => {
            let file = File::open(path).map_err(unreadable)?;
            read(BufReader::new(file), options).map_err(unusable)
        }
    }
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LogFault {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("{0}")]
    Unusable(String),
}

/// Reads a log.
///
/// # Errors
/// When it cannot be read, has no known format, or nothing or too much in it is replayed.
pub fn read(mut input: impl BufRead, options: &LogOptions) -> Result<RequestSet, LogFault> {
    if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Err(LogFault::Unusable(
            "this is compressed by gzip; `zcat FILE | weigh load URL --replay -` replays it".into(),
        ));
    }
    let mut lines = Lines {
        input,
        line: Vec::new(),
    };
    let mut first: Vec<String> = Vec::new();
    while first.len() < LOOKED_AT {
        match lines.next()? {
            Some(line) => first.push(line.into_owned()),
            None => break,
        }
    }
    let format = format_of(&first)?;
    let mut collector = Collector::new(format, options);
    for line in &first {
        collector.take(line)?;
    }
    while let Some(line) = lines.next()? {
        collector.take(&line)?;
    }
    collector.finish()
}

/// The format that most of the lines have.
fn format_of(lines: &[String]) -> Result<LogFormat, LogFault> {
    let count = |format: LogFormat| {
        let fits = |line: &&String| !matches!(format.read(line), Err(Unusable::Format));
        lines.iter().filter(fits).count()
    };
    let counts = LogFormat::ALL.map(|format| (count(format), format));
    let most = counts.iter().map(|(count, _)| *count).max().unwrap_or(0);
    // The first of the list, where several read as many.
    let best = counts.iter().find(|(count, _)| *count == most && most > 0);
    match (best, lines.first()) {
        (Some((_, format)), _) => Ok(*format),
        (None, None) => Err(LogFault::Unusable("the log is empty".into())),
        (None, Some(line)) => Err(LogFault::Unusable(format!(
            "no format of an access log fits line 1, `{}`; known are combined and common (nginx, \
             Apache), JSON lines with nginx's variables, Caddy's JSON, and HAProxy's HTTP log",
            shown(line)
        ))),
    }
}

/// The lines of a log that are not empty; bytes that are no UTF-8 are percent-encoded.
struct Lines<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<std::borrow::Cow<'_, str>>, LogFault> {
        loop {
            self.line.clear();
            let mut part = std::io::Read::take(&mut self.input, LINE_MAX);
            if part.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            if self.line.len() as u64 == LINE_MAX && self.line.last() != Some(&b'\n') {
                skip_line(&mut self.input)?;
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(as_text(self.line.trim_ascii())))
    }
}

/// A line as text; bytes that are no UTF-8 are percent-encoded, as a server takes them in a path.
fn as_text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return text.into();
    }
    let mut text = String::with_capacity(line.len() + 16);
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text.into()
}

/// Passes over the rest of a line.
fn skip_line(input: &mut impl BufRead) -> Result<(), LogFault> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}
