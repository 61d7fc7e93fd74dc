//! Control groups of servers: the CPU time of everything that a server starts, also of children
//! that were never waited for, and the list of its processes.

pub mod cpu_quota;
pub mod hierarchy;

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use self::hierarchy::{Hierarchy, begins_with, is_of_a_host};
use crate::kernel::proc_files::word_after;
use crate::kernel::signals::kill_listed;

/// Where hierarchies are mounted.
const ALL_HIERARCHIES: &str = "/sys/fs/cgroup";
const POLL: Duration = Duration::from_millis(5);

/// A server's group. Removed when dropped.
pub(crate) struct Cgroup {
    folder: PathBuf,
    time: CpuTime,
}

/// The file with the CPU time of all that ever ran in a group: in cgroup v1 a number of nanoseconds,
/// in v2 a line `usage_usec N`.
#[derive(Clone)]
pub(crate) struct CpuTime(PathBuf);

impl CpuTime {
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let files = ["cpuacct.usage", "cpu.stat"].map(|name| Self(folder.join(name)));
        files.into_iter().find(|file| file.read_s().is_some())
    }

    pub(crate) fn read_s(&self) -> Option<f64> {
        let text = fs::read_to_string(&self.0).ok()?;
        match word_after(&text, "usage_usec ") {
            Some(us) => us.parse::<f64>().ok().map(|us| us / 1e6),
            None => text.trim().parse::<f64>().ok().map(|ns| ns / 1e9),
        }
    }
}

impl Cgroup {
    /// `None` where this process cannot make control groups.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let places = Hierarchy::OF_TIME.iter().flat_map(|one| one.places());
        places.into_iter().find_map(|place| {
            // Otherwise no hierarchy is mounted here, and it would be an ordinary folder.
            place.join("cgroup.procs").exists().then_some(())?;
            let folder = place.join(name);
            fs::create_dir(&folder).ok()?;
            let time = CpuTime::of(&folder);
            if time.is_none() {
                remove(&folder);
            }
            Some(Self {
                folder,
                time: time?,
            })
        })
    }

    pub(crate) fn time(&self) -> &CpuTime {
        &self.time
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A process that writes `0` to this file enters the group.
    pub(crate) fn entrance(&self) -> Option<File> {
        OpenOptions::new()
            .write(true)
            .open(self.folder.join("cgroup.procs"))
            .ok()
    }

    /// Whether a process has entered it; it may have ended since.
    pub(crate) fn has_taken(&self, pid: i32) -> bool {
        self.processes().contains(&pid) || self.usage_s().is_some_and(|s| s > 0.0)
    }

    /// CPU time of all that ever ran in it, s.
    pub(crate) fn usage_s(&self) -> Option<f64> {
        self.time.read_s()
    }

    pub(crate) fn processes(&self) -> Vec<i32> {
        processes_in(&self.folder)
    }

    /// Kills all processes in it.
    pub(crate) fn kill(&self) {
        kill_in(&self.folder);
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.folder);
        remove_elsewhere(&self.folder);
    }
}

/// The processes in a group and in the groups inside it, such as a container's.
pub(crate) fn processes_in(folder: &Path) -> Vec<i32> {
    let mut processes = own_processes(folder);
    // The number of links is that of folders inside, and two.
    if fs::metadata(folder).is_ok_and(|about| about.nlink() > 2) {
        for inner in inner_groups(folder) {
            processes.extend(processes_in(&inner));
        }
    }
    processes
}

pub(crate) fn inner_groups(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn own_processes(folder: &Path) -> Vec<i32> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    // 0 is listed for a process of another pid namespace; `kill` would take it for this process's
    // own process group.
    let numbers = list.lines().filter_map(|line| line.trim().parse().ok());
    numbers.filter(|pid| *pid > 0).collect()
}

/// Kills all processes in a group, with one write if the kernel can (cgroup v2, Linux 5.14).
pub(crate) fn kill_in(folder: &Path) {
    let all = OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.kill"));
    if all.is_ok_and(|mut file| file.write_all(b"1").is_ok()) {
        return;
    }
    kill_listed(|| processes_in(folder));
}

/// Kills what is left in the control groups of an agent that was killed, and removes the groups.
/// Their names begin with that of the agent's folder, which is not empty.
pub(crate) fn remove_all(agent: &str) {
    for place in Hierarchy::all().flat_map(Hierarchy::places) {
        let groups = inner_groups(&place);
        let hosts = groups.iter().filter(|group| is_of_a_host(group));
        let inside: Vec<PathBuf> = hosts.flat_map(|host| inner_groups(host)).collect();
        for group in groups.iter().chain(&inside) {
            if begins_with(group, &format!("{agent}-")) {
                kill_and_remove(group);
            }
        }
    }
}

/// Removes groups of the same path in other hierarchies of version 1. A container's runtime makes
/// groups in all of them.
fn remove_elsewhere(folder: &Path) {
    let all = Path::new(ALL_HIERARCHIES);
    let own = folder.strip_prefix(all).unwrap_or(Path::new(""));
    let mut parts = own.components();
    let (Some(own), inside) = (parts.next(), parts.as_path()) else {
        return;
    };
    // In version 2 the first part is a group itself.
    if inside.as_os_str().is_empty() || all.join("cgroup.procs").exists() {
        return;
    }
    for hierarchy in inner_groups(all) {
        let same = hierarchy.join(inside);
        if hierarchy != all.join(own) && same.exists() {
            remove(&same);
        }
    }
}

/// Removes a group, with those inside it, once it is empty: a killed process leaves its group a
/// moment later.
pub(crate) fn remove(folder: &Path) {
    for _ in 0..40 {
        if is_removed(folder) {
            return;
        }
        sleep(POLL);
    }
}

/// Kills all that is in a control group and in those inside it, and removes them.
pub fn kill_and_remove(group: &Path) {
    for _ in 0..200 {
        kill_in(group);
        if is_removed(group) {
            return;
        }
        sleep(POLL);
    }
}

/// Removes a group, with those inside it, if they are empty. Returns whether it is gone.
fn is_removed(folder: &Path) -> bool {
    for inner in inner_groups(folder) {
        is_removed(&inner);
    }
    fs::remove_dir(folder).is_ok() || !folder.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_counts_what_nobody_waited_for() {
        let name = format!("weigh-test-{}", std::process::id());
        let Some(group) = Cgroup::make(&name) else {
            // Not root, or no control groups: CPU time then comes from /proc.
            return;
        };
        let entrance = group.entrance().unwrap();
        let mut command = std::process::Command::new("sh");
        command.args([
            "-c",
            "trap '' CHLD; (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done)",
        ]);
        net::os::set_up_child(
            &mut command,
            net::os::ChildSetup {
                enter: Some(entrance),
                ..Default::default()
            },
        );
        assert!(command.status().unwrap().success());
        assert!(group.usage_s().unwrap() > 0.0);
        assert!(group.processes().is_empty());
        let folder = group.folder.clone();
        drop(group);
        assert!(!folder.exists());
    }
}
