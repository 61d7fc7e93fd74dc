//! What the fake agent answers to polls.

use std::time::Duration;

use agent::wire::Answer;

use super::Script;

impl Script {
    /// Whether that long has passed since a server was started or sent a signal.
    pub(super) fn observed(&self, server: &str, after: Duration) -> Answer {
        let since = self.changed.get(server);
        observed_now(since.is_some_and(|since| since.elapsed() >= after))
    }

    pub(super) fn stopped(&mut self, server: &str) {
        self.log.push(format!("stop {server}"));
        self.running.remove(server);
        self.stopping.remove(server);
    }
}

pub(super) fn not_yet() -> Answer {
    observed_now(false)
}

pub(super) fn observed_now(is_so: bool) -> Answer {
    Answer::Observed {
        at_ns: is_so.then(|| net::os::now_ns() as i64),
    }
}
