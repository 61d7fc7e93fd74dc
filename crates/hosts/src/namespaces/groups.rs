//! The control groups of a host: CPU quota and CPU set.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use agent::cpu_quota;
use agent::leftovers::{HOST_PREFIX, Owner, kill_and_remove};
use readings::HostSpec;

const V1_CPUSET: &str = "/sys/fs/cgroup/cpuset";
const V2: &str = "/sys/fs/cgroup";

/// A host's control groups. Dropping them kills the processes inside and removes them.
pub(crate) struct Groups {
    folders: Vec<PathBuf>,
    /// Whether a cpuset binds the processes to the host's CPUs. Otherwise only their affinity is
    /// set at start, which they may change.
    pub(crate) cpus_bound: bool,
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            kill_and_remove(folder);
        }
    }
}

impl Groups {
    /// Creates the groups that a host needs.
    pub(crate) fn make(host: &HostSpec) -> Result<Self, String> {
        let mut groups = Self {
            folders: Vec::new(),
            cpus_bound: false,
        };
        // A process may create several topologies.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{HOST_PREFIX}{}-{number}-{}", Owner::me().mark(), host.name);
        if let Some(quota) = host.quota {
            groups.set_quota_group(&name, quota).map_err(|e| {
                format!(
                    "host `{}` has a quota of {quota} CPUs, but no control group can be made for it: \
                     {e}; run as root where the `cpu` controller is available, or remove `quota`",
                    host.name
                )
            })?;
        }
        if !host.cpus.is_empty() {
            groups.cpus_bound = groups.set_cpus(&name, &host.cpus).is_ok();
        }
        Ok(groups)
    }

    /// Whether one of them, other than a v1 cpuset, accounts CPU time.
    pub(crate) fn accounts_cpu_time(&self) -> bool {
        let of_cpus_alone = |folder: &PathBuf| folder.starts_with(V1_CPUSET);
        !self.folders.iter().all(of_cpus_alone)
    }

    /// The `cgroup.procs` files by which a process enters the groups.
    pub(crate) fn procs_files(&self) -> io::Result<Vec<File>> {
        let open = |folder: &PathBuf| {
            OpenOptions::new()
                .write(true)
                .open(folder.join("cgroup.procs"))
        };
        self.folders.iter().map(open).collect()
    }

    fn add(&mut self, base: impl AsRef<Path>, name: &str) -> io::Result<PathBuf> {
        let folder = base.as_ref().join(name);
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder)?;
            self.folders.push(folder.clone());
        }
        Ok(folder)
    }

    fn set_quota_group(&mut self, name: &str, cpus: f64) -> io::Result<()> {
        match cpu_quota::v1() {
            Some(base) => self.add(base, name)?,
            None => self.add_v2(name, "cpu")?,
        };
        self.set_quota(Some(cpus))
    }

    /// Sets the CPU quota of the group; `None` for no quota.
    pub(crate) fn set_quota(&self, cpus: Option<f64>) -> io::Result<()> {
        let for_time = |folder: &&PathBuf| !folder.starts_with(V1_CPUSET);
        let Some(folder) = self.folders.iter().find(for_time) else {
            return Err(io::Error::other("it has no control group for CPU time"));
        };
        if folder.starts_with(V2) && cpu_quota::v1().is_none() {
            // A group made for the cpuset may lack the `cpu` controller.
            enable_v2_controller("cpu")?;
        }
        cpu_quota::set(folder, cpus)
    }

    fn set_cpus(&mut self, name: &str, cpus: &[u32]) -> io::Result<()> {
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let v1 = Path::new(V1_CPUSET);
        let folder = if v1.join("cpuset.mems").exists() {
            let folder = self.add(V1_CPUSET, name)?;
            // A cpuset without memory nodes takes no processes.
            let nodes = fs::read_to_string(v1.join("cpuset.mems"))?;
            fs::write(folder.join("cpuset.mems"), nodes.trim())?;
            folder
        } else {
            self.add_v2(name, "cpuset")?
        };
        let bound = fs::write(folder.join("cpuset.cpus"), list.join(","));
        if bound.is_err() && v1.exists() {
            // A v1 cpuset without CPUs takes no processes either.
            kill_and_remove(&folder);
            self.folders.retain(|one| *one != folder);
        }
        bound
    }

    fn add_v2(&mut self, name: &str, controller: &str) -> io::Result<PathBuf> {
        enable_v2_controller(controller)?;
        self.add(V2, name)
    }
}

/// Enables a v2 controller for the children of the root group.
fn enable_v2_controller(controller: &str) -> io::Result<()> {
    let base = Path::new(V2);
    let controllers = fs::read_to_string(base.join("cgroup.controllers"))?;
    if !controllers.split_whitespace().any(|one| one == controller) {
        let why = format!("the controller `{controller}` is not available here");
        return Err(io::Error::other(why));
    }
    fs::write(
        base.join("cgroup.subtree_control"),
        format!("+{controller}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_no_more_time_than_its_quota() {
        let host = HostSpec {
            name: "small".into(),
            quota: Some(0.25),
            cpus: net::os::allowed_cpus().unwrap()[..1].to_vec(),
            ..HostSpec::default()
        };
        let groups = match Groups::make(&host) {
            Ok(groups) => groups,
            Err(reason) => {
                // Not root, or no such controller.
                assert!(reason.contains("no control group can be made"));
                return;
            }
        };
        let mut command = std::process::Command::new("sh");
        // Busy for a second.
        command.args(["-c", "while :; do :; done"]);
        let setup = net::os::ChildSetup {
            confine: groups.procs_files().unwrap(),
            ..Default::default()
        };
        net::os::set_up_child(&mut command, setup);
        let start = std::time::Instant::now();
        let mut child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(1));
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", child.id())).unwrap();
        let elapsed_ns = start.elapsed().as_nanos() as f64;
        let used_ns: f64 = stat.split_whitespace().next().unwrap().parse().unwrap();
        let folders = groups.folders.clone();
        drop(groups);
        // Killed with its group.
        assert!(!child.wait().unwrap().success());
        assert!(folders.iter().all(|folder| !folder.exists()));
        // On a busy machine it may get less.
        assert!(used_ns / elapsed_ns < 0.3, "{used_ns} of {elapsed_ns}");
        assert!(used_ns > 0.0);
    }
}
