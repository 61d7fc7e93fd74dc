//! One thread of the load: its event loop, its connections, its recordings.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use net::{ConnId, Event, Io, IoOptions, os};
use readings::Pacing;

mod backlog;
mod failures;
mod lasting;
mod late;
mod multiplexed;
mod on_event;
mod open_loop;
mod request_picker;
mod requests;
mod segment;
mod segment_end;
#[cfg(test)]
mod tests;

use crate::barrier::Barrier;
use crate::exchange::Kind;
use crate::exchange::conn::{Conn, State};
use crate::http::ws::Said;
use crate::job::traffic::Traffic;
use crate::job::{Job, Stop, Wait};
use crate::ns;
use crate::pacing::clock::Clock;
use crate::pacing::log::LogPace;
use crate::pacing::stop::{AfterEach, AfterRequests, AfterTime};
use crate::pacing::{ClosedLoop, Pacer, Schedule};
use crate::progress::{LoadError, Message, Progress};
use crate::record::Recorder;
use crate::record::messages::Messages;
use lasting::users::Sessions;
use late::LateSegment;
use multiplexed::{LINK, Link, QuicLinks, StreamEnd};
use request_picker::RequestPicker;
use segment::SegmentRun;

/// Interval of the checks for timeouts.
const SCAN_NS: u64 = 20_000_000;
/// So many connections of a thread are opened at a time at the start of a closed loop by time: more
/// would overflow the accept queues of most servers, which take up to 511.
const OPENING_MAX: usize = 256;
/// Interval of the counts for the progress.
const TICK_NS: u64 = 250_000_000;
/// Pause before the next attempt to open a connection that could not be opened.
const REST_NS: u64 = 10_000_000;
/// So many connections in a row without an answer are opened without a pause: the first may have
/// met the end of an idle one.
const FRUITLESS_MAX: u8 = 2;
/// How often a request that a server has not processed is sent again; the same as in curl.
const AGAIN_MAX: u8 = 5;
/// The most that a poll without events takes; beyond that the thread did not have its CPU.
const EMPTY_POLL_NS_MAX: u64 = 20_000;
/// An open loop's thread that comes back so much later than its work explains had no CPU.
const PAUSE_NS: u64 = 1_000_000;
/// The most that the end of a row takes.
const ROW_WORK_NS: u64 = 2_000_000;
/// How long a TLS or HTTP/2 connection that is being opened still counts as open: connections that
/// end together, as after the same number of requests, wait for each other's handshakes.
const REOPENING_NS: u64 = 900_000_000;
/// How long outstanding answers are awaited after a stop from outside.
const STOP_DRAIN_NS: u64 = 200_000_000;

pub(crate) struct Worker<I: Io, C: Clock, K: Kind> {
    io: I,
    clock: C,
    job: Arc<Job>,
    thread: usize,
    events: Sender<Message>,
    pickers: Vec<RequestPicker>,
    /// Connections opened so far; numbers the clients of PROXY protocol headers.
    openings: u64,
    preamble: Vec<u8>,
    conns: Vec<Conn<K>>,
    /// The connections of each target.
    conns_of: Vec<Range<usize>>,
    /// By slot of the event loop: the number of the connection, or that of the link with the bit
    /// [`LINK`].
    by_slot: Vec<u32>,
    /// HTTP/2 and HTTP/3 connections.
    links: Vec<Link>,
    /// Links with bytes to send.
    dirty: Vec<u32>,
    /// Streams that ended with the bytes that are being read.
    ended_streams: Vec<(usize, StreamEnd, u64)>,
    /// What was said in the bytes of a WebSocket that are being read.
    heard: Vec<Said>,
    /// WebSocket handshakes so far.
    handshakes: u64,
    /// With HTTP/3.
    quic: Option<Box<QuicLinks>>,
    /// Of the users of each target.
    sessions: Vec<Sessions>,
    /// One per reading, and a last one for warm-ups.
    recorders: Vec<Recorder>,
    /// Segments that have ended with open requests, at most one for each target.
    late: Vec<LateSegment>,
}

/// The connections of each target that a thread holds, numbered through; with HTTP/2 their streams.
fn own_connections(job: &Job, thread: usize) -> Vec<Range<usize>> {
    let mut first = 0;
    (0..job.targets.len())
        .map(|target| {
            let streams = job.targets[target].places().unwrap_or(1) as usize;
            let own = job.share(target, thread).own_connections() as usize * streams;
            first += own;
            first - own..first
        })
        .collect()
}

/// The places of all targets; `link_of` has the link of each.
fn conns<K: Kind>(job: &Job, conns_of: &[Range<usize>], link_of: &[Option<u32>]) -> Vec<Conn<K>> {
    let all = job.targets.iter().zip(conns_of);
    let places = all.flat_map(|(target, own)| own.clone().map(move |number| (target, number)));
    places
        .map(|(target, number)| Conn::new(target, link_of[number]))
        .collect()
}

/// What a thread needs of its event loop.
pub(crate) fn io_options(job: &Job, thread: usize) -> IoOptions {
    let targets = 0..job.targets.len();
    let own = targets.map(|target| job.share(target, thread).own_connections());
    let own = own.sum::<u64>() as u32;
    IoOptions {
        // Twice as many, within the limit of open files: a slot is free again only when the kernel
        // has released it.
        outgoing: (own * 2)
            .min(u32::try_from(os::open_files()).unwrap_or(u32::MAX))
            .max(own)
            .max(16),
        stamps: job.uses_kernel_timestamps(os::open_files()),
        ..IoOptions::default()
    }
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    /// A worker on an event loop that was opened with [`io_options`].
    pub(crate) fn new(
        mut io: I,
        clock: C,
        job: Arc<Job>,
        thread: usize,
        events: Sender<Message>,
    ) -> Self {
        let conns_of = own_connections(&job, thread);
        let pickers = (0..job.targets.len())
            .map(|target| RequestPicker::new(target, &job, thread, &mut io))
            .collect();
        let mut recorders: Vec<Recorder> = (0..=job.readings()).map(|_| Recorder::new()).collect();
        for segment in &job.segments {
            if let Some(reading) = segment.reading {
                recorders[reading].pacing = segment.pacing;
                recorders[reading].target = segment.target;
                recorders[reading].polls =
                    job.wait == Wait::Spin && matches!(segment.pacing, Pacing::Open { .. });
                let traffic = &job.targets[segment.target].traffic;
                recorders[reading].prepare(&job.targets[segment.target], &segment.stages);
                if job.rows.is_some() {
                    recorders[reading].gaps.prepare();
                }
                let has_messages = !matches!(traffic, Traffic::Users(_));
                if K::HAS_MESSAGES && has_messages {
                    let traffic = traffic.kind();
                    recorders[reading].messages = Some(Box::new(Messages::new(traffic)));
                }
            }
        }
        let (links, link_of) = multiplexed::links(&job, &conns_of);
        Self {
            io,
            clock,
            thread,
            events,
            pickers,
            openings: job.number_of(thread) as u64,
            preamble: Vec::new(),
            conns: conns(&job, &conns_of, &link_of),
            conns_of,
            by_slot: vec![0; io_options(&job, thread).slots()],
            links,
            dirty: Vec::new(),
            ended_streams: Vec::new(),
            heard: Vec::new(),
            handshakes: 0,
            quic: None,
            sessions: (0..job.targets.len())
                .map(|target| Sessions::new(&job, target, thread))
                .collect(),
            recorders,
            late: Vec::new(),
            job,
        }
    }

    /// Carries out all segments, each together with the other threads.
    pub(crate) fn run(
        mut self,
        barrier: &Barrier,
        stop: &AtomicBool,
    ) -> Result<Vec<Recorder>, LoadError> {
        for number in 0..self.job.segments.len() {
            // Events of idle connections are handled before the common start.
            self.settle()?;
            let Some(ready) = barrier.wait() else { break };
            let start = self.common_start(number, ready);
            self.segment(number, start, stop)?;
            if stop.load(Ordering::Relaxed) {
                barrier.abort();
                break;
            }
        }
        Ok(self.into_recorders())
    }

    /// The start of a segment for which all threads of this machine are `ready`.
    fn common_start(&self, segment: usize, ready: u64) -> u64 {
        let Some(at) = self.job.start_of(segment) else {
            return ready + ns(self.job.segments[segment].idle_before);
        };
        if ready > at && self.thread == 0 {
            let late_ns = ready - at;
            self.report(Progress::StartsLate { segment, late_ns });
        }
        at.max(ready)
    }

    /// The recordings of the readings.
    fn into_recorders(mut self) -> Vec<Recorder> {
        self.close_quic();
        self.close_websockets();
        self.recorders.pop();
        for recorder in &mut self.recorders {
            if let Some(open) = &mut recorder.open_loop {
                open.pauses.finish(open.measured_ns);
            }
        }
        self.recorders
    }

    fn segment(&mut self, number: usize, start: u64, stop: &AtomicBool) -> Result<(), LoadError> {
        let job = self.job.clone();
        let segment = &job.segments[number];
        let is_open = matches!(segment.pacing, Pacing::Open { .. });
        let offset_ns = is_open.then(|| job.log_offset_ns(number));
        let numbered = self.pickers[segment.target].numbered.as_mut();
        let log = numbered.and_then(|numbered| {
            let (log, at) = numbered.begin(offset_ns)?;
            Some(LogPace::new(
                log,
                at,
                numbered.turn(),
                start,
                offset_ns.unwrap_or_default(),
            ))
        });
        match segment.pacing {
            Pacing::Closed => self.paced(number, start, ClosedLoop, stop),
            Pacing::Open { rate_per_s } => {
                let share = job.share(segment.target, self.thread);
                let seed = job.seed.wrapping_add(number as u64);
                let pacer = match log {
                    Some(log) => Schedule::of_log(log, share),
                    None => Schedule::of(segment, rate_per_s, job.arrivals, start, share, seed),
                };
                self.paced(number, start, pacer, stop)
            }
        }
    }

    fn paced(
        &mut self,
        number: usize,
        start: u64,
        pacer: impl Pacer,
        stop: &AtomicBool,
    ) -> Result<(), LoadError> {
        let segment = &self.job.segments[number];
        match segment.stop {
            Stop::After(time) => {
                let stopped = false;
                let rule = AfterTime { time, stopped };
                SegmentRun::new(self, number, start, pacer, rule).run(stop)
            }
            Stop::Requests(total) => {
                let left = self.job.share(segment.target, self.thread).count(total);
                let rule = AfterRequests {
                    left,
                    stopped: false,
                };
                SegmentRun::new(self, number, start, pacer, rule).run(stop)
            }
            Stop::EachConnection(each) => {
                let rule = AfterEach::new(self.conns_of[segment.target].clone(), each);
                SegmentRun::new(self, number, start, pacer, rule).run(stop)
            }
        }
    }

    /// Handles events between segments.
    fn settle(&mut self) -> Result<(), LoadError> {
        self.flush_links();
        self.io.poll(Some(0)).map_err(LoadError::Loop)?;
        while let Some(event) = self.io.next_event() {
            if let Some(at) = self.late_of(&event) {
                self.handle_late(at, event);
                continue;
            }
            match event {
                Event::Data { conn, buf } if self.is_link(conn) => {
                    self.link_data_at_rest(conn, &buf);
                    self.io.recycle(buf);
                }
                Event::Readable { conn } => self.readable_at_rest(conn),
                Event::Eof { conn } | Event::Failed { conn, .. } if self.is_link(conn) => {
                    self.link_ended_at_rest(conn);
                }
                Event::Data { conn, buf } => {
                    self.io.recycle(buf);
                    self.close_id(conn);
                }
                Event::Eof { conn } | Event::Failed { conn, .. } => self.close_id(conn),
                _ => {}
            }
        }
        self.expire_at_rest();
        self.flush_links();
        Ok(())
    }

    /// Makes the PROXY protocol header of the next connection.
    fn next_preamble(&mut self, target: usize) {
        self.preamble.clear();
        self.job.targets[target].preamble(self.openings, &mut self.preamble);
        self.openings += self.job.all_threads() as u64;
    }

    /// Sends the PROXY protocol header of a connection whose TLS handshake follows it.
    fn announce_before_handshake(&mut self, target: usize, id: ConnId) {
        let settings = &self.job.targets[target];
        if settings.tls.is_some() && settings.proxy_header.is_some() {
            self.next_preamble(target);
            self.io.send_before_handshake(id, &self.preamble);
        }
    }

    fn close_id(&mut self, id: ConnId) {
        let number = self.by_slot[id.slot()] as usize;
        if self.conns[number].id == Some(id) {
            self.close(number);
        }
    }

    #[inline]
    fn is_link(&self, id: ConnId) -> bool {
        self.by_slot[id.slot()] & LINK != 0
    }

    fn close(&mut self, number: usize) {
        if let Some(link) = self.conns[number].link {
            return self.close_place(number, link as usize);
        }
        let conn = &mut self.conns[number];
        if let Some(id) = conn.id.take() {
            self.io.close(id);
        }
        conn.state = State::Closed;
        conn.exchange.reset();
    }

    fn report(&self, progress: Progress) {
        // The receiver is gone once the caller has given up the load.
        let _ = self.events.send(Message::Progress(progress));
    }
}
