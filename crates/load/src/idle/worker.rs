//! One thread with idle connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use net::{ConnId, Event, Io, TLS_FAILED, TargetId, os};
use readings::{IdleEnd, IdleReading};

use super::error::why;
use super::opening::{Script, Session, Speech, Step, answer_at_rest};
use super::{IdleError, OPENING_MAX, Part, Reached, Shared, WHOLE, own_of};
use crate::job::target::Target;
use crate::ns;
use crate::progress::LoadError;

/// How long a thread sleeps where nothing happens: while it opens connections, and later.
const OPENING_WAIT_NS: u64 = 5_000_000;
const IDLE_WAIT_NS: u64 = 100_000_000;
/// Pause after each [`OPENING_MAX`] connections on which the server has nothing to answer: it may not
/// have accepted them yet.
const SILENT_PAUSE_NS: u64 = 2_000_000;
/// Pause after a connection that could not be opened.
const FAILURE_PAUSE_NS: u64 = 10_000_000;
/// So many turns of 10 ms are given to closing.
const CLOSING_TURNS: u32 = 5;

/// A connection, by its slot.
#[derive(Clone, Copy)]
struct Held {
    id: ConnId,
    /// When opening began, and from when on it is idle, ms since the thread began.
    since_ms: u32,
    /// Number of the target with [`Held::IDLE`] where it is idle.
    target: u32,
}

impl Held {
    const IDLE: u32 = 1 << 31;

    fn target(self) -> usize {
        (self.target & !Self::IDLE) as usize
    }

    fn is_idle(self) -> bool {
        self.target & Self::IDLE != 0
    }
}

/// The idle connections to a target.
struct Goal<'j> {
    target: &'j Target,
    id: TargetId,
    script: Script<'j>,
    /// Those of all threads of this machine.
    all: u64,
    wanted: u64,
    opening: u64,
    open: u64,
    /// Time that opening the parts before took, s.
    before_s: f64,
    /// The interval of pings, ms.
    ping_every_ms: Option<u32>,
    reading: IdleReading,
}

pub(super) struct IdleWorker<'j, I: Io> {
    io: I,
    part: &'j Part<'j>,
    /// By target.
    goals: Vec<Option<Goal<'j>>>,
    /// By slot.
    held: Vec<Option<Held>>,
    /// Connections that have begun to speak, by slot.
    speeches: BTreeMap<usize, Speech>,
    /// Idle connections that have to be answered, by slot; empty without.
    sessions: Vec<Option<Session>>,
    /// When each idle connection sends its next ping, ms, by slot; empty where none does.
    pings_ms: Vec<u32>,
    /// Those being opened, the oldest first; some have ended since.
    opening: VecDeque<(u64, ConnId)>,
    /// When the next may be opened.
    next_ns: u64,
    began_ns: u64,
    /// When the part that is being opened was asked for, ms.
    asked_ms: u32,
    openings: u64,
    out: Vec<u8>,
}

impl<'j, I: Io> IdleWorker<'j, I> {
    pub(super) fn new(mut io: I, part: &'j Part<'j>, slots: usize) -> Self {
        let job = part.job;
        let goals = job.targets.iter().enumerate().map(|(number, target)| {
            let idle = target.idle?;
            let all = own_of(job, number);
            let tls = target.tls.as_ref().map(|_| number as u32);
            let id = io.add_tls_target(&target.address, &part.sources[number], tls);
            Some(Goal {
                target,
                id,
                script: Script::of(target, idle.is_silent)?,
                all,
                wanted: 0,
                opening: 0,
                open: 0,
                before_s: 0.0,
                ping_every_ms: idle
                    .ping_every
                    .map(|every| (every.as_millis() as u32).max(1)),
                reading: IdleReading {
                    connections: part.of(all),
                    is_silent: idle.is_silent,
                    ..IdleReading::default()
                },
            })
        });
        let goals: Vec<Option<Goal<'_>>> = goals.collect();
        let answers = |one: &Target| one.http2.is_some() || one.traffic.websocket().is_some();
        let has_sessions = job.targets.iter().any(answers);
        let mut all = goals.iter().flatten();
        let has_pings = all.any(|goal| goal.ping_every_ms.is_some());
        let began_ns = io.now_ns();
        Self {
            io,
            part,
            goals,
            held: vec![None; slots],
            speeches: BTreeMap::new(),
            sessions: (0..if has_sessions { slots } else { 0 })
                .map(|_| None)
                .collect(),
            pings_ms: vec![0; if has_pings { slots } else { 0 }],
            opening: VecDeque::new(),
            next_ns: 0,
            began_ns,
            asked_ms: 0,
            openings: part.thread as u64,
            out: Vec::new(),
        }
    }

    pub(super) fn run(
        mut self,
        shared: &Shared,
        reached: &Sender<Reached>,
    ) -> Result<Vec<Option<IdleReading>>, LoadError> {
        let mut wanted = 0;
        let mut is_told = true;
        while !shared.is_over.load(Ordering::Acquire) {
            let now_wanted = shared.wanted.load(Ordering::Acquire);
            if now_wanted != wanted {
                wanted = now_wanted;
                is_told = false;
                self.want(wanted);
            }
            self.open_more()?;
            let is_busy = self.lacks() || !self.opening.is_empty();
            if !is_busy && !is_told {
                is_told = true;
                self.io.release_memory();
                // The holder may have been dropped.
                let _ = reached.send(Reached(wanted));
            }
            let wait_ns = if is_busy {
                OPENING_WAIT_NS
            } else {
                IDLE_WAIT_NS
            };
            self.io.poll(Some(wait_ns)).map_err(LoadError::Loop)?;
            let before = self.open();
            while let Some(event) = self.io.next_event() {
                self.handle(event)?;
            }
            self.expire()?;
            self.ping();
            let now = self.open();
            // Of several threads each adds its own.
            shared
                .open
                .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
        self.close_all()?;
        let readings = self.goals.into_iter();
        let readings = readings.map(|goal| goal.map(|goal| goal.reading));
        Ok(readings.collect())
    }

    /// Takes how many connections there are to be.
    fn want(&mut self, part: u32) {
        self.asked_ms = self.ms(self.io.now_ns());
        for goal in self.goals.iter_mut().flatten() {
            let all = (goal.all * u64::from(part)).div_ceil(u64::from(WHOLE));
            goal.before_s = goal.reading.opening_s;
            // What the server has ended is not opened again.
            goal.wanted = self
                .part
                .of(all)
                .saturating_sub(goal.reading.closed_count());
        }
    }

    fn lacks(&self) -> bool {
        let mut goals = self.goals.iter().flatten();
        goals.any(|goal| goal.open + goal.opening < goal.wanted)
    }

    fn open(&self) -> u64 {
        self.goals.iter().flatten().map(|goal| goal.open).sum()
    }

    fn open_more(&mut self) -> Result<(), LoadError> {
        let now = self.io.now_ns();
        if now < self.next_ns {
            return Ok(());
        }
        let mut is_silent = false;
        for number in 0..self.goals.len() {
            while let Some(goal) = &mut self.goals[number]
                && goal.open + goal.opening < goal.wanted
                && self.opening.len() < OPENING_MAX
            {
                is_silent |= goal.script.is_over_at_once();
                match self.io.connect(goal.id, None) {
                    Ok(id) => {
                        goal.opening += 1;
                        self.opening.push_back((now, id));
                        self.held[id.slot()] = Some(Held {
                            id,
                            since_ms: self.ms(now),
                            target: number as u32,
                        });
                        self.announce_before_handshake(number, id);
                    }
                    Err(error) => {
                        self.fail_to_open(number, why(&error))?;
                        break;
                    }
                }
            }
        }
        if is_silent {
            self.next_ns = self.next_ns.max(now + SILENT_PAUSE_NS);
        }
        Ok(())
    }

    /// Sends the PROXY protocol header of a connection whose TLS handshake follows it.
    fn announce_before_handshake(&mut self, number: usize, id: ConnId) {
        if let Some(goal) = &self.goals[number]
            && goal.target.tls.is_some()
            && goal.target.proxy_header.is_some()
        {
            let mut header = Vec::new();
            goal.target.preamble(self.openings, &mut header);
            self.openings += self.part.threads as u64;
            self.io.send_before_handshake(id, &header);
        }
    }

    fn ms(&self, now_ns: u64) -> u32 {
        u32::try_from((now_ns - self.began_ns) / 1_000_000).unwrap_or(u32::MAX)
    }

    fn handle(&mut self, event: Event) -> Result<(), LoadError> {
        match event {
            Event::Connected { conn } => self.connected(conn),
            Event::Data { conn, buf } => {
                let step = self.take(conn, &buf);
                self.io.recycle(buf);
                match step {
                    Step::More => Ok(()),
                    Step::Done => {
                        self.rests(conn);
                        Ok(())
                    }
                    Step::Ended => {
                        let why = "the server closed the WebSocket";
                        self.lost(conn, IdleEnd::Closed, why.into())
                    }
                    Step::Failed(why) => self.lost(conn, IdleEnd::Failed, why),
                }
            }
            Event::Eof { conn } => {
                let why = "the server closed the connection before it had answered";
                self.lost(conn, IdleEnd::Closed, why.into())
            }
            Event::ConnectFailed { conn, errno } | Event::Failed { conn, errno } => {
                let (how, why) = self.described(conn, errno);
                self.lost(conn, how, why)
            }
            _ => Ok(()),
        }
    }

    fn described(&self, conn: ConnId, errno: i32) -> (IdleEnd, String) {
        /// `ECONNRESET`
        const RESET: i32 = 104;
        let error = std::io::Error::from_raw_os_error(errno);
        let why = match self.io.failure(conn) {
            Some(tls) if errno == TLS_FAILED => tls.to_owned(),
            _ => why(&error),
        };
        match errno {
            RESET => (IdleEnd::Reset, why),
            _ => (IdleEnd::Failed, why),
        }
    }

    fn connected(&mut self, conn: ConnId) -> Result<(), LoadError> {
        let Some(held) = self.held[conn.slot()] else {
            return Ok(());
        };
        let Some(goal) = &self.goals[held.target()] else {
            return Ok(());
        };
        let handshake = self.io.handshake(conn);
        let speaks_http2 = handshake.is_some_and(|one| one.alpn == Some("h2"));
        if goal.target.http2.is_some() && goal.target.tls.is_some() && !speaks_http2 {
            let why = "the server did not choose HTTP/2 (ALPN)";
            return self.lost(conn, IdleEnd::Failed, why.into());
        }
        self.out.clear();
        if goal.target.tls.is_none() && goal.target.proxy_header.is_some() {
            goal.target.preamble(self.openings, &mut self.out);
            self.openings += self.part.threads as u64;
        }
        let speech = goal.script.begin(&mut self.out);
        let is_over = goal.script.is_over_at_once();
        if !self.out.is_empty() {
            self.io.send_copy(conn, &self.out);
        }
        match is_over {
            true => self.rests(conn),
            false => drop(self.speeches.insert(conn.slot(), speech)),
        }
        Ok(())
    }

    /// Takes bytes that arrived; of an idle connection of HTTP/1.1 they mean nothing.
    fn take(&mut self, conn: ConnId, buf: &net::Buf) -> Step {
        let slot = conn.slot();
        let Some(held) = self.held[slot] else {
            return Step::More;
        };
        let bytes = self.io.bytes(buf);
        self.out.clear();
        let step = match (self.speeches.get_mut(&slot), &self.goals[held.target()]) {
            (Some(speech), Some(goal)) => goal.script.take(speech, bytes, &mut self.out),
            _ => match self.sessions.get_mut(slot).and_then(Option::as_mut) {
                Some(session) => {
                    let step = answer_at_rest(session, bytes, &mut self.out);
                    if let Some(goal) = &mut self.goals[held.target()] {
                        goal.reading.pongs += session.take_pongs();
                    }
                    step
                }
                None => Step::More,
            },
        };
        if !self.out.is_empty() {
            self.io.send_copy(conn, &self.out);
        }
        step
    }

    /// The connection is left alone from now on.
    fn rests(&mut self, conn: ConnId) {
        let slot = conn.slot();
        let now_ms = self.ms(self.io.now_ns());
        let Some(held) = &mut self.held[slot] else {
            return;
        };
        let number = held.target();
        held.target |= Held::IDLE;
        held.since_ms = now_ms;
        self.opening.retain(|(_, id)| *id != conn);
        if let Some(speech) = self.speeches.remove(&slot)
            && let Some(session) = speech.session
        {
            self.sessions[slot] = Some(session);
        }
        if let Some(goal) = &mut self.goals[number] {
            if let Some((next_ms, every_ms)) = self.pings_ms.get_mut(slot).zip(goal.ping_every_ms) {
                // Pings of connections that were opened at once are spread over the interval.
                let spread = (slot as u64).wrapping_mul(0x9e37_79b9) % u64::from(every_ms);
                *next_ms = now_ms.saturating_add(1 + spread as u32);
            }
            goal.opening -= 1;
            goal.open += 1;
            goal.reading.opened += 1;
            let part_ms = now_ms.saturating_sub(self.asked_ms);
            goal.reading.opening_s = goal.before_s + f64::from(part_ms) / 1e3;
        }
    }

    /// Sends the pings that are due.
    fn ping(&mut self) {
        let now_ms = self.ms(self.io.now_ns());
        for (slot, next_ms) in self.pings_ms.iter_mut().enumerate() {
            let Some(held) = self.held[slot].filter(|one| one.is_idle() && *next_ms <= now_ms)
            else {
                continue;
            };
            if let Some(goal) = &mut self.goals[held.target()]
                && let Some(every_ms) = goal.ping_every_ms
                && let Some(session) = &mut self.sessions[slot]
            {
                *next_ms = now_ms.saturating_add(every_ms);
                goal.reading.pings += 1;
                self.out.clear();
                session.ping(&mut self.out);
                self.io.send_copy(held.id, &self.out);
            }
        }
    }

    /// A connection has ended.
    fn lost(&mut self, conn: ConnId, how: IdleEnd, why: String) -> Result<(), LoadError> {
        let Some(held) = self.held[conn.slot()] else {
            return Ok(());
        };
        let now_ms = self.ms(self.io.now_ns());
        self.forget(conn);
        let number = held.target();
        let Some(goal) = &mut self.goals[number] else {
            return Ok(());
        };
        if held.is_idle() {
            goal.open -= 1;
            goal.wanted = goal.wanted.saturating_sub(1);
            let after_ms = now_ms.saturating_sub(held.since_ms);
            goal.reading.close(how, f64::from(after_ms) / 1e3);
            return Ok(());
        }
        goal.opening -= 1;
        self.fail_to_open(number, why)
    }

    /// Closes a connection and forgets it.
    fn forget(&mut self, conn: ConnId) {
        let slot = conn.slot();
        self.held[slot] = None;
        self.speeches.remove(&slot);
        if let Some(session) = self.sessions.get_mut(slot) {
            *session = None;
        }
        self.opening.retain(|(_, id)| *id != conn);
        self.io.close(conn);
    }

    /// A connection could not be opened. Some are tried again.
    fn fail_to_open(&mut self, number: usize, why: String) -> Result<(), LoadError> {
        self.next_ns = self.io.now_ns() + FAILURE_PAUSE_NS;
        let Some(goal) = &mut self.goals[number] else {
            return Ok(());
        };
        goal.reading.failed += 1;
        if goal.reading.failed <= 3 + goal.reading.connections / 100 {
            return Ok(());
        }
        let error = IdleError::Opening {
            address: goal.target.address.clone(),
            open: goal.open,
            asked: goal.reading.connections,
            why,
        };
        Err(error.into())
    }

    /// Gives up connections that take too long to open.
    fn expire(&mut self) -> Result<(), LoadError> {
        let job = self.part.job;
        let limit = job.connect_timeout.max(job.timeout);
        let now = self.io.now_ns();
        while let Some((since, conn)) = self.opening.front().copied()
            && now >= since + ns(limit)
        {
            let why = match self.speeches.contains_key(&conn.slot()) {
                true => format!("no answer came within {limit:?}"),
                false => format!(
                    "it was not open within {limit:?}: the server may have reached its number of \
                     connections, or its accept queue is full (its backlog, which net.core.somaxconn \
                     bounds)"
                ),
            };
            self.lost(conn, IdleEnd::Failed, why)?;
        }
        Ok(())
    }

    fn close_all(&mut self) -> Result<(), LoadError> {
        for goal in self.goals.iter_mut().flatten() {
            goal.reading.open_at_end = goal.open;
        }
        for at in 0..self.held.len() {
            if let Some(held) = self.held[at].take() {
                self.io.close(held.id);
            }
        }
        for _ in 0..CLOSING_TURNS {
            self.io.poll(Some(10_000_000)).map_err(LoadError::Loop)?;
            while let Some(event) = self.io.next_event() {
                if let Event::Data { buf, .. } = event {
                    self.io.recycle(buf);
                }
            }
        }
        os::trim_heap();
        Ok(())
    }
}
