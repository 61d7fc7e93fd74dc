//! The append-only file of a run's rows.

pub(crate) mod folder;
pub(crate) mod inventory;
mod lock;
mod server_configs;
pub(crate) mod settings;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use net::plain_file;
use readings::{
    JOURNAL_LINE_BYTES_MAX, Journal, JournalRow, JournalTextError, Salvaged, UnwritableRow,
};

use crate::journal::lock::{Lock, lock};

/// The journal's name inside a run's folder.
pub const FILE_NAME: &str = "journal.jsonl";

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it holds is no journal.
    #[error("{}: {source}", path.display())]
    Text {
        path: PathBuf,
        source: JournalTextError,
    },
    /// A row cannot be represented in a journal. The file was not changed.
    #[error("{}: a row cannot be written: {source}", path.display())]
    Row {
        path: PathBuf,
        /// Why.
        source: UnwritableRow,
    },
    #[error("{}: there is a journal already", path.display())]
    Exists { path: PathBuf },
    #[error(
        "a run is going on in {}{}; wait until it has ended, or stop it",
        folder.display(),
        process.map(|number| format!(" (process {number})")).unwrap_or_default()
    )]
    GoingOn {
        folder: PathBuf,
        process: Option<u32>,
    },
}

/// Reads the journal of a run's folder. A last line that was cut off is ignored.
///
/// # Errors
/// When it is not there, cannot be read, or holds something else.
pub fn read(folder: &Path) -> Result<Journal, JournalError> {
    read_as(folder, Journal::parse)
}

/// Reads the intact rows of a damaged journal.
///
/// # Errors
/// When it does not exist or cannot be read, or its header is damaged.
pub fn salvage(folder: &Path) -> Result<Salvaged, JournalError> {
    read_as(folder, Journal::salvage)
}

fn read_as<T>(
    folder: &Path,
    parse: impl Fn(&[u8]) -> Result<T, JournalTextError>,
) -> Result<T, JournalError> {
    let path = folder.join(FILE_NAME);
    match plain_file::read_lines(&path, JOURNAL_LINE_BYTES_MAX) {
        Ok(text) => parse(&text).map_err(|source| JournalError::Text { path, source }),
        Err(source) => Err(JournalError::Io { path, source }),
    }
}

/// A journal open for appending, under an exclusive lock.
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    /// Bytes of the rows that were written completely.
    whole_bytes: u64,
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
                let file = plain_file::open_to_write(&path, &mut options)?;
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
            Ok(Some(file)) => {
                sync_folder(folder);
                Ok(Self {
                    path,
                    file,
                    whole_bytes: 0,
                })
            }
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
        let mut file =
            plain_file::open_to_write(&path, OpenOptions::new().write(true)).map_err(error)?;
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
        let whole_bytes = journal.whole_bytes;
        let writer = Self {
            path,
            file,
            whole_bytes,
        };
        Ok((writer, journal))
    }

    /// Appends a row and syncs it to disk.
    ///
    /// # Errors
    /// When the row cannot be represented, or the write fails. In either case the rows before it
    /// are kept, and a partly written row is removed.
    pub fn append(&mut self, row: &JournalRow) -> Result<(), JournalError> {
        let path = || self.path.clone();
        let line = row.to_line().map_err(|source| JournalError::Row {
            path: path(),
            source,
        })?;
        let written = self.file.write_all(&line);
        match written.and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.whole_bytes += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // If this fails, a partial line stays at the end, which readers ignore.
                let _ = self.file.set_len(self.whole_bytes);
                let _ = self.file.seek(SeekFrom::Start(self.whole_bytes));
                Err(JournalError::Io {
                    path: path(),
                    source,
                })
            }
        }
    }
}

/// Syncs the directory entries of a new journal and of its folder. Otherwise a power failure may
/// lose the file although its rows were synced.
fn sync_folder(folder: &Path) {
    let parent = folder.parent().filter(|it| !it.as_os_str().is_empty());
    for folder in [folder, parent.unwrap_or(Path::new("."))] {
        // Not every file system supports this.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
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
            experiment: "e".into(),
            title: "t".into(),
            baseline: "a".into(),
            subjects: vec!["a".into()],
            ..RunHeader::default()
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
        let salvaged = salvage(&folder).unwrap();
        assert_eq!(salvaged.left_out[0].0, 4);
        assert_eq!(salvaged.journal.rows[1..], [warning("one"), warning("two")]);
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

    #[test]
    fn a_journal_is_a_regular_file_in_its_folder_when_it_is_written() {
        use std::os::unix::fs::symlink;
        let place = folder("regular");
        let (here, there) = (place.join("here"), place.join("there"));
        fs::create_dir_all(&here).unwrap();
        fs::create_dir_all(&there).unwrap();
        let file = here.join(FILE_NAME);
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
        // None of them waits.
        assert!(read(&here).is_err() && salvage(&here).is_err());
        assert!(JournalWriter::resume(&here).is_err() && JournalWriter::create(&here).is_err());
        fs::remove_file(&file).unwrap();
        symlink(there.join(FILE_NAME), &file).unwrap();
        assert!(JournalWriter::create(&here).is_err());
        assert!(!there.join(FILE_NAME).exists());
        drop(create_with_header(&there));
        assert!(read(&here).is_ok());
        assert!(JournalWriter::resume(&here).is_err());
        fs::remove_dir_all(&place).unwrap();
    }

    /// A file size limit (`RLIMIT_FSIZE`) stands for a full disk: a write is cut short, and the
    /// next fails.
    fn with_file_limit<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Fsize);
        let limit = Rlimit {
            current: Some(bytes),
            maximum: before.maximum,
        };
        setrlimit(Resource::Fsize, limit).unwrap();
        let result = work();
        setrlimit(Resource::Fsize, before).unwrap();
        result
    }

    #[test]
    fn a_full_disk_loses_nothing_that_was_written_before() {
        const NAME: &str = "journal::tests::a_full_disk_loses_nothing_that_was_written_before";
        // In a process of its own, since the limit applies to the whole process. A shell starts it,
        // to ignore the limit's signal.
        if std::env::var_os("WEIGH_TEST_FULL_DISK").is_none() {
            let output = std::process::Command::new("sh")
                .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
                .arg(std::env::current_exe().unwrap())
                .arg(NAME)
                .env("WEIGH_TEST_FULL_DISK", "1")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains("1 passed"), "{text}{errors}");
            return;
        }
        let folder = folder("full");
        let rows = [JournalRow::Run(header()), warning("one"), warning("two")];
        let whole: usize = rows.iter().map(|row| row.to_line().unwrap().len()).sum();
        for limit in 0..=whole {
            let _ = fs::remove_file(folder.join(FILE_NAME));
            let mut writer = JournalWriter::create(&folder).unwrap();
            let mut kept = 0;
            for row in &rows {
                match with_file_limit(limit as u64, || writer.append(row)) {
                    Ok(()) => kept += 1,
                    Err(error) => {
                        let error = error.to_string();
                        assert!(error.contains("journal.jsonl: File too large"), "{error}");
                        break;
                    }
                }
            }
            assert_eq!(kept == rows.len(), limit == whole, "{limit}");
            // With space again, the journal continues after its last complete row.
            for row in rows.iter().take(1).skip(kept) {
                writer.append(row).unwrap();
            }
            writer.append(&warning("later")).unwrap();
            let journal = read(&folder).unwrap();
            let mut expected = rows[1..kept.max(1)].to_vec();
            expected.push(warning("later"));
            assert_eq!(journal.rows, expected, "{limit}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
