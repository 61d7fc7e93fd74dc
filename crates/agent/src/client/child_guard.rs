//! Child processes that do not outlive this one, even if the thread that uses them hangs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::os;
use net::process::{HeldProcess, reap_child};

use crate::kernel::cgroup;
use crate::kernel::proc_files::children_in_sessions;
use crate::kernel::signals::SIGKILL;
use crate::protocol::pipe::{FrameSender, Kind};
use crate::serving::leftovers::path_next_to;

/// How long a child may take to end after its input was closed.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// How much longer the thread that uses a child may take; then the child is killed all the same.
const BUSY_MAX: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(5);

static ALL: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Entry {
    pid: u32,
    /// The child's pidfd: it means this child even if its process ID is reused.
    held: Arc<Option<HeldProcess>>,
    guarded: Arc<Mutex<Guarded>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Their contents are consistent at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What goes into a child.
enum Input {
    Lines(ChildStdin),
    Frames(FrameSender),
}

struct Guarded {
    child: Child,
    orders: Option<Input>,
    /// What it has started and not ended: a name, and the process that leads the session. It is
    /// killed here unless the child ends with status 0.
    started: Vec<(String, i32)>,
    /// Its folder; also removed here unless it ends with status 0. Its control groups begin with
    /// the folder's name.
    folder: Option<PathBuf>,
}

impl Guarded {
    /// Ends the conversation and closes its input.
    fn close(&mut self) {
        if let Some(Input::Frames(sender)) = self.orders.take() {
            // A pipe that has failed ends the child as well.
            let _ = sender.send(Kind::End, Vec::new());
        }
    }

    /// Closes its input, and at `end` kills it with all that it has started.
    fn end(&mut self, end: Instant) {
        self.close();
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => sleep(POLL),
                Ok(Some(status)) if status.success() => return,
                _ => break,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let leaders = self.started.drain(..).map(|(_, leader)| leader);
        kill_orphans(&leaders.collect::<Vec<_>>());
        let Some(folder) = self.folder.take() else {
            return;
        };
        if let Some(name) = folder.file_name() {
            cgroup::remove_all(&name.to_string_lossy());
            let _ = net::folder::remove_all(&path_next_to(name));
        }
        if folder.starts_with(std::env::temp_dir()) {
            let _ = net::folder::remove_all(&folder);
        }
    }
}

/// Kills the orphans that a child left behind in sessions of these leaders.
///
/// The leaders may have ended as well, and their process IDs may be reused. But the orphans are
/// children of this process now, and the ID of a child is not reused before it is reaped.
fn kill_orphans(leaders: &[i32]) {
    const ROUNDS: usize = 400;
    let me = std::process::id() as i32;
    let guarded: Vec<i32> = locked(&ALL).iter().map(|one| one.pid as i32).collect();
    for _ in 0..ROUNDS {
        let mut left = children_in_sessions(me, leaders);
        left.retain(|pid| !guarded.contains(pid));
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = os::kill(pid, SIGKILL);
            reap_child(pid);
        }
        // A killed process ends a moment later; then this process adopts its children.
        sleep(POLL);
    }
}

/// A child and the pipe to it. Dropping it closes the pipe, which ends the child; otherwise it is
/// killed.
pub struct ChildGuard(Entry);

impl ChildGuard {
    /// Guards a child that was started with piped input and output. From then on this process
    /// adopts the orphans of its children.
    pub fn new(mut child: Child) -> Self {
        let orders = child.stdin.take().map(Input::Lines);
        Self::with_input(child, orders)
    }

    /// The same for a child whose messages are frames.
    pub(crate) fn of_agent(child: Child, sender: FrameSender) -> Self {
        Self::with_input(child, Some(Input::Frames(sender)))
    }

    fn with_input(child: Child, orders: Option<Input>) -> Self {
        os::adopt_orphans();
        let entry = Entry {
            pid: child.id(),
            held: Arc::new(HeldProcess::open(child.id() as i32)),
            guarded: Arc::new(Mutex::new(Guarded {
                orders,
                child,
                started: Vec::new(),
                folder: None,
            })),
        };
        locked(&ALL).push(entry.clone());
        Self(entry)
    }

    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Writes a line into its input, or sends it as a message.
    pub fn send(&self, line: &[u8]) -> io::Result<()> {
        match &mut locked(&self.0.guarded).orders {
            Some(Input::Lines(pipe)) => pipe.write_all(line),
            Some(Input::Frames(sender)) => sender.send(Kind::Message, line.to_vec()),
            None => Err(io::Error::other("the pipe is closed")),
        }
    }

    /// What kills the child from any thread, without waiting for its user.
    pub(crate) fn killer(&self) -> impl FnOnce() + Send + use<> {
        let held = self.0.held.clone();
        move || {
            if let Some(child) = &*held {
                // It fails only where the child has ended.
                let _ = child.signal(SIGKILL);
            }
        }
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        locked(&self.0.guarded).child.try_wait()
    }

    /// Kills the child; dropping this then kills all that it has started.
    pub fn kill(&self) {
        // It fails only where the child has ended.
        let _ = locked(&self.0.guarded).child.kill();
    }

    /// A folder to remove if the child does not do so itself.
    pub(crate) fn owns_folder(&self, folder: &Path) {
        locked(&self.0.guarded).folder = Some(folder.to_path_buf());
    }

    /// Records that the child has started a process that leads a session.
    pub(crate) fn has_started(&self, name: &str, leader: i32) {
        self.has_ended(name);
        locked(&self.0.guarded)
            .started
            .push((name.to_owned(), leader));
    }

    /// Records that all it started under a name has ended.
    pub(crate) fn has_ended(&self, name: &str) {
        locked(&self.0.guarded)
            .started
            .retain(|(one, _)| one != name);
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        locked(&self.0.guarded).end(Instant::now() + ENDS_WITHIN);
        locked(&ALL).retain(|one| !Arc::ptr_eq(&one.guarded, &self.0.guarded));
    }
}

/// Ends all guarded children before the program exits early. A child that does not end by itself,
/// as after SIGSTOP, is killed with all that it has started.
pub fn end_all() {
    let all = locked(&ALL).clone();
    let end = Instant::now() + ENDS_WITHIN;
    let mut free = Vec::new();
    for one in &all {
        free.extend(lock_until(one, end + BUSY_MAX));
    }
    // All inputs first, so that they end in parallel.
    for guarded in &mut free {
        guarded.close();
    }
    for guarded in &mut free {
        guarded.end(end);
    }
}

/// Waits for the thread that uses a child, which may block on a full pipe; kills the child at
/// `end`, which unblocks it.
fn lock_until(one: &Entry, end: Instant) -> Option<MutexGuard<'_, Guarded>> {
    loop {
        match one.guarded.try_lock() {
            Ok(guarded) => return Some(guarded),
            Err(TryLockError::Poisoned(guarded)) => return Some(guarded.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(POLL),
            Err(TryLockError::WouldBlock) => break,
        }
    }
    if let Some(child) = &*one.held {
        let _ = child.signal(SIGKILL);
    }
    Some(locked(&one.guarded))
}
