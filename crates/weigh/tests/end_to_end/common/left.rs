//! Processes as `/proc` shows them, control groups and network devices: what may be left behind.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

/// A process. The time of its start tells it from a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    parent: i32,
    start: u64,
    words: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.words)
    }
}

fn text_of(pid: i32, file: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// A process, unless it has ended.
fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let ended = matches!(*fields.first()?, "Z" | "X");
    (!ended).then_some(())?;
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        words: text_of(pid, "cmdline").trim().to_owned(),
    })
}

fn all() -> Vec<Process> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect()
}

/// Processes that have a text in their command or, where that may be seen, in their environment
/// or the name of the folder that they work in.
pub fn with_text(text: &str) -> Vec<Process> {
    let me = std::process::id() as i32;
    all()
        .into_iter()
        .filter(|process| process.pid != me)
        .filter(|process| {
            process.words.contains(text)
                || text_of(process.pid, "environ").contains(text)
                || fs::read_link(format!("/proc/{}/cwd", process.pid))
                    .is_ok_and(|folder| folder.to_string_lossy().contains(text))
        })
        .collect()
}

/// All that a process has started, and what that has started.
pub fn descendants(pid: u32) -> Vec<Process> {
    let all = all();
    let mut parents = vec![pid as i32];
    let mut found: Vec<Process> = Vec::new();
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid);
            found.push(process.clone());
        }
    }
    found
}

/// Those of some processes that still run.
pub fn alive(processes: &[Process]) -> Vec<String> {
    processes
        .iter()
        .filter(|before| process(before.pid).is_some_and(|now| now.start == before.start))
        .map(Process::to_string)
        .collect()
}

/// Control groups that belong to agents with these names.
pub fn control_groups(agents: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for base in ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"] {
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if agents.iter().any(|agent| name.starts_with(agent)) {
                found.push(format!("{base}/{name}"));
            }
        }
    }
    found
}

/// The network devices of this machine.
pub fn devices() -> BTreeSet<String> {
    fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The control groups of hosts that a process has made.
pub fn groups_of_hosts(pid: u32) -> BTreeSet<String> {
    let begin = format!("weigh-host-{pid}.");
    ["cpu", "cpuset", "cpuacct", "."]
        .iter()
        .filter_map(|base| fs::read_dir(format!("/sys/fs/cgroup/{base}")).ok())
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&begin))
        .collect()
}
