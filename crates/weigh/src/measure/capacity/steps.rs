//! One step: a load of its own, with its own connections.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use agent::AgentError;
use load::{Job, Stop};
use readings::{LoadReading, Pacing};
use run::Fleet;
use serde_json::{Value, json};
use verdict::Flaw;

use crate::cli::CapacityArgs;
use crate::failure::Failure;
use crate::measure::load::hosts;
use crate::measure::load::target::Called;
use crate::signals::Signals;

/// How often a step is made in which a host is lost or late.
const ATTEMPTS: u32 = 3;

/// What all steps share.
pub(super) struct Steps<'a> {
    /// The options.
    pub args: &'a CapacityArgs,
    /// The target as results name it.
    pub called: &'a Called,
    /// The load, whose pacing and length each step sets.
    pub job: &'a Job,
    /// Signals that stop it.
    pub signals: &'a Signals,
    /// The hosts that make the load; `None` without `--hosts`.
    pub fleet: Option<RefCell<Fleet>>,
    /// Whether the warning of the hosts' answers was printed.
    pub answers_warned_of: Cell<bool>,
}

impl Steps<'_> {
    /// A result as JSON, whose URL stands alone.
    pub fn document(&self, mut result: Value) -> Value {
        result["url"] = json!(self.called.url);
        result["address"] = json!(self.called.chosen);
        result
    }

    /// Makes one step; `None` if a signal stopped it.
    ///
    /// # Errors
    /// When the load cannot be made, or hosts were lost or late in each of [`ATTEMPTS`].
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
            Some(fleet) => self.make_on_hosts(&mut fleet.borrow_mut(), job, connections)?,
        };
        Ok(reading.filter(|_| !self.signals.stopped()))
    }

    /// Makes a step with the hosts, again if one of them is lost or late.
    fn make_on_hosts(
        &self,
        fleet: &mut Fleet,
        mut job: Job,
        connections: u32,
    ) -> Result<Option<LoadReading>, Failure> {
        job.threads = hosts::threads(
            fleet.size(),
            "--connections",
            connections,
            self.args.threads,
        )?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let fault = match fleet.load(&job, &self.signals.stop, &mut |_| {}) {
                _ if self.signals.stopped() => return Ok(None),
                Ok(made) => {
                    if !self.answers_warned_of.replace(true) {
                        hosts::warn_of_answers(&made);
                    }
                    let flaws = verdict::load_flaws(&made.reading);
                    let fault = flaws.iter().find(|flaw| matches!(flaw, Flaw::Host(_)));
                    match fault {
                        None => return Ok(Some(made.reading)),
                        Some(fault) => report::flaw(fault),
                    }
                }
                Err(error @ AgentError::Lost(_)) => error.to_string(),
                Err(error) => return Err(Failure::failed(error)),
            };
            if attempt == ATTEMPTS {
                return Err(Failure::failed(format!(
                    "{fault}; the step was made {ATTEMPTS} times"
                )));
            }
            self.print(&format!("      {fault}; the step is repeated"));
        }
    }

    /// Prints a line on standard error, unless `--quiet` is given.
    pub fn print(&self, line: &str) {
        if !self.args.quiet {
            eprintln!("{line}");
        }
    }
}
