//! How long the caller waits for an agent's answer.

use std::time::Duration;

use load::Stop;

use super::serve::AHEAD_MAX;
use super::wire::Order;

/// An agent that has not answered so long after its order's time limit counts as lost.
const LATE: Duration = Duration::from_secs(30);
/// Overrides it, s; for tests.
const LATE_VARIABLE: &str = "WEIGH_AGENT_SILENCE_S";
/// How long an agent may take to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// Requests for the reference body of a target, before the load reports progress.
const ASKED_BEFORE: u64 = 5;

fn late() -> Duration {
    std::env::var(LATE_VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .map_or(LATE, Duration::from_secs)
}

/// How long an agent may be silent while it carries out an order.
fn silence(order: &Order) -> Duration {
    late().saturating_add(Duration::from_millis(own_ms(order)))
}

/// The time limit of an order itself, ms.
fn own_ms(order: &Order) -> u64 {
    match order {
        Order::Timed { of, .. } => own_ms(of).saturating_add(AHEAD_MAX.as_millis() as u64),
        Order::Await(order) => order.timeout_ms,
        Order::SampleScheduling { duration_ms, .. } => *duration_ms,
        Order::Drive(order) => order.limit_ms,
        Order::AwaitEnd { within_ms, .. } => *within_ms,
        Order::Stop { signals, .. } => signals
            .iter()
            .fold(0, |sum: u64, (_, wait_ms)| sum.saturating_add(*wait_ms)),
        Order::Load(order) => {
            let segments = order.job.segments.iter();
            let lengths = segments.map(|one| match one.stop {
                Stop::After(window) => one.ramp_up + window,
                Stop::Requests(_) | Stop::EachConnection(_) => one.ramp_up,
            });
            let longest_ms = lengths.max().unwrap_or_default().as_millis() as u64;
            let asked = ASKED_BEFORE.saturating_mul(order.job.targets.len() as u64);
            let timeout_ms = order.job.timeout.as_millis() as u64;
            longest_ms.saturating_add(timeout_ms.saturating_mul(asked))
        }
        _ => 0,
    }
}

/// How long it may be silent after its first answer: a load reports progress a few times a second.
fn later_silence(order: &Order) -> Duration {
    match order {
        Order::Load(order) => late().saturating_add(order.job.timeout),
        other => silence(other),
    }
}

/// The wait for answers to one order.
pub(super) struct ReplyTimeout {
    /// Time waited since the last answer. It is summed rather than read from a clock, since this
    /// program may have been suspended.
    waited: Duration,
    limit: Duration,
    later_limit: Duration,
    /// Whether the agent was ordered to stop.
    pub(super) cancelled: bool,
}

impl ReplyTimeout {
    pub(super) fn with(order: &Order) -> Self {
        Self {
            waited: Duration::ZERO,
            limit: silence(order),
            later_limit: later_silence(order),
            cancelled: false,
        }
    }

    /// The agent was ordered to stop.
    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
        self.limit = self.limit.min(self.waited + STOPS_WITHIN);
    }

    pub(super) fn answered(&mut self) {
        self.waited = Duration::ZERO;
        self.limit = self.limit.min(self.later_limit);
    }

    /// No answer has come for another `time`. Returns the whole wait, once it is too long.
    pub(super) fn is_over_after(&mut self, time: Duration) -> Option<Duration> {
        self.waited += time;
        (self.waited >= self.limit).then_some(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_takes_long_is_waited_for_longer() {
        let second = Duration::from_secs(1);
        let stop = Order::Stop {
            server: "a".into(),
            signals: vec![("TERM".into(), 60_000), ("INT".into(), 5_000)],
        };
        assert_eq!(silence(&stop), LATE + 65 * second);
        let mut timeout = ReplyTimeout::with(&stop);
        assert_eq!(timeout.is_over_after(94 * second), None);
        timeout.answered();
        assert_eq!(timeout.is_over_after(94 * second), None);
        assert_eq!(timeout.is_over_after(second), Some(95 * second));
    }

    #[test]
    fn an_agent_that_was_ordered_to_stop_has_little_time() {
        let second = Duration::from_secs(1);
        let mut timeout = ReplyTimeout::with(&Order::SampleScheduling {
            servers: Vec::new(),
            others: Vec::new(),
            duration_ms: 600_000,
        });
        assert_eq!(timeout.is_over_after(500 * second), None);
        timeout.cancel();
        assert_eq!(timeout.is_over_after(second), None);
        assert!(timeout.is_over_after(STOPS_WITHIN).is_some());
    }
}
