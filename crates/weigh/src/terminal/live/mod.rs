//! A running load, drawn on the terminal.
//!
//! It is drawn by the thread that waits for the load, a few times a second and never by one that
//! makes load, and that thread keeps off the CPUs that the load is bound to.

use std::time::{Duration, Instant};

use load::{Job, Progress};
use net::os;

use crate::signals::Signals;

mod charts;
mod draw;
mod screen;
mod state;
#[cfg(test)]
mod tests;

use screen::Screen;
use state::State;

/// Shortest time between two drawings.
const REDRAW: Duration = Duration::from_millis(250);
/// The client's CPU time is taken over so long.
const CPU_TIME: Duration = Duration::from_secs(1);

/// The live view of one load.
pub struct Live {
    // Dropped in this order.
    screen: Screen,
    signals: PendingSignals,
    state: State,
    threads_are_here: bool,
    start: Instant,
    drawn: Option<Instant>,
    /// When the client's CPU time was last read, and what it was, ns.
    cpu: (Instant, u64),
    /// CPUs to go back to at the end.
    cpus: Vec<u32>,
}

impl Live {
    /// Takes the terminal, where there is a fit one. `threads_are_here` says whether the load's
    /// threads are those of this process.
    pub fn open(
        job: &Job,
        threads_are_here: bool,
        called: &str,
        signals: &Signals,
    ) -> Option<Self> {
        let screen = Screen::take()?;
        let now = Instant::now();
        let mut live = Self {
            screen,
            state: State::new(job, called, std::env::var_os("NO_COLOR").is_none()),
            signals: PendingSignals::new(signals),
            threads_are_here,
            start: now,
            drawn: None,
            cpu: (now, load_cpu_ns()),
            cpus: Vec::new(),
        };
        live.keep_off(&job.cpus);
        Some(live)
    }

    /// Takes what the load tells; false when the terminal is to be given back.
    pub fn take(&mut self, progress: &Progress) -> bool {
        let now = Instant::now();
        self.state.take(progress, now - self.start);
        if self.screen.asked_to_stop() {
            self.signals.0.interrupt();
        }
        if self.signals.0.stopped() || !self.screen.is_taken() {
            return false;
        }
        if self.drawn.is_some_and(|drawn| now - drawn < REDRAW) {
            return true;
        }
        self.drawn = Some(now);
        self.look_at_cpu(now);
        self.state.refresh();
        self.screen.draw(&self.state).is_ok()
    }

    /// Whether the load was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.signals.0.stopped()
    }

    fn look_at_cpu(&mut self, now: Instant) {
        let (before, used_before) = self.cpu;
        let time = now - before;
        if time < CPU_TIME || !self.threads_are_here {
            return;
        }
        let used = load_cpu_ns();
        let share = used.saturating_sub(used_before) as f64 / time.as_nanos() as f64;
        self.state.client.cpu = Some(share / self.state.threads as f64);
        self.cpu = (now, used);
    }

    /// Leaves the load's CPUs to the load, where there are others.
    fn keep_off(&mut self, cpus: &[u32]) {
        let Ok(allowed) = os::allowed_cpus() else {
            return;
        };
        let others: Vec<u32> = allowed
            .iter()
            .copied()
            .filter(|cpu| !cpus.contains(cpu))
            .collect();
        // The load's threads bind themselves when they start.
        if !cpus.is_empty() && !others.is_empty() && os::bind_to_cpus(&others).is_ok() {
            self.cpus = allowed;
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.cpus.is_empty() {
            let _ = os::bind_to_cpus(&self.cpus);
        }
    }
}

/// A second signal does not end the program while the terminal is taken: it would stay as it is.
struct PendingSignals(Signals);

impl PendingSignals {
    fn new(signals: &Signals) -> Self {
        signals.hold();
        Self(signals.clone())
    }
}

impl Drop for PendingSignals {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// CPU time of the process without that of this thread, ns: that of the threads that make load.
fn load_cpu_ns() -> u64 {
    os::process_cpu_ns().saturating_sub(os::thread_cpu_ns())
}
