//! Ctrl-C and its like: the first asks to stop and keep what was measured, a second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// What signals have asked for.
#[derive(Clone)]
pub struct Signals {
    /// Set by the first signal.
    pub stop: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to listen for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> Result<Self, Failure> {
        let signals = Self {
            stop: Arc::new(AtomicBool::new(false)),
            which: Arc::new(AtomicUsize::new(0)),
        };
        for signal in [SIGINT, SIGTERM] {
            // In this order: a further signal ends the program the hard way.
            flag::register_conditional_shutdown(signal, 128 + signal, signals.stop.clone())
                .and_then(|_| flag::register(signal, signals.stop.clone()))
                .and_then(|_| flag::register_usize(signal, signals.which.clone(), signal as usize))
                .map_err(|e| Failure::failed(format!("cannot listen for signals: {e}")))?;
        }
        Ok(signals)
    }

    /// The exit status that belongs to the signal that came, if any.
    pub fn status(&self) -> Option<u8> {
        match self.which.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(128 + signal as u8),
        }
    }

    /// Waits until a signal comes.
    pub fn wait(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
