//! One step: a load of its own, with its own connections.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use load::{Job, Stop};
use readings::{LoadReading, Pacing};
use run::Fleet;
use verdict::Flaw;

use crate::cli::CapacityArgs;
use crate::failure::Failure;
use crate::load::hosts;
use crate::signals::Signals;

/// Steps in a row in which a host was lost or late; then the hosts are given up.
const FAULTS_MAX: u32 = 3;

/// What all steps share.
pub(super) struct Steps<'a> {
    /// The options.
    pub args: &'a CapacityArgs,
    /// The load, whose pacing and length each step sets.
    pub job: &'a Job,
    /// Signals that stop it.
    pub signals: &'a Signals,
    /// The hosts that make the load, if it is not this machine.
    pub fleet: Option<RefCell<Fleet>>,
    /// The last steps in which a host was lost or late, one after the other.
    pub faults: Cell<u32>,
    /// Whether it was said what is notable of the hosts' answers.
    pub answers_noted: Cell<bool>,
}

impl Steps<'_> {
    /// Makes one step; `None` if a signal stopped it.
    ///
    /// # Errors
    /// When the load cannot be made, or a host was lost or late in several steps in a row.
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
        job.rows = None;
        let segment = &mut job.segments[0];
        segment.pacing = pacing;
        segment.stop = Stop::After(length);
        let reading = match &self.fleet {
            None => {
                job.threads = self.args.threads.min(connections) as usize;
                let made = load::run(&job, &self.signals.stop, |_| {});
                made.map_err(Failure::failed)?.into_iter().next()
            }
            Some(fleet) => Some(self.make_on_hosts(&mut fleet.borrow_mut(), job, connections)?),
        };
        Ok(reading.filter(|_| !self.signals.stopped()))
    }

    fn make_on_hosts(
        &self,
        fleet: &mut Fleet,
        mut job: Job,
        connections: u32,
    ) -> Result<LoadReading, Failure> {
        job.threads = hosts::threads(fleet, "--connections", connections, self.args.threads)?;
        let made = hosts::load(fleet, &job, self.signals, &mut |_| {})?;
        if !self.answers_noted.replace(true) {
            hosts::note_answers(&made);
        }
        let flaws = verdict::load_flaws(&made.reading);
        let fault = flaws.iter().find(|flaw| matches!(flaw, Flaw::Host(_)));
        self.faults.set(fault.map_or(0, |_| self.faults.get() + 1));
        match fault {
            Some(fault) if self.faults.get() == FAULTS_MAX => Err(Failure::failed(format!(
                "{}; the steps before failed in the same way",
                report::flaw(fault)
            ))),
            _ => Ok(made.reading),
        }
    }

    /// Prints a line on standard error, unless `--quiet` is given.
    pub fn print(&self, line: &str) {
        if !self.args.quiet {
            eprintln!("{line}");
        }
    }
}
