//! The ways to measure a group's trials once its servers are up.

pub(crate) mod curve;
mod disturbance;
mod instructions;
mod network_warnings;
pub(crate) mod rate;
pub(crate) mod schedule;
pub(crate) mod slices;
pub(crate) mod tools;
pub(crate) mod upstream_connections;
mod warm_up;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readings::{
    CurveChoice, LoadReading, Outcome, RateChoice, Reading, SystemMetrics, WarmUpChoice,
};

use crate::context::Context;
use crate::testbed::{ReadySubject, StartedServer, copies};
use agent::wire::Loaded;
use experiment::plan::{Group, PlannedTrial};
use experiment::{Experiment, ResolvedCondition};

pub(crate) use disturbance::share_one_path;

/// A group whose servers are up, ready to be measured.
pub(crate) struct GroupSetup<'g> {
    pub(crate) resolved: &'g ResolvedCondition,
    pub(crate) group: &'g Group,
    /// The running servers.
    pub(crate) up: &'g [StartedServer],
    /// The subjects that answer as expected.
    pub(crate) ready: &'g [ReadySubject],
    pub(crate) wanted: Wanted,
}

/// Which loops are measured.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// The common rate of the open loops, if known.
    pub(crate) rate: Option<f64>,
    /// Whether only closed loops are measured for now, to find the common rate.
    pub(crate) closed_only: bool,
}

impl GroupSetup<'_> {
    /// The window of the open loop at the common rate; zero for none.
    fn latency_window(&self, cx: &Context<'_>) -> Duration {
        match self.wanted.closed_only {
            true => Duration::ZERO,
            false => cx.windows.open,
        }
    }
}

/// What was found in a group.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) outcomes: Vec<(PlannedTrial, Outcome)>,
    /// The common rate of the open loops, if it was chosen here.
    pub(crate) rate: Option<RateChoice>,
    /// The rates of the condition's curve, if they were chosen here.
    pub(crate) curve: Option<CurveChoice>,
    /// The condition's warm-up, if it was made longer here.
    pub(crate) warm_up: Option<WarmUpChoice>,
    /// Files of servers and drivers, by trial.
    pub(crate) logs: Vec<(u32, BTreeMap<String, String>)>,
    pub(crate) warnings: Vec<String>,
    /// Subjects whose answers take too long for the slices of the others, in the first block.
    pub(crate) slow: Vec<String>,
}

impl Findings {
    pub(crate) fn add(&mut self, planned: &PlannedTrial, reading: Reading) {
        let done = Outcome::Done(Box::new(reading));
        self.outcomes.push((planned.clone(), done));
    }
}

/// How the measurement of a group ended that did not fail.
#[derive(Debug)]
pub(crate) enum Ending {
    /// All that could be measured was, unless the run was stopped.
    Complete,
    /// Nothing was measured, since the baseline's second copy cannot have servers of its own: they
    /// disturb the others, or do not start beside them.
    NoCopies,
    /// Nothing was measured: why the subjects cannot be measured side by side.
    Disturbed(String),
}

/// A group's condition, reduced to the servers of its subjects.
pub(crate) fn resolve_group(experiment: &Experiment, group: &Group) -> ResolvedCondition {
    let mut resolved = experiment.under(&group.condition);
    let used: BTreeSet<String> = planned_subjects(&resolved, group)
        .flat_map(|subject| subject.through.clone())
        .collect();
    resolved
        .servers
        .retain(|server| used.contains(&server.name));
    resolved
}

/// The subjects of a group's trials.
fn planned_subjects<'r>(
    resolved: &'r ResolvedCondition,
    group: &Group,
) -> impl Iterator<Item = &'r experiment::SubjectSpec> {
    let is_planned = |name: &str| group.trials.iter().any(|planned| planned.subject == name);
    resolved
        .subjects
        .iter()
        .filter(move |subject| is_planned(&subject.name))
}

/// The reading of a subject's load, with the accept queues of its servers that were full.
pub(crate) fn load_of(number: usize, one: &ReadySubject, loaded: &Loaded) -> Option<LoadReading> {
    let mut load = loaded.readings.get(number)?.clone();
    if let Some(measured) = loaded.measured.get(number) {
        load.accept_queues = copies::queues_of_path(&measured.accept_queues, &one.subject.through);
        one.back_ends.add_to(&mut load, measured);
    }
    Some(load)
}

/// Samples of the servers of a subject during its load.
pub(crate) fn metrics_of(
    number: usize,
    one: &ReadySubject,
    loaded: &Loaded,
) -> Option<SystemMetrics> {
    let metrics = loaded.measured.get(number)?.metrics.clone()?;
    Some(copies::of_path(metrics, &one.subject.through))
}
