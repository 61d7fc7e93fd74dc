//! The data types that the rooms hand each other.
//!
//! Everything here is plain data with units in the field names. Nothing here measures, decides or
//! prints: `load` and `run` fill these types, `verdict` and `report` read them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bottleneck;
mod counts;
mod curve;
mod driver;
mod errors;
mod events;
mod histogram;
pub mod hlog;
mod host;
mod journal;
mod journal_text;
mod load;
mod metrics;
mod open_loop;
mod quantiles;
mod settings;
mod tls;
mod tool;

pub use bottleneck::{
    BottleneckReading, BottleneckSample, Change, CpuSample, KernelSample, PortsSample, Probe,
    ServerSample,
};
pub use curve::{CurveChoice, CurvePoint};
pub use driver::{DriverReading, DriverRun};
pub use errors::ErrorCounts;
pub use events::{EventReading, EventsReading};
pub use histogram::{Histogram, HistogramError};
pub use host::{
    Access, DirectionCounters, HostSpec, LinkCounters, LinkKind, LinkSpec, PACKET_BYTES_MAX,
};
pub use journal::{
    Condition, FailureCause, Journal, JournalRow, Outcome, Placement, Published, RateChoice,
    Reading, RunHeader, ServerReading, Trial,
};
pub use journal_text::{JournalTextError, Salvaged, UnwritableRow};
pub use load::{
    ClientReading, Fairness, LATE_S, LoadReading, LoadRow, NO_PORT, Pacing, RequestReading,
    Silence, Slice, StageReading, StatusCount, ThreadReading, Wrong, WrongKind,
};
pub use metrics::{
    InterfaceMetrics, MachineMetrics, NetworkMetrics, ServerMetrics, SocketMetrics, SystemMetrics,
    ThreadMetrics,
};
pub use open_loop::{ClientPauses, Offered, Pause, Peaks};
pub use quantiles::Quantiles;
pub use settings::{ServerSettings, SettingsReading, SubjectSettings};
pub use tls::{Negotiated, TlsReading};
pub use tool::{FigureTable, ProcessLine, Tool, ToolLatency, ToolReading, ToolTls};
