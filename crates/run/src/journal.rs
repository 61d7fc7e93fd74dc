//! The append-only file of a run's rows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use readings::{Journal, JournalRow, JournalTextError};

use crate::lock::{Lock, lock};

/// The journal's name inside a run's folder.
pub const FILE_NAME: &str = "journal.jsonl";

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it holds is no journal.
    #[error("{}: {source}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: JournalTextError,
    },
    /// A journal exists where a new one was to be created.
    #[error("{}: there is a journal already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process is writing it.
    #[error(
        "a run is going on in {}{}; wait until it has ended, or stop it",
        folder.display(),
        process.map(|number| format!(" (process {number})")).unwrap_or_default()
    )]
    GoingOn {
        /// The run's folder.
        folder: PathBuf,
        /// The process, if the kernel reports it.
        process: Option<u32>,
    },
}

/// Reads the journal of a run's folder. A last line that was cut off is ignored.
///
/// # Errors
/// When it is not there, cannot be read, or holds something else.
pub fn read(folder: &Path) -> Result<Journal, JournalError> {
    let path = folder.join(FILE_NAME);
    match fs::read(&path) {
        Ok(text) => Journal::parse(&text).map_err(|source| JournalError::Text { path, source }),
        Err(source) => Err(JournalError::Io { path, source }),
    }
}

/// A journal open for appending, under an exclusive lock.
pub struct JournalWriter {
    path: PathBuf,
    file: File,
}

impl JournalWriter {
    /// Creates the journal of a folder, or takes over one without a complete row, as a process
    /// leaves it that is killed right after creating it. The first row has to be the run's header.
    ///
    /// # Errors
    /// When a journal exists or another process holds it, or the folder cannot be written.
    pub fn create(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(FILE_NAME);
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            loop {
                let file = options.open(&path)?;
                if lock(&file)? != Lock::Held {
                    return Ok(None);
                }
                // Its previous holder may have removed the file before unlocking it.
                let is_there = fs::metadata(&path)
                    .is_ok_and(|there| file.metadata().is_ok_and(|own| own.ino() == there.ino()));
                if is_there {
                    return truncate_unless_written(file);
                }
            }
        };
        match open() {
            Ok(Some(file)) => Ok(Self { path, file }),
            Ok(None) => Err(JournalError::Exists { path }),
            Err(source) => Err(JournalError::Io { path, source }),
        }
    }

    /// Opens the journal of a folder for appending, and returns its content.
    ///
    /// # Errors
    /// When another process writes it, or it cannot be read or written.
    pub fn resume(folder: &Path) -> Result<(Self, Journal), JournalError> {
        let path = folder.join(FILE_NAME);
        let error = |source| JournalError::Io {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new().write(true).open(&path).map_err(error)?;
        if let Lock::HeldByOther(process) = lock(&file).map_err(error)? {
            return Err(JournalError::GoingOn {
                folder: folder.to_path_buf(),
                process,
            });
        }
        let journal = read(folder)?;
        file.set_len(journal.whole_bytes)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(error)?;
        Ok((Self { path, file }, journal))
    }

    /// Appends a row and syncs it to disk.
    ///
    /// # Errors
    /// When the write fails.
    pub fn append(&mut self, row: &JournalRow) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(row).unwrap_or_default();
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| JournalError::Io {
                path: self.path.clone(),
                source,
            })
    }
}

/// Truncates the file of a new journal; `None` if it holds a row.
fn truncate_unless_written(mut file: File) -> io::Result<Option<File>> {
    let mut first = Vec::new();
    BufReader::new(&file).read_until(b'\n', &mut first)?;
    if first.ends_with(b"\n") {
        return Ok(None);
    }
    file.set_len(0)?;
    file.rewind()?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::RunHeader;

    fn header() -> RunHeader {
        RunHeader {
            weigh_version: "0".into(),
            experiment: "e".into(),
            title: "t".into(),
            seed: 1,
            baseline: "a".into(),
            subjects: vec!["a".into()],
            conditions: vec![Default::default()],
            blocks: 1,
            matters: 0.03,
            matters_failures: 0.001,
            matters_ms: None,
            max_error: 0.01,
            started_unix_s: 0,
            published: Vec::new(),
            open_loop_factors: Vec::new(),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let name = format!("weigh-journal-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn warning(text: &str) -> JournalRow {
        JournalRow::Warning { text: text.into() }
    }

    fn create_with_header(folder: &Path) -> JournalWriter {
        let mut writer = JournalWriter::create(folder).unwrap();
        writer.append(&JournalRow::Run(header())).unwrap();
        writer
    }

    #[test]
    fn a_cut_off_line_is_ignored_and_overwritten() {
        let folder = folder("cut");
        let mut writer = create_with_header(&folder);
        writer.append(&warning("one")).unwrap();
        drop(writer);
        let path = folder.join(FILE_NAME);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"row\":\"warn").unwrap();
        assert_eq!(read(&folder).unwrap().rows, [warning("one")]);
        let (mut writer, journal) = JournalWriter::resume(&folder).unwrap();
        assert_eq!(journal.rows, [warning("one")]);
        writer.append(&warning("two")).unwrap();
        let journal = read(&folder).unwrap();
        assert_eq!(journal.warnings(), ["one", "two"]);
        drop(writer);
        assert!(JournalWriter::create(&folder).is_err());
        file.write_all(b"nonsense\n").unwrap();
        let error = read(&folder).unwrap_err().to_string();
        assert!(error.contains("line 4"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_journal_has_one_writer_and_any_reader() {
        let folder = folder("one");
        // Left by a process that was killed before it wrote a row.
        fs::write(folder.join(FILE_NAME), "{\"row\":").unwrap();
        let mut writer = JournalWriter::create(&folder).unwrap();
        let exists = |folder: &Path| {
            let error = JournalWriter::create(folder).err();
            assert!(matches!(error, Some(JournalError::Exists { .. })));
        };
        exists(&folder);
        writer.append(&JournalRow::Run(header())).unwrap();
        exists(&folder);
        let text = match JournalWriter::resume(&folder) {
            Err(error @ JournalError::GoingOn { .. }) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("there are two writers"),
        };
        assert!(text.starts_with("a run is going on in "), "{text}");
        writer.append(&warning("one")).unwrap();
        assert_eq!(read(&folder).unwrap().rows, [warning("one")]);
        drop(writer);
        exists(&folder);
        assert!(JournalWriter::resume(&folder).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }
}
