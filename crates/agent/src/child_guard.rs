//! Child processes that must not be left behind, whatever becomes of the thread that asks them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::os;

use super::cgroup;

/// How long a child may take to end once its input has.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// How much longer a thread may be busy with a child before that is killed under its hands.
const BUSY_MAX: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(5);
const SIGKILL: i32 = 9;

/// All children that are held, with their numbers.
static ALL: Mutex<Vec<(u32, Arc<Mutex<Kept>>)>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in them is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Kept {
    child: Child,
    orders: Option<ChildStdin>,
    /// Process groups that it started, killed here should it not end well.
    groups: Vec<i32>,
    /// Its folder, removed here then, by whose name its control groups are called.
    folder: Option<PathBuf>,
}

impl Kept {
    /// Ends it by closing its input; where that does not help until `end`, kills it and what it
    /// has started.
    fn end(&mut self, end: Instant) {
        self.orders = None;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => sleep(LOOK),
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
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// A child and the pipe to it. Dropping it closes the pipe, at which the child ends; one that does
/// not is killed.
pub struct ChildGuard {
    pid: u32,
    kept: Arc<Mutex<Kept>>,
}

impl ChildGuard {
    /// Guards a child that was started with a piped input and output.
    pub fn new(mut child: Child) -> Self {
        let pid = child.id();
        let kept = Arc::new(Mutex::new(Kept {
            orders: child.stdin.take(),
            child,
            groups: Vec::new(),
            folder: None,
        }));
        locked(&ALL).push((pid, kept.clone()));
        Self { pid, kept }
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes a line into its input.
    pub fn send(&self, line: &[u8]) -> io::Result<()> {
        match &mut locked(&self.kept).orders {
            Some(pipe) => pipe.write_all(line),
            None => Err(io::Error::other("the pipe is closed")),
        }
    }

    /// How it has ended, if it has.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        locked(&self.kept).child.try_wait()
    }

    /// Kills the child and all that it has started.
    pub fn kill(&self) {
        // One that cannot be killed has ended.
        let _ = locked(&self.kept).child.kill();
    }

    /// What is removed here should it not do that itself.
    pub(super) fn owns_folder(&self, folder: &Path) {
        locked(&self.kept).folder = Some(folder.to_path_buf());
    }

    /// It has started a group of processes.
    pub(super) fn has_started(&self, group: i32) {
        locked(&self.kept).groups.push(group);
    }

    /// The last group that it has started is gone.
    pub(super) fn last_is_gone(&self) {
        locked(&self.kept).groups.pop();
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        locked(&self.kept).end(Instant::now() + ENDS_WITHIN);
        locked(&ALL).retain(|(_, kept)| !Arc::ptr_eq(kept, &self.kept));
    }
}

/// Ends all agents, and the processes that hold hosts, before the program is left in the midst of
/// its work. What does not end by itself, such as a process that was stopped, is killed with all
/// that it has started.
pub fn end_all() {
    let all = locked(&ALL).clone();
    let end = Instant::now() + ENDS_WITHIN;
    let mut free = Vec::new();
    for (pid, kept) in &all {
        free.extend(lock_until(kept, *pid, end + BUSY_MAX));
    }
    // First all of them, so that they end side by side.
    for kept in &mut free {
        kept.orders = None;
    }
    for kept in &mut free {
        kept.end(end);
    }
}

/// Waits for the thread that is busy with a child, which may be one that writes into a pipe that
/// nobody reads.
fn lock_until(kept: &Mutex<Kept>, pid: u32, end: Instant) -> Option<MutexGuard<'_, Kept>> {
    loop {
        match kept.try_lock() {
            Ok(kept) => return Some(kept),
            Err(TryLockError::Poisoned(kept)) => return Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(LOOK),
            Err(TryLockError::WouldBlock) => break,
        }
    }
    // That thread awaits it, so that the number is still its own.
    let _ = i32::try_from(pid).map(|pid| os::kill(pid, SIGKILL));
    Some(locked(kept))
}
