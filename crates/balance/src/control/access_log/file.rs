//! A log file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::engine::shared::ProcessState;

/// How long after a file could not be opened it is tried again.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);
/// What is gathered at most before it is written, bytes.
const PENDING_MAX: usize = 1 << 20;

/// A file that lines are appended to.
///
/// Lines that cannot be written are counted and forgotten: a full disk must not fill the memory.
/// The first failure is reported, and the next one after it has gone well again.
pub(super) struct LogFile {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
    lines: u64,
    /// Lines that found no room.
    lost: u64,
    failing: bool,
    /// When it may be opened again.
    open_from: Option<Instant>,
    /// The file ends in a part of a line.
    partial_line: bool,
}

impl LogFile {
    pub(super) fn open(path: PathBuf, process: &ProcessState) -> LogFile {
        let mut file = LogFile {
            path,
            file: None,
            pending: Vec::new(),
            lines: 0,
            lost: 0,
            failing: false,
            open_from: None,
            partial_line: false,
        };
        if let Err(error) = file.ensure_open() {
            file.failed(&error, process);
        }
        file
    }

    /// Adds a line that `line` writes.
    pub(super) fn append(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        if self.pending.len() > PENDING_MAX {
            self.lost += 1;
            return;
        }
        line(&mut self.pending);
        self.lines += 1;
    }

    /// Writes what was gathered.
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
                // Of what was written in part, a few lines are there and counted all the same.
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
        // Opening a pipe would wait for a reader.
        if fs::metadata(&self.path).is_ok_and(|found| found.file_type().is_fifo()) {
            return Err(io::Error::other(
                "it is a named pipe; a log needs a regular file",
            ));
        }
        // It holds clients' addresses: not for everybody.
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
