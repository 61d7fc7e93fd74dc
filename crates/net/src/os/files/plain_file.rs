//! Regular files in folders that others may have filled, such as the folder of a run that was sent.
//!
//! Opening never waits, as it would for the other end of a named pipe. Only regular files are read
//! and written, so that reading comes to an end. What is written follows no symbolic link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file for reading. A symbolic link to a regular file is followed.
///
/// # Errors
/// When there is none, or it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    regular(options.open(path)?)
}

/// Opens a file for writing, in the way that `options` say. No symbolic link is followed.
///
/// # Errors
/// When it cannot be opened so, or is not a regular file.
pub fn open_to_write(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    match options.open(path) {
        Ok(file) => regular(file),
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => {
            Err(io::Error::other("it is a symbolic link"))
        }
        // A named pipe that nobody reads, or a socket.
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => Err(not_regular()),
        Err(e) => Err(e),
    }
}

/// Reads a file of at most `most` bytes, which may be behind a symbolic link.
///
/// # Errors
/// When it cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    read_open(open(path)?, most)
}

/// Reads an open file, if it is a regular one of at most `most` bytes.
///
/// # Errors
/// When it cannot be read, is not a regular file, or is larger.
pub fn read_open(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular(file)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() <= most {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "it is too large: expected at most {most} bytes"
        ))),
    }
}

/// Reads the lines of a file, which may be behind a symbolic link. At a line of more than `longest`
/// bytes, reading ends: of that line `longest + 1` bytes are returned, without a line feed.
///
/// # Errors
/// When it cannot be read, or is not a regular file.
pub fn read_lines(path: &Path, longest: usize) -> io::Result<Vec<u8>> {
    let mut file = BufReader::with_capacity(1 << 16, open(path)?);
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let mut line = file.by_ref().take(longest as u64 + 1);
        line.read_until(b'\n', &mut bytes)?;
        if !bytes[before..].ends_with(b"\n") {
            return Ok(bytes);
        }
    }
}

/// Writes a file, in place of what it held. No symbolic link is followed.
///
/// # Errors
/// When it cannot be written, or is not a regular file.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // Truncated only once it is known to be a regular file.
    options.write(true).create(true).truncate(false);
    let mut file = open_to_write(path, &mut options)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// Writes a new file at `beside`, which then takes the place of `path`: what stood there stays if
/// the disk is full, and a killed process leaves a whole file. What stands at `beside` is removed,
/// and not written to.
///
/// # Errors
/// When it cannot be written or renamed; nothing of it is left then.
pub fn replace(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(beside) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let written = File::create_new(beside).and_then(|mut file| file.write_all(bytes));
    written
        .and_then(|()| fs::rename(beside, path))
        .inspect_err(|_| {
            // It may be incomplete.
            let _ = fs::remove_file(beside);
        })
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::other("expected a regular file, found something else")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("net-plain-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn pipe(&self, name: &str) -> PathBuf {
            let path = self.0.join(name);
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
            path
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_regular_files_are_read() {
        let place = Place::new("read");
        let file = place.0.join("file");
        fs::write(&file, "12345").unwrap();
        symlink("file", place.0.join("link")).unwrap();
        symlink("/dev/zero", place.0.join("zero")).unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert_eq!(read(&place.0.join("link"), 5).unwrap(), b"12345");
        assert!(
            read(&file, 4)
                .unwrap_err()
                .to_string()
                .contains("at most 4 bytes")
        );
        for other in [place.pipe("pipe"), place.0.join("zero"), place.0.clone()] {
            let why = read(&other, 5).unwrap_err().to_string();
            assert!(why.contains("expected a regular file"), "{why}");
            assert!(read_lines(&other, 5).is_err());
        }
        let absent = read(&place.0.join("absent"), 5).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn reading_ends_at_a_line_that_is_too_long() {
        let place = Place::new("lines");
        let file = place.0.join("file");
        for (text, kept) in [
            ("", ""),
            ("a\n\nbcd", "a\n\nbcd"),
            ("1234\n1234\n", "1234\n1234\n"),
            ("1\n12345\n1\n", "1\n12345"),
            ("1\n123456789\n1\n", "1\n12345"),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(read_lines(&file, 4).unwrap(), kept.as_bytes(), "{text:?}");
        }
        // A terabyte without a line feed.
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_lines(&file, 1000).unwrap().len(), 1001);
    }

    #[test]
    fn what_is_written_follows_no_link() {
        let place = Place::new("write");
        let other = place.0.join("other");
        fs::write(&other, "kept").unwrap();
        let link = place.0.join("link");
        symlink("other", &link).unwrap();
        let dangling = place.0.join("dangling");
        symlink("new", &dangling).unwrap();
        for path in [&link, &dangling, &place.pipe("pipe")] {
            assert!(write(path, b"x").is_err(), "{}", path.display());
        }
        let why = write(&link, b"x").unwrap_err().to_string();
        assert!(why.contains("symbolic link"), "{why}");
        let file = place.0.join("file");
        write(&file, b"long").unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        // Neither does a file that takes the place of another.
        replace(&file, &link, b"whole").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"whole");
        assert!(!link.is_symlink() && !place.0.join("new").exists());
        replace(&dangling, &place.0.join("beside"), b"x").unwrap();
        assert!(!dangling.is_symlink());
        assert_eq!(fs::read(&other).unwrap(), b"kept");
    }
}
