//! The wait for a server that is being started, in parts, between which the run can say what it is
//! waiting for.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use agent::AgentError;
use agent::wire::{AwaitServer, time_limit_phrase, without_last_output};

use crate::testbed::copies::original;

/// The first line is printed after this time.
const FIRST: Duration = Duration::from_secs(5);
/// Time between two lines.
const BETWEEN: Duration = Duration::from_secs(10);
/// A remainder shorter than this is added to the part before it.
const REST_MIN: Duration = Duration::from_secs(1);

pub(crate) struct ReadyWait<'o> {
    whole: &'o AwaitServer,
    first: Duration,
    left: Duration,
    part: Duration,
    since: Instant,
}

impl<'o> ReadyWait<'o> {
    pub(crate) fn new(whole: &'o AwaitServer) -> Self {
        Self::saying_after(whole, FIRST)
    }

    fn saying_after(whole: &'o AwaitServer, first: Duration) -> Self {
        Self {
            whole,
            first,
            left: Duration::from_millis(whole.timeout_ms),
            part: Duration::ZERO,
            since: Instant::now(),
        }
    }

    /// The order for the next part of the wait.
    pub(crate) fn next_order(&mut self) -> AwaitServer {
        let part = match self.part.is_zero() {
            true => self.first,
            false => BETWEEN,
        };
        self.part = match self.left < part + REST_MIN {
            true => self.left,
            false => part,
        };
        self.left -= self.part;
        self.since = Instant::now();
        AwaitServer {
            timeout_ms: self.part.as_millis() as u64,
            ..self.whole.clone()
        }
    }

    /// Takes the answer to the order: goes on with a line about what is waited for, or breaks with
    /// how the wait ended.
    pub(crate) fn take<T>(
        &self,
        answer: Result<T, AgentError>,
    ) -> ControlFlow<Result<T, AgentError>, String> {
        let text = match answer {
            Err(AgentError::Failed(text)) => text,
            other => return ControlFlow::Break(other),
        };
        // Before its time a wait fails only for good, such as when the server ended.
        if self.since.elapsed() < self.part {
            return ControlFlow::Break(Err(AgentError::Failed(text)));
        }
        let part = time_limit_phrase(self.part.as_millis() as u64);
        let whole = time_limit_phrase(self.whole.timeout_ms);
        if self.left.is_zero() {
            return ControlFlow::Break(Err(AgentError::Failed(text.replacen(&part, &whole, 1))));
        }
        let found = text.split_once(&part).map_or(&*text, |(_, found)| found);
        let found = without_last_output(found);
        let name = self.whole.server.as_deref().map(original);
        ControlFlow::Continue(format!(
            "waiting for `{}`, at most {} s more: {found}",
            name.unwrap_or_default(),
            self.left.as_secs()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn order(timeout_ms: u64) -> AwaitServer {
        AwaitServer {
            server: Some("app".into()),
            address: ([127, 0, 0, 1], 1).into(),
            request: String::new(),
            raw: false,
            status: None,
            contains: None,
            tls: None,
            http: experiment::HttpVersion::default(),
            proxy_protocol: false,
            timeout_ms,
        }
    }

    fn failed(ms: u64) -> Result<(), AgentError> {
        Err(AgentError::Failed(format!(
            "`app` did not answer as expected within {ms} ms: status 500; its last output:\n  oh"
        )))
    }

    #[test]
    fn a_long_wait_says_what_it_is_for_and_ends_with_its_limit() {
        let whole = order(10_000);
        let mut wait = ReadyWait::saying_after(&whole, Duration::from_millis(20));
        assert_eq!(wait.next_order().timeout_ms, 20);
        sleep(Duration::from_millis(25));
        let ControlFlow::Continue(line) = wait.take(failed(20)) else {
            panic!("the wait is over");
        };
        assert_eq!(line, "waiting for `app`, at most 9 s more: status 500");
        // The rest is one part.
        assert_eq!(wait.next_order().timeout_ms, 9_980);
        wait.part = Duration::ZERO;
        wait.since = Instant::now();
        assert!(matches!(wait.take(Ok(())), ControlFlow::Break(Ok(()))));
        let whole = order(20);
        let mut wait = ReadyWait::new(&whole);
        assert_eq!(wait.next_order().timeout_ms, 20);
        sleep(Duration::from_millis(25));
        let ControlFlow::Break(Err(AgentError::Failed(text))) = wait.take(failed(20)) else {
            panic!("the wait is not over");
        };
        assert!(text.contains("within 20 ms: status 500; its last output"));
    }

    #[test]
    fn a_failure_before_its_time_ends_the_wait() {
        let whole = order(60_000);
        let mut wait = ReadyWait::new(&whole);
        let parts: Vec<u64> = std::iter::repeat_with(|| wait.next_order().timeout_ms)
            .take_while(|ms| *ms > 0)
            .collect();
        assert_eq!(
            parts,
            [5_000, 10_000, 10_000, 10_000, 10_000, 10_000, 5_000]
        );
        let mut wait = ReadyWait::new(&whole);
        wait.next_order();
        let ended = AgentError::Failed("`app` ended by itself".into());
        assert!(matches!(
            wait.take::<()>(Err(ended)),
            ControlFlow::Break(Err(_))
        ));
    }
}
