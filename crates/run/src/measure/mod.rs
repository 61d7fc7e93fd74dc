//! The ways to measure a group's trials once its servers are up.

pub(crate) mod curve;
pub(crate) mod instructions;
pub(crate) mod network_warnings;
pub(crate) mod rate;
pub(crate) mod schedule;
mod several;
mod slices;
mod tools;
pub(crate) mod upstream_connections;

use readings::{LoadReading, SystemMetrics};

use crate::context::Context;
use crate::group::servers::StartedServer;
use crate::group::{GroupResult, ReadySubject};
use crate::testbed::copies;
use agent::AgentError;
use agent::wire::Loaded;
use experiment::ResolvedCondition;
use experiment::plan::Group;

pub(crate) use tools::clock_notice;

/// A group whose servers are up, ready to be measured.
pub(crate) struct GroupSetup<'g> {
    pub(crate) resolved: &'g ResolvedCondition,
    pub(crate) group: &'g Group,
    /// The running servers.
    pub(crate) up: &'g [StartedServer],
    /// The common rate of the open loops, if known.
    pub(crate) rate: Option<f64>,
}

/// A way of measuring subjects that are up and answer as expected.
pub(crate) trait Measurer {
    /// Adds the outcomes of the `ready` subjects to the result.
    ///
    /// # Errors
    /// When all subjects are affected; the failure of one is an outcome.
    fn measure(
        &self,
        cx: &mut Context<'_>,
        setup: &GroupSetup<'_>,
        ready: &[ReadySubject],
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError>;
}

/// Selects the measurer for a condition. The engine and outside drivers cannot alternate; an
/// experiment that mixes them under one condition was refused.
pub(crate) fn measurer(resolved: &ResolvedCondition, ready: &[ReadySubject]) -> Box<dyn Measurer> {
    if !resolved.events.is_empty() {
        return Box::new(crate::events::Events);
    }
    if resolved.load_name.is_some() {
        return Box::new(several::Several);
    }
    match ready.iter().any(|one| !one.subject.driver.is_engine()) {
        true => Box::new(tools::Tools),
        false => Box::new(slices::Slices),
    }
}

/// The reading of a subject's load, with the accept queues of its servers that were full.
pub(crate) fn load_of(number: usize, one: &ReadySubject, loaded: &Loaded) -> Option<LoadReading> {
    let mut load = loaded.readings.get(number)?.clone();
    if let Some(measured) = loaded.measured.get(number) {
        load.accept_queues = copies::queues_of_path(&measured.accept_queues, &one.subject.through);
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
