//! A rate limit: requests beyond it are refused and not counted.

use net::{ConnId, Io, os};

use super::Worker;
use crate::pages::{ConnectionReuse, answer};

/// The most tokens that are kept.
const TOKENS_MAX: f64 = 10.0;

/// A bucket of tokens, each of which admits a request.
pub(super) struct Limit {
    per_ns: f64,
    tokens: f64,
    /// When tokens were added last.
    at_ns: u64,
}

impl Limit {
    /// The share of one of so many threads in a limit of requests per second.
    pub(super) fn share(per_s: f64, threads: usize) -> Self {
        Self {
            per_ns: per_s / threads.max(1) as f64 / 1e9,
            tokens: TOKENS_MAX,
            at_ns: os::now_ns(),
        }
    }

    /// Whether a request that comes now is within the limit.
    fn admits(&mut self, now_ns: u64) -> bool {
        let gained = now_ns.saturating_sub(self.at_ns) as f64 * self.per_ns;
        (self.tokens, self.at_ns) = ((self.tokens + gained).min(TOKENS_MAX), now_ns);
        let is_within = self.tokens >= 1.0;
        self.tokens -= if is_within { 1.0 } else { 0.0 };
        is_within
    }
}

impl<I: Io> Worker<I> {
    /// Refuses the request that has just come over HTTP/1.1, if it is beyond the limit; returns whether
    /// it was.
    pub(super) fn refuse(&mut self, conn: ConnId) -> bool {
        let now_ns = match self.limit {
            Some(_) => os::now_ns(),
            None => return false,
        };
        let is_within = (self.limit.as_mut()).is_none_or(|limit| limit.admits(now_ns));
        if is_within {
            return false;
        }
        let client = &mut self.clients[conn.slot()];
        let request = client.parser.request();
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

    #[test]
    fn as_many_requests_as_the_limit_are_admitted() {
        let mut limit = Limit::share(500.0, 2);
        let begin = limit.at_ns;
        let admitted = |limit: &mut Limit, from_ms: u64, to_ms: u64| {
            let times = (from_ms..to_ms).map(|ms| begin + ms * 1_000_000);
            times.filter(|now| limit.admits(*now)).count()
        };
        assert_eq!(admitted(&mut limit, 0, 1_000), 250 + 9, "and what was kept");
        assert_eq!(admitted(&mut limit, 1_000, 5_000), 1_000);
        // What is not used is not kept for long.
        assert_eq!(admitted(&mut limit, 60_000, 60_001), 1);
        assert!(limit.tokens < TOKENS_MAX);
    }
}
