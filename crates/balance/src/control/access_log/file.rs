//! A log file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::engine::shared::ProcessState;

/// How long after a failed open it is tried again.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);
/// Limit of what is buffered before a write, bytes.
const PENDING_MAX: usize = 1 << 20;

/// An append-only log.
///
/// Lines that cannot be written are counted and dropped: a full disk must not fill the memory. The
/// first failure is reported, and the next one after a success.
#[derive(Default)]
pub(super) struct LogFile {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
    lines: u64,
    /// Lines that did not fit the buffer.
    lost: u64,
    failing: bool,
    /// No open before this time.
    open_from: Option<Instant>,
    /// The file ends within a line.
    partial_line: bool,
}

impl LogFile {
    pub(super) fn open(path: PathBuf, process: &ProcessState) -> LogFile {
        let mut file = LogFile {
            path,
            ..LogFile::default()
        };
        if let Err(error) = file.ensure_open() {
            file.failed(&error, process);
        }
        file
    }

    /// Adds a line, written by `line`.
    pub(super) fn append(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        if self.pending.len() > PENDING_MAX {
            self.lost += 1;
            return;
        }
        line(&mut self.pending);
        self.lines += 1;
    }

    pub(super) fn write(&mut self, process: &ProcessState) {
        if self.lines == 0 {
            return;
        }
        let result = self.ensure_open().and_then(|()| self.write_all());
        let lost = std::mem::take(&mut self.lost);
        match result {
            Ok(()) => {
                process.log_failures.add(lost);
                self.failing = false;
            }
            Err(error) => {
                // A few of them may have been written all the same.
                process.log_failures.add(lost + self.lines);
                self.failed(&error, process);
            }
        }
        self.pending.clear();
        self.lines = 0;
    }

    fn ensure_open(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        if self.open_from.is_some_and(|from| Instant::now() < from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.open_from = Some(Instant::now() + REOPEN_INTERVAL);
        // Opening a named pipe would block.
        if fs::metadata(&self.path).is_ok_and(|found| found.file_type().is_fifo()) {
            return Err(io::Error::other(
                "it is a named pipe; a log needs a regular file",
            ));
        }
        // It has clients' addresses: not world-readable.
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o640);
        self.file = Some(file.open(&self.path)?);
        Ok(())
    }

    fn write_all(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        if self.partial_line {
            file.write_all(b"\n")?;
            self.partial_line = false;
        }
        let mut rest = self.pending.as_slice();
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.partial_line = rest[n - 1] != b'\n';
                    rest = &rest[n..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: &io::Error, process: &ProcessState) {
        if !std::mem::replace(&mut self.failing, true) {
            let path = self.path.display();
            let notice = format!("cannot write the log {path}: {error}; lines are dropped");
            process.notices.push(notice);
        }
    }
}
