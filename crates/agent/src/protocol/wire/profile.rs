//! Profiles of servers on the wire.

use serde::{Deserialize, Serialize};

/// How servers are profiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileOrder {
    /// Servers that are sampled by the load.
    pub servers: Vec<String>,
    /// Samples per second of CPU time.
    pub frequency_hz: u32,
    pub call_graph: CallGraph,
}

/// How the callers of a function are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallGraph {
    /// By frame pointers: cheap, and complete where programs are built with them.
    Fp,
    /// By debug information and a copy of the stack: for programs without frame pointers.
    Dwarf,
}

impl CallGraph {
    /// The word for perf.
    pub fn word(self) -> &'static str {
        match self {
            CallGraph::Fp => "fp",
            CallGraph::Dwarf => "dwarf",
        }
    }
}

/// Where a server spent its CPU time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProfile {
    pub server: String,
    /// Stacks, a line each: frames separated by `;`, a space, the CPU time in `unit`.
    pub folded: String,
    /// `ns` or `cycles`.
    pub unit: String,
    /// Why there are none.
    pub failed: Option<String>,
}
