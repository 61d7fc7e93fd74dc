//! Notices when the other side of a pipe is silent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use net::os::{StartThreadError, start_thread};

/// If nothing is heard for this long, the other side counts as lost.
const LIMIT: Duration = Duration::from_secs(15);
/// The environment variable that overrides the limit, in seconds; for tests.
const LIMIT_VARIABLE: &str = "WEIGH_HEARTBEAT_LIMIT_S";
/// Heartbeats in that time.
pub(crate) const BEATS: u32 = 5;

/// How long one side of a pipe may be silent before the other side gives up.
pub fn limit() -> Duration {
    seconds_of(LIMIT_VARIABLE)
        .filter(|limit| !limit.is_zero())
        .unwrap_or(LIMIT)
}

/// The time in an environment variable, in seconds.
pub(crate) fn seconds_of(variable: &str) -> Option<Duration> {
    let seconds = std::env::var(variable).ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// What has been heard from the other side.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// Frames so far.
    frames: AtomicU64,
    /// Set while the reader waits until this program takes a frame; this is not silence.
    is_held_up: AtomicBool,
    /// The other side was silent for too long.
    is_silent: AtomicBool,
    /// The final frame has come.
    has_ended: AtomicBool,
}

impl Liveness {
    pub(crate) fn frame_came(&self) {
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn hold_up(&self, is_held_up: bool) {
        self.is_held_up.store(is_held_up, Ordering::Relaxed);
    }

    pub(crate) fn end_came(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }
}

/// Counts ticks without a frame. A clock would not do: while this program is suspended, time passes
/// in which it cannot hear the other side.
struct Watched {
    liveness: Weak<Liveness>,
    frames: u64,
    quiet_ticks: u32,
    then: Option<Box<dyn FnOnce() + Send>>,
}

impl Watched {
    /// Counts a tick. Returns whether the pipe is still to be watched.
    fn tick(&mut self) -> bool {
        let Some(liveness) = self.liveness.upgrade() else {
            return false;
        };
        let frames = liveness.frames.load(Ordering::Relaxed);
        if frames != self.frames || liveness.is_held_up.load(Ordering::Relaxed) {
            self.frames = frames;
            self.quiet_ticks = 0;
            return true;
        }
        self.quiet_ticks += 1;
        if self.quiet_ticks <= BEATS || liveness.has_ended() {
            return true;
        }
        liveness.is_silent.store(true, Ordering::Relaxed);
        if let Some(then) = self.then.take() {
            then();
        }
        false
    }
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
/// Whether the thread has started.
static HAS_WATCHER: Mutex<bool> = Mutex::new(false);

/// Calls `then` when nothing has been heard for the limit. One thread watches all pipes.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn watch(
    liveness: &Arc<Liveness>,
    limit: Duration,
    then: impl FnOnce() + Send + 'static,
) -> Result<(), StartThreadError> {
    let locked = || WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    locked().push(Watched {
        liveness: Arc::downgrade(liveness),
        frames: liveness.frames.load(Ordering::Relaxed),
        quiet_ticks: 0,
        then: Some(Box::new(then)),
    });
    let mut has_watcher = HAS_WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if !*has_watcher {
        start_thread("which notices silence on pipes", move || {
            loop {
                std::thread::sleep(limit / BEATS);
                locked().retain_mut(Watched::tick);
            }
        })?;
        *has_watcher = true;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_and_a_waiting_reader_is_none() {
        let liveness = Arc::new(Liveness::default());
        let mut watched = Watched {
            liveness: Arc::downgrade(&liveness),
            frames: 0,
            quiet_ticks: 0,
            then: None,
        };
        let mut ticks = |count: u32| (0..count).all(|_| watched.tick());
        assert!(ticks(BEATS));
        liveness.frame_came();
        assert!(ticks(BEATS));
        liveness.hold_up(true);
        assert!(ticks(10 * BEATS));
        liveness.hold_up(false);
        assert!(ticks(BEATS) && !liveness.is_silent());
        assert!(!ticks(1) && liveness.is_silent());
    }
}
