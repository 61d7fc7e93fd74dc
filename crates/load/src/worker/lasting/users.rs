//! Users: which request comes next on a place, when, and when its user leaves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::Io;

use crate::exchange::visit::cookies::add_field;
use crate::exchange::{Kind, User};
use crate::job::Job;
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
    /// The numbers of the next user and of the next round: those of several threads interleave.
    user: u64,
    round: u64,
    step: u64,
    /// The paths of the requests, where cookies are kept.
    paths: Vec<Filler>,
    cookies: Vec<u8>,
}

impl Sessions {
    pub(in crate::worker) fn new(job: &Job, number: usize, thread: usize) -> Self {
        let target = &job.targets[number];
        // A thread without connections has no users.
        let (first, step) = job.turns(number, thread).unwrap_or((0, 1));
        let keeps_cookies = target.traffic.users().is_some_and(|one| one.keeps_cookies);
        let templates = (0..target.requests.len()).filter(|_| keeps_cookies);
        let path = |request| match target.template(request) {
            // The path comes first in its request.
            Some(template) => Filler::new(&template.path, 0).0,
            None => Filler::default(),
        };
        Self {
            user: first,
            round: first,
            step,
            paths: templates.map(path).collect(),
            cookies: Vec::new(),
        }
    }

    pub(in crate::worker) fn next_user(&mut self) -> u64 {
        let next = self.user;
        self.user += self.step;
        next
    }

    fn next_round(&mut self) -> u64 {
        let next = self.round;
        self.round += self.step;
        next
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
        if let Some(end) = user.path.iter().position(|byte| *byte == b'?') {
            user.path.truncate(end);
        }
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
        if let Some(reading) = &mut worker.recorders[self.recorder].users
            && self.window.contains(Self::counted_at(user.due, now))
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
        let Some(user) = self.worker.user(number) else {
            return false;
        };
        match user.next {
            Some(next) if next > now => {
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

    /// The users whose pause is over go on. At the end of the load all are over, and their places are
    /// free for users who wait.
    pub(in crate::worker) fn end_pauses(&mut self) {
        let is_stopped = !self.rule.is_open() && !self.is_used_up;
        let is_over = self.now >= self.window.end || is_stopped;
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
        let is_open = self.rule.is_open();
        if due >= self.window.end || !(is_open || self.is_used_up) {
            self.leave_under_way(number);
            return self.serve(number);
        }
        if due >= self.window.from {
            if is_open {
                self.rule.count(0);
            }
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

    /// At the start of a segment: in a closed loop users go on from where they were in the one before,
    /// in an open loop those who come now are others.
    pub(in crate::worker) fn begin_users(&mut self) {
        if self.users().is_none() {
            return;
        }
        for number in self.worker.conns_of[self.target].clone() {
            let is_busy = self.worker.conns[number].is_busy();
            if let Some(user) = self.worker.user(number) {
                if P::OPEN && is_busy {
                    user.leaves = true;
                } else if P::OPEN || user.is_paused {
                    user.leave();
                }
            }
        }
    }

    /// At the end of a segment: users who pause are over, as are all of an open loop.
    pub(in crate::worker) fn end_users(&mut self) {
        if self.users().is_none() {
            return;
        }
        for number in self.worker.conns_of[self.target].clone() {
            let is_busy = self.worker.conns[number].is_busy();
            let Some(user) = self.worker.user(number) else {
                continue;
            };
            let (is_under_way, is_over) = (user.is_under_way(), P::OPEN || user.is_paused);
            if is_over && !is_busy {
                user.leave();
            }
            if is_under_way && let Some(users) = &mut self.worker.recorders[self.recorder].users {
                users.under_way += 1;
            }
        }
    }
}
