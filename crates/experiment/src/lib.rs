//! Experiment, recipe and driver files, read into checked types, and the plan that follows.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod catalogue;
pub mod driver;
mod file;
pub mod manifest;
pub mod plan;
pub mod recipe;
mod recipes;
mod spec;
pub mod within;

pub use config::units;
pub use config::{Mistake, Mistakes, OpenError};
pub use file::{ExperimentBuilder, ExperimentError};
pub use recipes::{LoadError, Recipes};
pub use spec::{
    Apart, BodyCheck, CurveSpec, Design, Effect, Event, EventFault, EventSpec, Expect, Experiment,
    Factor, Fault, Level, LoadChange, LoadPart, LoadSpec, ParamValue, Published, Rate,
    ResolvedCondition, Role, SameAnswers, Server, ServerSpec, SliceLength, Subject, SubjectLoad,
    SubjectSpec, Target, TlsSpec, Upstream,
};
