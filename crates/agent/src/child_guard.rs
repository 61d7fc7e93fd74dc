//! Child processes that do not outlive this one, even if the thread that uses them hangs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::os;

use super::cgroup;

/// How long a child may take to end after its input was closed.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// How much longer the thread that uses a child may take; then the child is killed all the same.
const BUSY_MAX: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(5);
const SIGKILL: i32 = 9;

/// By pid.
static ALL: Mutex<Vec<(u32, Arc<Mutex<Guarded>>)>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Their contents are consistent at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Guarded {
    child: Child,
    orders: Option<ChildStdin>,
    /// Process groups that it started; killed here unless it ends with status 0.
    groups: Vec<i32>,
    /// Its folder; also removed here unless it ends with status 0. Its control groups begin with the
    /// folder's name.
    folder: Option<PathBuf>,
}

impl Guarded {
    /// Closes its input, and at `end` kills it with all that it has started.
    fn end(&mut self, end: Instant) {
        self.orders = None;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => sleep(POLL),
                Ok(Some(status)) if status.success() => return,
                _ => break,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        for group in self.groups.drain(..) {
            let _ = os::kill(-group, SIGKILL);
        }
        let Some(folder) = self.folder.take() else {
            return;
        };
        if let Some(name) = folder.file_name() {
            cgroup::remove_all(&name.to_string_lossy());
        }
        if folder.starts_with(std::env::temp_dir()) {
            let _ = net::folder::remove_all(&folder);
        }
    }
}

/// A child and the pipe to it. Dropping it closes the pipe, which ends the child; otherwise it is
/// killed.
pub struct ChildGuard {
    pid: u32,
    guarded: Arc<Mutex<Guarded>>,
}

impl ChildGuard {
    /// Guards a child that was started with a piped input and output.
    pub fn new(mut child: Child) -> Self {
        let pid = child.id();
        let guarded = Arc::new(Mutex::new(Guarded {
            orders: child.stdin.take(),
            child,
            groups: Vec::new(),
            folder: None,
        }));
        locked(&ALL).push((pid, guarded.clone()));
        Self { pid, guarded }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes a line into its input.
    pub fn send(&self, line: &[u8]) -> io::Result<()> {
        match &mut locked(&self.guarded).orders {
            Some(pipe) => pipe.write_all(line),
            None => Err(io::Error::other("the pipe is closed")),
        }
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        locked(&self.guarded).child.try_wait()
    }

    /// Kills the child; dropping this then kills all that it has started.
    pub fn kill(&self) {
        // It fails only where the child has ended.
        let _ = locked(&self.guarded).child.kill();
    }

    /// A folder to remove if the child does not do so itself.
    pub(super) fn owns_folder(&self, folder: &Path) {
        locked(&self.guarded).folder = Some(folder.to_path_buf());
    }

    /// The child has started a process group.
    pub(super) fn has_started(&self, group: i32) {
        locked(&self.guarded).groups.push(group);
    }

    /// The last process group that it has started is gone.
    pub(super) fn last_is_gone(&self) {
        locked(&self.guarded).groups.pop();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        locked(&self.guarded).end(Instant::now() + ENDS_WITHIN);
        locked(&ALL).retain(|(_, guarded)| !Arc::ptr_eq(guarded, &self.guarded));
    }
}

/// Ends all guarded children before the program exits early. A child that does not end by itself, as
/// after SIGSTOP, is killed with all that it has started.
pub fn end_all() {
    let all = locked(&ALL).clone();
    let end = Instant::now() + ENDS_WITHIN;
    let mut free = Vec::new();
    for (pid, guarded) in &all {
        free.extend(lock_until(guarded, *pid, end + BUSY_MAX));
    }
    // All inputs first, so that they end in parallel.
    for guarded in &mut free {
        guarded.orders = None;
    }
    for guarded in &mut free {
        guarded.end(end);
    }
}

/// Waits for the thread that uses a child, which may block on a full pipe; kills the child at `end`,
/// which unblocks it.
fn lock_until(guarded: &Mutex<Guarded>, pid: u32, end: Instant) -> Option<MutexGuard<'_, Guarded>> {
    loop {
        match guarded.try_lock() {
            Ok(guarded) => return Some(guarded),
            Err(TryLockError::Poisoned(guarded)) => return Some(guarded.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(POLL),
            Err(TryLockError::WouldBlock) => break,
        }
    }
    // Nobody has waited for the child yet, so the pid is still its own.
    let _ = i32::try_from(pid).map(|pid| os::kill(pid, SIGKILL));
    Some(locked(guarded))
}
