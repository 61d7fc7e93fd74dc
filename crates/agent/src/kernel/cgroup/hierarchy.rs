//! Hierarchies of control groups, and where this process may make groups.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of hosts' groups begin with it; the owner's mark follows.
pub const HOST_PREFIX: &str = "weigh-host-";

/// Controllers of version 1. Agents and hosts make groups for some of them, and the runtimes of
/// containers inside those for all.
const V1_CONTROLLERS: &str = "cpuacct cpu cpuset memory pids blkio devices freezer hugetlb misc \
                              perf_event rdma systemd unified";

/// A hierarchy of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// One of version 1, by a controller that it has.
    V1(&'static str),
    /// That of version 2.
    V2,
}

impl Hierarchy {
    /// Where the hierarchy of CPU time is, in both versions.
    pub const OF_TIME: [Self; 2] = [Self::V1("cpuacct"), Self::V2];

    /// All in which there may be groups of agents and hosts.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let v1 = V1_CONTROLLERS.split(' ').map(Self::V1);
        v1.chain([Self::V2])
    }

    /// Its mount point, if it is mounted.
    pub fn base(self) -> PathBuf {
        match self {
            Self::V1(controller) => Path::new("/sys/fs/cgroup").join(controller),
            Self::V2 => "/sys/fs/cgroup".into(),
        }
    }

    /// The path of a process's group below the [`base`](Self::base), from the text of its file
    /// `/proc/PID/cgroup`. In a container it may be outside of the mount.
    pub fn path(self, text: &str) -> Option<&str> {
        text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_it = match self {
                Self::V1(name) => controllers.split(',').any(|one| one == name),
                Self::V2 => controllers.is_empty(),
            };
            is_it.then(|| path.trim_start_matches('/'))
        })
    }

    /// The folders in which this process may be able to make groups, the best first: in the group of
    /// its host, if it has one, since that bounds all that is in it. Otherwise in the root group, which
    /// needs root, or in its own, which works in a user's delegated cgroup.
    pub fn places(self) -> Vec<PathBuf> {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        self.places_of(&text)
    }

    fn places_of(self, text: &str) -> Vec<PathBuf> {
        let base = self.base();
        let Some(own) = self.path(text) else {
            return vec![base];
        };
        match own.rsplit('/').next() {
            Some(host) if host.starts_with(HOST_PREFIX) => vec![base.join(host)],
            Some("") | None => vec![base],
            Some(_) => vec![base.clone(), base.join(own)],
        }
    }
}

/// Whether it is a host's group.
pub(crate) fn is_of_a_host(group: &Path) -> bool {
    begins_with(group, HOST_PREFIX)
}

pub(super) fn begins_with(group: &Path, prefix: &str) -> bool {
    let name = group.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "3:name=systemd:/\n2:cpu,cpuacct:/a/b\n0::/user.slice/x.scope\n";

    #[test]
    fn each_hierarchy_has_a_path_of_its_own() {
        assert_eq!(Hierarchy::V1("cpuacct").path(BOTH), Some("a/b"));
        assert_eq!(Hierarchy::V1("cpu").path(BOTH), Some("a/b"));
        assert_eq!(Hierarchy::V1("cpuset").path(BOTH), None);
        assert_eq!(Hierarchy::V2.path(BOTH), Some("user.slice/x.scope"));
        assert_eq!(Hierarchy::V2.path("0::/"), Some(""));
        assert_eq!(Hierarchy::V2.path("nonsense"), None);
    }

    #[test]
    fn groups_are_made_for_all_or_in_the_own_one_or_in_that_of_the_host() {
        let of = |text: &str| Hierarchy::V2.places_of(text);
        let base = PathBuf::from("/sys/fs/cgroup");
        assert_eq!(of(""), [base.as_path()]);
        assert_eq!(of("0::/"), [base.as_path()]);
        let own = base.join("user.slice/x.scope");
        assert_eq!(of(BOTH), [base.clone(), own]);
        let host = format!("{HOST_PREFIX}1.2.3-0-vm");
        assert_eq!(of(&format!("0::/docker/{host}")), [base.join(host)]);
    }
}
