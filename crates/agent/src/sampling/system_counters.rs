//! What the kernel has counted so far of the machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use readings::MachineMetrics;

use crate::kernel::cgroup::hierarchy::{Hierarchy, is_of_a_host};
use crate::kernel::namespace::Namespace;
use crate::kernel::proc_files::{TICKS_PER_S, word_after};
use crate::protocol::wire::OtherServer;

/// What is sampled besides the servers themselves.
pub(crate) struct SystemSources {
    pub(crate) namespaces: Vec<Namespace>,
    /// Files that count throttling of CPU time.
    throttling: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SystemCounters {
    cpus: u32,
    steal_ticks: u64,
    softirq_ticks: u64,
    busy_ticks: u64,
    context_switches: u64,
    swapped_in: u64,
    swapped_out: u64,
    pressure_us: [Option<u64>; 3],
    throttled: u64,
    throttled_ns: u64,
}

impl SystemSources {
    /// For servers of this agent, and of others on this machine.
    pub(crate) fn of(own: Vec<String>, others: &[OtherServer]) -> Self {
        let pids = others.iter().map(|other| other.pid.to_string());
        let processes = std::iter::once("self".to_owned()).chain(pids);
        let files: BTreeSet<PathBuf> = processes.flat_map(|one| throttling_of(&one)).collect();
        Self {
            namespaces: Namespace::all(own, others),
            throttling: files.into_iter().collect(),
        }
    }

    /// For servers that a load reaches from another machine.
    pub(crate) fn remote(servers: &[OtherServer]) -> Self {
        let mut sources = Self::of(Vec::new(), servers);
        sources.namespaces[0].load = false;
        sources
    }
}

impl SystemCounters {
    pub(crate) fn read(sources: &SystemSources) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut counters = Self::default();
        machine(&read("/proc/stat"), &mut counters);
        let vmstat = read("/proc/vmstat");
        counters.swapped_in = named(&vmstat, "pswpin ");
        counters.swapped_out = named(&vmstat, "pswpout ");
        counters.pressure_us =
            ["cpu", "memory", "io"].map(|of| pressure_us(&read(&format!("/proc/pressure/{of}"))));
        for file in &sources.throttling {
            let text = fs::read_to_string(file).unwrap_or_default();
            counters.throttled += named(&text, "nr_throttled ");
            // In nanoseconds where it is cgroup v1's.
            counters.throttled_ns +=
                named(&text, "throttled_time ") + named(&text, "throttled_usec ") * 1000;
        }
        counters
    }

    /// The difference to an earlier sample.
    pub(crate) fn since(&self, then: &Self) -> MachineMetrics {
        let s = |now: u64, then: u64| now.saturating_sub(then) as f64 / TICKS_PER_S;
        let [cpu, memory, io] = [0, 1, 2].map(|at| {
            let us = self.pressure_us[at]?.saturating_sub(then.pressure_us[at]?);
            Some(us as f64 / 1e6)
        });
        MachineMetrics {
            cpus: self.cpus,
            steal_s: s(self.steal_ticks, then.steal_ticks),
            softirq_s: s(self.softirq_ticks, then.softirq_ticks),
            busy_s: Some(s(self.busy_ticks, then.busy_ticks)),
            context_switches: self.context_switches.saturating_sub(then.context_switches),
            swapped_in_pages: self.swapped_in.saturating_sub(then.swapped_in),
            swapped_out_pages: self.swapped_out.saturating_sub(then.swapped_out),
            pressure_cpu_s: cpu,
            pressure_memory_s: memory,
            pressure_io_s: io,
            throttled: self.throttled.saturating_sub(then.throttled),
            throttled_s: self.throttled_ns.saturating_sub(then.throttled_ns) as f64 / 1e9,
        }
    }
}

/// The line of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal; and the number of
/// context switches.
fn machine(stat: &str, counters: &mut SystemCounters) {
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("cpu") => {
                let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
                let at = |field: usize| ticks.get(field).copied().unwrap_or(0);
                counters.softirq_ticks = at(6);
                counters.steal_ticks = at(7);
                // A guest's time, in later fields, is in user time as well.
                counters.busy_ticks = [0, 1, 2, 5, 6].map(at).iter().sum();
            }
            Some(cpu) if cpu.starts_with("cpu") => counters.cpus += 1,
            Some("ctxt") => {
                let count = words.next().and_then(|word| word.parse().ok());
                counters.context_switches = count.unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, the last in microseconds.
fn pressure_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    line.split("total=").nth(1)?.trim().parse().ok()
}

/// The number after a name and a space at the start of a line; 0 where there is none.
fn named(text: &str, name: &str) -> u64 {
    let word = word_after(text, name);
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The files that count throttling of a process: of its control group and of all above it. The
/// groups of hosts are left out: the experiment asked for their limits.
fn throttling_of(process: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let mut files = Vec::new();
    for hierarchy in [Hierarchy::V1("cpu"), Hierarchy::V2] {
        let base = hierarchy.base();
        let Some(own) = hierarchy.path(&text).map(|path| base.join(path)) else {
            continue;
        };
        let groups = own
            .ancestors()
            .take_while(|folder| folder.starts_with(&base))
            .filter(|folder| !is_of_a_host(folder));
        files.extend(groups.map(|folder| folder.join("cpu.stat")));
    }
    files.retain(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("nr_throttled")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let mut counters = SystemCounters::default();
        let stat = "cpu  10 1 10 80 3 2 6 7 5 0\ncpu0 5 1 4 70 10 1 2 7 0 0\ncpu1 1 2\nctxt 99\n";
        machine(stat, &mut counters);
        let found = (
            counters.cpus,
            counters.softirq_ticks,
            counters.steal_ticks,
            counters.context_switches,
        );
        assert_eq!(found, (2, 6, 7, 99));
        assert_eq!(counters.busy_ticks, 29);
        let pressure = "some avg10=9.1 avg60=0.0 avg300=0.0 total=1234\nfull avg10=0 total=1\n";
        assert_eq!(pressure_us(pressure), Some(1234));
        assert_eq!(named("nr_periods 7\nnr_throttled 3\n", "nr_throttled "), 3);
        assert_eq!(named("nr_throttled_x 3\n", "nr_throttled "), 0);
    }

    #[test]
    fn context_switches_and_busy_time_of_the_machine_are_counted() {
        let sources = SystemSources::of(Vec::new(), &[]);
        let before = SystemCounters::read(&sources);
        // A wait, and so a switch.
        let waited = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_millis(1)));
        waited.join().unwrap();
        // And work, until the kernel has counted some.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        let machine = loop {
            let machine = SystemCounters::read(&sources).since(&before);
            let is_busy = machine.busy_s.is_some_and(|busy_s| busy_s > 0.0);
            if is_busy || std::time::Instant::now() > deadline {
                break machine;
            }
        };
        assert!(machine.busy_s.is_some_and(|busy_s| busy_s > 0.0));
        assert!(
            machine.cpus > 0 && machine.context_switches > 0,
            "{machine:?}"
        );
    }
}
