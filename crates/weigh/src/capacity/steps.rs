//! One step: a load of its own, with its own connections.

use std::time::Duration;

use load::{Job, Stop};
use readings::{LoadReading, Pacing};

use crate::cli::CapacityArgs;
use crate::failure::Failure;
use crate::signals::Signals;

/// What all steps share.
pub(super) struct Steps<'a> {
    /// The options.
    pub args: &'a CapacityArgs,
    /// The load, whose pacing and length each step sets.
    pub job: &'a Job,
    /// Signals that stop it.
    pub signals: &'a Signals,
}

impl Steps<'_> {
    /// Makes one step; `None` if a signal stopped it.
    ///
    /// # Errors
    /// When the load cannot be made.
    pub fn make(
        &self,
        pacing: Pacing,
        connections: u32,
        length: Duration,
    ) -> Result<Option<LoadReading>, Failure> {
        if self.signals.stopped() {
            return Ok(None);
        }
        let mut job = self.job.clone();
        job.seed = fastrand::u64(..);
        job.targets[0].connections = connections;
        job.threads = self.args.threads.min(connections) as usize;
        job.rows = None;
        let segment = &mut job.segments[0];
        segment.pacing = pacing;
        segment.stop = Stop::After(length);
        let mut readings = load::run(&job, &self.signals.stop, |_| {}).map_err(Failure::failed)?;
        if self.signals.stopped() || readings.is_empty() {
            return Ok(None);
        }
        Ok(Some(readings.swap_remove(0)))
    }

    /// Prints a line on standard error, unless `--quiet` is given.
    pub fn print(&self, line: &str) {
        if !self.args.quiet {
            eprintln!("{line}");
        }
    }
}
