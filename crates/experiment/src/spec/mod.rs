//! An experiment as domain types. They depend on nothing that reads or writes a file.

mod call;
mod event;
mod experiment;
mod load;
mod loads;
mod needed;
mod request_set;
mod resolved_condition;
mod traffic;

#[cfg(not(feature = "full"))]
pub(crate) use call::no_schemas;
pub use call::{Call, CallError, MessageFile, SchemaFiles};
pub use event::{Event, EventKind, EventSettings, EventSpec, EventTarget, EventWhat, ParamValue};
pub use experiment::{
    Apart, BodyCheck, Design, Effect, Expect, Experiment, Factor, Level, LoadPart, Published, Role,
    SameAnswers, Server, SliceLength, Subject, SubjectLoad, Target, Upstream,
};
pub use load::{
    Choice, CurveSpec, ENGINE, LoadChange, LoadRole, LoadSpec, NamedLoad, Rate, TlsSpec,
};
pub use needed::NeededRecipe;
pub use readings::HttpVersion;
pub(crate) use request_set::is_host;
pub use request_set::{Feeds, ReplayFile, RequestFile};
pub use resolved_condition::{LoadBeside, ResolvedCondition, ServerSpec, SubjectSpec};
pub use traffic::{TrafficChange, TrafficSpec};
