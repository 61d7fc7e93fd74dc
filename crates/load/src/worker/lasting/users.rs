//! Users: which request comes next on a place, when, and when its user leaves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use net::Io;

use crate::exchange::{Kind, User};
use crate::job::Job;
use crate::job::traffic::{Traffic, Users};
use crate::ns;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::worker::Worker;
use crate::worker::segment::SegmentRun;

/// The places whose users pause, by the time at which they go on.
#[derive(Debug, Default)]
pub(in crate::worker) struct Pauses(BinaryHeap<Reverse<(u64, u32)>>);

impl Pauses {
    fn push(&mut self, until: u64, place: usize) {
        self.0.push(Reverse((until, place as u32)));
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

/// The numbers of users and of their rounds at one target, of one thread: those of several interleave.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct Numbers {
    users: u64,
    rounds: u64,
    step: u64,
}

impl Numbers {
    pub(in crate::worker) fn new(job: &Job, thread: usize) -> Self {
        let first = job.number_of(thread) as u64;
        Self {
            users: first,
            rounds: first,
            step: job.all_threads() as u64,
        }
    }

    pub(in crate::worker) fn next_user(&mut self) -> u64 {
        let next = self.users;
        self.users += self.step;
        next
    }

    fn next_round(&mut self) -> u64 {
        let next = self.rounds;
        self.rounds += self.step;
        next
    }
}

/// The users of a target, if its requests are the steps of sessions.
fn users_of(traffic: &Traffic) -> Option<&Users> {
    match traffic {
        Traffic::Users(users) if users.in_rounds => Some(users),
        _ => None,
    }
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    fn user(&mut self, number: usize) -> Option<&mut User> {
        self.conns[number].exchange.user()
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    fn users(&self) -> Option<&Users> {
        users_of(&self.worker.job.targets[self.target].traffic)
    }

    /// The number of a place's next request, which was due at `intended`; its user arrives if need be.
    pub(in crate::worker) fn next_request(&mut self, number: usize, intended: u64) -> usize {
        let worker = &mut *self.worker;
        let target = &worker.job.targets[self.target];
        let conn = &mut worker.conns[number];
        let Some(users) = users_of(&target.traffic) else {
            let next = worker.pickers[self.target].next();
            conn.exchange.prepare(target, next);
            return next;
        };
        let Some(user) = conn.exchange.user() else {
            return 0;
        };
        let numbers = &mut worker.numbers[self.target];
        let mut is_new = false;
        if user.number.is_none() {
            user.arrive(numbers.next_user());
            is_new = true;
        }
        let step = match user.step {
            Some(step) => step,
            None => {
                (user.round, user.due) = (numbers.next_round(), intended);
                // `Job::validate` has seen that each round has steps.
                users.next(None, user.rounds_before == 0).unwrap_or(0)
            }
        };
        (user.step, user.next, user.is_paused) = (Some(step), None, false);
        conn.exchange.prepare(target, step);
        if !P::OPEN && is_new {
            self.count_arrival(intended);
        }
        step
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
        let Some(users) = users_of(&worker.job.targets[self.target].traffic) else {
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

    /// The users whose pause is over go on.
    pub(in crate::worker) fn end_pauses(&mut self) {
        while let Some(number) = self.pauses.pop_due(self.now) {
            let Some(user) = self.worker.user(number) else {
                continue;
            };
            user.is_paused = false;
            let due = user.next.unwrap_or(self.now);
            match P::OPEN {
                true => self.issue_step(number, due),
                false => {
                    let now = self.worker.clock.now_ns();
                    self.issue(number, now);
                }
            }
        }
    }

    /// In an open loop: sends the request of a user who has a place, due at this time. What is due
    /// after the window, or after the last request, is not sent: the user leaves.
    fn issue_step(&mut self, number: usize, due: u64) {
        if due >= self.window.end || !self.rule.is_open() {
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
        if let Some(users) = &mut self.worker.recorders[self.recorder].users {
            users.under_way += 1;
        }
        if let Some(user) = self.worker.user(number) {
            user.leave();
        }
    }

    /// A user for whom no place was free in time. Returns the request that it did not make.
    pub(in crate::worker) fn never_served(&mut self, due: u64) -> Option<usize> {
        let first = self.users()?.next(None, true)?;
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
