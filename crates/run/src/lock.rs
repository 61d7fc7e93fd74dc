//! A file that one process at a time writes. The kernel lets go of the lock when the process dies,
//! however it dies; children that run other programs do not have the file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where the kernel lists who holds which lock.
const LOCKS: &str = "/proc/locks";
/// A program that was killed just now, or a child of it that has not begun its own program yet,
/// lets go in a moment.
const LETTING_GO: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// Whether a file is this process's to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// It is, as long as the file is open.
    Held,
    /// Another one writes it; its number, where the kernel tells.
    Others(Option<u32>),
}

/// Locks a file that is open for writing.
///
/// # Errors
/// When the file system refuses for another reason than a lock of others.
pub(crate) fn lock(file: &File) -> io::Result<Lock> {
    let end = Instant::now() + LETTING_GO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock::Held),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(POLL),
            Err(TryLockError::WouldBlock) => return Ok(Lock::Others(holder(file))),
            // A file system without locks shall not keep anybody from writing.
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {
                return Ok(Lock::Held);
            }
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// The process that holds the lock of a file.
fn holder(file: &File) -> Option<u32> {
    let file = file.metadata().ok()?.ino();
    holder_in(&fs::read_to_string(LOCKS).ok()?, file)
}

/// The same from the kernel's list, whose lines are as
/// `1: FLOCK  ADVISORY  WRITE 19152 fe:00:9977910 0 EOF`. The device is left out: not all file
/// systems give the same number here and elsewhere. Of several processes none is named.
fn holder_in(list: &str, file: u64) -> Option<u32> {
    let mut found = list.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        if fields.next()? != "FLOCK" {
            return None;
        }
        let pid = fields.nth(2)?.parse().ok()?;
        let (_, number) = fields.next()?.rsplit_once(':')?;
        (number.parse() == Ok(file)).then_some(pid)
    });
    let pid = found.next()?;
    (pid > 0 && found.next().is_none()).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_the_file_and_not_guessed() {
        let list = "1: POSIX  ADVISORY  WRITE 11 fe:00:7 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 12 fe:00:7 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 13 fe:00:7 0 EOF\n\
                    3: FLOCK  ADVISORY  WRITE 14 fe:00:8 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 15 fe:01:8 0 EOF\n\
                    5: FLOCK  ADVISORY  WRITE 0 fe:01:9 0 EOF\n";
        assert_eq!(holder_in(list, 7), Some(12));
        // On two devices; of another namespace; not there.
        for file in [8, 9, 10] {
            assert_eq!(holder_in(list, file), None, "{file}");
        }
    }

    #[test]
    fn a_lock_is_held_once_and_no_child_has_it() {
        let path = std::env::temp_dir().join(format!("weigh-lock-{}", std::process::id()));
        let one = File::create(&path).unwrap();
        let other = File::options().write(true).open(&path).unwrap();
        assert_eq!(lock(&one).unwrap(), Lock::Held);
        let others = lock(&other).unwrap();
        // Not every kernel tells who.
        let me = Some(std::process::id());
        assert!([Lock::Others(me), Lock::Others(None)].contains(&others));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        drop(one);
        let free = lock(&other);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(free.unwrap(), Lock::Held);
        fs::remove_file(path).unwrap();
    }
}
