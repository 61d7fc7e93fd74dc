//! Whether a thread has run: by what the kernel counts of it in `schedstat`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// `schedstat` has three figures of at most 20 digits: the time on CPUs, ns, the time waited for
/// one, ns, and how many times it was given one.
const LONGEST: usize = 64;

/// Whether the kernel tells that at all: it does not without `CONFIG_SCHED_INFO`.
pub(super) fn are_told() -> bool {
    Path::new("/proc/self/schedstat").exists()
}

/// What a thread has run.
///
/// All three figures are as before: then it has not run since. The one exception is a thread that
/// has had a CPU since before the last look and has it still. Its time is added up at the
/// scheduler's next tick, so a look or two later (once a second on CPUs that have no tick,
/// `nohz_full`), and what it did is seen then.
pub(super) struct RunTimes {
    text: [u8; LONGEST],
    held: Option<ChildGuard>,
}

/// What a thread did since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// Nothing.
    Idle,
    /// It ran, or that cannot be told.
    Ran,
    /// It ended.
    Gone,
}

impl RunTimes {
    /// Of a thread that nothing is known of yet.
    pub(super) fn unknown() -> Self {
        Self {
            text: [0; LONGEST],
            held: None,
        }
    }

    /// What a thread of a process did since this was asked last.
    ///
    /// A descriptor that is held belongs to the thread that it was opened for: when that has ended
    /// reading gives an error (`ESRCH`), whoever has its number now. Without one it is the number
    /// that counts, and another thread shows by other figures.
    pub(super) fn since(&mut self, pid: i32, thread: i32, descriptors: &Descriptors) -> Since {
        let (since, text) = self.compare(pid, thread, descriptors);
        if let Some(text) = text {
            self.text = text;
        }
        since
    }

    /// Whether a thread of a process has done nothing since [`since`](Self::since) was asked last,
    /// which this is not to count as.
    pub(super) fn is_idle(&mut self, pid: i32, thread: i32, descriptors: &Descriptors) -> bool {
        self.compare(pid, thread, descriptors).0 == Since::Idle
    }

    /// What it did, and what the kernel says now.
    fn compare(
        &mut self,
        pid: i32,
        thread: i32,
        descriptors: &Descriptors,
    ) -> (Since, Option<[u8; LONGEST]>) {
        let mut text = [0; LONGEST];
        let read = match &self.held {
            Some(held) => held.file.read_at(&mut text, 0),
            None => File::open(format!("/proc/{pid}/task/{thread}/schedstat")).and_then(|file| {
                let read = file.read_at(&mut text, 0);
                self.held = descriptors.hold(file);
                read
            }),
        };
        match read {
            Ok(_) if tells(&text) && text == self.text => (Since::Idle, Some(text)),
            Ok(_) => (Since::Ran, Some(text)),
            Err(error) if has_ended(&error) => (Since::Gone, None),
            // As when no descriptor is left.
            Err(_) => (Since::Ran, None),
        }
    }
}

/// Three zeros are what a kernel says that has the file and does not count.
fn tells(text: &[u8]) -> bool {
    text[0] != 0 && !text.starts_with(b"0 0 0\n")
}

/// Whether the thread that was asked for is gone.
pub(super) fn has_ended(error: &io::Error) -> bool {
    // What the kernel answers for a task that is gone, on Linux everywhere.
    const ESRCH: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}

/// How many descriptors may be held, and how many are.
#[derive(Clone)]
pub(super) struct Descriptors(Arc<Bound>);

struct Bound {
    most: usize,
    held: AtomicUsize,
}

impl Descriptors {
    /// Those of this process: a quarter of the files that it may have open, however many servers
    /// are looked at. The others are for connections.
    pub(super) fn of_this_process() -> Self {
        static OF_THIS: OnceLock<Descriptors> = OnceLock::new();
        let quarter = || usize::try_from(net::os::open_files() / 4).unwrap_or(usize::MAX);
        OF_THIS.get_or_init(|| Self::at_most(quarter())).clone()
    }

    pub(super) fn at_most(most: usize) -> Self {
        Self(Arc::new(Bound {
            most,
            held: AtomicUsize::new(0),
        }))
    }

    /// Keeps a file open where that is within the bound.
    fn hold(&self, file: File) -> Option<ChildGuard> {
        let one_more = |held| (held < self.0.most).then_some(held + 1);
        let may = self
            .0
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        may.ok().map(|_| ChildGuard {
            file,
            of: Arc::clone(&self.0),
        })
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }
}

struct ChildGuard {
    file: File,
    of: Arc<Bound>,
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.of.held.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told_shell::idler;

    #[test]
    fn a_thread_rests_and_then_ends() {
        for most in [0, 1] {
            let descriptors = Descriptors::at_most(most);
            let idler = idler();
            let pid = idler.pid();
            let mut times = RunTimes::unknown();
            assert_eq!(times.since(pid, pid, &descriptors), Since::Ran);
            let rests = (0..2000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                times.since(pid, pid, &descriptors) == Since::Idle
            });
            assert!(rests && descriptors.held() == most);
            drop(idler);
            // Another that has its number now is none of it.
            assert_eq!(times.since(pid, pid, &descriptors), Since::Gone);
        }
    }

    #[test]
    fn a_kernel_that_has_the_file_and_does_not_count_tells_nothing() {
        assert!(tells(b"12 0 1\n") && tells(b"0 0 1\n"));
        assert!(!tells(b"0 0 0\n") && !tells(&[0; 64]));
    }
}
