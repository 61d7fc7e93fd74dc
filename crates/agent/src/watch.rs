//! What the kernel counts while a load runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::cgroup::{Cgroup, CpuTime, processes_in};
use super::wire::OtherServer;

/// Connections accepted so far in this network namespace and in those of other agents' servers.
pub(super) fn passive_opens(others: &[OtherServer]) -> Option<u64> {
    // The process of each that a namespace is looked at through, by the namespace.
    let mut places = BTreeMap::new();
    for place in std::iter::once("self".to_string()).chain(others.iter().map(|o| o.pid.to_string()))
    {
        let namespace = fs::metadata(format!("/proc/{place}/ns/net")).ok()?.ino();
        places.entry(namespace).or_insert(place);
    }
    let opens = places.values().map(|place| passive_opens_of(place));
    opens.sum()
}

/// Tells this process's network namespace from all others, on any machine.
pub(super) fn network() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/self/ns/net").map_or(0, |it| it.ino());
    format!("{}/{namespace}", boot.trim())
}

/// `PassiveOpens` of `/proc/PID/net/snmp`.
fn passive_opens_of(process: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/net/snmp")).ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let names = lines.next()?.split_whitespace();
    let values = lines.next()?.split_whitespace();
    names
        .zip(values)
        .find(|(name, _)| *name == "PassiveOpens")?
        .1
        .parse()
        .ok()
}

/// Connections of this network namespace that are open at a port: established, or closed by the
/// other end alone. States as in the kernel's `net/tcp_states.h`.
pub(super) fn connections_at(port: u16) -> Option<u64> {
    const OPEN: [&str; 2] = ["01", "08"];
    let text = fs::read_to_string("/proc/self/net/tcp").ok()?;
    let open = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().and_then(|local| local.rsplit_once(':'));
        let at = local.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        at == Some(port) && fields.nth(1).is_some_and(|state| OPEN.contains(&state))
    };
    Some(text.lines().filter(open).count() as u64)
}

/// Every process and its parent.
fn parents() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in parentheses, may hold anything.
            let rest = &stat[stat.rfind(')')? + 1..];
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect()
}

/// The children of a process, where the kernel lists them.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.collect::<Vec<i32>>()
        })
        .collect()
}

/// A process and all its descendants.
pub(super) fn tree(root: i32) -> Vec<i32> {
    let all = parents();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(
            all.iter()
                .filter(|(_, p)| *p == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found
}

/// What a server's CPU time is read from.
pub(super) enum Watched<'a> {
    /// Its control group: exact, whatever it starts.
    Group(&'a Cgroup),
    /// The control group of another agent's.
    Other(CpuTime, PathBuf),
    /// The processes that it had when the load began.
    Processes(Vec<i32>),
}

impl Watched<'_> {
    /// A server of another agent.
    pub(super) fn of_another(other: &OtherServer) -> Self {
        let folder = other.group.as_ref().map(PathBuf::from);
        match folder.and_then(|folder| Some((CpuTime::of(&folder)?, folder))) {
            Some((time, folder)) => Watched::Other(time, folder),
            None => Watched::Processes(tree(other.pid)),
        }
    }

    /// How many files are read for one look.
    pub(super) fn effort(&self) -> usize {
        match self {
            Watched::Group(_) | Watched::Other(..) => 1,
            Watched::Processes(pids) => pids.len(),
        }
    }

    /// Its processes: those that are in its group now, or those that it had when the load began.
    pub(super) fn pids(&self) -> Vec<i32> {
        match self {
            Watched::Group(group) => group.processes(),
            Watched::Other(_, folder) => processes_in(folder),
            Watched::Processes(pids) => pids.clone(),
        }
    }

    /// Its control group's folder.
    pub(super) fn group(&self) -> Option<&Path> {
        match self {
            Watched::Group(group) => Some(group.folder()),
            Watched::Other(_, folder) => Some(folder),
            Watched::Processes(_) => None,
        }
    }

    /// CPU time since its start, in seconds.
    pub(super) fn cpu_s(&self) -> f64 {
        match self {
            Watched::Group(group) => group.usage_s().unwrap_or(0.0),
            Watched::Other(time, _) => time.read_s().unwrap_or(0.0),
            Watched::Processes(pids) => pids.iter().map(|&pid| process_cpu_s(pid)).sum(),
        }
    }
}

/// CPU time of servers since their start, in seconds.
pub(super) fn cpu_s(servers: &BTreeMap<String, Watched<'_>>) -> BTreeMap<String, f64> {
    servers
        .iter()
        .map(|(server, watched)| (server.clone(), watched.cpu_s()))
        .collect()
}

/// The most memory that a process has held since its program began: `VmHWM`. `None` when it has
/// ended.
pub(super) fn most_memory_bytes(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// CPU time of a process, its live threads to the nanosecond, its ended children by the tick.
fn process_cpu_s(pid: i32) -> f64 {
    let mut sum_ns = 0_u64;
    if let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) {
        for task in tasks.flatten() {
            if let Ok(text) = fs::read_to_string(task.path().join("schedstat")) {
                let first = text.split_whitespace().next().and_then(|n| n.parse().ok());
                sum_ns += first.unwrap_or(0_u64);
            }
        }
    }
    sum_ns as f64 / 1e9 + children_cpu_s(pid).unwrap_or(0.0)
}

fn children_cpu_s(pid: i32) -> Option<f64> {
    const TICKS_PER_S: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &stat[stat.rfind(')')? + 1..];
    let mut fields = rest.split_whitespace().skip(13);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_cpu_time_and_children() {
        let me = std::process::id() as i32;
        let before = process_cpu_s(me);
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 50 {
            std::hint::spin_loop();
        }
        assert!(process_cpu_s(me) > before);
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        assert!(tree(me).contains(&pid));
        // It has just begun, and is about to load its library.
        let grown = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            most_memory_bytes(pid).unwrap() > 500_000
        });
        assert!(grown, "{:?}", most_memory_bytes(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(passive_opens(&[]).is_some());
    }
}
