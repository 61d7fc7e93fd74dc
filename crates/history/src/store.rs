//! Reads and writes files: the runs below a folder, and its index.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use net::plain_file;
use readings::{JOURNAL_LINE_BYTES_MAX, Journal, JournalTextError};
use serde_json::Value;

use crate::index::{Index, line};
use crate::{JournalStamp, RunEntry};

/// The index's name in the folder of runs.
pub const INDEX_NAME: &str = "history.jsonl";
const JOURNAL: &str = "journal.jsonl";
const EXPERIMENT: &str = "experiment.toml";
const HOSTS: &str = "hosts.json";
/// How deep below the folder runs are searched for.
const DEPTH: usize = 4;
/// The most bytes of a line of the index.
const LINE_BYTES_MAX: usize = 64 << 20;
/// The most bytes of a run's other files.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Why a folder of runs or a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Journal {
        path: PathBuf,
        source: JournalTextError,
    },
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    |source| StoreError::Io {
        path: path.to_path_buf(),
        source,
    }
}

/// An index brought up to date.
#[derive(Debug, Default)]
pub struct Updated {
    pub index: Index,
    pub added: usize,
    /// Runs whose journal had changed since they were indexed.
    pub renewed: usize,
    /// What was skipped or could not be written, in sentences.
    pub problems: Vec<String>,
}

/// Brings the index of a folder up to date: appends the runs that it lacks and those whose journal
/// has changed. With `rebuild`, the whole index is made from the journals.
///
/// A run whose folder is gone stays in the index until a rebuild. If the index cannot be written,
/// the result has a problem that says so, and is otherwise the same.
///
/// # Errors
/// When the folder cannot be read.
pub fn update(folder: &Path, rebuild: bool) -> Result<Updated, StoreError> {
    let path = folder.join(INDEX_NAME);
    let mut updated = Updated::default();
    let text = match rebuild {
        true => Vec::new(),
        false => index_text(&path).map_err(io_error(&path))?,
    };
    updated.index = Index::parse(&text);
    let problems = updated.index.problems.iter();
    updated.problems = problems
        .map(|p| {
            format!(
                "{}, {p}; it was skipped (`weigh history --rebuild` makes the index anew)",
                path.display()
            )
        })
        .collect();
    let mut new = String::new();
    for name in runs_below(folder)? {
        let run = folder.join(&name);
        let stamp = match stamp(&run) {
            Ok(stamp) => stamp,
            Err(e) => {
                updated.problems.push(format!("{e}; the run was skipped"));
                continue;
            }
        };
        let known = updated.index.get(&name);
        if known.is_some_and(|known| known.journal == stamp) {
            continue;
        }
        match entry(&run, &name) {
            Ok(entry) => {
                match known {
                    Some(_) => updated.renewed += 1,
                    None => updated.added += 1,
                }
                new.push_str(&line(&entry));
                updated.index.insert(entry);
            }
            Err(e) => updated.problems.push(format!("{e}; the run was skipped")),
        }
    }
    let written = match rebuild {
        true => replace(&path, &updated.index.text()),
        false => append(&path, &text, &new),
    };
    if let Err(e) = written {
        updated.problems.push(format!(
            "the index cannot be written: {}: {e}; the journals are read again next time",
            path.display()
        ));
    }
    Ok(updated)
}

/// Makes the entry of one run's folder.
///
/// # Errors
/// When its journal cannot be read.
pub fn entry(run: &Path, name: &str) -> Result<RunEntry, StoreError> {
    // Taken before the journal is read: if the journal grows meanwhile, the entry is outdated.
    let stamp = stamp(run)?;
    let Loaded {
        journal,
        experiment,
        hosts,
    } = load(run)?;
    Ok(RunEntry::of(
        name,
        stamp,
        &journal,
        experiment.as_deref(),
        hosts.as_ref(),
    ))
}

/// The files of a run.
pub struct Loaded {
    pub journal: Journal,
    /// `experiment.toml`, if it exists.
    pub experiment: Option<String>,
    /// `hosts.json`, if it exists.
    pub hosts: Option<Value>,
}

/// Reads the files of a run.
///
/// # Errors
/// When its journal cannot be read.
pub fn load(run: &Path) -> Result<Loaded, StoreError> {
    let path = run.join(JOURNAL);
    let text = plain_file::read_lines(&path, JOURNAL_LINE_BYTES_MAX).map_err(io_error(&path))?;
    let journal = Journal::parse(&text).map_err(|source| StoreError::Journal { path, source })?;
    let other = |name| plain_file::read(&run.join(name), FILE_BYTES_MAX).ok();
    let (experiment, hosts) = (other(EXPERIMENT), other(HOSTS));
    Ok(Loaded {
        journal,
        experiment: experiment.and_then(|text| String::from_utf8(text).ok()),
        hosts: hosts.and_then(|text| serde_json::from_slice(&text).ok()),
    })
}

/// The text of an index; empty if there is none.
fn index_text(path: &Path) -> io::Result<Vec<u8>> {
    let text = match plain_file::read_lines(path, LINE_BYTES_MAX) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let last = text.rsplit(|byte| *byte == b'\n').next();
    match last.is_some_and(|last| last.len() > LINE_BYTES_MAX) {
        true => Err(io::Error::other(
            "a line is longer than 64 MiB; `weigh history --rebuild` makes the index anew",
        )),
        false => Ok(text),
    }
}

fn stamp(run: &Path) -> Result<JournalStamp, StoreError> {
    let path = run.join(JOURNAL);
    let about = fs::metadata(&path).map_err(io_error(&path))?;
    let modified = about.modified().ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(JournalStamp {
        bytes: about.len(),
        modified_unix_ns: modified.map_or(0, |time| time.as_nanos() as u64),
    })
}

/// The folders below a folder that have a journal, by name. Symbolic links are not followed.
///
/// # Errors
/// When the folder cannot be read.
pub fn runs_below(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let mut ahead = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = ahead.pop() {
        let path = folder.join(&below);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if depth == 0 => return Err(io_error(&path)(e)),
            // A folder that cannot be read may belong to another user.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = below.join(entry.file_name());
            if folder.join(&name).join(JOURNAL).is_file() {
                found.push(name.to_string_lossy().into_owned());
            } else if depth + 1 < DEPTH {
                ahead.push((name, depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Appends lines to the index, after a line break if its last line was cut off. A symbolic link is
/// not followed: the folder may be someone else's, and lead anywhere.
fn append(path: &Path, before: &[u8], new: &str) -> io::Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let mut file = plain_file::open_to_write(path, OpenOptions::new().append(true).create(true))?;
    let end = match before.last() {
        None | Some(b'\n') => "",
        Some(_) => "\n",
    };
    // In one call, so that the lines of two programs are not interleaved.
    file.write_all(format!("{end}{new}").as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Another process may rebuild the index at the same time.
    let beside = path.with_extension(format!("jsonl.{}", std::process::id()));
    plain_file::replace(path, &beside, text.as_bytes())
}
