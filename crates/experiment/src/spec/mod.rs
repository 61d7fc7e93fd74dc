//! An experiment as domain types. They depend on nothing that reads or writes a file.

mod event;
mod experiment;
mod load;
mod loads;
mod resolved_condition;

pub use event::{Event, EventKind, EventSettings, EventSpec, EventTarget, EventWhat};
pub use experiment::{
    Apart, BodyCheck, Design, Effect, Expect, Experiment, Factor, Level, LoadPart, ParamValue,
    Published, Role, SameAnswers, Server, SliceLength, Subject, SubjectLoad, Target, Upstream,
};
pub use load::{Choice, CurveSpec, ENGINE, LoadChange, LoadSpec, Rate, TlsSpec};
pub use loads::{LoadBeside, LoadRole, NamedLoad};
pub use readings::HttpVersion;
pub use resolved_condition::{ResolvedCondition, ServerSpec, SubjectSpec};
