//! The machines of a run, and what was read of them beside the load.

mod bottleneck;
mod host;
mod instructions;
mod metrics;

pub use bottleneck::{
    BottleneckReading, BottleneckSample, Change, CpuSample, KernelSample, PortsSample, Probe,
    ServerSample,
};
pub use host::{
    Access, ContainerSource, DirectionCounters, HostSpec, Kubernetes, LinkCounters, LinkKind,
    LinkSpec, Member, Nomad, PACKET_BYTES_MAX, Podman, Reach, Slurm,
};
pub use instructions::{InstructionScope, InstructionsReading};
pub use metrics::{
    CPU_TICK_S, InterfaceMetrics, MachineMetrics, NetworkMetrics, ServerMetrics, SocketMetrics,
    SystemMetrics, ThreadMetrics,
};
