//! How the trials of a group are measured once its servers are up.

mod faults;
pub(crate) mod rate;
pub(crate) mod schedule;
mod slices;
mod tool_output;
mod tool_trial;
mod tools;

use readings::SystemMetrics;

use crate::context::Context;
use crate::group::{GroupResult, Ready};
use crate::servers::Up;
use agent::AgentError;
use agent::wire::Loaded;
use experiment::ResolvedCondition;
use experiment::plan::Group;

pub(crate) use tools::clock_notice;

/// What is to be measured.
pub(crate) struct Bench<'g> {
    pub(crate) resolved: &'g ResolvedCondition,
    pub(crate) group: &'g Group,
    /// The servers that are up.
    pub(crate) up: &'g [Up],
    /// The common rate of the open loops, where it is known already.
    pub(crate) rate: Option<f64>,
}

/// A way of measuring subjects that are up and answer as expected.
pub(crate) trait Measurer {
    /// Adds the outcomes of the subjects that are `ready` to the result.
    ///
    /// # Errors
    /// When something fails that all subjects need; a subject's own failure is an outcome.
    fn measure(
        &self,
        cx: &mut Context<'_>,
        bench: &Bench<'_>,
        ready: &[Ready],
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError>;
}

/// How a condition's subjects are measured. An experiment that mixes the engine with outside
/// drivers under one condition was refused: they cannot alternate.
pub(crate) fn measurer(resolved: &ResolvedCondition, ready: &[Ready]) -> Box<dyn Measurer> {
    if !resolved.events.is_empty() {
        return Box::new(faults::Faults);
    }
    match ready.iter().any(|one| !one.subject.driver.is_engine()) {
        true => Box::new(tools::Tools),
        false => Box::new(slices::Slices),
    }
}

/// What was sampled while a load ran on a subject, of the servers that it goes through.
fn metrics_of(number: usize, one: &Ready, loaded: &Loaded) -> Option<SystemMetrics> {
    let metrics = loaded.measured.get(number)?.metrics.clone()?;
    Some(metrics.of_servers(&one.subject.through))
}
