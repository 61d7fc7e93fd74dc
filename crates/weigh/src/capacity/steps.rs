//! One step: a load of its own, with its own connections.

use std::time::Duration;

use load::{Stop, Target};
use readings::{LoadReading, Pacing};

use crate::cli::{CapacityArgs, LoadArgs};
use crate::failure::Failure;
use crate::signals::Signals;

/// What all steps share.
pub(super) struct Steps<'a> {
    /// The caller's words.
    pub args: &'a CapacityArgs,
    /// The same as words of `weigh load`.
    pub load: &'a LoadArgs,
    /// Where the load goes.
    pub target: &'a Target,
    /// Ends what runs.
    pub signals: &'a Signals,
}

impl Steps<'_> {
    /// Makes one step; nothing when a signal cut it short.
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
        let mut job = crate::load::job(self.load, self.target.clone());
        job.lanes[0].connections = connections;
        job.threads = self.args.threads.min(connections) as usize;
        job.rows = None;
        let stint = &mut job.stints[0];
        stint.pacing = pacing;
        stint.stop = Stop::After(length);
        let mut readings = load::run(&job, &self.signals.stop, |_| {}).map_err(Failure::failed)?;
        if self.signals.stopped() || readings.is_empty() {
            return Ok(None);
        }
        Ok(Some(readings.swap_remove(0)))
    }

    /// A line on standard error, unless nothing is to be said there.
    pub fn tell(&self, line: &str) {
        if !self.args.quiet {
            eprintln!("{line}");
        }
    }
}
