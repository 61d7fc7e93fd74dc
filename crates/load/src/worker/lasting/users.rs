//! Users: which request comes next on a place, when, and when its user leaves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::Io;

use crate::exchange::visit::cookies::add_field;
use crate::exchange::{Kind, User};
use crate::job::Job;
use crate::job::share::Numbers;
use crate::job::traffic::Users;
use crate::ns;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::template::Filler;
use crate::worker::Worker;
use crate::worker::segment::SegmentRun;

/// The places whose users pause, by the time at which they go on.
#[derive(Debug, Default)]
pub(in crate::worker) struct Pauses(BinaryHeap<Reverse<(u64, u32)>>);

impl Pauses {
    fn push(&mut self, until: u64, place: usize) {
        self.0.push(Reverse((until, place as u32)));
    }

    pub(in crate::worker) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the first of them goes on; `u64::MAX` if there is none.
    #[inline]
    pub(in crate::worker) fn next_ns(&self) -> u64 {
        self.0.peek().map_or(u64::MAX, |Reverse((until, _))| *until)
    }

    /// Keeps those of these places.
    fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        self.0
            .retain(|Reverse((_, place))| is_kept(*place as usize));
    }

    fn pop_due(&mut self, now: u64) -> Option<usize> {
        if self.next_ns() > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, place))| place as usize)
    }
}

/// The sessions with one target, of one thread.
#[derive(Debug)]
pub(in crate::worker) struct Sessions {
    numbers: Numbers,
    /// Users and rounds so far.
    users: u64,
    rounds: u64,
    /// The paths of the requests, where cookies are kept.
    paths: Vec<Filler>,
    cookies: Vec<u8>,
    /// When the last segment ended, ns, and whether its users go on in the next one.
    left: Option<(u64, bool)>,
}

impl Sessions {
    pub(in crate::worker) fn new(job: &Job, number: usize, thread: usize) -> Self {
        let target = &job.targets[number];
        let keeps_cookies = target.traffic.users().is_some_and(|one| one.keeps_cookies);
        let templates = (0..target.requests.len()).filter(|_| keeps_cookies);
        let path = |request| match target.template(request) {
            // The path comes first in its request.
            Some(template) => Filler::new(&template.path, 0).0,
            None => Filler::default(),
        };
        Self {
            numbers: job.numbers(number, thread),
            users: 0,
            rounds: 0,
            paths: templates.map(path).collect(),
            cookies: Vec::new(),
            left: None,
        }
    }

    pub(in crate::worker) fn next_user(&mut self) -> u64 {
        self.users += 1;
        self.numbers.at(self.users - 1)
    }

    fn next_round(&mut self) -> u64 {
        self.rounds += 1;
        self.numbers.at(self.rounds - 1)
    }
}

/// Leaves the path of a request's target, which may be in absolute form (RFC 9112, 3.2.2).
fn keep_path(target: &mut Vec<u8>) {
    if let Some(end) = target.iter().position(|byte| *byte == b'?') {
        target.truncate(end);
    }
    if !target.starts_with(b"/")
        && let Some(at) = memchr::memmem::find(target, b"://")
    {
        let host = at + b"://".len();
        let path = memchr::memchr(b'/', &target[host..]);
        target.drain(..path.map_or(target.len(), |path| host + path));
        if target.is_empty() {
            target.push(b'/');
        }
    }
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    fn user(&mut self, number: usize) -> Option<&mut User> {
        self.conns[number].exchange.user()
    }

    /// Fills in a step of the user on a place.
    fn fill_in(&mut self, target: usize, number: usize, step: usize) {
        let Some(numbered) = &mut self.pickers[target].numbered else {
            return;
        };
        let (sessions, job) = (&mut self.sessions[target], &self.job);
        let target = &job.targets[target];
        let conn = &mut self.conns[number];
        let Some(user) = conn.exchange.user() else {
            return;
        };
        let row = user.number.unwrap_or_default();
        let of_round = user.round.wrapping_mul(target.requests.len() as u64);
        let request = of_round.wrapping_add(step as u64);
        let (of, captured) = ((request, row), user.captured.as_slice());
        numbered.render_of(step, of, captured, &mut conn.rendered);
        let Some(path) = sessions.paths.get(step) else {
            return;
        };
        user.path.clear();
        numbered.append(path, of, captured, &mut user.path);
        keep_path(&mut user.path);
        sessions.cookies.clear();
        let (is_secure, now) = (target.tls.is_some(), self.clock.now_ns());
        user.cookies
            .write(&user.path, is_secure, now, &mut sessions.cookies);
        if !sessions.cookies.is_empty() {
            add_field(&mut conn.rendered, target.http(), &sessions.cookies);
        }
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    fn users(&self) -> Option<&Users> {
        self.worker.job.targets[self.target].traffic.users()
    }

    /// The step that the user of a place makes next, with its request, which was due at `intended`. If
    /// the place has no user, one arrives. `None` where there are no users.
    pub(in crate::worker) fn next_step(&mut self, number: usize, intended: u64) -> Option<usize> {
        let worker = &mut *self.worker;
        let users = worker.job.targets[self.target].traffic.users()?;
        let user = worker.conns[number].exchange.user()?;
        let sessions = &mut worker.sessions[self.target];
        let is_new = user.number.is_none();
        if is_new {
            user.arrive(sessions.next_user());
        }
        let step = match user.step {
            Some(step) => step,
            None => {
                (user.round, user.due) = (sessions.next_round(), intended);
                user.is_counted = self.window.contains(intended);
                // `Job::validate` has seen that each round has steps.
                users.next(None, user.rounds_before == 0).unwrap_or(0)
            }
        };
        (user.step, user.next, user.is_paused) = (Some(step), None, false);
        worker.fill_in(self.target, number, step);
        if !P::OPEN && is_new {
            self.count_arrival(intended);
        }
        Some(step)
    }

    /// Whether a place has a user.
    pub(in crate::worker) fn has_user(&mut self, number: usize) -> bool {
        let user = self.worker.user(number);
        user.is_some_and(|user| user.number.is_some())
    }

    /// Whether any place has one.
    pub(in crate::worker) fn has_users_left(&mut self) -> bool {
        let mut own = self.worker.conns_of[self.target].clone();
        own.any(|number| self.has_user(number))
    }

    /// Counts a user who arrives at this time.
    pub(in crate::worker) fn count_arrival(&mut self, at: u64) {
        if let Some(users) = &mut self.worker.recorders[self.recorder].users
            && self.window.contains(at)
        {
            users.arrived += 1;
        }
    }

    /// The request of a place is over: its user goes on to the next step, or leaves.
    pub(in crate::worker) fn step_over(&mut self, number: usize, now: u64, is_good: bool) {
        let worker = &mut *self.worker;
        let Some(users) = worker.job.targets[self.target].traffic.users() else {
            return;
        };
        let conn = &mut worker.conns[number];
        let step = conn.request as usize;
        let Some(user) = conn.exchange.user() else {
            return;
        };
        if user.leaves {
            return user.leave();
        }
        let next = users.next(Some(step), user.rounds_before == 0);
        if is_good && let Some(next) = next {
            user.step = Some(next);
            user.next = Some(now + ns(users.steps[next].pause));
            return;
        }
        let is_counted = match P::OPEN {
            // It may have arrived in an earlier segment.
            true => user.is_counted,
            false => self.window.contains(Self::counted_at(user.due, now)),
        };
        if let Some(reading) = &mut worker.recorders[self.recorder].users
            && is_counted
        {
            match is_good {
                true => {
                    reading.rounds += 1;
                    reading.round.record_ns(now.saturating_sub(user.due));
                }
                false => reading.given_up[step].rounds += 1,
            }
        }
        match is_good && !P::OPEN && users.stay() {
            true => {
                user.rounds_before += 1;
                user.step = None;
            }
            false => user.leave(),
        }
        if !P::OPEN {
            let first = users.next(None, user.rounds_before == 0);
            let pause = first.map_or(0, |first| ns(users.steps[first].pause));
            user.next = Some(now + pause);
        }
    }

    /// A place is free, unless its user goes on, at once or after a pause: then true.
    pub(in crate::worker) fn goes_on(&mut self, number: usize, now: u64) -> bool {
        let carries_on = self.carries_on();
        let has_rows = self.worker.pickers[self.target].has_rows();
        let Some(user) = self.worker.user(number) else {
            return false;
        };
        match user.next {
            // Nobody comes.
            Some(_) if !P::OPEN && user.number.is_none() && !has_rows => false,
            Some(next) if next > now || P::OPEN && next >= self.window.end && carries_on => {
                user.is_paused = true;
                self.pauses.push(next, number);
                true
            }
            Some(next) if P::OPEN => {
                self.issue_step(number, next);
                true
            }
            _ => false,
        }
    }

    /// Whether requests of users are left to send.
    fn may_send(&self) -> bool {
        self.rule.is_open() || self.is_used_up && self.rule.is_left()
    }

    /// Whether users go on in the target's next segment.
    fn carries_on(&self) -> bool {
        self.has_next && !S::COUNTS && self.rule.is_open()
    }

    /// The users whose pause is over go on. At the end of the load all are over, and their places are
    /// free for users who wait; at that of a segment with another one after it they go on in that.
    pub(in crate::worker) fn end_pauses(&mut self) {
        let is_over = self.now >= self.window.end || !self.may_send();
        if is_over && self.carries_on() {
            return;
        }
        let until = if is_over { u64::MAX } else { self.now };
        while let Some(number) = self.pauses.pop_due(until) {
            let Some(user) = self.worker.user(number) else {
                continue;
            };
            let due = user.next.unwrap_or(self.now);
            match P::OPEN {
                true => self.issue_step(number, due),
                false if is_over => self.leave_under_way(number),
                false => {
                    user.is_paused = false;
                    let now = self.worker.clock.now_ns();
                    self.issue(number, now);
                }
            }
        }
    }

    /// In an open loop: sends the request of a user who has a place, due at this time. What is due
    /// after the window, or after the last request, is not sent: the user leaves.
    fn issue_step(&mut self, number: usize, due: u64) {
        if due >= self.window.end || !self.may_send() {
            self.leave_under_way(number);
            return self.serve(number);
        }
        if due >= self.window.from {
            self.rule.count(0);
            self.count_offered(due);
        }
        let now = self.worker.clock.now_ns();
        self.start(number, due, now);
    }

    fn leave_under_way(&mut self, number: usize) {
        let Some(user) = self.worker.user(number) else {
            return;
        };
        let is_under_way = user.is_under_way();
        user.leave();
        if let Some(users) = &mut self.worker.recorders[self.recorder].users {
            users.under_way += u64::from(is_under_way);
        }
    }

    /// A user for whom no place was free in time. Returns the request that it did not make.
    pub(in crate::worker) fn never_served(&mut self, due: u64) -> Option<usize> {
        let first = self.users()?.next(None, true)?;
        // Its number and its row are its own.
        self.worker.sessions[self.target].next_user();
        if let Some(reading) = &mut self.worker.recorders[self.recorder].users
            && self.window.contains(due)
        {
            reading.given_up[first].rounds += 1;
        }
        Some(first)
    }

    /// Pauses of places without a user are over: the rows for users are used up.
    pub(in crate::worker) fn end_pauses_of_nobody(&mut self) {
        let mut pauses = std::mem::take(&mut self.pauses);
        pauses.retain(|number| self.has_user(number));
        self.pauses = pauses;
    }

    /// Whether the user on a place pauses, or the place waits for the next one.
    pub(in crate::worker) fn is_paused(&mut self, number: usize) -> bool {
        let user = self.worker.user(number);
        user.is_some_and(|user| user.is_paused)
    }

    /// At the start of a segment: users go on from where they were in the one before, if that was like
    /// this one; in another open loop those who come now are others. The time between the two belongs
    /// neither to their pauses nor to their rounds.
    pub(in crate::worker) fn begin_users(&mut self) {
        if self.users().is_none() {
            return;
        }
        let left = self.worker.sessions[self.target].left.take();
        let (end, go_on) = left.unwrap_or((self.start, false));
        let between = self.start.saturating_sub(end);
        for number in self.worker.conns_of[self.target].clone() {
            let is_busy = self.worker.conns[number].is_busy();
            let Some(user) = self.worker.user(number) else {
                continue;
            };
            if P::OPEN && is_busy {
                user.leaves = true;
            } else if (P::OPEN || user.is_paused) && !go_on {
                user.leave();
            } else {
                user.due += between;
                user.next = user.next.map(|next| next + between);
                if let Some(next) = user.next.filter(|_| user.is_paused) {
                    self.pauses.push(next, number);
                }
            }
        }
    }

    /// At the end of a segment: users who pause are over, as are all of an open loop, unless they go on
    /// in the next one.
    pub(in crate::worker) fn end_users(&mut self) {
        if self.users().is_none() {
            return;
        }
        let carries_on = self.carries_on();
        self.worker.sessions[self.target].left = Some((self.window.end.min(self.now), carries_on));
        for number in self.worker.conns_of[self.target].clone() {
            let is_busy = self.worker.conns[number].is_busy();
            let Some(user) = self.worker.user(number) else {
                continue;
            };
            let (is_under_way, is_over) = (user.is_under_way(), P::OPEN || user.is_paused);
            if carries_on && !(P::OPEN && is_busy) {
                continue;
            }
            if is_over && !is_busy {
                user.leave();
            }
            if is_under_way && let Some(users) = &mut self.worker.recorders[self.recorder].users {
                users.under_way += 1;
            }
        }
    }
}
