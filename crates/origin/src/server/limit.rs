//! A rate limit: requests beyond it are refused and not counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use net::{ConnId, Io, os};

use super::Worker;
use crate::pages::{ConnectionReuse, answer};

/// Requests that may come at once: 10, or those of 10 ms.
const BURST_MIN: f64 = 10.0;
const BURST_S: f64 = 0.01;
/// Parts of a nanosecond in which time is counted, so that high rates are exact.
const PARTS: f64 = 1024.0;

/// A rate limit for all threads, by the generic cell rate algorithm (ITU-T I.371).
pub(super) struct Limit {
    /// Times count from here, in parts.
    begin_ns: u64,
    /// From one request to the next, parts.
    interval: u64,
    /// How long before its time a request may come, parts.
    tolerance: u64,
    /// When the next request is due, parts.
    due: AtomicU64,
}

impl Limit {
    /// A limit of requests per second.
    pub(super) fn new(per_s: f64) -> Arc<Self> {
        let interval = (1e9 * PARTS / per_s).max(1.0);
        let burst = (per_s * BURST_S).max(BURST_MIN);
        Arc::new(Self {
            begin_ns: os::now_ns(),
            interval: interval as u64,
            tolerance: ((burst - 1.0) * interval) as u64,
            due: AtomicU64::new(0),
        })
    }

    /// Whether a request that comes now is within the limit.
    fn admits(&self, now_ns: u64) -> bool {
        let now_ns = now_ns.saturating_sub(self.begin_ns);
        let now = now_ns.saturating_mul(PARTS as u64);
        let admit = |due: u64| {
            let from = due.max(now);
            (from - now <= self.tolerance).then(|| from.saturating_add(self.interval))
        };
        let relaxed = Ordering::Relaxed;
        self.due.fetch_update(relaxed, relaxed, admit).is_ok()
    }
}

impl<I: Io> Worker<I> {
    /// Refuses the request that has just come over HTTP/1.1, if it is beyond the limit; returns whether
    /// it was.
    pub(super) fn refuse(&mut self, conn: ConnId) -> bool {
        let Some(limit) = &self.limit else {
            return false;
        };
        let client = &mut self.clients[conn.slot()];
        let request = client.parser.request();
        if request.target.starts_with("/.weigh/") || limit.admits(os::now_ns()) {
            return false;
        }
        let persist = ConnectionReuse::of(request);
        let is_head = request.method == "HEAD";
        client.closing = persist.closes();
        let text = b"over the limit\n";
        let bytes = answer(429, "text/plain", text, is_head, persist);
        self.send(conn, &bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests that are admitted of `at_once` in each millisecond.
    fn admitted(limit: &Limit, from_ms: u64, to_ms: u64, at_once: u64) -> u64 {
        let times = (from_ms..to_ms).map(|ms| limit.begin_ns + ms * 1_000_000);
        let of = |now| (0..at_once).filter(|_| limit.admits(now)).count() as u64;
        times.map(of).sum()
    }

    #[test]
    fn as_many_requests_as_the_limit_are_admitted() {
        let limit = Limit::new(250.0);
        assert_eq!(admitted(&limit, 0, 1_000, 1), 250 + 9, "and what was kept");
        assert_eq!(admitted(&limit, 1_000, 5_000, 1), 1_000);
        // What is not used is not kept for long.
        assert_eq!(admitted(&limit, 60_000, 60_001, 1), 1);
        assert_eq!(admitted(&limit, 60_001, 60_002, 100), 9);
    }

    #[test]
    fn a_high_limit_loses_nothing_in_a_pause() {
        let limit = Limit::new(300_000.0);
        let kept = admitted(&limit, 0, 1, 5_000);
        assert_eq!(kept, 3_000);
        // No request comes for 5 ms at a time.
        let all: u64 = (1..=200)
            .map(|turn| admitted(&limit, 5 * turn, 5 * turn + 1, 5_000))
            .sum();
        assert!(all.abs_diff(300_000) <= 1, "{all}");
    }

    #[test]
    fn threads_have_one_limit() {
        let limit = Limit::new(1_000.0);
        let ask = || (0..1_000).filter(|_| limit.admits(limit.begin_ns)).count();
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(admitted, 10);
    }
}
