//! Tests that measure something delicate run alone, the others side by side.

use std::sync::{Condvar, Mutex, PoisonError};

/// How many tests are under way, and whether one of them is to be alone.
static UNDER_WAY: Mutex<(usize, bool)> = Mutex::new((0, false));
static CHANGED: Condvar = Condvar::new();

/// A test's leave to run; given back when it is dropped. A test may take several that are shared.
pub struct Turn {
    alone: bool,
}

impl Turn {
    /// Waits until no test is alone.
    pub fn shared() -> Self {
        let state = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = CHANGED
            .wait_while(state, |(_, alone)| *alone)
            .unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        Self { alone: false }
    }

    /// Waits until no other test is under way.
    pub fn alone() -> Self {
        let state = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = CHANGED
            .wait_while(state, |(shared, alone)| *alone || *shared > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state.1 = true;
        Self { alone: true }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        match self.alone {
            true => state.1 = false,
            false => state.0 -= 1,
        }
        CHANGED.notify_all();
    }
}
