//! A limit on the CPU time that servers get together, for a time: a control group that their
//! processes are moved to and back from.

use std::fs;
use std::path::{Path, PathBuf};

use crate::control_group::Hierarchy;
use crate::cpu_quota;

/// Where one process was before.
struct Moved {
    pid: i32,
    from: PathBuf,
}

/// A limit that holds until it is dropped.
pub(super) struct Quota {
    folder: PathBuf,
    moved: Vec<Moved>,
}

impl Quota {
    /// Limits processes, and what they start, to so many CPUs together.
    pub(super) fn set(name: &str, pids: &[i32], cpus: f64) -> Result<Self, String> {
        let refused = |what: &str, e: std::io::Error| format!("{what}: {e}");
        let base = hierarchy().base();
        let folder = base.join(name);
        fs::create_dir(&folder).map_err(|e| refused("no control group can be made", e))?;
        let mut quota = Self {
            folder,
            moved: Vec::new(),
        };
        if hierarchy() == Hierarchy::V2 {
            // Its parent hands the controller on; where it does already this changes nothing.
            let _ = fs::write(base.join("cgroup.subtree_control"), "+cpu");
        }
        cpu_quota::set(&quota.folder, Some(cpus))
            .map_err(|e| refused("CPU time cannot be limited", e))?;
        for &pid in pids {
            let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            let from = base.join(hierarchy().path(&text).unwrap_or_default());
            // One that has just ended cannot be moved, and need not be.
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

/// That in which CPU time is bounded.
fn hierarchy() -> Hierarchy {
    match cpu_quota::v1() {
        Some(_) => Hierarchy::V1("cpu"),
        None => Hierarchy::V2,
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Whatever becomes of the group, it limits nobody any more.
        let _ = cpu_quota::set(&self.folder, None);
        let first = self.moved.first().map(|one| one.from.clone());
        let base = self.folder.parent().map(Path::to_path_buf);
        let back = |pid: i32, to: &Path| {
            let moved = fs::write(to.join("cgroup.procs"), pid.to_string());
            // In a container the group that the process names may lie outside of what is mounted.
            if let (Err(_), Some(base)) = (moved, &base) {
                let _ = fs::write(base.join("cgroup.procs"), pid.to_string());
            }
        };
        for one in &self.moved {
            back(one.pid, &one.from);
        }
        // What they started meanwhile is here still.
        let left = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in left.lines().filter_map(|line| line.trim().parse().ok()) {
            if let Some(to) = &first {
                back(pid, to);
            }
        }
        for _ in 0..40 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
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
