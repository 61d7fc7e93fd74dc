//! Marks of processes in names, by which others see whether the owner of something is dead.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::cgroup::hierarchy::HOST_PREFIX;
use super::proc_files::Process;

/// Names of agents' folders and groups begin with it; the owner's mark follows.
const PREFIX: &str = "weigh-";

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

    /// The owner of what has this name: an agent's folder, or a group of an agent or a host.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let host = name.strip_prefix(HOST_PREFIX);
        Self::read(host.or_else(|| name.strip_prefix(PREFIX))?)
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
        self.is_here() && start_ticks(self.pid) != Some(self.start_ticks)
    }

    /// Whether this process can see it.
    pub(crate) fn is_here(&self) -> bool {
        self.boot == boot() && self.pids == pid_namespace()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_can_be_read_and_tell_the_living_from_the_dead() {
        let me = Owner::me();
        let read = Owner::of_name(&format!("weigh-{}-00ab12", me.mark())).unwrap();
        assert_eq!(read, me);
        assert_eq!(
            Owner::of_name(&format!("weigh-host-{}-vm", me.mark())),
            Some(me)
        );
        assert!(!me.is_dead());
        // The same pid, but another process.
        let before = me.dead();
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
            assert_eq!(Owner::of_name(name), None, "{name}");
        }
    }
}
