//! How long the caller waits for an agent's answer.

use std::time::{Duration, Instant};

use load::{Job, Segment, Stop};
use readings::Pacing;

use crate::protocol::pipe::seconds_of;
use crate::protocol::wire::{AHEAD_MAX, LoadOrder, Order};

/// An agent that has not answered so long after its order's time limit counts as lost.
const LATE: Duration = Duration::from_secs(30);
/// Overrides it, s; for tests.
const LATE_VARIABLE: &str = "WEIGH_AGENT_SILENCE_S";
/// How long an agent may take to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// Requests for the reference body of a target, before the load reports progress.
const ASKED_BEFORE: u32 = 5;
/// The most that one step adds to the time since an order, as this program may have been suspended.
const STEP_MAX: Duration = Duration::from_secs(1);
/// A load's pause after a failure is shorter.
const PAUSE: Duration = Duration::from_secs(1);
/// Threads may have uneven shares of a load's requests and connections, and arrivals may be random.
const UNEVEN: u32 = 2;

fn late() -> Duration {
    seconds_of(LATE_VARIABLE).unwrap_or(LATE)
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
        // Calls to two versions of reflection, and for imports.
        Order::Schema(order) => order.timeout_ms.saturating_mul(ASKED_BEFORE.into()),
        Order::AwaitEnd { within_ms, .. } => *within_ms,
        Order::Stop { signals, .. } => signals
            .iter()
            .fold(0, |sum: u64, (_, wait_ms)| sum.saturating_add(*wait_ms)),
        Order::Load(order) => {
            let segments = order.job.segments.iter();
            let lengths = segments.map(|one| match one.stop {
                Stop::After(window) => one.ramp_up.saturating_add(window),
                Stop::Requests(_) | Stop::EachConnection(_) => one.ramp_up,
            });
            let longest_ms = lengths.max().unwrap_or_default().as_millis() as u64;
            let asked = u64::from(ASKED_BEFORE).saturating_mul(order.job.targets.len() as u64);
            let timeout_ms = order.job.timeout.as_millis() as u64;
            let idle_ms = opening_idle(&order.job).as_millis() as u64;
            let asked_ms = timeout_ms.saturating_mul(asked);
            longest_ms.saturating_add(asked_ms).saturating_add(idle_ms)
        }
        _ => 0,
    }
}

/// How long it may be silent after its first answer: a load reports progress a few times a second.
fn later_silence(order: &Order) -> Duration {
    match order {
        Order::Load(order) => after_load(order),
        other => silence(other),
    }
}

/// How long a load may report nothing.
fn after_load(order: &LoadOrder) -> Duration {
    late().saturating_add(order.job.timeout)
}

/// The longest time until the result of a load: the time until its start, then its reference answers
/// and its segments, each with every time limit exceeded, and then a silence.
pub(crate) fn longest_load(order: &LoadOrder, lead: Duration) -> Duration {
    let job = &order.job;
    let requests: usize = job.targets.iter().map(|one| one.requests.len()).sum();
    let asked = u32::try_from(requests).unwrap_or(u32::MAX);
    // A reference answer may wait as long for a free port.
    let one = job.timeout.saturating_mul(2 * ASKED_BEFORE);
    let prepared = one.saturating_mul(asked);
    let segments = job.segments.iter().map(|one| longest_segment(one, job));
    [lead, prepared, opening_idle(job), after_load(order)]
        .into_iter()
        .chain(segments)
        .fold(Duration::ZERO, Duration::saturating_add)
}

/// The longest time until idle connections are open: a full TLS handshake of each, by a slow server.
fn opening_idle(job: &Job) -> Duration {
    const EACH: Duration = Duration::from_millis(10);
    let idle = job.targets.iter().filter_map(|one| one.idle);
    let connections = idle.fold(0, |sum: u32, one| sum.saturating_add(one.connections));
    EACH.saturating_mul(connections)
}

fn longest_segment(segment: &Segment, job: &Job) -> Duration {
    // Opening a connection and its TLS handshake, then the answer, and a pause after a failure.
    let answer = job
        .connect_timeout
        .saturating_mul(2)
        .saturating_add(job.timeout)
        .saturating_add(PAUSE);
    let times = |count: u64| answer.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
    let target = job.targets.get(segment.target);
    let connections = target.map_or(1, |one| u64::from(one.connections).max(1));
    let window = match (segment.stop, segment.pacing) {
        (Stop::After(window), _) => window,
        (Stop::Requests(count), Pacing::Open { rate_per_s }) => {
            let due_s = count as f64 / rate_per_s;
            let due = Duration::try_from_secs_f64(due_s).unwrap_or(Duration::MAX);
            due.saturating_mul(UNEVEN)
        }
        (Stop::Requests(count), Pacing::Closed) => {
            times(count.div_ceil(connections).saturating_add(1)).saturating_mul(UNEVEN)
        }
        (Stop::EachConnection(count), _) => times(count).saturating_mul(UNEVEN),
    };
    let gap = Duration::from_nanos(job.part.map_or(0, |part| part.gap_ns));
    // At the end, a request may wait for a connection and then for its answer.
    [segment.idle_before, segment.ramp_up, gap, times(2)]
        .into_iter()
        .fold(window, Duration::saturating_add)
}

/// How long an order may take, however often it is answered meanwhile. `lead` is the time until a
/// load begins.
fn longest(order: &Order, lead: Duration) -> Duration {
    match order {
        Order::Load(load) => longest_load(load, lead),
        other => silence(other).saturating_add(late()),
    }
}

/// The wait for answers to one order.
pub(crate) struct ReplyTimeout {
    /// Time since the last answer. It is summed rather than read from a clock, since this
    /// program may have been suspended.
    silence: Duration,
    silence_limit: Duration,
    later_silence_limit: Duration,
    /// Time since the order, summed until `seen`.
    total: Duration,
    seen: Instant,
    /// The longest that the order can take, with answers or without.
    pub(crate) total_limit: Duration,
    /// Whether the agent was ordered to stop.
    pub(crate) cancelled: bool,
}

impl ReplyTimeout {
    /// For an order that has just been given; `lead` is the time until a load begins.
    pub(crate) fn with(order: &Order, lead: Duration) -> Self {
        Self {
            silence: Duration::ZERO,
            silence_limit: silence(order),
            later_silence_limit: later_silence(order),
            total: Duration::ZERO,
            seen: Instant::now(),
            total_limit: longest(order, lead),
            cancelled: false,
        }
    }

    /// The agent was ordered to stop.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
        self.silence_limit = self.silence_limit.min(self.silence + STOPS_WITHIN);
        // What it reports while it stops counts as progress, but not for ever.
        self.total_limit = self.total_limit.min(self.total + 2 * STOPS_WITHIN);
    }

    pub(crate) fn answered(&mut self) {
        self.silence = Duration::ZERO;
        self.silence_limit = self.silence_limit.min(self.later_silence_limit);
    }

    /// As [`Self::add_time`], with the time since the last call of this function.
    pub(crate) fn add_elapsed(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let time = now - std::mem::replace(&mut self.seen, now);
        self.add_time(time)
    }

    /// Another `time` has passed, with answers or without. Returns the limit, once the order takes
    /// longer than it can.
    pub(crate) fn add_time(&mut self, time: Duration) -> Option<Duration> {
        self.total += time.min(STEP_MAX);
        (self.total >= self.total_limit).then_some(self.total_limit)
    }

    /// No answer has come for another `time`. Returns the whole wait, once it is too long.
    pub(crate) fn add_silence(&mut self, time: Duration) -> Option<Duration> {
        self.silence += time;
        (self.silence >= self.silence_limit).then_some(self.silence)
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
        let mut timeout = ReplyTimeout::with(&stop, Duration::ZERO);
        assert_eq!(timeout.add_silence(94 * second), None);
        timeout.answered();
        assert_eq!(timeout.add_silence(94 * second), None);
        assert_eq!(timeout.add_silence(second), Some(95 * second));
    }

    #[test]
    fn a_load_may_not_take_longer_than_its_segments_and_time_limits() {
        let second = Duration::from_secs(1);
        let address: std::net::SocketAddr = "192.0.2.1:80".parse().unwrap();
        let target = load::Target::new(address, Vec::new(), load::Expect::default());
        let job = Job {
            connect_timeout: second,
            timeout: second,
            ..Job::to(target.with_connections(10))
        };
        let longest_s = |segment: Segment| {
            let order = LoadOrder::of(job.clone().segment(segment));
            longest_load(&order, 7 * second).as_secs()
        };
        // The lead, reference answers, the last answers, and a silence.
        let around_s = 7 + 2 * 5 + 2 * 4 + LATE.as_secs() + 1;
        let timed = Segment::closed(Stop::After(100 * second));
        assert_eq!(longest_s(timed.clone()), around_s + 100);
        let counted = Segment::closed(Stop::Requests(40));
        assert_eq!(longest_s(counted), around_s + 2 * 5 * 4);
        assert_eq!(
            longest_s(Segment::open(10.0, Stop::Requests(40))),
            around_s + 8
        );
        // Answers do not make it longer.
        let order = Order::Load(LoadOrder::of(job.segment(timed)));
        let mut timeout = ReplyTimeout::with(&order, Duration::ZERO);
        let limit = Duration::from_secs(around_s - 7 + 100);
        for _ in 1..limit.as_secs() {
            timeout.answered();
            assert_eq!(timeout.add_time(second), None);
        }
        assert_eq!(timeout.add_time(second), Some(limit));
        // While this program was suspended, the load did not take longer.
        let mut timeout = ReplyTimeout::with(&order, Duration::ZERO);
        assert_eq!(timeout.add_time(3_600 * second), None);
        timeout.cancel();
        let total = (0..30).find_map(|_| timeout.add_time(second));
        assert_eq!(total, Some(second + 2 * STOPS_WITHIN));
    }

    #[test]
    fn an_agent_that_was_ordered_to_stop_has_little_time() {
        let second = Duration::from_secs(1);
        let order = Order::SampleScheduling {
            servers: Vec::new(),
            others: Vec::new(),
            duration_ms: 600_000,
        };
        let mut timeout = ReplyTimeout::with(&order, Duration::ZERO);
        assert_eq!(timeout.add_silence(500 * second), None);
        timeout.cancel();
        assert_eq!(timeout.add_silence(second), None);
        assert!(timeout.add_silence(STOPS_WITHIN).is_some());
    }
}
