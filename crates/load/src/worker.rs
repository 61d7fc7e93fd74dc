//! One thread of the load: its event loop, its connections, its notes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use net::http::Progress as Parsing;
use net::{Buf, ConnId, Event, Io, IoOptions, PayloadId, TargetId, os};
use readings::{Pacing, Slice, Wrong, WrongKind};

use crate::barrier::Barrier;
use crate::conn::{Conn, State};
use crate::job::{Job, Stint, Stop};
use crate::pacing::Schedule;
use crate::record::Recorder;
use crate::run::{LoadError, Progress};

/// Time limits are looked at this often.
const SCAN_NS: u64 = 20_000_000;
/// Counts are told this often.
const TICK_NS: u64 = 250_000_000;
/// A connection that could not be opened is tried again after this.
const REST_NS: u64 = 10_000_000;
/// After a stop from outside, answers under way are awaited this long.
const STOP_DRAIN_NS: u64 = 200_000_000;

/// The stint under way.
struct Current {
    number: usize,
    lane: usize,
    stint: Stint,
    /// Where its answers are noted; the last recorder takes warm-ups.
    recorder: usize,
    start: u64,
    from: u64,
    /// End of the window: known from the start, or `u64::MAX` until the last request is done.
    end: u64,
    /// Requests still to be issued when the stint ends by count.
    left: u64,
    schedule: Option<Schedule>,
    requests: u64,
    errors: u64,
    cpu_from: Option<u64>,
    cpu_end: Option<u64>,
    open: u64,
    last_done: u64,
}

pub(crate) struct Worker<I: Io> {
    io: I,
    job: Arc<Job>,
    thread: usize,
    tell: Sender<Progress>,
    targets: Vec<(TargetId, PayloadId)>,
    conns: Vec<Conn>,
    lanes: Vec<Range<usize>>,
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

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

impl<I: Io> Worker<I> {
    pub(crate) fn open(
        job: Arc<Job>,
        thread: usize,
        tell: Sender<Progress>,
    ) -> Result<Self, LoadError> {
        let mut conns = Vec::new();
        let mut lanes = Vec::new();
        for lane in &job.lanes {
            let first = conns.len();
            let share = job.share(u64::from(lane.connections), thread) as usize;
            let is_head = lane.target.is_head();
            conns.resize_with(first + share, || Conn::new(is_head));
            lanes.push(first..conns.len());
        }
        let options = IoOptions {
            // Twice as many: a slot is free again only when the kernel has let go of it.
            outgoing: (conns.len() as u32 * 2).max(16),
            accepted: 0,
            buffers: 256,
            buffer_size: 16 * 1024,
        };
        let mut io = I::open(options).map_err(|source| LoadError::Open {
            connections: conns.len() as u64,
            source,
        })?;
        let targets = job
            .lanes
            .iter()
            .map(|lane| {
                let target = io.add_target(lane.target.address, &job.sources);
                let payload = io.add_payload(Arc::from(lane.target.request.as_slice()));
                (target, payload)
            })
            .collect();
        let mut recorders: Vec<Recorder> = (0..=job.readings())
            .map(|_| Recorder::new(Pacing::Closed, 0))
            .collect();
        for stint in &job.stints {
            if let Some(reading) = stint.reading {
                recorders[reading].pacing = stint.pacing;
                recorders[reading].lane = stint.lane;
            }
        }
        Ok(Self {
            io,
            thread,
            tell,
            targets,
            by_slot: vec![0; options.slots()],
            conns,
            lanes,
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
        for (number, stint) in job.stints.iter().enumerate() {
            // What came for idle connections in the meantime is handled before the start.
            self.settle()?;
            let Some(start) = barrier.meet() else { break };
            let mut current = self.begin(number, stint, start);
            self.stint(&mut current, stop)?;
            self.end(current);
            if stop.load(Ordering::Relaxed) {
                barrier.break_up();
                break;
            }
        }
        self.recorders.pop();
        Ok(self.recorders)
    }

    fn begin(&mut self, number: usize, stint: &Stint, start: u64) -> Current {
        let from = start + ns(stint.cut);
        let (end, left) = match stint.stop {
            Stop::After(time) => (from + ns(time), u64::MAX),
            Stop::Requests(total) => (u64::MAX, self.job.share(total, self.thread)),
        };
        let schedule = match stint.pacing {
            Pacing::Closed => None,
            Pacing::Open { rate_per_s } => Some(Schedule::new(
                self.job.arrivals,
                rate_per_s,
                start,
                self.thread,
                self.job.threads,
                self.job.seed.wrapping_add(number as u64),
            )),
        };
        Current {
            number,
            lane: stint.lane,
            recorder: stint.reading.unwrap_or(self.recorders.len() - 1),
            stint: stint.clone(),
            start,
            from,
            end,
            left,
            schedule,
            requests: 0,
            errors: 0,
            cpu_from: None,
            cpu_end: None,
            open: 0,
            last_done: start,
        }
    }

    /// Handles events while no stint is under way.
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

    fn stint(&mut self, current: &mut Current, stop: &AtomicBool) -> Result<(), LoadError> {
        if self.thread == 0 {
            let _ = self.tell.send(Progress::StintBegins {
                stint: current.number,
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
        let lane = self.lanes[current.lane].clone();
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
            self.now = os::now_ns();
            self.cross_edges(current);
            if stopped.is_none() && stop.load(Ordering::Relaxed) {
                current.end = current.end.min(self.now);
                current.left = 0;
                stopped = Some(self.now + STOP_DRAIN_NS);
                self.cross_edges(current);
            }
            let over = self.now >= current.end;
            if !over {
                self.issue_due(current);
            }
            let exhausted = current.left == 0 && self.backlog.is_empty();
            if self.busy == 0 && (over || exhausted) {
                break;
            }
            if stopped.is_some_and(|until| self.now >= until) {
                self.abandon(current.lane);
                break;
            }
            self.io
                .poll(Some(self.wait(current, over)))
                .map_err(LoadError::Loop)?;
            while let Some(event) = self.io.next_event() {
                self.handle(current, event);
            }
            if self.now >= self.scanned + SCAN_NS {
                self.scan(current);
            }
            if self.now >= self.ticked + TICK_NS {
                self.tick(current);
            }
        }
        self.now = os::now_ns();
        // Due requests that no connection could take.
        while let Some(due) = self.backlog.pop_front() {
            let inside = due >= current.from && due < current.end;
            self.count_error(current, inside, |e| &mut e.timeout);
        }
        if current.end == u64::MAX {
            current.end = current.last_done.max(current.from + 1);
        }
        self.cross_edges(current);
        self.tick(current);
        if self.thread == 0 {
            let _ = self.tell.send(Progress::StintEnds {
                stint: current.number,
            });
        }
        Ok(())
    }

    /// How long to wait for events: until something is due.
    fn wait(&self, current: &Current, over: bool) -> u64 {
        let mut until = self.scanned + SCAN_NS;
        if !over {
            until = until.min(current.end);
            if current.cpu_from.is_none() {
                until = until.min(current.from);
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
    fn cross_edges(&mut self, current: &mut Current) {
        if current.cpu_from.is_none() && self.now >= current.from {
            current.cpu_from = Some(os::thread_cpu_ns());
            if self.thread == 0 {
                let _ = self.tell.send(Progress::WindowOpens {
                    stint: current.number,
                });
            }
        }
        if current.cpu_end.is_none() && self.now >= current.end {
            current.cpu_end = Some(os::thread_cpu_ns());
            current.open = self.conns[self.lanes[current.lane].clone()]
                .iter()
                .filter(|conn| matches!(conn.state, State::Idle | State::Waiting))
                .count() as u64;
            if self.thread == 0 {
                let _ = self.tell.send(Progress::WindowCloses {
                    stint: current.number,
                });
            }
        }
    }

    fn end(&mut self, current: Current) {
        let recorder = &mut self.recorders[current.recorder];
        recorder.requests += current.requests;
        let cpu = current.cpu_end.unwrap_or(0);
        let cpu_ns = cpu.saturating_sub(current.cpu_from.unwrap_or(cpu));
        recorder.slices.push(Slice {
            start_s: (current.from - current.start) as f64 / 1e9,
            duration_s: current.end.saturating_sub(current.from) as f64 / 1e9,
            requests: current.requests,
            errors: current.errors,
            client_cpu_s: cpu_ns as f64 / 1e9,
        });
        recorder.open.push(current.open);
    }

    /// Issues the requests of an open loop that are due.
    fn issue_due(&mut self, current: &mut Current) {
        while current.left > 0 {
            let Some(schedule) = &mut current.schedule else {
                return;
            };
            let due = schedule.next_ns();
            if due > self.now || due >= current.end {
                return;
            }
            schedule.advance();
            if current.left != u64::MAX {
                current.left -= 1;
            }
            // How late this loop is; waiting for a free connection is the servers' doing, and shows
            // in the response time.
            if due >= current.from {
                let late = self.now.saturating_sub(due);
                self.recorders[current.recorder]
                    .schedule_lag
                    .record_ns(late);
            }
            self.backlog.push_back(due);
            self.serve_backlog(current);
        }
    }

    /// Gives due requests to connections that are free.
    fn serve_backlog(&mut self, current: &mut Current) {
        while !self.backlog.is_empty() {
            let Some(number) = self.idle.pop_front() else {
                return;
            };
            if let Some(due) = self.backlog.pop_front() {
                self.start(current, number as usize, due);
            }
        }
    }

    /// In a closed loop: the connection's next request, if there is one.
    fn issue(&mut self, current: &mut Current, number: usize, now: u64) {
        if current.left == 0 || now >= current.end {
            return;
        }
        if current.left != u64::MAX {
            current.left -= 1;
        }
        self.start(current, number, now);
    }

    /// Sends a request on a connection, opening it if need be.
    fn start(&mut self, current: &mut Current, number: usize, intended: u64) {
        let (target, payload) = self.targets[current.lane];
        let now = os::now_ns();
        let conn = &mut self.conns[number];
        conn.begin(intended);
        self.busy += 1;
        if let Some(id) = conn.id {
            conn.state = State::Waiting;
            conn.sent = now;
            conn.requests += 1;
            self.io.send(id, payload);
            return;
        }
        conn.since = now;
        conn.requests = 1;
        conn.parser.reset();
        match self.io.connect(target, Some(payload)) {
            Ok(id) => {
                conn.id = Some(id);
                conn.state = State::Connecting;
                self.by_slot[id.slot()] = number as u32;
            }
            Err(e) => {
                conn.state = State::Connecting;
                let errno = e.raw_os_error().unwrap_or(0);
                self.could_not_connect(current, number, errno);
            }
        }
    }

    fn handle(&mut self, current: &mut Current, event: Event) {
        match event {
            Event::Data { conn, buf } => {
                self.data(current, conn, &buf);
                self.io.recycle(buf);
            }
            Event::Connected { conn: id } => {
                let number = self.by_slot[id.slot()] as usize;
                let conn = &mut self.conns[number];
                if conn.id != Some(id) || conn.state != State::Connecting {
                    return;
                }
                let now = os::now_ns();
                conn.state = State::Waiting;
                conn.sent = now;
                let took = now - conn.since;
                let recorder = &mut self.recorders[current.recorder];
                recorder.connects += 1;
                if now >= current.from && now < current.end {
                    recorder.connect.record_ns(took);
                }
            }
            Event::ConnectFailed { conn: id, errno } => {
                let number = self.by_slot[id.slot()] as usize;
                if self.conns[number].id == Some(id) {
                    self.could_not_connect(current, number, errno);
                }
            }
            Event::Eof { conn: id } => self.ended(current, id, 0),
            Event::Failed { conn: id, errno } => self.ended(current, id, errno),
            Event::Accepted { .. } | Event::AcceptFailed { .. } | Event::Drained { .. } => {}
        }
    }

    fn data(&mut self, current: &mut Current, id: ConnId, buf: &Buf) {
        let number = self.by_slot[id.slot()] as usize;
        let conn = &mut self.conns[number];
        if conn.id != Some(id) {
            return;
        }
        if conn.state != State::Waiting {
            // An answer that nobody asked for: the connection is of no more use.
            let busy = conn.is_busy();
            if busy {
                self.protocol_error(current, number, "an answer before the request was sent");
            } else {
                self.close(number);
            }
            return;
        }
        let now = os::now_ns();
        if conn.first_byte == 0 {
            conn.first_byte = now;
        }
        conn.bytes += buf.len() as u64;
        let rule = &self.job.lanes[current.lane].target.expect.body;
        let check = &mut conn.check;
        match conn
            .parser
            .feed(self.io.bytes(buf), |piece| check.take(rule, piece))
        {
            Ok(Parsing::More) => {}
            Ok(Parsing::Done { taken }) => {
                let surplus = taken < buf.len();
                self.complete(current, number, now, surplus);
            }
            Err(e) => self.protocol_error(current, number, &e.to_string()),
        }
    }

    /// An answer is complete.
    fn complete(&mut self, current: &mut Current, number: usize, now: u64, surplus: bool) {
        let conn = &mut self.conns[number];
        let head = conn.parser.head();
        let target = &self.job.lanes[current.lane].target;
        let wrong = target
            .expect
            .judge(head.status, target.is_head(), &conn.check);
        let inside = match current.stint.pacing {
            Pacing::Closed => now >= current.from && now < current.end,
            Pacing::Open { .. } => conn.intended >= current.from && conn.intended < current.end,
        };
        let recorder = &mut self.recorders[current.recorder];
        if let Some(count) = recorder.statuses.get_mut(head.status as usize) {
            *count += 1;
        }
        if inside {
            recorder.bytes_read += conn.bytes;
        }
        current.last_done = now;
        match wrong {
            None => {
                recorder.requests_all += 1;
                self.tick_requests += 1;
                if inside {
                    current.requests += 1;
                    recorder
                        .response
                        .record_ns(now.saturating_sub(conn.intended));
                    recorder.service.record_ns(now.saturating_sub(conn.sent));
                    recorder
                        .first_byte
                        .record_ns(conn.first_byte.saturating_sub(conn.sent));
                    recorder
                        .transfer
                        .record_ns(now.saturating_sub(conn.first_byte));
                }
            }
            Some(wrong) => {
                let kind = wrong.kind;
                recorder.keep_wrong(wrong);
                match kind {
                    WrongKind::Status => self.count_error(current, inside, |e| &mut e.status),
                    _ => self.count_error(current, inside, |e| &mut e.verify),
                }
            }
        }
        let conn = &self.conns[number];
        let used_up = self
            .job
            .requests_per_connection
            .is_some_and(|most| conn.requests >= most);
        if !head.keep_alive || used_up || surplus {
            self.close(number);
        } else {
            self.conns[number].state = State::Idle;
        }
        self.free(current, number);
    }

    /// The connection's request is over, for good or ill: on to the next.
    fn free(&mut self, current: &mut Current, number: usize) {
        self.busy = self.busy.saturating_sub(1);
        if current.schedule.is_some() {
            self.idle.push_back(number as u32);
            self.serve_backlog(current);
        } else {
            self.issue(current, number, os::now_ns());
        }
    }

    fn count_error(
        &mut self,
        current: &mut Current,
        inside: bool,
        count: fn(&mut readings::ErrorCounts) -> &mut u64,
    ) {
        let recorder = &mut self.recorders[current.recorder];
        *count(&mut recorder.errors_all) += 1;
        self.tick_errors += 1;
        if inside {
            *count(&mut recorder.errors) += 1;
            current.errors += 1;
        }
    }

    /// A request ended without an answer.
    fn fail(
        &mut self,
        current: &mut Current,
        number: usize,
        count: fn(&mut readings::ErrorCounts) -> &mut u64,
        wrong: Wrong,
    ) {
        let now = os::now_ns();
        let conn = &self.conns[number];
        let inside = match current.stint.pacing {
            Pacing::Closed => now >= current.from && now < current.end,
            Pacing::Open { .. } => conn.intended >= current.from && conn.intended < current.end,
        };
        self.recorders[current.recorder].keep_wrong(wrong);
        self.count_error(current, inside, count);
        current.last_done = now;
        self.close(number);
    }

    fn protocol_error(&mut self, current: &mut Current, number: usize, found: &str) {
        let wrong = Wrong {
            kind: WrongKind::Protocol,
            expected: "an HTTP/1.1 answer".to_string(),
            found: found.to_string(),
        };
        self.fail(current, number, |e| &mut e.read, wrong);
        self.free(current, number);
    }

    fn could_not_connect(&mut self, current: &mut Current, number: usize, errno: i32) {
        let mut found = std::io::Error::from_raw_os_error(errno).to_string();
        if errno == libc_errno::EADDRNOTAVAIL {
            found.push_str(
                ": no local port is free; widen net.ipv4.ip_local_port_range, set \
                 net.ipv4.tcp_tw_reuse=1, or give several source addresses",
            );
        }
        let wrong = Wrong {
            kind: WrongKind::Connection,
            expected: "an open connection".to_string(),
            found,
        };
        self.fail(current, number, |e| &mut e.connect, wrong);
        // A rest, so that a dead server is not asked a million times a second.
        self.busy = self.busy.saturating_sub(1);
        let conn = &mut self.conns[number];
        conn.state = State::Resting;
        conn.since = os::now_ns() + REST_NS;
    }

    /// The connection ended, by its peer's will or by a failure.
    fn ended(&mut self, current: &mut Current, id: ConnId, errno: i32) {
        let number = self.by_slot[id.slot()] as usize;
        let conn = &mut self.conns[number];
        if conn.id != Some(id) {
            return;
        }
        if !conn.is_busy() {
            // An idle connection may be closed; it is opened again when it is needed.
            self.close(number);
            return;
        }
        if errno == 0 && conn.parser.end() {
            let now = os::now_ns();
            self.complete(current, number, now, true);
            return;
        }
        let found = match (errno, conn.bytes) {
            (0, 0) => "the connection closed before an answer".to_string(),
            (0, bytes) => format!("the connection closed after {bytes} bytes of an answer"),
            (errno, _) => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        let wrong = Wrong {
            kind: WrongKind::Connection,
            expected: "a complete answer".to_string(),
            found,
        };
        let sending = conn.state == State::Connecting || errno == libc_errno::EPIPE;
        if sending {
            self.fail(current, number, |e| &mut e.write, wrong);
        } else {
            self.fail(current, number, |e| &mut e.read, wrong);
        }
        self.free(current, number);
    }

    fn close(&mut self, number: usize) {
        let conn = &mut self.conns[number];
        if let Some(id) = conn.id.take() {
            self.io.close(id);
        }
        conn.state = State::Closed;
        conn.parser.reset();
    }

    /// Gives up what is under way on a lane.
    fn abandon(&mut self, lane: usize) {
        for number in self.lanes[lane].clone() {
            if self.conns[number].is_busy() {
                self.close(number);
            }
        }
        self.busy = 0;
    }

    /// Looks at time limits, and wakes connections that rested.
    fn scan(&mut self, current: &mut Current) {
        self.now = os::now_ns();
        self.scanned = self.now;
        let (connect, answer) = (ns(self.job.connect_timeout), ns(self.job.timeout));
        for number in self.lanes[current.lane].clone() {
            let conn = &self.conns[number];
            let (late, what, limit) = match conn.state {
                State::Connecting => (self.now > conn.since + connect, "a connection", connect),
                State::Waiting => (self.now > conn.sent + answer, "a complete answer", answer),
                State::Resting if self.now >= conn.since => {
                    self.conns[number].state = State::Closed;
                    self.busy += 1;
                    self.free(current, number);
                    continue;
                }
                _ => continue,
            };
            if late {
                let wrong = Wrong {
                    kind: WrongKind::Connection,
                    expected: format!("{what} within {:?}", Duration::from_nanos(limit)),
                    found: "none".to_string(),
                };
                self.fail(current, number, |e| &mut e.timeout, wrong);
                self.free(current, number);
            }
        }
        // Due requests that found no connection in all that time will not be answered in time.
        while let Some(&due) = self.backlog.front() {
            if self.now <= due.saturating_add(answer) {
                break;
            }
            self.backlog.pop_front();
            let inside = due >= current.from && due < current.end;
            self.count_error(current, inside, |e| &mut e.timeout);
        }
    }

    fn tick(&mut self, current: &Current) {
        self.ticked = self.now;
        let _ = self.tell.send(Progress::Tick {
            thread: self.thread,
            stint: current.number,
            requests: std::mem::take(&mut self.tick_requests),
            errors: std::mem::take(&mut self.tick_errors),
        });
    }
}

/// The two error numbers that this room tells apart; the same on every Linux.
mod libc_errno {
    pub(super) const EPIPE: i32 = 32;
    pub(super) const EADDRNOTAVAIL: i32 = 99;
}
