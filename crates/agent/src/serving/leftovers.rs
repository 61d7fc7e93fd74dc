//! Removes what killed programs have left: folders of agents, control groups, and links on the
//! devices of a machine. Their names, or those of their records, identify their owners, and the next
//! run removes those of dead ones.
//!
//! Namespaces and devices need no removal: they are unnamed and go with their processes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::kernel::cgroup;
use crate::kernel::cgroup::hierarchy::Hierarchy;
use crate::kernel::proc_files::Process;
use crate::links::record;

/// Where agents and hosts make control groups, and the runtimes of containers inside them.
pub(crate) const HIERARCHIES: [Hierarchy; 15] = [
    Hierarchy::V1("cpuacct"),
    Hierarchy::V1("cpu"),
    Hierarchy::V1("cpuset"),
    Hierarchy::V1("memory"),
    Hierarchy::V1("pids"),
    Hierarchy::V1("blkio"),
    Hierarchy::V1("devices"),
    Hierarchy::V1("freezer"),
    Hierarchy::V1("hugetlb"),
    Hierarchy::V1("misc"),
    Hierarchy::V1("perf_event"),
    Hierarchy::V1("rdma"),
    Hierarchy::V1("systemd"),
    Hierarchy::V1("unified"),
    Hierarchy::V2,
];

const PREFIX: &str = "weigh-";
/// Names of hosts' groups begin with it; the owner's mark follows.
pub const HOST_PREFIX: &str = "weigh-host-";
/// Agents notice within a second that their program is dead, and take up to another to clean up.
const TIDYING: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(5);

/// Identifies a process: pid, start in ticks since boot, the inode of its pid namespace, and the
/// boot ID of its machine. The inode does not tell machines apart: the initial namespace has the
/// same one everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    start_ticks: u64,
    pids: u64,
    /// The first 32 bits of the kernel's boot id; 0 where that cannot be read.
    boot: u32,
}

impl Owner {
    /// This process.
    pub fn me() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
            pids: pid_namespace(),
            boot: boot(),
        }
    }

    /// As part of a name: `PID.START.NAMESPACE.BOOT`, the last two in hexadecimal.
    pub fn mark(&self) -> String {
        let Self {
            pid,
            start_ticks,
            pids,
            boot,
        } = self;
        format!("{pid}.{start_ticks}.{pids:x}.{boot:x}")
    }

    /// Reads a mark at the start of a text, as far as the next `-`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mark = text.split('-').next()?;
        let mut parts = mark.split('.');
        let owner = Self {
            pid: parts.next()?.parse().ok()?,
            start_ticks: parts.next()?.parse().ok()?,
            pids: u64::from_str_radix(parts.next()?, 16).ok()?,
            boot: u32::from_str_radix(parts.next()?, 16).ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// One that is known to have ended.
    #[cfg(test)]
    pub(crate) fn dead(self) -> Self {
        Self {
            start_ticks: self.start_ticks + 1,
            ..self
        }
    }

    /// Whether it is known to have ended. This is not known of a process of another pid namespace
    /// or another boot: it may run on another machine that shares the folder.
    pub(crate) fn is_dead(&self) -> bool {
        self.boot == boot()
            && self.pids == pid_namespace()
            && start_ticks(self.pid) != Some(self.start_ticks)
    }
}

/// When a process started. `None` for one that has ended, zombies included.
fn start_ticks(pid: u32) -> Option<u64> {
    Some(Process::read(pid as i32)?.start_ticks)
}

/// The inode of this process's pid namespace; 0 where that cannot be read.
fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// The first 32 bits of the boot id, which is random. The mark is part of paths, whose length is
/// limited.
fn boot() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let first = digits.get(..8).unwrap_or_default();
    u32::from_str_radix(first, 16).unwrap_or(0)
}

/// Waits until the agent of a folder has ended, at most for a time that it needs to notice that it
/// is alone. Returns whether it has ended: an agent that this process cannot see has by then.
pub fn await_end(folder: &str, within: Duration, stop: &AtomicBool) -> bool {
    let owner = owner_of(folder);
    let is_here = owner.is_some_and(|it| it.boot == boot() && it.pids == pid_namespace());
    let end = Instant::now() + within + TIDYING;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        if is_here && owner.is_some_and(|owner| owner.is_dead()) {
            return true;
        }
        sleep(POLL);
    }
    !is_here
}

fn owner_of(name: &str) -> Option<Owner> {
    let rest = name.strip_prefix(HOST_PREFIX);
    Owner::read(rest.or_else(|| name.strip_prefix(PREFIX))?)
}

/// Removes what dead programs have left on this machine: kills what still runs in their control
/// groups, and removes those groups, the agents' folders, and links in this network namespace. Returns
/// what it has removed: paths, of links that of their record.
///
/// Agents of a program that was killed just now are still cleaning up in its groups. If they were
/// killed too, their folders would stay, perhaps in another mount namespace. So they get time to
/// end.
pub fn sweep() -> Vec<PathBuf> {
    let mut removed = Vec::new();
    let places = HIERARCHIES.into_iter().flat_map(Hierarchy::places);
    let groups = places.flat_map(|place| of_the_dead(&place));
    // Listed once: groups of programs that are killed during the wait are left to the next sweep.
    let groups: Vec<PathBuf> = groups.collect();
    let is_at_work = |group: &PathBuf| is_of_a_host(group) && !processes_in(group).is_empty();
    let end = Instant::now() + TIDYING;
    while groups.iter().any(is_at_work) && Instant::now() < end {
        sleep(POLL);
    }
    for path in groups {
        kill_and_remove(&path);
        if !path.exists() {
            removed.push(path);
        }
    }
    let (user, _) = net::namespace::user_and_group();
    for path in of_the_dead(&std::env::temp_dir()) {
        // In a world-writable folder a name proves nothing.
        let own = fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir() && it.uid() == user);
        if own && net::folder::remove_all(&path).is_ok() {
            removed.push(path);
        }
    }
    removed.extend(record::sweep());
    removed
}

fn of_the_dead(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| owner_of(&entry.file_name().to_string_lossy()).is_some_and(|o| o.is_dead()))
        .map(|entry| entry.path())
        .collect()
}

fn is_of_a_host(group: &Path) -> bool {
    let name = group.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(HOST_PREFIX)
}

/// Processes in a control group and its descendants.
fn processes_in(group: &Path) -> Vec<i32> {
    with_inner(group)
        .iter()
        .flat_map(|one| cgroup::processes_in(one))
        .collect()
}

/// Kills all that is in a control group and its descendants, and removes them.
pub fn kill_and_remove(group: &Path) {
    for _ in 0..200 {
        let groups = with_inner(group);
        for one in &groups {
            cgroup::kill_in(one);
        }
        // A killed process leaves its group a moment later.
        if groups.iter().all(|one| fs::remove_dir(one).is_ok()) || !group.exists() {
            return;
        }
        sleep(POLL);
    }
}

/// A group and its descendants, the innermost first.
fn with_inner(group: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(with_inner(&entry.path()));
        }
    }
    found.push(group.to_path_buf());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_can_be_read_and_tell_the_living_from_the_dead() {
        let me = Owner::me();
        let read = owner_of(&format!("weigh-{}-00ab12", me.mark())).unwrap();
        assert_eq!(read, me);
        assert_eq!(owner_of(&format!("weigh-host-{}-vm", me.mark())), Some(me));
        assert!(!me.is_dead());
        // The same pid, but another process.
        let before = Owner {
            start_ticks: me.start_ticks + 1,
            ..me
        };
        assert!(before.is_dead());
        let elsewhere = Owner {
            pids: me.pids + 1,
            ..before
        };
        assert!(!elsewhere.is_dead());
        let another_machine = Owner {
            boot: me.boot ^ 1,
            ..before
        };
        assert!(me.boot != 0 && !another_machine.is_dead());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let owner = Owner {
            pid: child.id(),
            start_ticks: start_ticks(child.id()).unwrap_or(1),
            ..me
        };
        child.wait().unwrap();
        assert!(owner.is_dead());
        for name in [
            "weigh-runs",
            "weigh-12-ab12",
            "weigh-1.2-x",
            "weigh-1.2.3-x",
            "other-1.2.3.4",
        ] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }

    #[test]
    fn folders_of_the_dead_are_removed_and_no_others() {
        let me = Owner::me();
        let dead = Owner {
            start_ticks: me.start_ticks + 1,
            ..me
        };
        let folder = |owner: Owner, rest: &str| {
            let name = format!("weigh-{}-{rest}", owner.mark());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(path.join("server/www")).unwrap();
            path
        };
        let (living, left) = (folder(me, "swept"), folder(dead, "swept"));
        let removed = sweep();
        assert!(removed.contains(&left) && !left.exists());
        assert!(living.exists());
        fs::remove_dir_all(living).unwrap();
    }

    #[test]
    fn what_tidies_up_in_a_group_of_the_dead_has_time_to_end_and_no_more() {
        let dead = Owner {
            start_ticks: Owner::me().start_ticks + 1,
            ..Owner::me()
        };
        let base = crate::kernel::cgroup::cpu_quota::v1().unwrap_or(Path::new("/sys/fs/cgroup"));
        let tidy = base.join(format!("{HOST_PREFIX}{}-0-tidy", dead.mark()));
        if fs::create_dir(&tidy).is_err() {
            // Not root.
            return;
        }
        let child = |words: &str| {
            let mut command = std::process::Command::new("sh");
            let entrance = fs::File::options()
                .write(true)
                .open(tidy.join("cgroup.procs"));
            let setup = net::os::ChildSetup {
                confine: vec![entrance.unwrap()],
                ..Default::default()
            };
            command.args(["-c", words]);
            net::os::set_up_child(&mut command, setup);
            command.spawn().unwrap()
        };
        let (mut one, mut other) = (child("sleep 0.5; exit 7"), child("exec sleep 60"));
        sweep();
        assert_eq!(one.wait().unwrap().code(), Some(7));
        assert_eq!(other.wait().unwrap().code(), None);
        assert!(!tidy.exists());
    }
}
