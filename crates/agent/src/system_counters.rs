//! What the kernel has counted so far of the machine and of the network namespaces that a load
//! passes through.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use readings::{InterfaceProbed, MachineProbed, NetworkProbed, SocketsProbed};

use super::probe::figure;
use super::proc_files::TICKS_PER_S;
use super::wire::OtherServer;
use crate::control_group::Hierarchy;
use crate::leftovers::HOST_PREFIX;

/// So many interfaces of a namespace are told of.
const INTERFACES: usize = 32;

/// What to look at besides the servers themselves.
pub(super) struct SystemSources {
    /// A process of each namespace, and the servers in it; this agent's own comes first.
    networks: Vec<(String, Vec<String>)>,
    /// Whether this agent makes the load.
    load: bool,
    /// Files that tell of limits of CPU time.
    limits: Vec<PathBuf>,
}

/// What they had at a look.
#[derive(Clone, Debug, Default)]
pub(super) struct SystemCounters {
    cpus: u32,
    steal_ticks: u64,
    softirq_ticks: u64,
    context_switches: u64,
    swapped_in: u64,
    swapped_out: u64,
    pressure_us: [Option<u64>; 3],
    throttled: u64,
    throttled_ns: u64,
    pub(super) networks: Vec<Network>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    accepted: u64,
    listen_overflows: u64,
    listen_drops: u64,
    segments: u64,
    retransmits: u64,
    interfaces: BTreeMap<String, InterfaceProbed>,
    pub(super) sockets: SocketsProbed,
}

impl SystemSources {
    /// Those of servers of this agent, and of others' on this machine.
    pub(super) fn of(own: Vec<String>, others: &[OtherServer]) -> Self {
        let networks = networks(own, others);
        let others = others.iter().map(|other| other.pid.to_string());
        let limits = std::iter::once("self".to_owned()).chain(others);
        let limits: BTreeSet<PathBuf> = limits.flat_map(|process| limits_of(&process)).collect();
        Self {
            networks,
            load: true,
            limits: limits.into_iter().collect(),
        }
    }

    /// Those of servers that a load reaches from another machine.
    pub(super) fn far(servers: &[OtherServer]) -> Self {
        Self {
            load: false,
            ..Self::of(Vec::new(), servers)
        }
    }

    pub(super) fn look(&self) -> SystemCounters {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut around = SystemCounters::default();
        machine(&read("/proc/stat"), &mut around);
        let vmstat = read("/proc/vmstat");
        around.swapped_in = named(&vmstat, "pswpin");
        around.swapped_out = named(&vmstat, "pswpout");
        around.pressure_us = ["cpu", "memory", "io"].map(|of| {
            let text = fs::read_to_string(format!("/proc/pressure/{of}")).ok()?;
            pressure_us(&text)
        });
        for file in &self.limits {
            let text = fs::read_to_string(file).unwrap_or_default();
            around.throttled += named(&text, "nr_throttled");
            // In nanoseconds where it is cgroup v1's.
            around.throttled_ns +=
                named(&text, "throttled_time") + named(&text, "throttled_usec") * 1000;
        }
        around.networks = self.networks.iter().map(|(of, _)| network(of)).collect();
        around
    }

    /// What happened between two looks: on the machine and in each namespace.
    pub(super) fn between(
        &self,
        then: &SystemCounters,
        now: &SystemCounters,
    ) -> (MachineProbed, Vec<NetworkProbed>) {
        let s = |now: u64, then: u64| now.saturating_sub(then) as f64 / TICKS_PER_S;
        let [cpu, memory, io] = [0, 1, 2].map(|at| {
            let us = now.pressure_us[at]?.saturating_sub(then.pressure_us[at]?);
            Some(us as f64 / 1e6)
        });
        let machine = MachineProbed {
            cpus: now.cpus,
            steal_s: s(now.steal_ticks, then.steal_ticks),
            softirq_s: s(now.softirq_ticks, then.softirq_ticks),
            context_switches: now.context_switches.saturating_sub(then.context_switches),
            swapped_in_pages: now.swapped_in.saturating_sub(then.swapped_in),
            swapped_out_pages: now.swapped_out.saturating_sub(then.swapped_out),
            pressure_cpu_s: cpu,
            pressure_memory_s: memory,
            pressure_io_s: io,
            throttled: now.throttled.saturating_sub(then.throttled),
            throttled_s: now.throttled_ns.saturating_sub(then.throttled_ns) as f64 / 1e9,
        };
        let networks = self
            .networks
            .iter()
            .enumerate()
            .filter_map(|(at, (_, servers))| {
                let (then, now) = (then.networks.get(at)?, now.networks.get(at)?);
                let mut seen = now.since(then);
                seen.load = self.load && at == 0;
                seen.servers.clone_from(servers);
                Some(seen)
            });
        (machine, networks.collect())
    }
}

impl Network {
    fn since(&self, then: &Network) -> NetworkProbed {
        let mut sockets_max = self.sockets;
        sockets_max.raise(&then.sockets);
        let interfaces = self.interfaces.iter().map(|(name, now)| {
            let then = then.interfaces.get(name).copied().unwrap_or(*now);
            let passed = InterfaceProbed {
                bytes_received: now.bytes_received.saturating_sub(then.bytes_received),
                packets_received: now.packets_received.saturating_sub(then.packets_received),
                bytes_sent: now.bytes_sent.saturating_sub(then.bytes_sent),
                packets_sent: now.packets_sent.saturating_sub(then.packets_sent),
            };
            (name.clone(), passed)
        });
        NetworkProbed {
            accepted: self.accepted.saturating_sub(then.accepted),
            listen_overflows: self.listen_overflows.saturating_sub(then.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(then.listen_drops),
            segments: self.segments.saturating_sub(then.segments),
            retransmits: self.retransmits.saturating_sub(then.retransmits),
            interfaces: interfaces.collect(),
            sockets_max,
            ..NetworkProbed::default()
        }
    }
}

/// A process of each network namespace that a load passes through, and the servers in it; the
/// load's own comes first.
pub(super) fn networks(own: Vec<String>, others: &[OtherServer]) -> Vec<(String, Vec<String>)> {
    let namespace =
        |process: &str| Some(fs::metadata(format!("/proc/{process}/ns/net")).ok()?.ino());
    let mut networks = vec![("self".to_owned(), own)];
    let mut known = vec![namespace("self")];
    for other in others {
        let its = namespace(&other.pid.to_string());
        match known.iter().position(|one| *one == its) {
            Some(at) => networks[at].1.push(other.server.clone()),
            None => {
                known.push(its);
                networks.push((other.pid.to_string(), vec![other.server.clone()]));
            }
        }
    }
    networks
}

/// The line of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal; and the number of
/// context switches.
fn machine(stat: &str, around: &mut SystemCounters) {
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("cpu") => {
                let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
                around.softirq_ticks = ticks.get(6).copied().unwrap_or(0);
                around.steal_ticks = ticks.get(7).copied().unwrap_or(0);
            }
            Some(cpu) if cpu.starts_with("cpu") => around.cpus += 1,
            Some("ctxt") => {
                let count = words.next().and_then(|word| word.parse().ok());
                around.context_switches = count.unwrap_or(0);
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

/// The figure of a line `NAME FIGURE`; 0 where it is not there.
fn named(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(one, _)| *one == name);
    found
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

fn network(process: &str) -> Network {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let (snmp, netstat) = (read("snmp"), read("netstat"));
    let tcp = |name| figure(&snmp, "Tcp:", name);
    let ext = |name| figure(&netstat, "TcpExt:", name);
    Network {
        accepted: tcp("PassiveOpens"),
        listen_overflows: ext("ListenOverflows"),
        listen_drops: ext("ListenDrops"),
        segments: tcp("OutSegs"),
        retransmits: tcp("RetransSegs"),
        interfaces: interfaces(&read("dev")),
        sockets: SocketsProbed {
            established: tcp("CurrEstab"),
            ..sockets(&read("sockstat"), &read("sockstat6"))
        },
    }
}

/// `TCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1`, and `TCP6: inuse 3`.
fn sockets(v4: &str, v6: &str) -> SocketsProbed {
    let figure = |text: &str, line: &str, name: &str| -> u64 {
        let mut words = text
            .lines()
            .find_map(|one| one.strip_prefix(line))
            .unwrap_or_default()
            .split_whitespace();
        words.find(|word| *word == name);
        words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    SocketsProbed {
        established: 0,
        time_wait: figure(v4, "TCP:", "tw"),
        orphan: figure(v4, "TCP:", "orphan"),
        in_use: figure(v4, "TCP:", "inuse") + figure(v6, "TCP6:", "inuse"),
        allocated: figure(v4, "TCP:", "alloc"),
    }
}

/// `/proc/net/dev`: after the name eight figures of what was received, bytes and packets first,
/// and eight of what was sent.
fn interfaces(dev: &str) -> BTreeMap<String, InterfaceProbed> {
    let lines = dev.lines().filter_map(|line| line.split_once(':'));
    let each = lines.filter_map(|(name, rest)| {
        let figures: Vec<u64> = rest
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let passed = InterfaceProbed {
            bytes_received: *figures.first()?,
            packets_received: *figures.get(1)?,
            bytes_sent: *figures.get(8)?,
            packets_sent: *figures.get(9)?,
        };
        Some((name.trim().to_owned(), passed))
    });
    each.take(INTERFACES).collect()
}

/// The files that tell whether a limit of CPU time held a process up: of its control group and of
/// all above it. What a host is limited to is the experiment's own wish, and left out.
fn limits_of(process: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let mut files = Vec::new();
    for hierarchy in [Hierarchy::V1("cpu"), Hierarchy::V2] {
        let base = hierarchy.base();
        let Some(own) = hierarchy.path(&text).map(|path| base.join(path)) else {
            continue;
        };
        let wished = |folder: &&Path| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            !name.starts_with(HOST_PREFIX)
        };
        let chain = own
            .ancestors()
            .take_while(|folder| folder.starts_with(&base));
        files.extend(chain.filter(wished).map(|folder| folder.join("cpu.stat")));
    }
    files.retain(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("nr_throttled")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let mut around = SystemCounters::default();
        let stat = "cpu  10 0 10 80 0 0 6 7 0 0\ncpu0 5 1 4 70 10 1 2 7 0 0\ncpu1 1 2\nctxt 99\n";
        machine(stat, &mut around);
        let found = (
            around.cpus,
            around.softirq_ticks,
            around.steal_ticks,
            around.context_switches,
        );
        assert_eq!(found, (2, 6, 7, 99));
        let pressure = "some avg10=9.1 avg60=0.0 avg300=0.0 total=1234\nfull avg10=0 total=1\n";
        assert_eq!(pressure_us(pressure), Some(1234));
        assert_eq!(named("nr_periods 7\nnr_throttled 3\n", "nr_throttled"), 3);
        assert_eq!(named("nr_throttled_x 3\n", "nr_throttled"), 0);
        let v4 = "sockets: used 9\nTCP: inuse 5 orphan 1 tw 12 alloc 7 mem 1\nUDP: inuse 1\n";
        let sockets = sockets(v4, "TCP6: inuse 3\n");
        assert_eq!(
            (sockets.in_use, sockets.time_wait, sockets.allocated),
            (8, 12, 7)
        );
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 100 2 0 0 0 0 0 0 200 4 0 0 0 0 0 0\n";
        let lo = interfaces(dev)["lo"];
        assert_eq!((lo.bytes_received, lo.packets_sent), (100, 4));
    }

    #[test]
    fn what_passes_the_loopback_is_seen() {
        use std::io::{Read, Write};
        let around = SystemSources::of(vec!["a".to_owned()], &[]);
        let before = around.look();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(&[7; 50_000]).unwrap();
        other.read_exact(&mut [0; 50_000]).unwrap();
        // A wait, and so a switch.
        let waited = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_millis(1)));
        waited.join().unwrap();
        let (machine, networks) = around.between(&before, &around.look());
        assert!(
            machine.cpus > 0 && machine.context_switches > 0,
            "{machine:?}"
        );
        let network = &networks[0];
        assert!(network.load && network.servers == ["a"]);
        assert!(
            network.accepted >= 1 && network.segments >= 1,
            "{network:?}"
        );
        assert!(network.interfaces["lo"].bytes_sent >= 50_000, "{network:?}");
        assert!(network.sockets_max.established >= 2 && network.sockets_max.in_use >= 3);
    }
}
