//! A load: targets, segments, and how it is made.

use std::net::SocketAddr;
use std::time::Duration;

use net::IoKind;
use readings::Pacing;
use serde::{Deserialize, Serialize};

use share::{Numbers, ThreadShare};
use target::Target;

mod call;
pub(crate) mod expect;
pub(crate) mod fields;
pub(crate) mod filling;
pub(crate) mod log;
pub(crate) mod packed;
mod serde_as;
mod set;
pub(crate) mod share;
pub(crate) mod target;
pub(crate) mod traffic;
mod validate;

pub use call::CALL_BYTES_MAX;
pub use validate::JobError;

/// When a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stop {
    /// After a time.
    #[serde(rename = "after_ns", with = "serde_as::ns")]
    After(Duration),
    /// When this many requests were answered or failed, over all threads.
    #[serde(rename = "requests")]
    Requests(u64),
    /// When every connection has had this many answers or failures. Closed loop only.
    #[serde(rename = "each_connection")]
    EachConnection(u64),
}

/// A part of an open loop in which the rate is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its length.
    #[serde(rename = "duration_ns", with = "serde_as::ns")]
    pub duration: Duration,
    /// Requests due per second at its start, over all connections.
    pub from_per_s: f64,
    /// Requests due per second at its end.
    pub to_per_s: f64,
}

impl Stage {
    /// Requests that become due in it.
    pub fn requests(&self) -> f64 {
        (self.from_per_s + self.to_per_s) / 2.0 * self.duration.as_secs_f64()
    }
}

/// A stretch of load on one target: a ramp-up, then a measured window. A segment ends when its last
/// answer has come; only then does the next begin. A measured closed loop that ends by time and is
/// followed by others waits for its last answers for a limited time; requests that are open for
/// longer go on beside the next segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Number of the target.
    pub target: usize,
    /// How requests are timed. With stages: an open loop at their mean rate.
    pub pacing: Pacing,
    /// The stages of an open loop whose rate changes, from the start of the measured window; empty
    /// for a constant rate. The ramp-up has the rate at which the first stage begins.
    pub stages: Vec<Stage>,
    /// Load before the measured window, which is not measured.
    #[serde(rename = "ramp_up_ns", with = "serde_as::ns")]
    pub ramp_up: Duration,
    /// The end of the measured window.
    pub stop: Stop,
    /// Number of the reading that it is recorded to; `None` for a segment that
    /// only opens connections.
    pub reading: Option<usize>,
    /// Time without load before it, once the segment before has had its last answers.
    #[serde(
        rename = "idle_before_ns",
        with = "serde_as::ns",
        default,
        skip_serializing_if = "Duration::is_zero"
    )]
    pub idle_before: Duration,
}

impl Segment {
    /// A closed loop on target 0, recorded to reading 0.
    pub fn closed(stop: Stop) -> Self {
        Self {
            target: 0,
            pacing: Pacing::Closed,
            stages: Vec::new(),
            ramp_up: Duration::ZERO,
            stop,
            reading: Some(0),
            idle_before: Duration::ZERO,
        }
    }

    /// An open loop on target 0, recorded to reading 0.
    pub fn open(rate_per_s: f64, stop: Stop) -> Self {
        Self {
            pacing: Pacing::Open { rate_per_s },
            ..Self::closed(stop)
        }
    }

    /// On this target, recorded to this reading.
    #[must_use]
    pub fn on(self, target: usize, reading: Option<usize>) -> Self {
        Self {
            target,
            reading,
            ..self
        }
    }
}

/// When the requests of an open loop are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal intervals.
    #[default]
    Even,
    /// At exponentially distributed intervals, as from many independent users.
    Poisson,
}

/// How a thread waits for events in an open loop; in a closed loop it always sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// It sleeps until the kernel wakes it: tens of microseconds late, and no CPU time wasted.
    #[default]
    Sleep,
    /// It polls without sleeping: a microsecond late, and a whole CPU used. Only where the servers
    /// do not need that CPU.
    Spin,
}

/// What takes the timestamp of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampSource {
    /// The kernel in open loops; userspace in closed ones, which kernel timestamps would slow.
    #[default]
    Auto,
    /// The kernel, when the packet arrives. Delays of the load's thread are excluded, and show as
    /// receive lag.
    Kernel,
    /// The load's thread, when it reads the answer. Its own delays are included.
    Userspace,
}

/// Which part of a load over several machines a job makes. It also synchronizes several loads, so
/// that they begin their segments at the same time. Connections and rates of the job are those of
/// the whole load. Its threads are numbered through over all machines, so that every machine makes
/// its exact share, with its due times between those of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of the first of its threads among those of all machines.
    pub first_thread: usize,
    /// Threads of all machines.
    pub all_threads: usize,
    /// Start of the first segment by this machine's CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
    /// Time for the last answers between the end of a segment and the start of the next, which is
    /// at the same time on all machines, ns.
    pub gap_ns: u64,
}

/// A whole load, with defaults for all but targets and segments ([`Job::to`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Targets and their connections.
    pub targets: Vec<Target>,
    /// What to do, in order.
    pub segments: Vec<Segment>,
    /// Number of threads.
    pub threads: usize,
    /// Requests after which a connection is closed and opened anew; `None` keeps it.
    pub requests_per_connection: Option<u64>,
    /// Longest wait for a connection to open.
    #[serde(rename = "connect_timeout_ns", with = "serde_as::ns")]
    pub connect_timeout: Duration,
    /// Longest wait for a complete answer once its request was sent for the first time. A segment of a
    /// given time is over at most twice this and [`Self::connect_timeout`] after it, and the time
    /// between two checks, 20 ms, for each.
    #[serde(rename = "timeout_ns", with = "serde_as::ns")]
    pub timeout: Duration,
    /// When the requests of open-loop segments are due.
    pub arrivals: Arrivals,
    /// CPUs that the threads are bound to, in turn; empty leaves them free.
    pub cpus: Vec<u32>,
    /// Addresses that connections come from, in turn; empty lets the kernel choose.
    pub sources: Vec<SocketAddr>,
    /// The event loop; `None` for the best that the machine allows.
    pub io: Option<IoKind>,
    /// How threads wait in open-loop segments.
    pub wait: Wait,
    /// What takes the timestamp of an answer.
    pub timestamps: TimestampSource,
    /// Interval at which a row of the reading is recorded; `None` for no rows.
    #[serde(rename = "row_ns", with = "serde_as::option_ns")]
    pub rows: Option<Duration>,
    /// Seed of random arrivals and of the choice between requests.
    pub seed: u64,
    /// What the load adds to the numbers of its requests where they are filled in, so that several
    /// loads send different ones. Each load uses the rows of a feed of [`FeedOrder::Once`] from the
    /// first on.
    ///
    /// [`FeedOrder::Once`]: readings::requests::FeedOrder::Once
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_number: u64,
    /// The part of a load over several machines that it is; `None` for a whole load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub const ROW_MIN: Duration = Duration::from_millis(10);

impl Job {
    /// A load on this target, on one thread and with kept connections, time limits of 5 s and no
    /// rows. It has no segments yet.
    pub fn to(target: Target) -> Self {
        Self::to_all([target])
    }

    /// As [`Job::to`], with several targets.
    pub fn to_all(targets: impl IntoIterator<Item = Target>) -> Self {
        Self {
            targets: targets.into_iter().collect(),
            segments: Vec::new(),
            threads: 1,
            requests_per_connection: None,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            arrivals: Arrivals::default(),
            cpus: Vec::new(),
            sources: Vec::new(),
            io: None,
            wait: Wait::default(),
            timestamps: TimestampSource::default(),
            rows: None,
            seed: 1,
            first_number: 0,
            part: None,
        }
    }

    /// With this segment after the others.
    #[must_use]
    pub fn segment(mut self, segment: Segment) -> Self {
        self.segments.push(segment);
        self
    }

    /// Whether to use the kernel's timestamps. They take a file descriptor for each connection.
    pub(crate) fn uses_kernel_timestamps(&self, open_files: u64) -> bool {
        let connections = self.targets.iter().map(|one| u64::from(one.connections));
        let is_open = |segment: &Segment| matches!(segment.pacing, Pacing::Open { .. });
        match self.timestamps {
            TimestampSource::Auto => {
                self.segments.iter().all(is_open) && connections.sum::<u64>() * 2 <= open_files
            }
            TimestampSource::Kernel => true,
            TimestampSource::Userspace => false,
        }
    }

    /// Number of readings that the segments record to.
    pub fn readings(&self) -> usize {
        let numbers = self.segments.iter().filter_map(|segment| segment.reading);
        numbers.max().map_or(0, |most| most + 1)
    }

    /// The number of QUIC connections.
    pub(crate) fn quic_connections(&self) -> u32 {
        let own = self.targets.iter().filter(|target| target.http3.is_some());
        own.fold(0, |sum, target| sum.saturating_add(target.connections))
    }

    /// Threads of all machines.
    pub(crate) fn all_threads(&self) -> usize {
        self.part.map_or(self.threads, |part| part.all_threads)
    }

    /// The number of one of this job's threads among those of all machines.
    pub(crate) fn number_of(&self, thread: usize) -> usize {
        self.part.map_or(0, |part| part.first_thread) + thread
    }

    /// When a segment begins; `None` if the job has no given times.
    pub(crate) fn start_of(&self, segment: usize) -> Option<u64> {
        let part = self.part?;
        let before = self.segments[..segment].iter().map(|one| {
            let window = match one.stop {
                Stop::After(window) => window,
                Stop::Requests(_) | Stop::EachConnection(_) => Duration::ZERO,
            };
            (one.idle_before + one.ramp_up + window).as_nanos() as u64 + part.gap_ns
        });
        let idle_ns = self.segments[segment].idle_before.as_nanos() as u64;
        Some(part.start_ns + before.sum::<u64>() + idle_ns)
    }

    /// Of so many threads with connections, a thread is the so-many-th. `None` for one without.
    pub(crate) fn turns(&self, target: usize, thread: usize) -> Option<(u64, u64)> {
        let share = self.share(target, thread);
        let threads = share.threads.min(share.connections);
        (share.thread < threads).then_some((share.thread, threads))
    }

    /// The numbers of the requests of a thread, or of its users.
    pub(crate) fn numbers(&self, target: usize, thread: usize) -> Numbers {
        if self.targets[target].log().is_none() {
            return Numbers::Shared(self.share(target, thread));
        }
        let (turn, threads) = self.turns(target, thread).unwrap_or((0, 1));
        Numbers::OfLog { turn, threads }
    }

    /// Where in a target's log a segment begins: where the open-loop segments before it have ended, ns
    /// since its first request.
    pub(crate) fn log_offset_ns(&self, segment: usize) -> u64 {
        let target = self.segments[segment].target;
        let before = self.segments[..segment].iter();
        let own =
            before.filter(|one| one.target == target && matches!(one.pacing, Pacing::Open { .. }));
        let lengths = own.map(|one| match one.stop {
            Stop::After(window) => crate::ns(one.ramp_up + window),
            Stop::Requests(_) | Stop::EachConnection(_) => 0,
        });
        lengths.sum()
    }

    /// The connections to a target that this job's threads have.
    pub(crate) fn own_connections(&self, target: usize) -> u64 {
        let shares = (0..self.threads).map(|thread| self.share(target, thread));
        shares.map(ThreadShare::own_connections).sum()
    }

    /// A thread's share of a target's connections and requests.
    pub(crate) fn share(&self, target: usize, thread: usize) -> ThreadShare {
        ThreadShare {
            thread: self.number_of(thread) as u64,
            threads: self.all_threads() as u64,
            connections: u64::from(self.targets[target].connections),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::job::expect::{BodyRule, Expect, StatusRule};
    use crate::job::target::{ProxyHeader, ProxyVersion};

    #[test]
    fn segments_of_a_part_begin_at_given_times_with_the_idle_time_before_them() {
        let target = Target::new(
            "[::1]:80".parse::<SocketAddr>().unwrap(),
            Vec::new(),
            Expect::default(),
        );
        let ms = Duration::from_millis;
        let mut job = Job::to(target)
            .segment(Segment::closed(Stop::After(ms(100))))
            .segment(Segment {
                idle_before: ms(30),
                ramp_up: ms(10),
                ..Segment::closed(Stop::After(ms(50)))
            })
            .segment(Segment::closed(Stop::After(ms(1))));
        job.part = Some(Part {
            first_thread: 0,
            all_threads: 1,
            start_ns: 1_000_000,
            gap_ns: 5_000_000,
        });
        let starts: Vec<u64> = (0..3).filter_map(|it| job.start_of(it)).collect();
        assert_eq!(starts, [1_000_000, 136_000_000, 201_000_000]);
    }

    #[test]
    fn a_job_survives_being_written_and_read() {
        let address: SocketAddr = "[::1]:80".parse().unwrap();
        let every_byte: Vec<u8> = (0..=255).collect();
        let expect = Expect {
            status: StatusRule::Exactly(201),
            body: BodyRule::Bytes(Arc::from(every_byte.as_slice())),
        };
        let mut job = Job::to(Target::new(address, every_byte, expect).with_connections(7))
            .segment(Segment::closed(Stop::EachConnection(3)))
            .segment(Segment::open(0.25, Stop::After(Duration::from_nanos(1))).on(1, None));
        let unix = net::UnixPath::new("/a socket").unwrap();
        job.targets
            .push(Target::new(unix, Vec::new(), Expect::default()));
        job.targets[1].requests[0].expect.body = BodyRule::Contains(Arc::from(&b"\xff"[..]));
        job.targets[1].proxy_header = Some(ProxyHeader {
            version: ProxyVersion::V2,
            clients: vec!["10.0.0.1".parse().unwrap()],
        });
        job.io = Some(IoKind::Epoll);
        job.rows = Some(Duration::from_millis(10));
        let text = serde_json::to_string(&job).unwrap();
        assert!(text.contains(r#""timeout_ns":5000000000"#), "{text}");
        assert!(text.contains(r#""stop":{"after_ns":1}"#), "{text}");
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
    }
}
