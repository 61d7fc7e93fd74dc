//! What the machine does while a load runs: each thread of the watched servers, each CPU, and what
//! the kernel counts. Two looks, and the difference between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use readings::{CpuSeen, KernelSeen, PortsSeen, Seen, ServerSeen};

use super::system_counters::networks;
use super::watch::Watched;
use super::wire::OtherServer;

/// The ends of the range of ports that outgoing connections may have.
pub(super) const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// So many of a server's threads are told of.
const BUSIEST: usize = 16;

/// Looks at servers, and at the network namespaces that lead to them.
pub(super) struct Looker<'a> {
    servers: &'a BTreeMap<String, Watched<'a>>,
    /// A process of each namespace, and the servers in it; the load's own comes first.
    networks: Vec<(String, Vec<String>)>,
}

impl<'a> Looker<'a> {
    /// For servers, of which those named are this agent's own and the others other agents'.
    pub(super) fn at(
        servers: &'a BTreeMap<String, Watched<'a>>,
        own: Vec<String>,
        others: &[OtherServer],
    ) -> Self {
        Self {
            servers,
            networks: networks(own, others),
        }
    }

    /// One look.
    pub(super) fn look(&self) -> Look {
        Look::now(self.servers, &self.networks)
    }

    /// What happened since an earlier look, and which ports are taken now.
    pub(super) fn since(&self, before: &Look) -> Seen {
        let mut seen = self.look().since(before);
        seen.ports = self
            .networks
            .iter()
            .map(|(process, servers)| PortsSeen {
                servers: servers.clone(),
                waiting: ports_waiting(process),
            })
            .collect();
        seen
    }
}

/// One look.
pub(super) struct Look {
    at: Instant,
    servers: BTreeMap<String, OneServer>,
    /// The threads of this process, which makes the load.
    own: BTreeMap<i32, Thread>,
    /// Busy and all ticks of each CPU.
    cpus: BTreeMap<u32, (u64, u64)>,
    kernel: KernelSeen,
}

struct OneServer {
    cpu_s: f64,
    /// Each thread by its number.
    threads: BTreeMap<i32, Thread>,
}

/// What a thread had so far, ns.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// On a CPU.
    ran: u64,
    /// Ready, while others had the CPU.
    waited: u64,
}

impl Look {
    fn now(servers: &BTreeMap<String, Watched<'_>>, networks: &[(String, Vec<String>)]) -> Self {
        let servers = servers
            .iter()
            .map(|(name, watched)| {
                let one = OneServer {
                    cpu_s: watched.cpu_s(),
                    threads: watched.pids().into_iter().flat_map(threads).collect(),
                };
                (name.clone(), one)
            })
            .collect();
        Self {
            at: Instant::now(),
            servers,
            own: threads(std::process::id() as i32).into_iter().collect(),
            cpus: cpus(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            kernel: kernel(networks),
        }
    }

    /// What happened between an earlier look and this one.
    fn since(&self, before: &Look) -> Seen {
        let duration_s = self.at.duration_since(before.at).as_secs_f64().max(1e-6);
        let servers = self.servers.iter().map(|(name, now)| {
            let then = before.servers.get(name);
            let cpu_s = now.cpu_s - then.map_or(now.cpu_s, |then| then.cpu_s);
            let mut shares = shares(&now.threads, then.map(|then| &then.threads), duration_s);
            shares.truncate(BUSIEST);
            let seen = ServerSeen {
                cpus: cpu_s.max(0.0) / duration_s,
                threads: now.threads.len() as u32,
                busiest: shares.iter().map(|(had, _)| *had).collect(),
                wanted: shares.iter().map(|(_, wanted)| *wanted).collect(),
            };
            (name.clone(), seen)
        });
        let cpus = self.cpus.iter().filter_map(|(cpu, (busy, all))| {
            let (busy_then, all_then) = before.cpus.get(cpu)?;
            let ticks = all.saturating_sub(*all_then);
            let share = busy.saturating_sub(*busy_then) as f64 / ticks.max(1) as f64;
            (ticks > 0).then_some(CpuSeen {
                cpu: *cpu,
                busy: share,
            })
        });
        let (now, then) = (self.kernel, before.kernel);
        Seen {
            duration_s,
            servers: servers.collect(),
            client_wanted: shares(&self.own, Some(&before.own), duration_s)
                .iter()
                .map(|(_, wanted)| *wanted)
                .fold(0.0, f64::max),
            cpus: cpus.collect(),
            kernel: KernelSeen {
                accepted: now.accepted.saturating_sub(then.accepted),
                listen_overflows: now.listen_overflows.saturating_sub(then.listen_overflows),
                listen_drops: now.listen_drops.saturating_sub(then.listen_drops),
                retransmits: now.retransmits.saturating_sub(then.retransmits),
                segments: now.segments.saturating_sub(then.segments),
                time_wait: now.time_wait,
            },
            ports: Vec::new(),
        }
    }
}

/// The share of the time that each thread had a CPU and that it wanted one, the busiest first.
fn shares(
    now: &BTreeMap<i32, Thread>,
    then: Option<&BTreeMap<i32, Thread>>,
    duration_s: f64,
) -> Vec<(f64, f64)> {
    let mut shares: Vec<(f64, f64)> = now
        .iter()
        .map(|(number, now)| {
            let then = then.and_then(|then| then.get(number)).copied();
            let then = then.unwrap_or_default();
            let share = |ns: u64| ns as f64 / 1e9 / duration_s;
            let had = share(now.ran.saturating_sub(then.ran));
            let waited = share(now.waited.saturating_sub(then.waited));
            (had, (had + waited).min(1.0))
        })
        .collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    shares
}

/// What a process's threads had: the first two figures of `schedstat`.
fn threads(pid: i32) -> Vec<(i32, Thread)> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| {
            let thread = task.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let mut figures = text.split_whitespace();
            let had = Thread {
                ran: figures.next()?.parse().ok()?,
                waited: figures.next()?.parse().ok()?,
            };
            Some((thread, had))
        })
        .collect()
}

/// Busy and all ticks of each CPU, from `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq, steal. Time that the machine below took away counts as busy: it was not to be had.
fn cpus(stat: &str) -> BTreeMap<u32, (u64, u64)> {
    stat.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let cpu = words.next()?.parse().ok()?;
            let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
            let idle = ticks.get(3)? + ticks.get(4)?;
            let all: u64 = ticks.iter().sum();
            // A line of the whole machine has no number: `cpu  1 2 ...`.
            line.as_bytes()
                .get(3)?
                .is_ascii_digit()
                .then_some((cpu, (all - idle, all)))
        })
        .collect()
}

/// Of several network namespaces together.
fn kernel(networks: &[(String, Vec<String>)]) -> KernelSeen {
    let mut all = KernelSeen::default();
    for (process, _) in networks {
        let one = kernel_of(process);
        all.accepted += one.accepted;
        all.listen_overflows += one.listen_overflows;
        all.listen_drops += one.listen_drops;
        all.retransmits += one.retransmits;
        all.segments += one.segments;
        all.time_wait += one.time_wait;
    }
    all
}

fn kernel_of(process: &str) -> KernelSeen {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let (snmp, netstat, sockstat) = (read("snmp"), read("netstat"), read("sockstat"));
    let tcp = |name| figure(&snmp, "Tcp:", name);
    let ext = |name| figure(&netstat, "TcpExt:", name);
    KernelSeen {
        accepted: tcp("PassiveOpens"),
        listen_overflows: ext("ListenOverflows"),
        listen_drops: ext("ListenDrops"),
        retransmits: tcp("RetransSegs"),
        segments: tcp("OutSegs"),
        time_wait: time_wait(&sockstat),
    }
}

/// A figure of a file with a line of names and one of values for each group; 0 where it is not
/// there.
pub(super) fn figure(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .find(|(one, _)| *one == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

/// `TCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1`.
fn time_wait(sockstat: &str) -> u64 {
    let mut words = sockstat
        .lines()
        .find(|line| line.starts_with("TCP:"))
        .unwrap_or_default()
        .split_whitespace();
    words.find(|word| *word == "tw");
    words
        .next()
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

/// Ports that connections in TIME_WAIT hold in the network namespace of a process.
fn ports_waiting(process: &str) -> u64 {
    let mut ports = BTreeSet::new();
    for name in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
        ports.extend(text.lines().filter_map(waiting_port));
    }
    ports.len() as u64
}

/// `0: 0100007F:8CA0 0100007F:0050 06 ...`: number, local and remote address, state. 6 is
/// TIME_WAIT.
fn waiting_port(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    let waits = words.nth(1)? == "06";
    let port = u16::from_str_radix(port, 16).ok()?;
    waits.then_some(port)
}

/// The first and the last port of outgoing connections, in the network namespace of this thread.
pub fn port_range() -> Option<(u16, u16)> {
    parse_port_range(&fs::read_to_string(PORT_RANGE).ok()?)
}

/// `net.ipv4.tcp_tw_reuse`, in the network namespace of this thread.
pub fn port_reuse() -> Option<String> {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").ok()
}

/// The first and the last port of a range such as `32768 60999`.
pub fn parse_port_range(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace();
    let low = words.next()?.parse().ok()?;
    let high = words.next()?.parse().ok()?;
    (high >= low).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let stat = "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 5 1 4 70 10 1 2 7 0 0\nintr 5\n";
        assert_eq!(cpus(stat), BTreeMap::from([(0, (20, 100))]));
        let netstat = "TcpExt: A ListenOverflows B\nTcpExt: 1 17 3\nIpExt: X\nIpExt: 9\n";
        assert_eq!(figure(netstat, "TcpExt:", "ListenOverflows"), 17);
        assert_eq!(figure(netstat, "TcpExt:", "Nothing"), 0);
        assert_eq!(
            time_wait("sockets: used 9\nTCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1\nUDP: inuse 1\n"),
            12
        );
        assert!(port_range().is_some());
        assert_eq!(parse_port_range("32768\t60999\n"), Some((32_768, 60_999)));
        let waiting = "   7: 0100007F:8CA0 0100007F:0050 06 00000000:00000000 03:00000A";
        assert_eq!(waiting_port(waiting), Some(36_000));
        assert_eq!(waiting_port(&waiting.replace(" 06 ", " 01 ")), None);
        assert_eq!(waiting_port("  sl  local_address rem_address   st"), None);
    }

    #[test]
    fn ports_that_wait_are_those_of_the_side_that_closed_first() {
        use std::io::Read as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let servers = BTreeMap::new();
        let looker = Looker::at(&servers, Vec::new(), &[]);
        let before = looker.look();
        let port = listener.local_addr().unwrap().port();
        let open = || {
            let one = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            (one, listener.accept().unwrap().0)
        };
        let waits = || {
            let text = fs::read_to_string("/proc/self/net/tcp").unwrap();
            let ports: Vec<u16> = text.lines().filter_map(waiting_port).collect();
            ports.iter().filter(|one| **one == port).count()
        };
        // The accepting side closes first, and so it is the one that waits.
        let mut both: Vec<_> = (0..3).map(|_| open()).collect();
        assert_eq!(waits(), 0);
        while let Some((mut one, accepted)) = both.pop() {
            drop(accepted);
            assert_eq!(one.read(&mut [0]).unwrap(), 0);
        }
        while waits() < 3 {
            std::thread::yield_now();
        }
        let seen = looker.since(&before);
        let kernel = seen.kernel;
        assert!(kernel.accepted >= 3 && kernel.time_wait >= 3, "{kernel:?}");
        // Others' wait here as well.
        assert!(seen.ports.len() == 1 && seen.ports[0].waiting >= 1);
    }

    #[test]
    fn a_busy_thread_and_an_idle_one_are_told_apart() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let me = std::process::id() as i32;
        let watched = BTreeMap::from([("me".to_owned(), Watched::Processes(vec![me]))]);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let looker = Looker::at(&watched, vec!["me".to_owned()], &[]);
            let before = looker.look();
            // Until it has had CPU time, however busy the machine is.
            let seen = loop {
                std::thread::sleep(std::time::Duration::from_millis(20));
                let seen = looker.since(&before);
                if seen.servers["me"].cpus * seen.duration_s > 0.02 {
                    break seen;
                }
            };
            stop.store(true, Ordering::Relaxed);
            let me = &seen.servers["me"];
            assert!(me.threads >= 2);
            assert!(me.busiest[0] > 0.0 && me.busiest[0] >= me.busiest[1]);
            assert!(!seen.cpus.is_empty());
        });
    }
}
