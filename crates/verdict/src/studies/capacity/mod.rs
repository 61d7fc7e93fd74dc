//! The highest rate that keeps an objective.
//!
//! [`Objective`] is what shall hold, such as `p99<50ms and errors<0.1%`; it judges one trial at
//! one offered rate. [`Search`] says which rate to offer next and when enough is known. The caller
//! measures; nothing here does.
//!
//! [`curve`] is the latency against offered rate of all trials.
//!
//! The search is in the manner of MLRsearch (Multiple Loss Ratio Search, IETF draft
//! draft-ietf-bmwg-mlrsearch): it keeps a lower bound, a rate that held, and an upper bound, one
//! that did not, a *lower* rate that failed counts more than a higher one that held, and trials are
//! repeated where it matters, at the bounds.

pub mod words;

mod curve;
mod estimate;
mod objective;
mod parse;
mod search;
mod trials;
mod undetected;

pub use curve::{QuantileAt, RatePoint, RateStep, Spread, all_busy_at, curve, quantiles_of};
pub use estimate::HOLDS;
pub use objective::{
    CannotJudge, Direction, Judgement, Limit, Measured, Objective, Offer, Quantity, times_of,
};
pub use parse::ObjectiveError;
pub use search::{
    Bound, Capacity, Search, SearchOptions, SearchOptionsError, SearchScenario, SimulatedSearch,
    Step,
};
pub use trials::{Outcome, RateTrials};
pub use undetected::{StepTime, UndetectedOverload, undetected_overload};

/// What `weigh capacity` found under an objective.
#[derive(Clone, Copy, Debug)]
pub struct CapacityView<'a> {
    pub url: &'a str,
    pub objective: &'a Objective,
    pub capacity: &'a Capacity,
    /// All trials, in the order in which they were made.
    pub steps: &'a [RateStep],
    /// How close the bounds had to come, as a fraction.
    pub precision: f64,
    /// By how much the rate that held may exceed the saturation throughput.
    pub undetected: Option<UndetectedOverload>,
    /// Latency against offered rate.
    pub points: &'a [RatePoint],
    /// Connections that carried the load.
    pub connections: u32,
    pub seed: u64,
    /// Whether a signal ended it.
    pub stopped: bool,
}
