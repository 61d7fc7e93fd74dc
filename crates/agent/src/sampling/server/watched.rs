//! Where a server's CPU time and processes are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::kernel::cgroup::{Cgroup, CpuTime, processes_in};
use crate::kernel::proc_files::{CpuUsed, process_cpu, tree};
use crate::protocol::wire::OtherServer;

/// Servers by name.
pub(crate) type WatchedServers = BTreeMap<String, Watched>;

pub(crate) enum Watched {
    /// A control group: exact, whatever the server starts.
    Group { time: CpuTime, folder: PathBuf },
    /// The processes that it had when the load began.
    Processes(Vec<i32>),
}

impl Watched {
    pub(crate) fn of_group(group: &Cgroup) -> Self {
        Watched::Group {
            time: group.time().clone(),
            folder: group.folder().to_path_buf(),
        }
    }

    /// A server that this agent has not started.
    pub(crate) fn of_another(other: &OtherServer) -> Self {
        let folder = other.group.as_ref().map(PathBuf::from);
        match folder.and_then(|folder| Some((CpuTime::of(&folder)?, folder))) {
            Some((time, folder)) => Watched::Group { time, folder },
            None => {
                let roots = std::iter::once(other.pid).chain(other.also.iter().copied());
                Watched::Processes(roots.flat_map(tree).collect())
            }
        }
    }

    /// How many files a read of its CPU time opens, at least.
    pub(crate) fn files(&self) -> usize {
        match self {
            Watched::Group { .. } => 1,
            Watched::Processes(pids) => pids.len(),
        }
    }

    /// The processes that are in its group now, or those that it had when the load began.
    pub(crate) fn pids(&self) -> Vec<i32> {
        match self {
            Watched::Group { folder, .. } => processes_in(folder),
            Watched::Processes(pids) => pids.clone(),
        }
    }

    /// Its control group's folder.
    pub(crate) fn group(&self) -> Option<&Path> {
        match self {
            Watched::Group { folder, .. } => Some(folder),
            Watched::Processes(_) => None,
        }
    }

    /// CPU time since its start, s.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.cpu().s
    }

    /// CPU time since its start; that of a group is exact in both versions of control groups.
    pub(crate) fn cpu(&self) -> CpuUsed {
        match self {
            Watched::Group { time, .. } => CpuUsed::exactly(time.read_s().unwrap_or(0.0)),
            Watched::Processes(pids) => pids
                .iter()
                .map(|&pid| process_cpu(pid))
                .fold(CpuUsed::default(), CpuUsed::plus),
        }
    }
}
