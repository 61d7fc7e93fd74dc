//! Routing of packets, and when they are due. Uses no device and no clock: the caller passes
//! packets and times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use super::packet;
use super::shape::Shape;
use readings::{LinkCounters, LinkSpec};

/// Bytes that all links together hold at most; packets beyond are dropped.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The addresses of a host: its own, and the one that NAT maps to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Its own.
    pub internal: Ipv4Addr,
    pub external: Ipv4Addr,
}

struct LinkEnd {
    addresses: Addresses,
    up: Shape,
    down: Shape,
    counters: LinkCounters,
}

/// A packet in flight.
struct Flight {
    due_ns: u64,
    /// Sequence number, for packets due at the same time.
    number: u64,
    to: usize,
    /// Whether the destination's link is still ahead.
    halfway: bool,
    bytes: Vec<u8>,
}

impl Flight {
    fn key(&self) -> (u64, u64) {
        (self.due_ns, self.number)
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Flight {}
impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The router between all links.
pub struct Router {
    ends: Vec<LinkEnd>,
    flights: BinaryHeap<Reverse<Flight>>,
    spare: Vec<Vec<u8>>,
    held_bytes: usize,
    number: u64,
}

impl Router {
    /// Connects hosts, numbered by their position.
    pub fn new(hosts: &[(Addresses, LinkSpec)], seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let ends = hosts
            .iter()
            .map(|(addresses, spec)| LinkEnd {
                addresses: *addresses,
                up: Shape::new(spec, random.u64(..)),
                down: Shape::new(spec, random.u64(..)),
                counters: LinkCounters::default(),
            })
            .collect();
        Self {
            ends,
            flights: BinaryHeap::new(),
            spare: Vec::new(),
            held_bytes: 0,
            number: 0,
        }
    }

    /// Changes the rate of a host's link, if it has one.
    pub fn set_rate(&mut self, host: usize, bits_per_s: u64) {
        if let Some(end) = self.ends.get_mut(host) {
            end.up.set_rate(bits_per_s);
            end.down.set_rate(bits_per_s);
        }
    }

    /// Changes a host's link in both directions.
    pub fn change(&mut self, host: usize, spec: &LinkSpec) {
        if let Some(end) = self.ends.get_mut(host) {
            end.up.change(spec);
            end.down.change(spec);
        }
    }

    /// Accepts a packet that a host sent at `now_ns`; times must not decrease.
    pub fn take(&mut self, now_ns: u64, from: usize, bytes: &[u8]) {
        let Some((source, destination)) = packet::addresses(bytes) else {
            self.ends[from].counters.unroutable += 1;
            return;
        };
        // With few hosts a scan is faster than a table.
        let found = self.ends.iter().enumerate().find_map(|(number, end)| {
            if end.addresses.internal == destination {
                Some((number, false))
            } else if end.addresses.external == destination {
                Some((number, true))
            } else {
                None
            }
        });
        let Some((to, translated)) = found else {
            self.ends[from].counters.unroutable += 1;
            return;
        };
        let Some(halfway_ns) = self.ends[from].up.pass(now_ns, bytes.len()) else {
            return;
        };
        if self.held_bytes + bytes.len() > HELD_BYTES_MAX {
            self.ends[from].up.counters.dropped += 1;
            return;
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        if translated && source == self.ends[from].addresses.internal {
            let addresses = (self.ends[from].addresses, self.ends[to].addresses);
            packet::translate(&mut copy, addresses.0.external, addresses.1.internal);
        }
        self.held_bytes += copy.len();
        self.number += 1;
        let mut flight = Flight {
            due_ns: halfway_ns,
            number: self.number,
            to,
            halfway: true,
            bytes: copy,
        };
        // Without a queue in the destination's link the order of arrival does not matter.
        let waits = self.ends[to].down.has_queue() && halfway_ns > now_ns;
        if waits || self.arrive(&mut flight) {
            self.flights.push(Reverse(flight));
        } else {
            self.drop_packet(flight);
        }
    }

    /// Passes a packet into the destination's link; false if it is lost there.
    fn arrive(&mut self, flight: &mut Flight) -> bool {
        let passed = self.ends[flight.to]
            .down
            .pass(flight.due_ns, flight.bytes.len());
        flight.halfway = false;
        flight.due_ns = passed.unwrap_or(flight.due_ns);
        passed.is_some()
    }

    fn drop_packet(&mut self, flight: Flight) {
        self.held_bytes -= flight.bytes.len();
        if self.spare.len() < 1_024 {
            self.spare.push(flight.bytes);
        }
    }

    /// When the next packet is due, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.flights.peek().map(|flight| flight.0.due_ns)
    }

    /// Delivers every packet that is due, with the number of its host.
    pub fn deliver(&mut self, now_ns: u64, mut to: impl FnMut(usize, &[u8])) {
        while self.next_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            let Some(Reverse(mut flight)) = self.flights.pop() else {
                break;
            };
            if flight.halfway {
                if self.arrive(&mut flight) {
                    self.flights.push(Reverse(flight));
                } else {
                    self.drop_packet(flight);
                }
                continue;
            }
            to(flight.to, &flight.bytes);
            let late_ns = now_ns - flight.due_ns;
            let counters = &mut self.ends[flight.to].counters;
            counters.delivered += 1;
            counters.delivered_bytes += flight.bytes.len() as u64;
            counters.late_ns_sum += late_ns;
            counters.late_ns_max = counters.late_ns_max.max(late_ns);
            self.drop_packet(flight);
        }
    }

    /// The counters, by host.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.ends
            .iter()
            .map(|end| LinkCounters {
                up: end.up.counters,
                down: end.down.counters,
                ..end.counters
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn addresses(number: u8) -> Addresses {
        Addresses {
            internal: Ipv4Addr::new(10, 0, 0, number),
            external: Ipv4Addr::new(198, 18, 0, number),
        }
    }

    fn packet(from: Ipv4Addr, to: Ipv4Addr, mark: u8) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 24, 0, 0, 0x40, 0, 64, 1, 0, 0];
        bytes.extend(from.octets());
        bytes.extend(to.octets());
        bytes.extend([mark; 4]);
        bytes
    }

    fn far(rtt_ms: u64) -> LinkSpec {
        LinkSpec {
            rtt_ns: rtt_ms * MS,
            ..LinkSpec::default()
        }
    }

    fn due(router: &mut Router, now_ns: u64) -> Vec<(usize, u8)> {
        let mut seen = Vec::new();
        router.deliver(now_ns, |to, bytes| seen.push((to, bytes[20])));
        seen
    }

    #[test]
    fn a_packet_passes_both_hosts_links() {
        let hosts = [(addresses(1), far(10)), (addresses(2), far(6))];
        let mut router = Router::new(&hosts, 1);
        let (one, two) = (addresses(1).internal, addresses(2).internal);
        router.take(0, 0, &packet(one, two, 7));
        assert_eq!(router.next_ns(), Some(8 * MS));
        assert_eq!(due(&mut router, 8 * MS - 1), []);
        assert_eq!(due(&mut router, 8 * MS), [(1, 7)]);
        assert_eq!(router.next_ns(), None);
        assert_eq!(router.counters()[1].delivered, 1);
    }

    #[test]
    fn a_near_packet_does_not_wait_for_a_far_one_before_a_bottleneck() {
        let slow = LinkSpec {
            rate_bits_per_s: Some(8_000),
            ..LinkSpec::default()
        };
        let hosts = [
            (addresses(1), far(200)),
            (addresses(2), far(0)),
            (addresses(3), slow),
        ];
        let mut router = Router::new(&hosts, 1);
        let to = addresses(3).internal;
        router.take(0, 0, &packet(addresses(1).internal, to, 1));
        router.take(1, 1, &packet(addresses(2).internal, to, 2));
        // 24 bytes take 24 ms at 8 kbit/s; the far one comes to the bottleneck after 100 ms.
        assert_eq!(due(&mut router, 25 * MS), [(2, 2)]);
        assert_eq!(due(&mut router, 123 * MS), []);
        assert_eq!(due(&mut router, 124 * MS), [(2, 1)]);
    }

    #[test]
    fn external_addresses_are_translated_both_ways() {
        let hosts = [(addresses(1), far(0)), (addresses(2), far(0))];
        let mut router = Router::new(&hosts, 1);
        let mut seen = Vec::new();
        let request = packet(addresses(1).internal, addresses(2).external, 0);
        router.take(0, 0, &request);
        router.deliver(0, |to, bytes| {
            seen.push((to, packet::addresses(bytes).unwrap()));
        });
        assert_eq!(seen, [(1, (addresses(1).external, addresses(2).internal))]);
        let answer = packet(addresses(2).internal, addresses(1).external, 0);
        router.take(0, 1, &answer);
        router.deliver(0, |to, bytes| {
            seen.push((to, packet::addresses(bytes).unwrap()));
        });
        assert_eq!(seen[1], (0, (addresses(2).external, addresses(1).internal)));
    }

    #[test]
    fn unroutable_packets_are_counted() {
        let mut router = Router::new(&[(addresses(1), far(0))], 1);
        router.take(
            0,
            0,
            &packet(addresses(1).internal, addresses(9).internal, 0),
        );
        router.take(0, 0, &[0x60; 40]);
        router.take(0, 0, &[]);
        assert_eq!(router.counters()[0].unroutable, 3);
        assert_eq!(router.next_ns(), None);
    }

    #[test]
    fn held_bytes_are_bounded() {
        let hosts = [(addresses(1), far(1_000)), (addresses(2), far(0))];
        let mut router = Router::new(&hosts, 1);
        let mut big = packet(addresses(1).internal, addresses(2).internal, 0);
        big.resize(1 << 20, 0);
        for _ in 0..70 {
            router.take(0, 0, &big);
        }
        assert_eq!(router.counters()[0].up.dropped, 6);
        assert_eq!(due(&mut router, 500 * MS).len(), 64);
        assert_eq!(router.held_bytes, 0);
    }
}
