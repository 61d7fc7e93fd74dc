//! Where a server's CPU time and processes are read, and what it counts itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::kernel::cgroup::{Cgroup, CpuTime, processes_in};
use crate::kernel::proc_files::{CpuUsed, process_cpu, tree};
use crate::protocol::wire::OtherServer;
use crate::sampling::server::counts_file::CountsFile;

/// Servers by name.
pub(crate) type WatchedServers = BTreeMap<String, Watched>;

pub(crate) struct Watched {
    place: Place,
    counts: Option<Arc<CountsFile>>,
}

enum Place {
    /// A control group: exact, whatever the server starts.
    Group { time: CpuTime, folder: PathBuf },
    /// The processes that it had when the load began.
    Processes(Vec<i32>),
}

impl From<Place> for Watched {
    fn from(place: Place) -> Self {
        Self {
            place,
            counts: None,
        }
    }
}

impl Watched {
    pub(crate) fn of_group(group: &Cgroup) -> Self {
        let place = Place::Group {
            time: group.time().clone(),
            folder: group.folder().to_path_buf(),
        };
        place.into()
    }

    pub(crate) fn processes(pids: Vec<i32>) -> Self {
        Place::Processes(pids).into()
    }

    /// With the counts of the server, if it has any at this path.
    pub(crate) fn with_counts(self, path: Option<&Path>) -> Self {
        Self {
            counts: path.and_then(CountsFile::open).map(Arc::new),
            ..self
        }
    }

    /// Where the server counts what it receives.
    pub(crate) fn counts(&self) -> Option<Arc<CountsFile>> {
        self.counts.clone()
    }

    /// A server that this agent has not started.
    pub(crate) fn of_another(other: &OtherServer) -> Self {
        let folder = other.group.as_ref().map(PathBuf::from);
        let place = match folder.and_then(|folder| Some((CpuTime::of(&folder)?, folder))) {
            Some((time, folder)) => Place::Group { time, folder },
            None => {
                let roots = std::iter::once(other.pid).chain(other.also.iter().copied());
                Place::Processes(roots.flat_map(tree).collect())
            }
        };
        Self::from(place).with_counts(other.counts.as_deref())
    }

    /// How many files a read of its CPU time opens, at least.
    pub(crate) fn files(&self) -> usize {
        match &self.place {
            Place::Group { .. } => 1,
            Place::Processes(pids) => pids.len(),
        }
    }

    /// The processes that are in its group now, or those that it had when the load began.
    pub(crate) fn pids(&self) -> Vec<i32> {
        match &self.place {
            Place::Group { folder, .. } => processes_in(folder),
            Place::Processes(pids) => pids.clone(),
        }
    }

    /// Its control group's folder.
    pub(crate) fn group(&self) -> Option<&Path> {
        match &self.place {
            Place::Group { folder, .. } => Some(folder),
            Place::Processes(_) => None,
        }
    }

    /// CPU time since its start, s.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.cpu().s
    }

    /// CPU time since its start; that of a group is exact in both versions of control groups.
    pub(crate) fn cpu(&self) -> CpuUsed {
        match &self.place {
            Place::Group { time, .. } => CpuUsed::exactly(time.read_s().unwrap_or(0.0)),
            Place::Processes(pids) => pids
                .iter()
                .map(|&pid| process_cpu(pid))
                .fold(CpuUsed::default(), CpuUsed::plus),
        }
    }
}
