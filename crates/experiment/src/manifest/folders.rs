//! The user's folders, which hold a folder per recipe or driver.

use std::io;
use std::path::{Path, PathBuf};

/// The folders in `dir` that hold `file`, with their names, in alphabetical order.
pub(crate) fn folders_with(dir: &Path, file: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found: Vec<(String, PathBuf)> = entries(dir)?
        .into_iter()
        .filter(|path| path.join(file).is_file())
        .filter_map(|path| Some((path.file_name()?.to_string_lossy().into_owned(), path)))
        .collect();
    found.sort();
    Ok(found)
}

/// A folder's entries, unordered.
pub(crate) fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir)?;
    entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect()
}
