//! An experiment as domain types. They depend on nothing that reads or writes a file.

mod experiment;
mod load;
mod resolved_condition;

pub use experiment::{
    Apart, BodyCheck, Design, Effect, Event, EventFault, Expect, Experiment, Factor, Fault, Level,
    LoadPart, ParamValue, Published, Role, SameAnswers, Server, SliceLength, Subject, SubjectLoad,
    Target, Upstream,
};
pub use load::{Choice, CurveSpec, ENGINE, LoadChange, LoadSpec, Rate, TlsSpec};
pub use resolved_condition::{EventSpec, ResolvedCondition, ServerSpec, SubjectSpec};
