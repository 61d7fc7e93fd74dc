//! What the live view knows of a load. Its memory does not grow with the load's length.

use std::collections::VecDeque;
use std::time::Duration;

use load::{Job, Progress, Row, Stage, Stop, Wait};
use net::IoKind;
use readings::text::{counted, grouped, rate};
use readings::{Histogram, Pacing, Quantiles};

/// Rows kept for the charts: the last ones, more than a wide terminal has dots for.
const ROWS_MAX: usize = 512;
/// Ticks of a thread that the present rate is taken from: about a second.
const TICKS: usize = 4;
/// A thread that has been silent for longer sends nothing.
const SILENT: Duration = Duration::from_secs(2);

/// In how many successive rows a target has to fall behind to count as overloaded.
const BEHIND_ROWS: usize = 3;
/// A target falls behind in a row if less than this share of the due requests is answered.
const BEHIND_SHARE: f64 = 0.97;
/// A backlog is more unanswered requests than are due in this time, s.
const BEHIND_S: f64 = 0.5;

/// How far the load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Phase {
    /// Before the first request.
    Starting,
    /// Before the measured window.
    WarmingUp,
    /// In the measured window.
    Measuring,
    /// After it, while answers are under way.
    Draining,
}

/// What ends the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    Time(Duration),
    Requests(u64),
}

/// A row as the charts need it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// End, in seconds since the window opened.
    pub(super) end_s: f64,
    /// Good answers per second.
    pub(super) per_s: f64,
    /// Requests due per second, in an open loop.
    pub(super) due_per_s: f64,
    /// In microseconds; `None` without answers.
    pub(super) p50_p99_us: Option<(f64, f64)>,
}

/// The ticks of one thread: when, and how many good answers since the one before.
#[derive(Clone, Debug, Default)]
struct Ticks(VecDeque<(Duration, u64)>);

/// What the client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Client {
    /// CPU time of the load's threads per second and thread, 0 to 1; `None` at first.
    pub(super) cpu: Option<f64>,
    /// Whether threads poll, so that their CPU time says nothing.
    pub(super) polls: bool,
}

/// All that is drawn.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) target: String,
    /// The loop, connections, threads, the event loop.
    pub(super) how: [String; 4],
    pub(super) threads: usize,
    pub(super) colour: bool,
    pub(super) phase: Phase,
    pub(super) length: Length,
    pacing: Pacing,
    stages: Vec<Stage>,
    warmup: Duration,
    /// The present, and when the load and its window began, on the view's clock.
    now: Duration,
    begun: Duration,
    opened: Duration,
    ticks: Vec<Ticks>,
    /// Good answers and failures from the first request on.
    pub(super) requests: u64,
    pub(super) errors: u64,
    /// Messages of what lasts, as of streams of events.
    pub(super) messages: u64,
    pub(super) client: Client,
    pub(super) points: VecDeque<Point>,
    interval_s: f64,
    /// Sums of the rows: good answers, failures, due requests, seconds.
    row_requests: u64,
    row_errors: u64,
    row_due: u64,
    row_s: f64,
    /// Length and quantiles of the last row that is not empty.
    pub(super) last: Option<(f64, Quantiles)>,
    response: Histogram,
    stale: bool,
    /// Quantiles of all rows, and their buckets; as of the last [`State::refresh`].
    pub(super) overall: Quantiles,
    pub(super) buckets_us: Vec<(f64, u64)>,
}

impl State {
    /// The state before a job of one segment begins.
    pub(super) fn new(job: &Job, target: &str, colour: bool) -> Self {
        let segment = &job.segments[0];
        let connections = job.targets[segment.target].connections;
        let length = match segment.stop {
            Stop::After(time) => Length::Time(time),
            Stop::Requests(count) => Length::Requests(count),
            Stop::EachConnection(each) => {
                Length::Requests(each.saturating_mul(u64::from(connections)))
            }
        };
        let pacing = match segment.pacing {
            Pacing::Closed => "closed loop".to_owned(),
            Pacing::Open { .. } if !segment.stages.is_empty() => {
                format!("open loop in {}", counted(segment.stages.len(), "stage"))
            }
            Pacing::Open { rate_per_s } => format!("open loop at {}/s", rate(rate_per_s)),
        };
        let open = matches!(segment.pacing, Pacing::Open { .. });
        Self {
            target: target.to_owned(),
            how: [
                pacing,
                counted(connections as usize, "connection"),
                counted(job.threads, "thread"),
                job.io.unwrap_or_else(IoKind::best).to_string(),
            ],
            threads: job.threads,
            colour,
            phase: Phase::Starting,
            length,
            pacing: segment.pacing,
            stages: segment.stages.clone(),
            warmup: segment.ramp_up,
            now: Duration::ZERO,
            begun: Duration::ZERO,
            opened: Duration::ZERO,
            ticks: vec![Ticks::default(); job.threads],
            requests: 0,
            errors: 0,
            messages: 0,
            client: Client {
                cpu: None,
                polls: open && job.wait == Wait::Spin,
            },
            points: VecDeque::new(),
            interval_s: job.rows.map_or(1.0, |rows| rows.as_secs_f64()),
            row_requests: 0,
            row_errors: 0,
            row_due: 0,
            row_s: 0.0,
            last: None,
            response: Histogram::new(),
            stale: false,
            overall: Quantiles::default(),
            buckets_us: Vec::new(),
        }
    }

    /// Takes what the load tells; `now` is the time on the view's clock.
    pub(super) fn take(&mut self, progress: &Progress, now: Duration) {
        self.now = now;
        match progress {
            Progress::SegmentBegins { .. } => {
                self.begun = now;
                self.phase = Phase::WarmingUp;
            }
            Progress::WindowOpens { .. } => {
                self.opened = now;
                self.phase = Phase::Measuring;
            }
            Progress::WindowCloses { .. }
            | Progress::SegmentEnds { .. }
            | Progress::StartsLate { .. } => {
                self.phase = Phase::Draining;
            }
            Progress::Tick {
                thread,
                requests,
                errors,
                messages,
                ..
            } => {
                self.messages += messages;
                self.requests += requests;
                self.errors += errors;
                let begun = self.begun;
                if let Some(Ticks(ticks)) = self.ticks.get_mut(*thread) {
                    if ticks.is_empty() {
                        ticks.push_back((begun, 0));
                    }
                    ticks.push_back((now, *requests));
                    while ticks.len() > TICKS + 1 {
                        ticks.pop_front();
                    }
                }
            }
            Progress::Row(row) => self.row(row),
        }
    }

    fn row(&mut self, row: &Row) {
        self.response.merge(&row.response);
        self.stale = true;
        let row = &row.row;
        self.row_requests += row.requests;
        self.row_errors += row.errors;
        self.row_due += row.due;
        self.row_s += row.duration_s;
        // Answers that came after the window's end are a row without length.
        if row.duration_s <= 0.0 {
            return;
        }
        let answered = row.latency_us.count > 0;
        if answered {
            self.last = Some((row.duration_s, row.latency_us));
        }
        if self.points.len() == ROWS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(Point {
            end_s: row.start_s + row.duration_s,
            per_s: row.requests_per_s(),
            due_per_s: row.due as f64 / row.duration_s,
            p50_p99_us: answered.then_some((row.latency_us.p50, row.latency_us.p99)),
        });
    }

    /// Works out what takes longer, once per drawing at most.
    pub(super) fn refresh(&mut self) {
        if std::mem::take(&mut self.stale) {
            self.overall = self.response.quantiles();
            self.buckets_us = self.response.buckets_us();
        }
    }

    /// Good answers per second, over about the last second.
    pub(super) fn per_s(&self) -> f64 {
        self.ticks
            .iter()
            .filter_map(|Ticks(ticks)| {
                let (first, _) = ticks.front()?;
                let (last, _) = ticks.back()?;
                let counted: u64 = ticks.iter().skip(1).map(|(_, requests)| requests).sum();
                let time = last.saturating_sub(*first).as_secs_f64();
                let fresh = self.now.saturating_sub(*last) < SILENT;
                (fresh && time > 0.0).then(|| counted as f64 / time)
            })
            .sum()
    }

    /// Good answers per second over all rows, once there is one.
    pub(super) fn mean_per_s(&self) -> Option<f64> {
        (self.row_s > 0.0).then(|| self.row_requests as f64 / self.row_s)
    }

    /// Requests due per second now; `None` in a closed loop.
    pub(super) fn offered_per_s(&self) -> Option<f64> {
        let Pacing::Open { rate_per_s } = self.pacing else {
            return None;
        };
        let Some(first) = self.stages.first() else {
            return Some(rate_per_s);
        };
        if self.phase < Phase::Measuring {
            return Some(first.from_per_s);
        }
        let mut left = self.elapsed();
        for stage in &self.stages {
            if left < stage.duration {
                let share = left.as_secs_f64() / stage.duration.as_secs_f64();
                return Some(stage.from_per_s + (stage.to_per_s - stage.from_per_s) * share);
            }
            left -= stage.duration;
        }
        Some(0.0)
    }

    /// In an open loop: requests that were due in the rows so far and had no answer by their end.
    pub(super) fn unanswered(&self) -> Option<u64> {
        let open = matches!(self.pacing, Pacing::Open { .. });
        let done = self.row_requests + self.row_errors;
        open.then(|| self.row_due.saturating_sub(done))
    }

    /// Whether the target is overloaded: in each of the last rows there were fewer answers than due
    /// requests, and more requests wait than are due in half a second.
    pub(super) fn is_overloaded(&self) -> bool {
        let last = self.points.iter().rev().take(BEHIND_ROWS);
        let behind = last.filter(|row| row.per_s < BEHIND_SHARE * row.due_per_s);
        let due_per_s = self.points.back().map_or(0.0, |row| row.due_per_s);
        behind.count() == BEHIND_ROWS
            && self.unanswered().unwrap_or(0) as f64 > BEHIND_S * due_per_s
    }

    /// Time in the measured window, or in the warm-up before it.
    fn elapsed(&self) -> Duration {
        match self.phase {
            Phase::Starting => Duration::ZERO,
            Phase::WarmingUp => self.now.saturating_sub(self.begun),
            Phase::Measuring | Phase::Draining => self.now.saturating_sub(self.opened),
        }
    }

    /// How far it is, in words.
    pub(super) fn progress(&self) -> String {
        let elapsed = seconds(self.elapsed());
        match (self.phase, self.length) {
            (Phase::Starting, _) => "connecting".to_owned(),
            (Phase::WarmingUp, _) if !self.warmup.is_zero() => {
                format!("warming up, {elapsed} of {}", seconds(self.warmup))
            }
            (Phase::Draining, _) => format!("{elapsed}, waiting for the last answers"),
            (_, Length::Time(time)) => format!(
                "{elapsed} of {}, {} left",
                seconds(time),
                seconds(time.saturating_sub(self.elapsed()))
            ),
            (_, Length::Requests(count)) => format!(
                "{elapsed}, {} of {} requests, {} left",
                grouped(self.done()),
                grouped(count),
                grouped(count.saturating_sub(self.done()))
            ),
        }
    }

    fn done(&self) -> u64 {
        self.requests + self.errors
    }

    /// How much of the load is done, 0 to 1.
    pub(super) fn share_done(&self) -> f64 {
        let share = match (self.phase, self.length) {
            (Phase::Starting | Phase::WarmingUp, Length::Time(_)) => 0.0,
            (Phase::Draining, _) => 1.0,
            (_, Length::Time(time)) => {
                self.elapsed().as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE)
            }
            (_, Length::Requests(count)) => self.done() as f64 / count.max(1) as f64,
        };
        share.clamp(0.0, 1.0)
    }

    /// The charts' span of time, in seconds since the window opened: the whole load where its
    /// rows are all kept, otherwise the rows that there are.
    pub(super) fn span_s(&self) -> (f64, f64) {
        let last_s = self.points.back().map_or(0.0, |point| point.end_s);
        if let Length::Time(time) = self.length
            && time.as_secs_f64() <= self.interval_s * ROWS_MAX as f64
        {
            return (0.0, time.as_secs_f64().max(last_s));
        }
        let first_s = match self.points.front() {
            Some(first) if self.points.len() == ROWS_MAX => first.end_s,
            _ => 0.0,
        };
        (first_s, last_s.max(first_s + self.interval_s))
    }
}

/// A time as `9.5 s`, `2:05` or `1:00:00`.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        s @ 60..3_600 => format!("{}:{:02}", s / 60, s % 60),
        s => format!("{}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60),
    }
}
