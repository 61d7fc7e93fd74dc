//! The data types that the rooms hand each other.
//!
//! Everything here is plain data with units in the field names. Nothing here measures, decides or
//! prints: `load` and `run` fill these types, `verdict` and `report` read them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod condition;
mod driver;
mod gate;
pub mod hlog;
mod http;
mod journal;
mod load;
mod machine;
pub mod requests;
mod sums;
pub mod text;
pub mod url;
mod utc;

pub use condition::{Condition, at_condition, condition_text};
pub use driver::{
    DriverReading, DriverRun, FigureTable, ProcessLine, Tool, ToolLatency, ToolReading, ToolTls,
};
pub use gate::{Gate, GateBound, GateMetric, GateUnit};
pub use histogram::{Histogram, HistogramError, Quantiles};
pub use http::HttpVersion;
pub use journal::{
    BesideReading, CurveChoice, CurvePoint, DeclaredLoad, DuringEvent, EVENT_ROW_MS, EventReading,
    EventsReading, FailureCause, JOURNAL_LINE_BYTES_MAX, Journal, JournalRow, JournalTextError,
    LOAD_KEY, Outcome, Placement, Published, RateChoice, Reading, RunHeader, Salvaged,
    ServerReading, ServerSettings, ServerStart, SettingsReading, SubjectSettings, Trial,
    UnwritableRow, WarmUpChoice, condition_of_load, first_number_above_limit, trials_by_load,
};
pub use load::{
    ARRIVAL_SLOT_NS, AcceptQueue, AgeReading, Answered, Arrivals, Batch, CALL_MESSAGES_MAX,
    ClientPauses, ClientReading, ConnectionsRow, ErrorCounts, EventFormat, ExchangeEnd,
    FIRST_ANSWER, Fairness, GivenUp, HostReading, IdleClosed, IdleEnd, IdleHeld, IdleReading,
    IdleStage, LATE_S, LagBase, LastingReading, LoadReading, LoadRow, NO_PORT, Negotiated, Offered,
    Pacing, Pause, Peaks, QuicCongestion, QuicReading, RATE_MAX_PER_S, Received, RequestBody,
    RequestReading, SOCKET_MESSAGE_BYTES_MAX, START_LATE_US, ServerState, Silence, Slice,
    StageReading, StatusCount, ThreadReading, TlsReading, TrafficKind, UsersReading, Wrong,
    WrongKind, count_end, is_same_congestion,
};
pub use machine::{
    Access, BottleneckReading, BottleneckSample, CPU_TICK_S, Change, ContainerSource, CpuSample,
    DirectionCounters, HostSpec, InstructionScope, InstructionsReading, InterfaceMetrics,
    KernelSample, Kubernetes, LinkCounters, LinkKind, LinkSpec, MachineMetrics, Member,
    NetworkMetrics, Nomad, PACKET_BYTES_MAX, Podman, PortsSample, Probe, Reach, ServerMetrics,
    ServerSample, Slurm, SocketMetrics, SystemMetrics, ThreadMetrics,
};
pub use text::once;
pub use utc::Utc;
