//! What the kernel counts of a network namespace.

use std::collections::BTreeMap;

use readings::{InterfaceMetrics, NetworkMetrics, SocketMetrics};

use crate::kernel::namespace::{Namespace, column};

/// Most interfaces of a namespace that are reported.
const INTERFACES: usize = 32;

#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkCounters {
    pub(crate) accepted: u64,
    pub(crate) listen_overflows: u64,
    pub(crate) listen_drops: u64,
    pub(crate) segments: u64,
    pub(crate) retransmits: u64,
    pub(crate) interfaces: BTreeMap<String, InterfaceMetrics>,
    pub(crate) sockets: SocketMetrics,
}

impl NetworkCounters {
    pub(crate) fn read(namespace: &Namespace) -> Self {
        let read = |name| namespace.read(name).unwrap_or_default();
        let (snmp, netstat) = (read("snmp"), read("netstat"));
        let tcp = |name| column(&snmp, "Tcp:", name).unwrap_or(0);
        let ext = |name| column(&netstat, "TcpExt:", name).unwrap_or(0);
        Self {
            accepted: tcp("PassiveOpens"),
            listen_overflows: ext("ListenOverflows"),
            listen_drops: ext("ListenDrops"),
            segments: tcp("OutSegs"),
            retransmits: tcp("RetransSegs"),
            interfaces: interfaces(&read("dev")),
            sockets: SocketMetrics {
                established: tcp("CurrEstab"),
                ..sockets(&read("sockstat"), &read("sockstat6"))
            },
        }
    }

    /// The difference to an earlier sample.
    pub(crate) fn since(&self, then: &Self, namespace: &Namespace) -> NetworkMetrics {
        let mut sockets_max = self.sockets;
        sockets_max.raise(&then.sockets);
        let interfaces = self.interfaces.iter().map(|(name, now)| {
            let then = then.interfaces.get(name).copied().unwrap_or(*now);
            let passed = InterfaceMetrics {
                bytes_received: now.bytes_received.saturating_sub(then.bytes_received),
                packets_received: now.packets_received.saturating_sub(then.packets_received),
                bytes_sent: now.bytes_sent.saturating_sub(then.bytes_sent),
                packets_sent: now.packets_sent.saturating_sub(then.packets_sent),
            };
            (name.clone(), passed)
        });
        NetworkMetrics {
            load: namespace.load,
            servers: namespace.servers.clone(),
            accepted: self.accepted.saturating_sub(then.accepted),
            listen_overflows: self.listen_overflows.saturating_sub(then.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(then.listen_drops),
            segments: self.segments.saturating_sub(then.segments),
            retransmits: self.retransmits.saturating_sub(then.retransmits),
            interfaces: interfaces.collect(),
            sockets_max,
        }
    }
}

/// `TCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1`, and `TCP6: inuse 3`.
fn sockets(v4: &str, v6: &str) -> SocketMetrics {
    let figure = |text: &str, line: &str, name: &str| -> u64 {
        let mut words = text
            .lines()
            .find_map(|one| one.strip_prefix(line))
            .unwrap_or_default()
            .split_whitespace();
        words.find(|word| *word == name);
        words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    SocketMetrics {
        established: 0,
        time_wait: figure(v4, "TCP:", "tw"),
        orphan: figure(v4, "TCP:", "orphan"),
        in_use: figure(v4, "TCP:", "inuse") + figure(v6, "TCP6:", "inuse"),
        allocated: figure(v4, "TCP:", "alloc"),
    }
}

/// `/proc/net/dev`: after the name eight receive counters, bytes and packets first, then eight
/// transmit counters.
fn interfaces(dev: &str) -> BTreeMap<String, InterfaceMetrics> {
    let lines = dev.lines().filter_map(|line| line.split_once(':'));
    let each = lines.filter_map(|(name, rest)| {
        let figures: Vec<u64> = rest
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let passed = InterfaceMetrics {
            bytes_received: *figures.first()?,
            packets_received: *figures.get(1)?,
            bytes_sent: *figures.get(8)?,
            packets_sent: *figures.get(9)?,
        };
        Some((name.trim().to_owned(), passed))
    });
    each.take(INTERFACES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let v4 = "sockets: used 9\nTCP: inuse 5 orphan 1 tw 12 alloc 7 mem 1\nUDP: inuse 1\n";
        let sockets = sockets(v4, "TCP6: inuse 3\n");
        let found = (sockets.in_use, sockets.time_wait, sockets.allocated);
        assert_eq!(found, (8, 12, 7));
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 100 2 0 0 0 0 0 0 200 4 0 0 0 0 0 0\n";
        let lo = interfaces(dev)["lo"];
        assert_eq!((lo.bytes_received, lo.packets_sent), (100, 4));
    }

    #[test]
    fn traffic_over_loopback_is_counted() {
        use std::io::{Read, Write};
        let own = &Namespace::all(vec!["a".to_owned()], &[])[0];
        let before = NetworkCounters::read(own);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(&[7; 50_000]).unwrap();
        other.read_exact(&mut [0; 50_000]).unwrap();
        let now = NetworkCounters::read(own);
        assert!(own.accepted().unwrap() > before.accepted);
        let network = now.since(&before, own);
        assert!(network.load && network.servers == ["a"]);
        assert!(
            network.accepted >= 1 && network.segments >= 1,
            "{network:?}"
        );
        assert!(network.interfaces["lo"].bytes_sent >= 50_000, "{network:?}");
        assert!(network.sockets_max.established >= 2 && network.sockets_max.in_use >= 3);
    }
}
