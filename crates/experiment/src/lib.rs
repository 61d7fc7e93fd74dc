//! Experiment, recipe and driver files, read into checked types, and the plan that follows.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod catalogue;
mod command_words;
pub mod describe;
pub mod driver;
mod file;
mod gate;
pub mod manifest;
pub mod plan;
pub mod recipe;
mod recipes;
mod spec;

pub use command_words::{CommandWords, command_words, names_a_port};
pub use config::{Mistake, Mistakes, OpenError};
pub use config::{nearest, units};
pub use file::{COMMAND, ExperimentBuilder, ExperimentError, RATE_LIMIT, WEIGHTS, read_hosts};
pub use gate::{GateError, check_gate, parse_capacity_gate, parse_gate};
pub use plan::{SEARCH, within};
pub use recipes::{LoadError, Recipes};
pub use spec::{
    Apart, BodyCheck, Call, CallError, CurveSpec, Design, Effect, Event, EventKind, EventSettings,
    EventSpec, EventTarget, EventWhat, Expect, Experiment, Factor, Feeds, HttpVersion, Level,
    LoadBeside, LoadChange, LoadPart, LoadRole, LoadSpec, NamedLoad, NeededRecipe, ParamValue,
    Published, Rate, ReplayFile, RequestFile, ResolvedCondition, Role, SameAnswers, Server,
    ServerSpec, SliceLength, Subject, SubjectLoad, SubjectSpec, Target, TlsSpec, Upstream,
};
