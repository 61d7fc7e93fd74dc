//! When requests are due.

use std::time::Duration;

pub(crate) mod clock;
pub(crate) mod log;
pub(crate) mod offer;
pub(crate) mod stop;
pub(crate) mod window;

use log::LogPace;

use crate::job::share::ThreadShare;
use crate::job::{Arrivals, Segment, Stage};

/// Decides when the next request is sent.
pub(crate) trait Pacer {
    /// Whether requests are due at times of their own. Otherwise the answer to one lets its
    /// connection send the next.
    const OPEN: bool;

    /// When the next request is due; `u64::MAX` after the last.
    fn next_ns(&self) -> u64;

    /// Goes on to the next request.
    fn advance(&mut self);
}

/// No schedule: each connection sends its next request when the last is answered.
#[derive(Debug)]
pub(crate) struct ClosedLoop;

impl Pacer for ClosedLoop {
    const OPEN: bool = false;

    fn next_ns(&self) -> u64 {
        u64::MAX
    }

    fn advance(&mut self) {}
}

/// A stage with its place in time and in the count of requests.
#[derive(Clone, Copy, Debug)]
struct TimedStage {
    start_s: f64,
    duration_s: f64,
    from_per_s: f64,
    to_per_s: f64,
    /// Requests due before it, over all threads.
    before: f64,
}

impl TimedStage {
    fn requests(&self) -> f64 {
        (self.from_per_s + self.to_per_s) / 2.0 * self.duration_s
    }

    /// Seconds after its start at which so many requests have become due: the solution of
    /// `from t + (to - from) t^2 / (2 duration) = count`, in the form without cancellation.
    fn time_s(&self, count: f64) -> f64 {
        if count <= 0.0 {
            return 0.0;
        }
        let slope = (self.to_per_s - self.from_per_s) / self.duration_s;
        let root = (self.from_per_s * self.from_per_s + 2.0 * slope * count).max(0.0);
        2.0 * count / (self.from_per_s + root.sqrt())
    }
}

/// The due times of one thread's share of an open loop.
///
/// Requests are points on an axis of expected requests: at integers for even arrivals, at sums of
/// exponential steps for Poisson arrivals. The inverse of the rate's integral maps them to times,
/// so ramps are exact and rounding errors do not accumulate.
#[derive(Debug)]
pub(crate) struct Schedule {
    arrivals: Arrivals,
    start_ns: u64,
    stages: Vec<TimedStage>,
    /// The stage of the next request.
    at: usize,
    /// Place of the thread's next request on the axis, over all threads.
    position: f64,
    /// Number of the thread's next request.
    number: u64,
    share: ThreadShare,
    next_ns: u64,
    random: fastrand::Rng,
    /// Where the times are those of a log.
    log: Option<Box<LogPace>>,
}

impl Schedule {
    /// Stages follow each other from `start_ns`; their rates are over all threads. A request may be
    /// due after the window's end; the caller ignores it.
    fn new(
        arrivals: Arrivals,
        stages: &[Stage],
        start_ns: u64,
        share: ThreadShare,
        seed: u64,
    ) -> Self {
        let (mut start_s, mut before) = (0.0, 0.0);
        let stages = stages
            .iter()
            .filter(|stage| !stage.duration.is_zero())
            .map(|stage| {
                let stage = TimedStage {
                    start_s,
                    duration_s: stage.duration.as_secs_f64(),
                    from_per_s: stage.from_per_s,
                    to_per_s: stage.to_per_s,
                    before,
                };
                start_s += stage.duration_s;
                before += stage.requests();
                stage
            })
            .collect();
        let mut schedule = Self {
            arrivals,
            start_ns,
            stages,
            at: 0,
            position: 0.0,
            number: 0,
            share,
            next_ns: 0,
            random: fastrand::Rng::with_seed(seed ^ (share.thread << 32)),
            log: None,
        };
        schedule.go_on();
        schedule
    }

    /// The schedule of a segment: its ramp-up runs at the rate with which the window starts.
    pub(crate) fn of(
        segment: &Segment,
        rate_per_s: f64,
        arrivals: Arrivals,
        start_ns: u64,
        share: ThreadShare,
        seed: u64,
    ) -> Self {
        let stages = match segment.stages.first() {
            None => vec![constant(rate_per_s)],
            Some(first) => {
                let ramp_up = Stage {
                    duration: segment.ramp_up,
                    to_per_s: first.from_per_s,
                    ..*first
                };
                [&[ramp_up], segment.stages.as_slice()].concat()
            }
        };
        Self::new(arrivals, &stages, start_ns, share, seed)
    }

    /// The schedule of a log, of which a thread without connections has no part.
    pub(crate) fn of_log(log: LogPace, share: ThreadShare) -> Self {
        let mut schedule = Self::new(Arrivals::Even, &[], 0, share, 0);
        if share.own_connections() > 0 {
            schedule.log = Some(Box::new(log));
            schedule.go_on();
        }
        schedule
    }

    fn go_on(&mut self) {
        if let Some(log) = &mut self.log {
            self.next_ns = log.next_ns();
            return;
        }
        self.position = match self.arrivals {
            // From the number, not from the last position: rounding errors must not accumulate.
            Arrivals::Even => match self.share.position(self.number) {
                Some(place) => place as f64,
                None => f64::INFINITY,
            },
            Arrivals::Poisson => {
                self.position - (1.0 - self.random.f64()).ln() / self.share.fraction()
            }
        };
        self.next_ns = loop {
            let Some(stage) = self.stages.get(self.at) else {
                break u64::MAX;
            };
            let count = self.position - stage.before;
            // Some slack: the end of a stage belongs to the next.
            if count < stage.requests() - 1e-9 {
                let after_s = stage.start_s + stage.time_s(count);
                break self.start_ns + (after_s * 1e9) as u64;
            }
            self.at += 1;
        };
    }
}

impl Pacer for Schedule {
    const OPEN: bool = true;

    #[inline]
    fn next_ns(&self) -> u64 {
        self.next_ns
    }

    fn advance(&mut self) {
        self.number += 1;
        self.go_on();
    }
}

/// A constant rate without an end.
fn constant(rate_per_s: f64) -> Stage {
    Stage {
        duration: Duration::from_secs(100 * 366 * 86_400),
        from_per_s: rate_per_s,
        to_per_s: rate_per_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(
        arrivals: Arrivals,
        stages: &[Stage],
        (thread, threads): (u64, u64),
        count: usize,
    ) -> Vec<u64> {
        let share = ThreadShare {
            thread,
            threads,
            connections: threads,
        };
        let mut schedule = Schedule::new(arrivals, stages, 1_000, share, 7);
        (0..count)
            .map(|_| {
                let at = schedule.next_ns();
                schedule.advance();
                at
            })
            .collect()
    }

    #[test]
    fn even_arrivals_interleave_over_threads_without_drift() {
        let stages = [constant(3_000.0)];
        let one = times(Arrivals::Even, &stages, (0, 2), 30_001);
        let two = times(Arrivals::Even, &stages, (1, 2), 2);
        assert_eq!(one[0], 1_000);
        assert!(two[0].abs_diff(1_000 + 333_333) <= 1, "{}", two[0]);
        // 20 s at 1,500 requests per second and thread.
        assert!(one[30_000].abs_diff(1_000 + 20_000_000_000) <= 10);
    }

    #[test]
    fn a_thread_with_half_the_connections_has_half_the_rate() {
        let of = |arrivals, thread| {
            let share = ThreadShare {
                thread,
                threads: 2,
                connections: 3,
            };
            let mut schedule = Schedule::new(arrivals, &[constant(3_000.0)], 0, share, 7);
            let mut count = 0;
            while schedule.next_ns() < 10_000_000_000 {
                schedule.advance();
                count += 1;
            }
            count
        };
        assert_eq!(of(Arrivals::Even, 0), 20_000);
        assert_eq!(of(Arrivals::Even, 1), 10_000);
        assert!((19_400..20_600).contains(&of(Arrivals::Poisson, 0)));
        assert!((9_600..10_400).contains(&of(Arrivals::Poisson, 1)));
        let none = ThreadShare {
            thread: 1,
            threads: 2,
            connections: 1,
        };
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let schedule = Schedule::new(arrivals, &[constant(3_000.0)], 0, none, 7);
            assert_eq!(schedule.next_ns(), u64::MAX, "it has no connection");
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_an_exponential() {
        let times = times(Arrivals::Poisson, &[constant(3_000.0)], (0, 2), 60_000);
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread =
            (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 666_666.7 - 1.0).abs() < 0.02, "{mean}");
        assert!((spread / mean - 1.0).abs() < 0.03, "{spread}");
    }

    fn stage(seconds: u64, from_per_s: f64, to_per_s: f64) -> Stage {
        Stage {
            duration: Duration::from_secs(seconds),
            from_per_s,
            to_per_s,
        }
    }

    #[test]
    fn a_ramp_has_the_area_under_its_rate() {
        // 0 to 1,000/s in 10 s: 5,000 requests, a quarter of them in the first half.
        let stages = [
            stage(10, 0.0, 1_000.0),
            stage(2, 1_000.0, 1_000.0),
            stage(4, 500.0, 0.0),
        ];
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let all = times(arrivals, &stages, (0, 1), 9_000);
            let between = |from: u64, to: u64| {
                let inside = |t: &&u64| {
                    **t >= 1_000 + from * 1_000_000_000 && **t < 1_000 + to * 1_000_000_000
                };
                all.iter().filter(inside).count() as f64
            };
            let slack = |expected: f64| match arrivals {
                Arrivals::Even => 1.0,
                Arrivals::Poisson => 4.0 * expected.sqrt(),
            };
            for (from, to, expected) in [
                (0, 5, 1_250.0),
                (0, 10, 5_000.0),
                (10, 12, 2_000.0),
                (12, 16, 1_000.0),
                (14, 16, 250.0),
            ] {
                let found = between(from, to);
                assert!(
                    (found - expected).abs() <= slack(expected),
                    "{from} {found}"
                );
            }
            assert_eq!(*all.last().unwrap(), u64::MAX);
            assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }

    #[test]
    fn a_stage_without_requests_is_a_pause() {
        let stages = [stage(1, 2.0, 2.0), stage(3, 0.0, 0.0), stage(1, 2.0, 2.0)];
        let all = times(Arrivals::Even, &stages, (0, 1), 5);
        let s = |s: f64| 1_000 + (s * 1e9) as u64;
        assert_eq!(all, [s(0.0), s(0.5), s(4.0), s(4.5), u64::MAX]);
    }
}
