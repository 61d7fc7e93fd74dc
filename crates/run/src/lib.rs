//! Carries a plan out: block by block, condition by condition.
//!
//! [`run`] lists the steps, `Session` holds their state. A group (a condition in a block) is
//! measured in `group`, by one of the measurers of `measure`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod context;
mod error;
mod event;
mod events;
mod fleet;
mod group;
pub mod journal;
mod measure;
mod session;
mod testbed;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use builds::Builds;
use experiment::{Experiment, Recipes};
use hosts::{Hosts, HostsError, HostsSpec};
use readings::{RunHeader, Trial};
use verdict::plan::Noise;

pub use agent::wire::CallGraph;
pub use error::RunError;
pub use event::{RetryReason, RunEvent, StartsTake, UnusableTrial, WhyRetry};
pub use fleet::{Fleet, FleetLoad};
pub use journal::folder::{default_folder, replace_file};
pub use session::{decides, smallest_decided};
pub use testbed::cpu_placement::{CpuPlacement, PlacementError};

use session::Session;

/// Decides from a run's rows whether it may end.
pub type MayStop<'a> = dyn Fn(&RunHeader, &[Trial]) -> bool + 'a;

/// What to run and where.
pub struct RunOptions<'a> {
    pub experiment: &'a Experiment,
    /// The recipes that it may use.
    pub recipes: &'a Recipes,
    /// Seed of every random choice.
    pub seed: u64,
    /// The run's folder.
    pub folder: &'a Path,
    /// Whether to continue the run in the folder.
    pub resume: bool,
    /// What the experiment's servers need before they are started: revisions and images.
    pub builds: &'a Builds,
    /// The `weigh` program, for agents and the built-in servers.
    pub weigh: &'a Path,
    /// Whether the run may end after its rows so far, which come in file order:
    /// [`verdict::may_stop`], unless something else decides.
    pub may_stop: &'a MayStop<'a>,
    /// Whether servers are profiled after the last block, and how.
    pub profile: Option<CallGraph>,
    /// How much blocks vary here, by what is known before the run.
    pub noise: Noise,
    /// What the user calls a new run.
    pub label: Option<&'a str>,
    /// The commit that a new run is about.
    pub revision: Option<&'a str>,
}

/// Opens hosts, or reopens them after a loss.
type OpenHosts<'a> = &'a dyn Fn(Option<Hosts>, HostsSpec) -> Result<Hosts, HostsError>;

/// Runs an experiment until its plan is done or `stop` is set. Returns whether it was completed;
/// the folder's journal holds what was measured either way.
///
/// # Errors
/// When it cannot start, or the journal can no longer be written.
pub fn run(
    options: &RunOptions<'_>,
    stop: &AtomicBool,
    mut emit: impl FnMut(RunEvent),
) -> Result<bool, RunError> {
    agent::leftovers::sweep();
    let open = |before: Option<Hosts>, spec| match before {
        Some(hosts) => hosts.reopen(stop),
        None => Hosts::open(spec, options.weigh, stop),
    };
    run_on(&open, options, stop, &mut emit)
}

/// [`run`] on hosts that the caller opens.
fn run_on(
    open: OpenHosts<'_>,
    options: &RunOptions<'_>,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(RunEvent),
) -> Result<bool, RunError> {
    let mut session = Session::prepare(open, options, stop, emit)?;
    while let Some((block, group)) = session.next_group() {
        let result = session.measure(block, &group);
        session.record(block, &group, result)?;
        session.plan_next(block, &group)?;
    }
    session.find_bottlenecks()?;
    session.profile()?;
    session.finish()
}
