//! Which tests run side by side.

use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Beside any other of this kind: it asserts nothing that load of others can change.
    Busy,
    /// Beside others of this kind: it measures times, and takes next to no CPU time itself.
    Quiet,
    /// Beside none.
    Alone,
}

/// How many tests are under way, all of one kind.
static UNDER_WAY: Mutex<(Kind, usize)> = Mutex::new((Kind::Busy, 0));
static CHANGED: Condvar = Condvar::new();

/// A test's leave to run; given back when it is dropped. A test may take several of one kind,
/// unless it is to be alone.
pub struct Turn(());

impl Turn {
    /// Waits until no test of another kind is under way.
    pub fn shared() -> Self {
        Self::of(Kind::Busy)
    }

    /// Waits until all tests under way take next to no CPU time.
    pub fn quiet() -> Self {
        Self::of(Kind::Quiet)
    }

    /// Waits until no other test is under way.
    pub fn alone() -> Self {
        Self::of(Kind::Alone)
    }

    fn of(kind: Kind) -> Self {
        let state = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = CHANGED
            .wait_while(state, |(now, count)| {
                *count > 0 && (*now != kind || kind == Kind::Alone)
            })
            .unwrap_or_else(PoisonError::into_inner);
        *state = (kind, state.1 + 1);
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 -= 1;
        CHANGED.notify_all();
    }
}
