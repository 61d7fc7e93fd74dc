//! An exclusive file lock (`flock`). The kernel releases it when the process dies; children do not
//! inherit it, since the file is close-on-exec.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

const LOCKS: &str = "/proc/locks";
/// A process that was just killed, or its child between fork and exec, releases the lock within
/// this time.
const RELEASE_GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Held by this process until the file is closed.
    Held,
    /// Held by another process, whose pid is given if the kernel reports it.
    HeldByOther(Option<u32>),
}

/// Locks a file that is open for writing.
///
/// # Errors
/// When locking fails for another reason than a conflicting lock.
pub(crate) fn lock(file: &File) -> io::Result<Lock> {
    let end = Instant::now() + RELEASE_GRACE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock::Held),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(POLL),
            Err(TryLockError::WouldBlock) => return Ok(Lock::HeldByOther(holder(file))),
            // A file system without locks does not prevent writing.
            Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Unsupported => {
                return Ok(Lock::Held);
            }
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

fn holder(file: &File) -> Option<u32> {
    let file = file.metadata().ok()?.ino();
    holder_in(&fs::read_to_string(LOCKS).ok()?, file)
}

/// Finds the holder in the text of `/proc/locks`, whose lines are as `1: FLOCK  ADVISORY  WRITE
/// 19152 fe:00:9977910 0 EOF`. The device is ignored, since some file systems report another one in
/// `stat`. `None` if several processes match.
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
    fn the_holder_is_found_by_inode_unless_ambiguous() {
        let list = "1: POSIX  ADVISORY  WRITE 11 fe:00:7 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 12 fe:00:7 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 13 fe:00:7 0 EOF\n\
                    3: FLOCK  ADVISORY  WRITE 14 fe:00:8 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 15 fe:01:8 0 EOF\n\
                    5: FLOCK  ADVISORY  WRITE 0 fe:01:9 0 EOF\n";
        assert_eq!(holder_in(list, 7), Some(12));
        // Ambiguous; in another pid namespace; absent.
        for file in [8, 9, 10] {
            assert_eq!(holder_in(list, file), None, "{file}");
        }
    }

    #[test]
    fn a_lock_is_exclusive_and_not_inherited() {
        let path = std::env::temp_dir().join(format!("weigh-lock-{}", std::process::id()));
        let one = File::create(&path).unwrap();
        let other = File::options().write(true).open(&path).unwrap();
        assert_eq!(lock(&one).unwrap(), Lock::Held);
        let others = lock(&other).unwrap();
        // Not every kernel reports the holder.
        let me = Some(std::process::id());
        assert!([Lock::HeldByOther(me), Lock::HeldByOther(None)].contains(&others));
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
