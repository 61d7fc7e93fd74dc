//! One thread of the load: its event loop, its connections, its notes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use net::{ConnId, Event, Io, IoOptions, os};
use readings::{Pacing, Slice};

mod answers;
mod request_picker;
mod requests;

use crate::barrier::Barrier;
use crate::conn::{Conn, State};
use crate::job::{Job, Segment, Stage, Stop, Wait};
use crate::ns;
use crate::pacing::{self, Schedule};
use crate::record::Recorder;
use crate::rows::RowMessage;
use crate::run::{LoadError, Message, Progress};
use request_picker::RequestPicker;

/// Time limits are looked at this often.
const SCAN_NS: u64 = 20_000_000;
/// Counts are told this often.
const TICK_NS: u64 = 250_000_000;
/// A connection that could not be opened is tried again after this.
const REST_NS: u64 = 10_000_000;
/// One look at the event loop in vain takes no longer, unless the thread lost its CPU.
const VAIN_NS_MAX: u64 = 20_000;
/// After a stop from outside, answers under way are awaited this long.
const STOP_DRAIN_NS: u64 = 200_000_000;

/// The segment under way.
struct ActiveSegment {
    number: usize,
    target: usize,
    segment: Segment,
    /// Where its answers are noted; the last recorder takes warm-ups.
    recorder: usize,
    start: u64,
    from: u64,
    /// End of the window: known from the start, or `u64::MAX` until the last request is done.
    end: u64,
    /// Requests still to be issued when the segment ends by count.
    left: u64,
    schedule: Option<Schedule>,
    requests: u64,
    /// See [`Slice::edges`].
    edges: f64,
    errors: u64,
    cpu_from: Option<u64>,
    cpu_end: Option<u64>,
    /// Time spent polling in vain, ns: so far, and at the window's two ends.
    idle: u64,
    /// Whether the last look at the event loop was one in vain.
    polls_in_vain: bool,
    idle_from: u64,
    idle_end: u64,
    open: u64,
    last_done: u64,
    /// Where the stages end, when there are several.
    stage_ends: Vec<u64>,
    /// Length of a row, when rows are kept.
    row_ns: Option<u64>,
    /// Start and number of the row under way.
    row_from: u64,
    row_number: u64,
}

impl ActiveSegment {
    /// Whether a request that is due at a time, or an answer that came, belongs to the window.
    fn has(&self, at: u64) -> bool {
        at >= self.from && at < self.end
    }

    /// The time that decides whether a request belongs to the window, which was due and is over at
    /// those times: in a closed loop that ends by time its end, otherwise when it was due.
    fn counted_at(&self, intended: u64, now: u64) -> u64 {
        match self.segment.pacing {
            Pacing::Closed if !self.is_counted() => now,
            _ => intended,
        }
    }

    /// Whether it ends by a count, of requests that were due in the window.
    fn is_counted(&self) -> bool {
        !matches!(self.segment.stop, Stop::After(_))
    }

    /// What an answer to a request that was sent at a time adds to the number of those that came
    /// inside the window, when it is counted with the part of its time that lies inside.
    fn beyond_edges(&self, sent: u64, now: u64) -> f64 {
        if self.is_counted() {
            return 0.0;
        }
        let (begin, end) = (sent.max(self.from), now.min(self.end));
        if sent >= self.from && now < self.end || now <= sent || end <= begin {
            return 0.0;
        }
        let part = (end - begin) as f64 / (now - sent) as f64;
        match self.has(now) {
            true => part - 1.0,
            false => part,
        }
    }

    /// The stage that a due time lies in, when there are several.
    fn stage(&self, due: u64) -> Option<usize> {
        let stage = self.stage_ends.partition_point(|&end| end <= due);
        (stage < self.stage_ends.len()).then_some(stage)
    }
}

pub(crate) struct Worker<I: Io> {
    io: I,
    job: Arc<Job>,
    thread: usize,
    tell: Sender<Message>,
    targets: Vec<RequestPicker>,
    /// Connections opened so far; numbers the clients of PROXY protocol headers.
    openings: u64,
    preamble: Vec<u8>,
    conns: Vec<Conn>,
    /// The connections of each target.
    conns_of: Vec<Range<usize>>,
    /// Connection by slot of the event loop.
    by_slot: Vec<u32>,
    /// Connections of the current lane that wait for a due request.
    idle: VecDeque<u32>,
    /// Due times of requests that found no free connection.
    backlog: VecDeque<u64>,
    busy: u64,
    recorders: Vec<Recorder>,
    now: u64,
    scanned: u64,
    ticked: u64,
    tick_requests: u64,
    tick_errors: u64,
}

impl<I: Io> Worker<I> {
    pub(crate) fn open(
        job: Arc<Job>,
        thread: usize,
        tell: Sender<Message>,
    ) -> Result<Self, LoadError> {
        let mut conns = Vec::new();
        let mut conns_of = Vec::new();
        for target in 0..job.targets.len() {
            let first = conns.len();
            let own = job.share(target, thread).own_connections() as usize;
            conns.resize_with(first + own, Conn::new);
            conns_of.push(first..conns.len());
        }
        let options = IoOptions {
            // Twice as many, where the kernel gives that many: a slot is free again only when the
            // kernel has let go of it.
            outgoing: (conns.len() as u32 * 2)
                .min(u32::try_from(os::open_files()).unwrap_or(u32::MAX))
                .max(conns.len() as u32)
                .max(16),
            accepted: 0,
            buffers: 256,
            buffers_max: 0,
            buffer_size: 16 * 1024,
            files: false,
            stamps: job.uses_kernel_timestamps(os::open_files()),
        };
        let mut io = I::open(options).map_err(|source| LoadError::Open {
            connections: conns.len() as u64,
            source,
        })?;
        let targets = job
            .targets
            .iter()
            .map(|target| RequestPicker::new(target, &job, thread, &mut io))
            .collect();
        let mut recorders: Vec<Recorder> = (0..=job.readings()).map(|_| Recorder::new()).collect();
        for segment in &job.segments {
            if let Some(reading) = segment.reading {
                recorders[reading].pacing = segment.pacing;
                recorders[reading].target = segment.target;
                recorders[reading].prepare(&job.targets[segment.target], &segment.stages);
            }
        }
        Ok(Self {
            io,
            thread,
            tell,
            targets,
            openings: thread as u64,
            preamble: Vec::new(),
            by_slot: vec![0; options.slots()],
            conns,
            conns_of,
            idle: VecDeque::new(),
            backlog: VecDeque::new(),
            busy: 0,
            recorders,
            now: 0,
            scanned: 0,
            ticked: 0,
            tick_requests: 0,
            tick_errors: 0,
            job,
        })
    }

    pub(crate) fn run(
        mut self,
        barrier: &Barrier,
        stop: &AtomicBool,
    ) -> Result<Vec<Recorder>, LoadError> {
        let job = self.job.clone();
        for (number, segment) in job.segments.iter().enumerate() {
            // What came for idle connections in the meantime is handled before the start.
            self.settle()?;
            let Some(start) = barrier.wait() else { break };
            let mut current = self.begin(number, segment, start);
            self.segment(&mut current, stop)?;
            self.end(current);
            if stop.load(Ordering::Relaxed) {
                barrier.abort();
                break;
            }
        }
        self.recorders.pop();
        Ok(self.recorders)
    }

    fn begin(&mut self, number: usize, segment: &Segment, start: u64) -> ActiveSegment {
        let from = start + ns(segment.ramp_up);
        let share = self.job.share(segment.target, self.thread);
        let (end, left) = match segment.stop {
            Stop::After(time) => (from + ns(time), u64::MAX),
            Stop::Requests(total) => (u64::MAX, share.count(total)),
            Stop::EachConnection(each) => {
                (u64::MAX, each * self.conns_of[segment.target].len() as u64)
            }
        };
        let quota = match segment.stop {
            Stop::EachConnection(each) => each,
            _ => u64::MAX,
        };
        for conn in &mut self.conns[self.conns_of[segment.target].clone()] {
            conn.quota = quota;
            conn.answers = 0;
        }
        let mut stage_ends = Vec::new();
        let mut stages = Vec::new();
        if let Pacing::Open { rate_per_s } = segment.pacing {
            match segment.stages.first() {
                None => stages.push(pacing::constant(rate_per_s)),
                Some(first) => {
                    let before = Stage {
                        duration: segment.ramp_up,
                        to_per_s: first.from_per_s,
                        ..*first
                    };
                    stages.push(before);
                    stages.extend(&segment.stages);
                }
            }
        }
        if segment.stages.len() > 1 {
            stage_ends.extend(segment.stages.iter().scan(from, |at, stage| {
                *at += ns(stage.duration);
                Some(*at)
            }));
        }
        let schedule = match segment.pacing {
            Pacing::Closed => None,
            Pacing::Open { .. } => Some(Schedule::new(
                self.job.arrivals,
                &stages,
                start,
                share,
                self.job.seed.wrapping_add(number as u64),
            )),
        };
        ActiveSegment {
            number,
            target: segment.target,
            recorder: segment.reading.unwrap_or(self.recorders.len() - 1),
            segment: segment.clone(),
            start,
            from,
            end,
            left,
            schedule,
            requests: 0,
            edges: 0.0,
            errors: 0,
            cpu_from: None,
            cpu_end: None,
            idle: 0,
            polls_in_vain: false,
            idle_from: 0,
            idle_end: 0,
            open: 0,
            last_done: start,
            stage_ends,
            row_ns: segment.reading.and(self.job.rows).map(ns),
            row_from: from,
            row_number: 0,
        }
    }

    /// Handles events while no segment is under way.
    fn settle(&mut self) -> Result<(), LoadError> {
        self.io.poll(Some(0)).map_err(LoadError::Loop)?;
        while let Some(event) = self.io.next_event() {
            match event {
                Event::Data { conn, buf } => {
                    self.io.recycle(buf);
                    self.forget(conn);
                }
                Event::Eof { conn } | Event::Failed { conn, .. } => self.forget(conn),
                _ => {}
            }
        }
        Ok(())
    }

    fn forget(&mut self, id: ConnId) {
        let number = self.by_slot[id.slot()] as usize;
        if self.conns[number].id == Some(id) {
            self.close(number);
        }
    }

    fn segment(&mut self, current: &mut ActiveSegment, stop: &AtomicBool) -> Result<(), LoadError> {
        if self.thread == 0 {
            self.say(Progress::SegmentBegins {
                segment: current.number,
            });
        }
        self.now = os::now_ns();
        if self.now < current.start {
            std::thread::sleep(Duration::from_nanos(current.start - self.now));
            self.now = os::now_ns();
        }
        self.scanned = self.now;
        self.ticked = self.now;
        self.idle.clear();
        self.backlog.clear();
        let lane = self.conns_of[current.target].clone();
        for number in lane {
            if self.conns[number].state == State::Resting {
                self.conns[number].state = State::Closed;
            }
            if current.schedule.is_some() {
                self.idle.push_back(number as u32);
            } else {
                self.issue(current, number, self.now);
            }
        }
        let mut stopped = None;
        loop {
            let last = std::mem::replace(&mut self.now, os::now_ns());
            if std::mem::take(&mut current.polls_in_vain) {
                // What takes longer is time without the CPU.
                current.idle += (self.now - last).min(VAIN_NS_MAX);
            }
            self.cross_edges(current);
            self.turn_rows(current);
            if stopped.is_none() && stop.load(Ordering::Relaxed) {
                current.end = current.end.min(self.now);
                current.left = 0;
                stopped = Some(self.now + STOP_DRAIN_NS);
                self.cross_edges(current);
            }
            let over = self.now >= current.end;
            // Also after the window's end: what was due before it and was held up must be sent.
            let issued = self.issue_due(current);
            let exhausted = current.left == 0 && self.backlog.is_empty();
            if self.busy == 0 && (over || exhausted) {
                break;
            }
            if stopped.is_some_and(|until| self.now >= until) {
                self.abandon(current.target);
                break;
            }
            let wait = self.wait(current, over);
            self.io.poll(Some(wait)).map_err(LoadError::Loop)?;
            let mut in_vain = wait == 0 && !issued;
            while let Some(event) = self.io.next_event() {
                self.handle(current, event);
                in_vain = false;
            }
            current.polls_in_vain = in_vain;
            if self.now >= self.scanned + SCAN_NS {
                self.scan(current);
                current.polls_in_vain = false;
            }
            if self.now >= self.ticked + TICK_NS {
                self.tick(current);
            }
        }
        self.now = os::now_ns();
        // Due requests that no connection could take.
        while let Some(due) = self.backlog.pop_front() {
            self.never_sent(current, due);
        }
        if current.end == u64::MAX {
            current.end = current.last_done.max(current.from + 1);
        }
        self.cross_edges(current);
        self.tick(current);
        if self.thread == 0 {
            self.say(Progress::SegmentEnds {
                segment: current.number,
            });
        }
        Ok(())
    }

    /// How long to wait for events: until something is due.
    fn wait(&self, current: &ActiveSegment, over: bool) -> u64 {
        if self.job.wait == Wait::Spin && current.schedule.is_some() {
            return 0;
        }
        let mut until = self.scanned + SCAN_NS;
        if !over {
            until = until.min(current.end);
            if current.cpu_from.is_none() {
                until = until.min(current.from);
            }
            if let Some(row_ns) = current.row_ns {
                until = until.min(current.row_from + row_ns);
            }
            if let Some(schedule) = &current.schedule
                && current.left > 0
            {
                until = until.min(schedule.next_ns());
            }
        }
        until.saturating_sub(os::now_ns())
    }

    /// Notes what belongs to the window's two ends once each has passed.
    fn cross_edges(&mut self, current: &mut ActiveSegment) {
        if current.cpu_from.is_none() && self.now >= current.from {
            current.cpu_from = Some(os::thread_cpu_ns());
            current.idle_from = current.idle;
            if self.thread == 0 {
                self.say(Progress::WindowOpens {
                    segment: current.number,
                });
            }
        }
        if current.cpu_end.is_none() && self.now >= current.end {
            current.cpu_end = Some(os::thread_cpu_ns());
            current.idle_end = current.idle;
            let lane = &self.conns[self.conns_of[current.target].clone()];
            current.open = match current.segment.stop {
                // After the last request of a count connections have nothing more to do.
                Stop::Requests(_) | Stop::EachConnection(_) => lane.len() as u64,
                Stop::After(_) => lane
                    .iter()
                    .filter(|conn| matches!(conn.state, State::Idle | State::Waiting))
                    .count() as u64,
            };
            if self.thread == 0 {
                self.say(Progress::WindowCloses {
                    segment: current.number,
                });
            }
        }
    }

    /// Tells the rows that are over.
    fn turn_rows(&mut self, current: &mut ActiveSegment) {
        let Some(row_ns) = current.row_ns else { return };
        while self.now >= current.row_from + row_ns && current.row_from + row_ns <= current.end {
            self.turn_row(current, row_ns);
        }
    }

    fn turn_row(&mut self, current: &mut ActiveSegment, duration_ns: u64) {
        let recorder = &mut self.recorders[current.recorder];
        recorder.row.row.start_s = (current.row_from - current.from) as f64 / 1e9;
        recorder.row.row.duration_s = duration_ns as f64 / 1e9;
        if let Some((notes, reading)) = recorder.turn_row(true).zip(current.segment.reading) {
            let _ = self.tell.send(Message::Rows(RowMessage::Row {
                thread: self.thread,
                segment: current.number,
                reading,
                number: current.row_number,
                notes: Box::new(notes),
            }));
        }
        current.row_number += 1;
        current.row_from += duration_ns;
    }

    fn say(&self, progress: Progress) {
        // Nobody listens any more when the load was given up.
        let _ = self.tell.send(Message::Progress(progress));
    }

    fn end(&mut self, mut current: ActiveSegment) {
        // The last row: what is left of the window, with the answers that came after its end.
        let mut left = current.end.saturating_sub(current.row_from);
        if current.schedule.is_some() && self.row_is_begun(&current) {
            left = left.max(current.last_done.saturating_sub(current.row_from));
        }
        if current.row_ns.is_some() && (left > 0 || self.row_is_begun(&current)) {
            self.turn_row(&mut current, left);
        }
        if current.row_ns.is_some() {
            let _ = self.tell.send(Message::Rows(RowMessage::Over {
                thread: self.thread,
                segment: current.number,
            }));
        }
        let lane = self.conns_of[current.target].clone();
        let recorder = &mut self.recorders[current.recorder];
        recorder.turn_row(false);
        if current.segment.reading.is_some() {
            recorder.by_conn.resize(lane.len(), 0);
            for (sum, conn) in recorder.by_conn.iter_mut().zip(&self.conns[lane]) {
                *sum += conn.answers;
            }
        }
        let recorder = &mut self.recorders[current.recorder];
        recorder.requests += current.requests;
        let cpu = current.cpu_end.unwrap_or(0);
        let cpu_ns = cpu
            .saturating_sub(current.cpu_from.unwrap_or(cpu))
            .saturating_sub(current.idle_end - current.idle_from);
        recorder.slices.push(Slice {
            start_s: (current.from - current.start) as f64 / 1e9,
            duration_s: current.end.saturating_sub(current.from) as f64 / 1e9,
            requests: current.requests,
            errors: current.errors,
            client_cpu_s: cpu_ns as f64 / 1e9,
            edges: current.edges,
        });
        recorder.open.push(current.open);
    }

    fn row_is_begun(&self, current: &ActiveSegment) -> bool {
        let row = &self.recorders[current.recorder].row.row;
        row.requests + row.errors > 0
    }
}
