//! Running and runnable time of each thread of the watched servers, use of each CPU, and the kernel's
//! counters of connections, for the search for bottlenecks.

use std::collections::BTreeMap;
use std::fs;

use readings::{BottleneckSample, CpuSample, KernelSample, PortsSample, ServerSample};

use crate::kernel::namespace::Namespace;
use crate::kernel::ports::ports_waiting;
use crate::kernel::proc_files::{schedstat, threads_of};
use crate::sampling::network::counters::NetworkCounters;
use crate::sampling::server::watched::Watched;

/// Most threads of a server that are reported.
const BUSIEST: usize = 16;

/// The scheduler's and the kernel's counters at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scheduling {
    /// Threads by tid, of each server.
    servers: Vec<BTreeMap<i32, Thread>>,
    /// The threads of this process, which makes the load.
    own: BTreeMap<i32, Thread>,
    cpus: BTreeMap<u32, CpuTicks>,
    /// Summed over the namespaces.
    kernel: KernelSample,
    ports: Vec<PortsSample>,
}

/// Run-queue times of a thread so far, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    on_cpu_ns: u64,
    /// Runnable while others had the CPU.
    waited_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTicks {
    busy: u64,
    all: u64,
}

impl Scheduling {
    pub(crate) fn read<'a>(
        servers: impl Iterator<Item = &'a Watched>,
        namespaces: &[Namespace],
    ) -> Self {
        Self {
            servers: servers
                .map(|watched| watched.pids().into_iter().flat_map(threads).collect())
                .collect(),
            own: threads(std::process::id() as i32).collect(),
            cpus: cpus(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            kernel: kernel(namespaces),
            ports: Vec::new(),
        }
    }

    /// Adds which ports are taken, which takes long where there are many connections.
    pub(crate) fn read_ports(&mut self, namespaces: &[Namespace]) {
        let ports = namespaces.iter().map(|namespace| PortsSample {
            servers: namespace.servers.clone(),
            waiting: ports_waiting(namespace),
        });
        self.ports = ports.collect();
    }

    /// The ports that are taken, if they were read.
    pub(crate) fn ports(&self) -> Option<&[PortsSample]> {
        (!self.ports.is_empty()).then_some(&self.ports)
    }

    /// The difference to an earlier sample. `cpu_s` is the CPU time of each server meanwhile.
    pub(crate) fn since(
        &self,
        then: &Self,
        servers: &[(&str, f64)],
        duration_s: f64,
    ) -> BottleneckSample {
        let duration_s = duration_s.max(1e-6);
        let servers = servers.iter().enumerate().map(|(at, (name, cpu_s))| {
            let (now, then) = (self.servers.get(at), then.servers.get(at));
            let mut shares = shares(now, then, duration_s);
            let threads = shares.len() as u32;
            shares.truncate(BUSIEST);
            let seen = ServerSample {
                cpus: cpu_s.max(0.0) / duration_s,
                threads,
                busiest: shares.iter().map(|(had, _)| *had).collect(),
                wanted: shares.iter().map(|(_, wanted)| *wanted).collect(),
            };
            ((*name).to_owned(), seen)
        });
        let cpus = self.cpus.iter().filter_map(|(cpu, now)| {
            let then = then.cpus.get(cpu)?;
            let ticks = now.all.saturating_sub(then.all);
            (ticks > 0).then(|| CpuSample {
                cpu: *cpu,
                busy: now.busy.saturating_sub(then.busy) as f64 / ticks as f64,
            })
        });
        let (now, before) = (self.kernel, then.kernel);
        BottleneckSample {
            duration_s,
            servers: servers.collect(),
            client_wanted: shares(Some(&self.own), Some(&then.own), duration_s)
                .iter()
                .map(|(_, wanted)| *wanted)
                .fold(0.0, f64::max),
            cpus: cpus.collect(),
            other_cpus: BTreeMap::new(),
            kernel: KernelSample {
                accepted: now.accepted.saturating_sub(before.accepted),
                listen_overflows: now.listen_overflows.saturating_sub(before.listen_overflows),
                listen_drops: now.listen_drops.saturating_sub(before.listen_drops),
                retransmits: now.retransmits.saturating_sub(before.retransmits),
                segments: now.segments.saturating_sub(before.segments),
                time_wait: now.time_wait,
            },
            ports: self.ports.clone(),
        }
    }
}

/// The share of the time that each thread was on a CPU, and that it was runnable; the busiest
/// first.
fn shares(
    now: Option<&BTreeMap<i32, Thread>>,
    then: Option<&BTreeMap<i32, Thread>>,
    duration_s: f64,
) -> Vec<(f64, f64)> {
    let share = |ns: u64| ns as f64 / 1e9 / duration_s;
    let shares = now.into_iter().flatten().map(|(tid, now)| {
        let then = then.and_then(|then| then.get(tid)).copied();
        let then = then.unwrap_or_default();
        let had = share(now.on_cpu_ns.saturating_sub(then.on_cpu_ns));
        let waited = share(now.waited_ns.saturating_sub(then.waited_ns));
        (had, (had + waited).min(1.0))
    });
    let mut shares: Vec<_> = shares.collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    shares
}

fn threads(pid: i32) -> impl Iterator<Item = (i32, Thread)> {
    threads_of(pid).into_iter().filter_map(move |tid| {
        let (on_cpu_ns, waited_ns) = schedstat(pid, tid)?;
        let thread = Thread {
            on_cpu_ns,
            waited_ns,
        };
        Some((tid, thread))
    })
}

/// Ticks of each CPU, from `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
/// Time stolen by the hypervisor counts as busy: no program could use it.
fn cpus(stat: &str) -> BTreeMap<u32, CpuTicks> {
    let cpus = stat.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        // The line of the whole machine has no number: `cpu  1 2 ...`.
        let cpu = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4)?;
        let all: u64 = ticks.iter().sum();
        let busy = all - idle;
        Some((cpu, CpuTicks { busy, all }))
    });
    cpus.collect()
}

fn kernel(namespaces: &[Namespace]) -> KernelSample {
    let mut sum = KernelSample::default();
    for namespace in namespaces {
        let one = NetworkCounters::read(namespace);
        sum.accepted += one.accepted;
        sum.listen_overflows += one.listen_overflows;
        sum.listen_drops += one.listen_drops;
        sum.retransmits += one.retransmits;
        sum.segments += one.segments;
        sum.time_wait += one.sockets.time_wait;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let stat = "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 5 1 4 70 10 1 2 7 0 0\nintr 5\n";
        let only = CpuTicks { busy: 20, all: 100 };
        assert_eq!(cpus(stat), BTreeMap::from([(0, only)]));
    }

    #[test]
    fn shares_are_of_the_time_and_a_new_thread_begins_at_zero() {
        let of = |threads: &[(i32, u64, u64)]| -> BTreeMap<i32, Thread> {
            let threads = threads.iter().map(|&(tid, on_cpu_ns, waited_ns)| {
                let thread = Thread {
                    on_cpu_ns,
                    waited_ns,
                };
                (tid, thread)
            });
            threads.collect()
        };
        let then = of(&[(1, 1_000_000_000, 0)]);
        let now = of(&[(1, 1_200_000_000, 0), (2, 1_000_000_000, 3_000_000_000)]);
        let found = shares(Some(&now), Some(&then), 2.0);
        assert_eq!(found, [(0.5, 1.0), (0.1, 0.1)]);
    }
}
