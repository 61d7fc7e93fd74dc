//! What the CPUs do right now: two looks, a fifth of a second apart.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::machine::proc::{self, CpuTicks, ProcessTicks};

/// Time between the two looks.
const APART: Duration = Duration::from_millis(200);
/// The kernel reports CPU time in ticks of 10 ms on every supported machine.
const TICKS_PER_S: f64 = 100.0;

#[derive(Clone, Debug, Default)]
struct Look {
    cpu: CpuTicks,
    processes: Vec<ProcessTicks>,
}

/// What happened between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Activity {
    /// CPUs that others than this process kept busy: 0.5 is half of one.
    pub others_cpus: f64,
    /// The share of all CPU time that the host of a virtual machine took, 0 to 1.
    pub steal: f64,
    /// Ticks that it took.
    pub steal_ticks: u64,
    /// The same share since the machine started.
    pub steal_since_start: f64,
    /// The process that took most: its number, its name, and CPUs as above.
    pub busiest: Option<(u32, String, f64)>,
}

impl Activity {
    /// Looks twice. `None` where `/proc/stat` cannot be read.
    pub fn measure() -> Option<Self> {
        let first = Look::take()?;
        let start = Instant::now();
        sleep(APART);
        let second = Look::take()?;
        Some(between(
            &first,
            &second,
            start.elapsed().as_secs_f64(),
            std::process::id(),
        ))
    }
}

impl Look {
    fn take() -> Option<Self> {
        let cpu = proc::cpu_ticks(&fs::read_to_string("/proc/stat").ok()?)?;
        let processes = fs::read_dir("/proc")
            .ok()?
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                name.as_encoded_bytes()
                    .first()
                    .is_some_and(u8::is_ascii_digit)
            })
            // A process that ends between the two reads is skipped.
            .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
            .filter_map(|stat| proc::process_ticks(&stat))
            .collect();
        Some(Self { cpu, processes })
    }
}

fn between(first: &Look, second: &Look, elapsed_s: f64, own_pid: u32) -> Activity {
    let cpus = |ticks: u64| ticks as f64 / TICKS_PER_S / elapsed_s.max(1e-3);
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let taken = |after: &ProcessTicks| {
        let before = first
            .processes
            .iter()
            .find(|before| before.pid == after.pid)
            .map_or(0, |before| before.ticks);
        after.ticks.saturating_sub(before)
    };
    let own = second
        .processes
        .iter()
        .find(|process| process.pid == own_pid)
        .map_or(0, taken);
    let busiest = second
        .processes
        .iter()
        .filter(|process| process.pid != own_pid)
        .map(|process| (process, taken(process)))
        .max_by_key(|(_, ticks)| *ticks)
        .filter(|(_, ticks)| *ticks > 0)
        .map(|(process, ticks)| (process.pid, process.name.clone(), cpus(ticks)));
    let busy = second.cpu.busy.saturating_sub(first.cpu.busy);
    let steal_ticks = second.cpu.steal.saturating_sub(first.cpu.steal);
    let total = second.cpu.total().saturating_sub(first.cpu.total());
    Activity {
        others_cpus: cpus(busy.saturating_sub(own)),
        steal: share(steal_ticks, total),
        steal_ticks,
        steal_since_start: share(second.cpu.steal, second.cpu.total()),
        busiest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, name: &str, ticks: u64) -> ProcessTicks {
        ProcessTicks {
            pid,
            name: name.into(),
            ticks,
        }
    }

    fn look(busy: u64, steal: u64, idle: u64, processes: Vec<ProcessTicks>) -> Look {
        Look {
            cpu: CpuTicks { busy, idle, steal },
            processes,
        }
    }

    #[test]
    fn the_busiest_process_is_named_and_this_one_does_not_count() {
        let first = look(
            1000,
            10,
            8990,
            vec![process(1, "init", 50), process(7, "weigh", 100)],
        );
        let second = look(
            1018,
            12,
            9010,
            vec![
                process(1, "init", 51),
                process(7, "weigh", 103),
                // Started in between.
                process(9, "backup", 12),
            ],
        );
        let activity = between(&first, &second, 0.2, 7);
        assert!((activity.others_cpus - 0.75).abs() < 1e-9, "{activity:?}");
        assert_eq!(activity.steal_ticks, 2);
        assert!((activity.steal - 0.05).abs() < 1e-9);
        assert!((activity.steal_since_start - 12.0 / 10_040.0).abs() < 1e-9);
        let (pid, name, cpus) = activity.busiest.unwrap();
        assert_eq!((pid, name.as_str()), (9, "backup"));
        assert!((cpus - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_quiet_machine_has_no_busiest_process() {
        let quiet = look(10, 0, 90, vec![process(1, "init", 50)]);
        let activity = between(&quiet, &quiet, 0.2, 7);
        assert_eq!(activity, Activity::default());
    }
}
