//! Whether a thread has run, by its `schedstat`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Three numbers of at most 20 digits: time on CPUs, ns, time runnable without one, ns, and how
/// often it got one.
const LONGEST: usize = 64;

/// Kernels without `CONFIG_SCHED_INFO` do not count it.
pub(crate) fn are_counted() -> bool {
    Path::new("/proc/self/schedstat").exists()
}

/// The `schedstat` of a thread.
///
/// Where it has not changed the thread has not run. The one exception is a thread that was on a CPU
/// before the last sample and still is: its time is added at the scheduler's next tick (once a
/// second on CPUs without one, `nohz_full`), and a sample or two later shows what it did.
pub(crate) struct RunTimes {
    text: [u8; LONGEST],
    held: Option<HeldFile>,
}

/// What a thread did since the last sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    Idle,
    /// It ran, or that is unknown.
    Ran,
    Gone,
}

impl RunTimes {
    pub(crate) fn unknown() -> Self {
        Self {
            text: [0; LONGEST],
            held: None,
        }
    }

    /// What a thread did since the last call.
    ///
    /// A descriptor that is held belongs to the thread that it was opened for: after its exit reading
    /// fails with `ESRCH`, whoever has its tid now. Without one, another thread that reuses the tid
    /// shows by another `schedstat`.
    pub(crate) fn since(&mut self, pid: i32, thread: i32, descriptors: &Descriptors) -> Since {
        let (since, text) = self.compare(pid, thread, descriptors);
        if let Some(text) = text {
            self.text = text;
        }
        since
    }

    /// Whether a thread has been idle since the last call of [`since`](Self::since). Does not move
    /// that point.
    pub(crate) fn is_idle(&mut self, pid: i32, thread: i32, descriptors: &Descriptors) -> bool {
        self.compare(pid, thread, descriptors).0 == Since::Idle
    }

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
            Ok(_) if is_counted(&text) && text == self.text => (Since::Idle, Some(text)),
            Ok(_) => (Since::Ran, Some(text)),
            Err(error) if has_ended(&error) => (Since::Gone, None),
            // For want of descriptors, for example.
            Err(_) => (Since::Ran, None),
        }
    }
}

/// Kernels that have the file and do not count show three zeros.
fn is_counted(text: &[u8]) -> bool {
    text[0] != 0 && !text.starts_with(b"0 0 0\n")
}

/// Whether an error says that a thread is gone.
pub(crate) fn has_ended(error: &io::Error) -> bool {
    // The same on every Linux.
    const ESRCH: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}

/// A bound on descriptors that are held.
#[derive(Clone)]
pub(crate) struct Descriptors(Arc<Bound>);

struct Bound {
    most: usize,
    held: AtomicUsize,
}

impl Descriptors {
    /// A quarter of the files that this process may have open, however many servers it samples. The
    /// others are for connections.
    pub(crate) fn of_this_process() -> Self {
        static OF_THIS: OnceLock<Descriptors> = OnceLock::new();
        let at_most = || {
            let quarter = net::os::open_files() / 4;
            Self::at_most(usize::try_from(quarter).unwrap_or(usize::MAX))
        };
        OF_THIS.get_or_init(at_most).clone()
    }

    pub(crate) fn at_most(most: usize) -> Self {
        Self(Arc::new(Bound {
            most,
            held: AtomicUsize::new(0),
        }))
    }

    fn hold(&self, file: File) -> Option<HeldFile> {
        let one_more = |held| (held < self.0.most).then_some(held + 1);
        let may = self
            .0
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        may.ok().map(|_| HeldFile {
            file,
            of: Arc::clone(&self.0),
        })
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }
}

struct HeldFile {
    file: File,
    of: Arc<Bound>,
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        self.of.held.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::idler;

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
            assert_eq!(times.since(pid, pid, &descriptors), Since::Gone);
        }
    }

    #[test]
    fn a_kernel_that_does_not_count_is_recognised() {
        assert!(is_counted(b"12 0 1\n") && is_counted(b"0 0 1\n"));
        assert!(!is_counted(b"0 0 0\n") && !is_counted(&[0; 64]));
    }
}
