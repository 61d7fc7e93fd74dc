//! What the fake agent answers to polls.

use std::time::{Duration, Instant};

use agent::wire::Answer;

use super::Script;

impl Script {
    /// Whether that long has passed since a server was started or sent a signal.
    pub(super) fn observed(&self, server: &str, after: Duration) -> Answer {
        let since = self.changed.get(server);
        observed_now(since.is_some_and(|since| since.elapsed() >= after))
    }

    /// Whether a server is stopped, which takes [`Script::ends_after`].
    pub(super) fn poll_stop(&mut self, server: &str) -> Answer {
        if !self.running.contains(server) {
            return observed_now(true);
        }
        if self.stopping.insert(server.to_owned()) {
            self.changed.insert(server.to_owned(), Instant::now());
        }
        let answer = self.observed(server, self.ends_after);
        if answer != observed_now(false) {
            self.stopped(server);
        }
        answer
    }

    pub(super) fn stopped(&mut self, server: &str) {
        self.log.push(format!("stop {server}"));
        self.running.remove(server);
        self.stopping.remove(server);
    }
}

pub(super) fn observed_now(is_so: bool) -> Answer {
    Answer::Observed {
        at_ns: is_so.then(|| net::os::now_ns() as i64),
    }
}
