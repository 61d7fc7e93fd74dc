//! How busy a worker is, and whether it pays to wake up less often.
//!
//! Waking up costs a worker about as much as passing on a message. While messages come much faster
//! than anybody could notice, it therefore waits for several, as network cards do that "coalesce"
//! their interrupts. While they come slowly every one is passed on at once: nothing is won then,
//! and the wait would show in response times.

use net::Gather;

/// Longer ones are parts of large transfers, where copying costs more than waking up.
const SMALL: usize = 4096;
/// The rate is counted over at least this long, ns.
const BEAT_NS: u64 = 8_000_000;
/// Up to so many messages per second each is passed on at once.
const CALM: u64 = 25_000;
/// From so many on the worker waits for the longest time.
const BUSY: u64 = 45_000;
/// The longest wait for more messages, us. Beyond this little is saved.
const WAIT_US_MAX: u64 = 50;
/// It waits for no more than one message for so many clients: further ones may be on their way in
/// the back ends, which have not got their requests yet.
const CLIENTS_PER_MESSAGE: u32 = 4;
/// Nor for more than this.
const WANT_MAX: u32 = 32;

/// The rate of messages.
#[derive(Debug)]
pub(super) struct Pulse {
    messages: u64,
    since_ns: u64,
    wait_us: u32,
}

impl Pulse {
    pub fn new() -> Pulse {
        Pulse {
            messages: 0,
            since_ns: 0,
            wait_us: 0,
        }
    }

    /// Counts a message of so many bytes.
    #[inline]
    pub fn count(&mut self, bytes: usize) {
        self.messages += u64::from(bytes <= SMALL);
    }

    /// Takes note of the time, ns; of a coarse clock.
    pub fn beat(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        if passed_ns < BEAT_NS {
            return;
        }
        let per_s = self.messages.saturating_mul(1_000_000_000) / passed_ns;
        let above = per_s.clamp(CALM, BUSY) - CALM;
        self.wait_us = (above * WAIT_US_MAX / (BUSY - CALM)) as u32;
        (self.messages, self.since_ns) = (0, now_ns);
    }

    /// How to wait, with so many clients; `None`: as usual.
    #[inline]
    pub fn gather(&self, clients: u32) -> Option<Gather> {
        let want = (clients / CLIENTS_PER_MESSAGE).min(WANT_MAX);
        (self.wait_us > 0 && want > 1).then_some(Gather {
            want,
            wait_us: self.wait_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(messages: u64, clients: u32) -> Option<Gather> {
        let mut pulse = Pulse::new();
        pulse.beat(1_000_000_000);
        for _ in 0..messages {
            pulse.count(100);
        }
        pulse.beat(1_000_000_000 + BEAT_NS / 2);
        pulse.beat(1_010_000_000);
        pulse.gather(clients)
    }

    #[test]
    fn only_who_is_busy_with_several_clients_waits_for_more() {
        // In 10 ms.
        assert_eq!(after(0, 64), None);
        assert_eq!(after(250, 64), None);
        assert_eq!(after(5_000, 7), None);
        let half = Gather {
            want: 16,
            wait_us: 25,
        };
        assert_eq!(after(350, 64), Some(half));
        let whole = Gather {
            want: 32,
            wait_us: 50,
        };
        assert_eq!(after(100_000, 1000), Some(whole));
    }

    #[test]
    fn a_pause_calms_it() {
        let mut pulse = Pulse::new();
        for now_ms in 1..100 {
            (0..100).for_each(|_| pulse.count(100));
            pulse.beat(now_ms * 1_000_000);
        }
        assert!(pulse.gather(64).is_some());
        pulse.beat(200_000_000);
        assert_eq!(pulse.gather(64), None);
    }
}
