//! The data types that the rooms hand each other.
//!
//! Everything here is plain data with units in the field names. Nothing here measures, decides or
//! prints: `load` and `run` fill these types, `verdict` and `report` read them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accept_queue;
mod batches;
mod bottleneck;
mod counts;
mod curve;
mod driver;
mod errors;
mod events;
mod gate;
pub mod hlog;
mod host;
mod http;
mod instructions;
mod journal;
mod journal_text;
mod load;
mod loads;
mod merge;
mod metrics;
mod open_loop;
mod quic;
mod settings;
pub mod text;
mod tls;
mod tool;
mod utc;

pub use accept_queue::AcceptQueue;
pub use batches::Batch;
pub use bottleneck::{
    BottleneckReading, BottleneckSample, Change, CpuSample, KernelSample, PortsSample, Probe,
    ServerSample,
};
pub use counts::first_number_above_limit;
pub use curve::{CurveChoice, CurvePoint};
pub use driver::{DriverReading, DriverRun};
pub use errors::ErrorCounts;
pub use events::{DuringEvent, EVENT_ROW_MS, EventReading, EventsReading};
pub use gate::{Gate, GateBound, GateMetric};
pub use histogram::{Histogram, HistogramError, Quantiles};
pub use host::{
    Access, ContainerSource, DirectionCounters, HostSpec, Kubernetes, LinkCounters, LinkKind,
    LinkSpec, Member, Nomad, PACKET_BYTES_MAX, Podman, Reach, Slurm,
};
pub use http::HttpVersion;
pub use instructions::{InstructionScope, InstructionsReading};
pub use journal::{
    Condition, FailureCause, Journal, JournalRow, Outcome, Placement, Published, RateChoice,
    Reading, RunHeader, ServerReading, Trial, at_condition, condition_text,
};
pub use journal_text::{JOURNAL_LINE_BYTES_MAX, JournalTextError, Salvaged, UnwritableRow};
pub use load::{
    Answered, ClientReading, FIRST_ANSWER, Fairness, HostReading, LATE_S, LoadReading, LoadRow,
    NO_PORT, Pacing, RATE_MAX_PER_S, RequestReading, START_LATE_US, Silence, Slice, StageReading,
    StatusCount, ThreadReading, Wrong, WrongKind,
};
pub use loads::{BesideReading, DeclaredLoad, LOAD_KEY, condition_of_load, trials_by_load};
pub use metrics::{
    InterfaceMetrics, MachineMetrics, NetworkMetrics, ServerMetrics, SocketMetrics, SystemMetrics,
    ThreadMetrics,
};
pub use open_loop::{ClientPauses, Offered, Pause, Peaks};
pub use quic::{QuicCongestion, QuicReading, is_same_congestion};
pub use settings::{ServerSettings, SettingsReading, SubjectSettings};
pub use tls::{Negotiated, TlsReading};
pub use tool::{FigureTable, ProcessLine, Tool, ToolLatency, ToolReading, ToolTls};
pub use utc::Utc;
