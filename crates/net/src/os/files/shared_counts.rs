//! Counters in a file, which other processes read while they grow.
//!
//! The file is mapped, so that counting is a store to memory and a reader sees every store at once:
//! a `pread` of a mapped file returns what was stored.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Counters, all 0 at first, that several threads share.
#[derive(Debug)]
pub struct SharedCounts {
    first: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the memory is only accessed as atomics, and mapped until the value is dropped.
unsafe impl Send for SharedCounts {}
// SAFETY: as above.
unsafe impl Sync for SharedCounts {}

impl SharedCounts {
    /// So many counters, in this file if one is given: 8 bytes each, in the machine's byte order.
    /// Counters of an existing file of that length go on from where they were. Nobody else may cut the
    /// file, or the process is killed by SIGBUS when it counts.
    ///
    /// # Errors
    /// When the file cannot be made, or the memory not be mapped.
    pub fn open(path: Option<&Path>, count: usize) -> io::Result<Self> {
        let count = count.max(1);
        let bytes = count * size_of::<u64>();
        let file = path.map(|path| sized(path, bytes as u64)).transpose()?;
        let flags = match file {
            Some(_) => libc::MAP_SHARED,
            None => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        };
        // SAFETY: a new mapping wherever there is room, of the file's first bytes or of no file.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                file.as_ref().map_or(-1, File::as_raw_fd),
                0,
            )
        };
        match NonNull::new(memory.cast()) {
            Some(first) if memory != libc::MAP_FAILED => Ok(Self { first, count }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many aligned values and lives as long as `self`; every bit
        // pattern is a counter, and all access is atomic.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for SharedCounts {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}

/// A file of this length; one of another length is emptied first.
fn sized(path: &Path, bytes: u64) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path)?;
    if file.metadata()?.len() != bytes {
        file.set_len(0)?;
        file.set_len(bytes)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::Ordering;

    #[test]
    fn readers_of_the_file_see_each_count_at_once_and_it_outlives_its_process() {
        let path = std::env::temp_dir().join(format!("weigh-counts-{}", std::process::id()));
        let counts = SharedCounts::open(Some(&path), 3).unwrap();
        let file = File::open(&path).unwrap();
        let read = |at: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, 8 * at).unwrap();
            u64::from_ne_bytes(bytes)
        };
        for value in 1..=3 {
            counts.all()[2].store(value, Ordering::Relaxed);
            assert_eq!((read(0), read(2)), (0, value));
        }
        drop(counts);
        let again = SharedCounts::open(Some(&path), 3).unwrap();
        assert_eq!(again.all()[2].load(Ordering::Relaxed), 3);
        let longer = SharedCounts::open(Some(&path), 4).unwrap();
        assert_eq!(longer.all()[2].load(Ordering::Relaxed), 0);
        std::fs::remove_file(&path).unwrap();
        let alone = SharedCounts::open(None, 2).unwrap();
        assert_eq!(alone.all().len(), 2);
    }
}
