//! The index of a folder of runs as text: one line per run. A later line for the same run replaces
//! an earlier one.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::RunEntry;
use crate::entry::FORMAT;

const SUM_DIGITS: usize = 8;
const BEGINS: &str = "{\"sum\":\"";
const MIDDLE: &str = "\",\"run\":";

/// The runs that an index knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    entries: BTreeMap<String, RunEntry>,
    /// Lines that were skipped.
    pub problems: Vec<Problem>,
}

/// A line of an index that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Problem {
    /// The line's number, from 1.
    pub line: usize,
    pub why: &'static str,
}

impl Index {
    /// Reads an index. Lines that are damaged or foreign are skipped and reported.
    pub fn parse(text: &[u8]) -> Self {
        let mut index = Self::default();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match parse_line(line) {
                Ok(entry) => index.insert(entry),
                Err(why) => index.problems.push(Problem {
                    line: number + 1,
                    why,
                }),
            }
        }
        index
    }

    /// Adds a run or replaces its entry.
    pub fn insert(&mut self, entry: RunEntry) {
        self.entries.insert(entry.folder.clone(), entry);
    }

    /// The entry of a folder.
    pub fn get(&self, folder: &str) -> Option<&RunEntry> {
        self.entries.get(folder)
    }

    /// The runs, earliest first.
    pub fn runs(&self) -> Vec<&RunEntry> {
        let mut runs: Vec<&RunEntry> = self.entries.values().collect();
        runs.sort_by_key(|run| (run.started_unix_s, &run.folder));
        runs
    }

    /// The index as text.
    pub fn text(&self) -> String {
        self.entries.values().map(line).collect()
    }
}

/// The line of a run, with checksum and line break.
pub fn line(entry: &RunEntry) -> String {
    // Cannot fail: the entry has only strings and finite numbers.
    let run = serde_json::to_string(entry).unwrap_or_default();
    format!("{BEGINS}{}{MIDDLE}{run}}}\n", sum(run.as_bytes()))
}

fn sum(run: &[u8]) -> String {
    let digest = Sha256::digest(run);
    let digits = digest.iter().map(|b| format!("{b:02x}"));
    digits.collect::<String>()[..SUM_DIGITS].to_owned()
}

fn parse_line(line: &[u8]) -> Result<RunEntry, &'static str> {
    const FOREIGN: &str = "expected a line of weigh's index; it is another program's or damaged";
    let line = line.trim_ascii_end();
    let inside = line.strip_prefix(BEGINS.as_bytes()).ok_or(FOREIGN)?;
    let (digits, rest) = inside.split_at_checked(SUM_DIGITS).ok_or(FOREIGN)?;
    let run = rest.strip_prefix(MIDDLE.as_bytes()).ok_or(FOREIGN)?;
    let run = run.strip_suffix(b"}").ok_or("it is cut off")?;
    if sum(run).as_bytes() != digits {
        return Err("its checksum differs, so it is damaged");
    }
    let value: Value = serde_json::from_slice(run).map_err(|_| FOREIGN)?;
    if value["format"] != FORMAT {
        return Err("another version of weigh wrote it");
    }
    serde_json::from_value(value).map_err(|_| FOREIGN)
}
