//! Ctrl-C and its like: the first asks to stop and keep what was measured, a second ends at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{SigId, flag, low_level};

use crate::failure::Failure;

/// The signals of which a second one ends the program at once. SIGHUP is not among them: when a
/// terminal closes, the shell often sends a second one.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// How often a thread that waits for signals looks: seldom before the first, as it takes CPU time
/// while something is measured.
const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(20);

/// What signals have asked for.
#[derive(Clone)]
pub struct Signals {
    /// Set by the first signal.
    pub stop: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
    /// Whether the next signal ends the program.
    exit_on_signal: Arc<AtomicBool>,
    /// Handlers that set `exit_on_signal`; none while signals are held.
    exit_handlers: Arc<Mutex<Vec<SigId>>>,
}

impl Signals {
    /// Begins to listen for SIGINT, SIGTERM and SIGHUP. SIGHUP comes when the terminal closes; it
    /// stays ignored if the program was started that way, as by `nohup`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> Result<Self, Failure> {
        let signals = Self::listen_without_hangup()?;
        if !is_ignored(SIGHUP) {
            flag::register_usize(SIGHUP, signals.which.clone(), SIGHUP as usize)
                .and_then(|_| flag::register(SIGHUP, signals.stop.clone()))
                .map_err(refused)?;
        }
        Ok(signals)
    }

    /// The same without SIGHUP, which makes a balancer reload.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen_without_hangup() -> Result<Self, Failure> {
        // With this signal handled, a write beyond the file size limit is an error instead of the
        // end of the program, and what was measured is kept.
        flag::register(SIGXFSZ, Arc::default()).map_err(refused)?;
        let signals = Self {
            stop: Arc::new(AtomicBool::new(false)),
            which: Arc::new(AtomicUsize::new(0)),
            exit_on_signal: Arc::new(AtomicBool::new(false)),
            exit_handlers: Arc::new(Mutex::new(Vec::new())),
        };
        for signal in SIGNALS {
            // In this order: a further signal exits at once, and `which` is set before `stop`.
            flag::register_conditional_shutdown(
                signal,
                128 + signal,
                signals.exit_on_signal.clone(),
            )
            .and_then(|_| flag::register_usize(signal, signals.which.clone(), signal as usize))
            .and_then(|_| flag::register(signal, signals.stop.clone()))
            .map_err(refused)?;
        }
        signals.release();
        Ok(signals)
    }

    /// From now on further signals do not exit at once, until [`Self::release`]: something has to
    /// be put in order first.
    pub fn hold(&self) {
        for id in self.exit_handlers().drain(..) {
            low_level::unregister(id);
        }
    }

    /// Lets a second signal end the program again.
    pub fn release(&self) {
        let mut exit_handlers = self.exit_handlers();
        for signal in SIGNALS {
            exit_handlers.extend(flag::register(signal, self.exit_on_signal.clone()));
        }
        self.exit_on_signal.store(self.stopped(), Ordering::SeqCst);
    }

    /// From now on a second signal ends the program after `work` is done, on a thread of its own;
    /// a third does not wait for that.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn before_the_end(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        self.hold();
        let signals = self.clone();
        let started = net::os::start_thread("which waits for a signal", move || {
            while !signals.stopped() {
                sleep(LOOK_FIRST);
            }
            let again = Arc::new(AtomicBool::new(false));
            for signal in SIGNALS {
                if flag::register(signal, again.clone()).is_err() {
                    // It still exits, without the work.
                    signals.release();
                    return;
                }
            }
            while !again.load(Ordering::SeqCst) {
                sleep(LOOK);
            }
            signals.release();
            work();
            low_level::exit(signals.status().unwrap_or(1).into());
        });
        started.map(drop).map_err(Failure::failed)
    }

    fn exit_handlers(&self) -> MutexGuard<'_, Vec<SigId>> {
        // A list of numbers is whole at any time.
        self.exit_handlers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks to stop as SIGINT does.
    #[cfg(feature = "full")]
    pub fn interrupt(&self) {
        self.which.store(SIGINT as usize, Ordering::Relaxed);
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// The exit status that belongs to the signal that came, if any.
    pub fn status(&self) -> Option<u8> {
        match self.which.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(128 + signal as u8),
        }
    }

    /// Goes on only while no signal has come: for where nothing was measured yet.
    ///
    /// # Errors
    /// When one has come.
    pub fn go_on(&self) -> Result<(), Failure> {
        match self.stopped() {
            false => Ok(()),
            true => Err(Failure::Stopped(
                self.status().unwrap_or(128 + SIGINT as u8),
            )),
        }
    }
}

fn refused(e: std::io::Error) -> Failure {
    Failure::failed(format!("cannot listen for signals: {e}"))
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
