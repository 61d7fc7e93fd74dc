//! What a run's folder says beyond its journal: the question, the machines, the topology.

use readings::HostSpec;

/// What a report says beyond the results. All of it may be missing, for example if only the journal
/// of a run is left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    pub question: Option<String>,
    /// The machines that the run used, this one first.
    pub machines: Vec<MachineFacts>,
    /// Versions of servers, by recipe.
    pub versions: Vec<(String, String)>,
    pub topology: Option<TopologyFacts>,
    /// Pictures of profiles, such as flame graphs.
    pub profiles: Vec<Profile>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    pub name: String,
    pub cpu: Option<String>,
    pub cpus: Option<usize>,
    pub memory_bytes: Option<u64>,
    pub kernel: Option<String>,
    pub architecture: Option<String>,
}

/// Hosts, links and servers, and how they are connected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopologyFacts {
    /// The host that makes the load; this machine if none is named.
    pub load_host: Option<String>,
    /// Name and host of each load, if several are made at the same time.
    pub loads: Vec<(String, Option<String>)>,
    pub hosts: Vec<HostSpec>,
    pub servers: Vec<TopologyServer>,
    pub subjects: Vec<TopologySubject>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyServer {
    pub name: String,
    pub recipe: String,
    pub host: Option<String>,
    /// Servers by name, or addresses of what already runs.
    pub upstreams: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologySubject {
    pub name: String,
    /// A server's name, or the address of what already runs.
    pub target: String,
    pub url: String,
}

/// A picture of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    /// The text of the SVG; if absent, the page links to the file.
    pub svg: Option<String>,
}
