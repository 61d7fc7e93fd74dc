//! A temporary limit on the CPU time of servers: a control group that their processes are moved to,
//! and back from.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kernel::cgroup::hierarchy::Hierarchy;
use crate::kernel::cgroup::{Cgroup, cpu_quota, processes_in, remove};

/// A process and its group before.
struct Moved {
    pid: i32,
    from: PathBuf,
}

/// Holds until it is dropped.
pub(crate) struct Quota {
    folder: PathBuf,
    moved: Vec<Moved>,
}

impl Quota {
    /// Limits processes and their children to this many CPUs together.
    pub(crate) fn set(name: &str, pids: &[i32], cpus: f64) -> Result<Self, String> {
        let refused = |what: &str, e: std::io::Error| format!("{what}: {e}");
        let base = hierarchy().base();
        // A server on a host with a group goes below that group, whose quota then holds as well.
        let mut made = Err(std::io::ErrorKind::NotFound.into());
        for parent in hierarchy().places() {
            made = fs::create_dir(parent.join(name)).map(|()| parent);
            if made.is_ok() {
                break;
            }
        }
        let parent = made.map_err(|e| refused("no control group can be made", e))?;
        let mut quota = Self {
            folder: parent.join(name),
            moved: Vec::new(),
        };
        if hierarchy() == Hierarchy::V2 {
            // The parent must delegate the controller; often it does already.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
        }
        cpu_quota::set(&quota.folder, Some(cpus))
            .map_err(|e| refused("CPU time cannot be limited", e))?;
        for &pid in pids {
            let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            let from = base.join(hierarchy().path(&text).unwrap_or_default());
            // A process that has just ended cannot be moved, and need not be.
            if fs::write(quota.folder.join("cgroup.procs"), pid.to_string()).is_ok() {
                quota.moved.push(Moved { pid, from });
            }
        }
        if quota.moved.is_empty() {
            return Err("no process of the servers could be limited".to_owned());
        }
        Ok(quota)
    }
}

/// The one that limits CPU time.
fn hierarchy() -> Hierarchy {
    match cpu_quota::v1() {
        Some(_) => Hierarchy::V1("cpu"),
        None => Hierarchy::V2,
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Should the group remain, it limits nothing.
        let _ = cpu_quota::set(&self.folder, None);
        let first = self.moved.first().map(|one| one.from.clone());
        let base = self.folder.parent().map(Path::to_path_buf);
        let back = |pid: i32, to: &Path| {
            let moved = fs::write(to.join("cgroup.procs"), pid.to_string());
            // In a container the process's group may be outside of the mount.
            if let (Err(_), Some(base)) = (moved, &base) {
                let _ = fs::write(base.join("cgroup.procs"), pid.to_string());
            }
        };
        for one in &self.moved {
            back(one.pid, &one.from);
        }
        // Children that they started meanwhile are still here.
        for pid in processes_in(&self.folder) {
            if let Some(to) = &first {
                back(pid, to);
            }
        }
        remove(&self.folder);
    }
}

/// A limit that ends when this is dropped.
pub(crate) enum ServerQuota {
    /// Set on the server's own control group, which has the `cpu` controller.
    Own(PathBuf),
    /// Set on a new group, to which the server's processes were moved.
    Moved { _quota: Quota },
}

impl ServerQuota {
    /// Limits a server with these processes; `name` is that of the new group, if one is needed.
    pub(crate) fn set(
        name: &str,
        group: Option<&Cgroup>,
        pids: &[i32],
        cpus: f64,
    ) -> Result<Self, String> {
        if let Some(folder) = group.map(Cgroup::folder)
            && cpu_quota::set(folder, Some(cpus)).is_ok()
        {
            return Ok(Self::Own(folder.to_owned()));
        }
        Quota::set(name, pids, cpus).map(|quota| Self::Moved { _quota: quota })
    }
}

impl Drop for ServerQuota {
    fn drop(&mut self) {
        if let Self::Own(folder) = self {
            // Fails only if the group is gone.
            let _ = cpu_quota::set(folder, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_limited_and_let_go() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let name = format!("weigh-test-quota-{}", std::process::id());
        let group_of = |pid: i32| {
            let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
            hierarchy().path(&text).map(str::to_owned)
        };
        let before = group_of(pid);
        if let Ok(quota) = Quota::set(&name, &[pid], 0.5) {
            assert_ne!(group_of(pid), before);
            let folder = quota.folder.clone();
            drop(quota);
            assert_eq!(group_of(pid), before);
            assert!(!folder.exists());
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
