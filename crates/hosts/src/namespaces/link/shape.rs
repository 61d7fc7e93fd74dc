//! One direction of a link: rate, queue, loss and delay.

use readings::{DirectionCounters, LinkSpec};

/// Serialises packets at the rate behind a bounded queue, drops some, delays the others.
#[derive(Debug)]
pub struct Shape {
    delay_ns: u64,
    jitter_ns: u64,
    loss: f64,
    /// Time per byte, and the longest wait in the queue, ns.
    rate: Option<(f64, f64)>,
    random: fastrand::Rng,
    /// When the queue will be empty, ns.
    free_at_ns: f64,
    /// When the last packet leaves, ns.
    last_ns: u64,
    pub counters: DirectionCounters,
}

impl Shape {
    /// A direction of a link; the same seed drops the same packets.
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        Self {
            delay_ns: spec.rtt_ns / 2,
            jitter_ns: spec.jitter_ns / 2,
            loss: spec.loss,
            rate: spec.rate_bits_per_s.map(times),
            random: fastrand::Rng::with_seed(seed),
            free_at_ns: 0.0,
            last_ns: 0,
            counters: DirectionCounters::default(),
        }
    }

    /// Takes the parameters of another link. Packets in flight keep their times, and none overtakes
    /// another.
    pub fn change(&mut self, spec: &LinkSpec) {
        self.delay_ns = spec.rtt_ns / 2;
        self.jitter_ns = spec.jitter_ns / 2;
        self.loss = spec.loss;
        self.rate = spec.rate_bits_per_s.map(times);
    }

    /// Changes the rate, if there is one; packets in flight keep their times.
    pub fn set_rate(&mut self, bits_per_s: u64) {
        if self.rate.is_some() {
            self.rate = Some(times(bits_per_s));
        }
    }

    /// Whether packets queue, so that their order of arrival matters.
    pub fn has_queue(&self) -> bool {
        self.rate.is_some()
    }

    /// When a packet that arrives at `now_ns` leaves, ns; `None` if it is dropped. Times must not
    /// decrease.
    pub fn pass(&mut self, now_ns: u64, bytes: usize) -> Option<u64> {
        self.counters.packets += 1;
        self.counters.bytes += bytes as u64;
        let mut sent_ns = now_ns;
        if let Some((byte_ns, queue_ns)) = self.rate {
            let begins_ns = self.free_at_ns.max(now_ns as f64);
            let own_ns = bytes as f64 * byte_ns;
            if begins_ns - now_ns as f64 + own_ns > queue_ns {
                self.counters.dropped += 1;
                return None;
            }
            self.free_at_ns = begins_ns + own_ns;
            sent_ns = self.free_at_ns as u64;
        }
        // A lost packet has used its transmission time.
        if self.loss > 0.0 && self.random.f64() < self.loss {
            self.counters.lost += 1;
            return None;
        }
        let mut delay_ns = self.delay_ns;
        if self.jitter_ns > 0 {
            let drawn = self.random.u64(0..=2 * self.jitter_ns);
            delay_ns = (delay_ns + drawn).saturating_sub(self.jitter_ns);
        }
        self.last_ns = self.last_ns.max(sent_ns + delay_ns);
        Some(self.last_ns)
    }
}

/// The time per byte at a rate, and the longest wait in its queue, ns.
fn times(bits_per_s: u64) -> (f64, f64) {
    let byte_ns = 8e9 / bits_per_s as f64;
    (byte_ns, LinkSpec::queue_bytes(bits_per_s) as f64 * byte_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn link(spec: LinkSpec) -> Shape {
        Shape::new(&spec, 7)
    }

    #[test]
    fn each_direction_adds_half_of_the_round_trip() {
        let mut shape = link(LinkSpec {
            rtt_ns: 20 * MS,
            ..LinkSpec::default()
        });
        assert_eq!(shape.pass(5, 1_500), Some(10 * MS + 5));
        assert_eq!(link(LinkSpec::default()).pass(5, 1_500), Some(5));
    }

    #[test]
    fn a_rate_spaces_packets_and_a_full_queue_drops_them() {
        // 12 Mbit/s: 1500 bytes take one millisecond; the queue holds 50 ms, so 50 packets.
        let mut shape = link(LinkSpec {
            rate_bits_per_s: Some(12_000_000),
            ..LinkSpec::default()
        });
        for number in 1..=50 {
            assert_eq!(shape.pass(0, 1_500), Some(number * MS));
        }
        assert_eq!(shape.pass(0, 1_500), None);
        assert_eq!(shape.counters.dropped, 1);
        // One has left, so there is room for one.
        assert_eq!(shape.pass(MS, 1_500), Some(51 * MS));
        assert_eq!(shape.pass(MS, 1_500), None);
        // An idle link saves no capacity.
        assert_eq!(shape.pass(1_000 * MS, 1_500), Some(1_001 * MS));
    }

    #[test]
    fn only_an_existing_rate_can_be_changed() {
        let mut shape = link(LinkSpec {
            rate_bits_per_s: Some(12_000_000),
            ..LinkSpec::default()
        });
        assert_eq!(shape.pass(0, 1_500), Some(MS));
        shape.set_rate(24_000_000);
        assert_eq!(shape.pass(0, 1_500), Some(MS + MS / 2));
        let mut free = link(LinkSpec::default());
        free.set_rate(1);
        assert_eq!(free.pass(0, 1_500), Some(0));
    }

    #[test]
    fn a_link_that_gets_quicker_keeps_the_order() {
        let mut shape = link(LinkSpec::default());
        assert_eq!(shape.pass(5, 100), Some(5));
        shape.change(&LinkSpec {
            rtt_ns: 20 * MS,
            ..LinkSpec::default()
        });
        assert_eq!(shape.pass(10, 100), Some(10 * MS + 10));
        shape.change(&LinkSpec::default());
        // After the packet that is still in flight.
        assert_eq!(shape.pass(MS, 100), Some(10 * MS + 10));
        assert_eq!(shape.pass(11 * MS, 100), Some(11 * MS));
        shape.change(&LinkSpec {
            loss: 1.0,
            ..LinkSpec::default()
        });
        assert_eq!(shape.pass(12 * MS, 100), None);
    }

    #[test]
    fn loss_is_a_share_that_its_seed_fixes() {
        let spec = LinkSpec {
            loss: 0.01,
            ..LinkSpec::default()
        };
        let lost = |seed| {
            let mut shape = Shape::new(&spec, seed);
            let gone: Vec<u64> = (0..100_000)
                .filter(|&at| shape.pass(at, 100).is_none())
                .collect();
            assert_eq!(gone.len() as u64, shape.counters.lost);
            gone
        };
        let (once, again, other) = (lost(1), lost(1), lost(2));
        assert_eq!(once, again);
        assert_ne!(once, other);
        // The standard deviation is 31.
        assert!((once.len() as i64 - 1_000).abs() < 160, "{}", once.len());
    }

    #[test]
    fn jitter_stays_within_its_bounds_and_keeps_the_order() {
        let mut shape = link(LinkSpec {
            rtt_ns: 20 * MS,
            jitter_ns: 4 * MS,
            ..LinkSpec::default()
        });
        let mut before = 0;
        let (mut least, mut most) = (u64::MAX, 0);
        for number in 0..10_000 {
            // Far enough apart that none queues.
            let at = number * 10 * MS;
            let out = shape.pass(at, 100).unwrap();
            least = least.min(out - at);
            most = most.max(out - at);
        }
        assert!((8 * MS..8 * MS + MS / 10).contains(&least), "{least}");
        assert!((12 * MS - MS / 10..=12 * MS).contains(&most), "{most}");
        for number in 0..10_000 {
            let out = shape.pass(200_000 * MS + number, 100).unwrap();
            assert!(out >= before);
            before = out;
        }
    }
}
