//! Exchanges that last: what is recorded of them, and how those end that outlast the window.

mod reconnect;
pub(super) mod topics;
pub(super) mod users;

use std::time::Duration;

use net::Io;
use readings::WrongKind;

use super::failures::Failure;
use super::segment::SegmentRun;
use crate::exchange::conn::State;
use crate::exchange::{Kind, Note, Times};
use crate::ns;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::pacing::window::Window;
use crate::record::Recorder;

/// How an exchange ended that the client cut at the end of the window.
const CUT_BY_CLIENT: &str = "window";

/// What decides whether a message belongs to a segment's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) window: Window,
    /// The segment, if it has rows.
    rows_of: Option<usize>,
    /// Whether messages belong to the time at which they were due.
    by_due: bool,
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    #[inline]
    pub(super) fn span(&self) -> Span {
        Span {
            window: self.window,
            rows_of: self.row.map(|_| self.number),
            by_due: P::OPEN || self.topics.is_some(),
        }
    }

    /// Records what a kind reports of an exchange at these times. In a segment by time a message
    /// belongs to the window if it arrived in it, in an open loop and of a topic if it was due in it.
    #[inline]
    pub(super) fn record_note(recorder: &mut Recorder, span: Span, times: Times, note: Note) {
        let Some(messages) = &mut recorder.messages else {
            return;
        };
        let is_inside = |due: Option<u64>, arrived: u64| {
            span.window.contains(match (S::COUNTS, span.by_due) {
                (true, _) => times.intended,
                (false, true) => due.unwrap_or(arrived),
                (false, false) => arrived,
            })
        };
        match note {
            Note::Opened => messages.opened += 1,
            Note::Message(message) => {
                messages.ticked += 1;
                if is_inside(message.due.map(|due| due.at), message.arrived) {
                    messages.record(&message, if P::OPEN { times.intended } else { times.sent });
                }
                if let Some(segment) = span.rows_of {
                    let (from, end) = (span.window.from, span.window.end);
                    let at = message.arrived.min(end).max(from);
                    recorder.gaps.end(segment, at - from);
                }
            }
            Note::Answer { arrived, after } => {
                if is_inside(None, arrived) {
                    messages.answer.record_ns(after);
                }
            }
            Note::Lag { due, arrived } => {
                if is_inside(Some(due.at), arrived) {
                    messages.record_lag(due, arrived);
                }
            }
            Note::Lost(numbers) => {
                if is_inside(None, times.arrived) {
                    let numbers = i64::try_from(numbers).unwrap_or(i64::MAX);
                    messages.lost = messages.lost.saturating_add(numbers);
                }
            }
            // Also one that the end of the window cut.
            Note::Silent(gap) => messages.record_stall(gap),
            Note::Empty if times.arrived >= span.window.from => messages.without_message += 1,
            Note::Empty => {}
            Note::Overdue(overdue) => {
                let end = times.arrived.min(span.window.end);
                match (S::COUNTS, span.window.contains(times.intended)) {
                    (true, true) => messages.record_overdue(overdue, 0, end),
                    (true, false) => {}
                    (false, _) => messages.record_overdue(overdue, span.window.from, end),
                }
            }
        }
    }

    /// An exchange is over, complete or not: what its kind still holds back is recorded.
    fn exchange_over(&mut self, number: usize, now: u64, is_complete: bool) {
        let span = self.span();
        let conn = &mut self.worker.conns[number];
        let times = conn.times(now);
        let recorder = &mut self.worker.recorders[self.recorder];
        conn.exchange.over(times, is_complete, |note| {
            Self::record_note(recorder, span, times, note);
        });
    }

    fn record_end(&mut self, number: usize, now: u64, how: &str, is_cut: bool) {
        let at = Self::counted_at(self.worker.conns[number].intended, now);
        if let Some(messages) = &mut self.worker.recorders[self.recorder].messages
            && self.window.contains(at)
        {
            messages.record_end(how, is_cut);
        }
    }

    /// An exchange is complete, good or not; its judgement follows.
    pub(super) fn exchange_complete(&mut self, number: usize, now: u64) {
        self.exchange_over(number, now, true);
        let worker = &mut *self.worker;
        let target = &worker.job.targets[self.target];
        let conn = &mut worker.conns[number];
        conn.exchange.complete(target, conn.request as usize, now);
        if let Some(ending) = self.worker.conns[number].exchange.ending() {
            self.record_end(number, now, &ending.how, ending.is_cut);
        }
    }

    /// An exchange failed before it was complete, in this way.
    pub(super) fn exchange_failed(&mut self, number: usize, now: u64, how: &str) {
        if self.worker.conns[number].exchange.is_open() {
            self.exchange_over(number, now, false);
            self.record_end(number, now, how, true);
        }
    }

    /// Counts the exchanges that are open at the end of the window.
    pub(super) fn count_open(&mut self) {
        let conns = &self.worker.conns[self.worker.conns_of[self.target].clone()];
        let open = conns.iter();
        let open = open.filter(|conn| conn.state == State::Waiting && conn.exchange.is_open());
        let open = open.count() as u64;
        if let Some(messages) = &mut self.worker.recorders[self.recorder].messages {
            messages.open.push(open);
        }
    }

    /// Cuts the exchanges that are open after the end of the window, which is no failure.
    pub(super) fn cut_open(&mut self) {
        for number in self.worker.conns_of[self.target].clone() {
            let conn = &self.worker.conns[number];
            if conn.state != State::Waiting || !conn.exchange.is_open() {
                continue;
            }
            self.exchange_over(number, self.now, false);
            if let Some(messages) = &mut self.worker.recorders[self.recorder].messages {
                messages.record_end(CUT_BY_CLIENT, false);
            }
            self.worker.close(number);
            self.busy = self.busy.saturating_sub(1);
        }
    }

    /// In a segment by count: gives up exchanges that are open once nothing else can be sent, none has
    /// begun or ended for the time limit of an answer, and each has given a sign since. Those without an
    /// end would keep the segment for ever, however much they say. One without such a sign is not given
    /// up: it is about to time out, as silent.
    pub(super) fn give_up_endless(&mut self) {
        let own = self.worker.conns_of[self.target].clone();
        let (mut open, mut changed, mut heard) = (0, self.last_done, u64::MAX);
        for conn in &self.worker.conns[own.clone()] {
            match conn.state {
                State::Waiting if conn.exchange.is_open() => {
                    open += 1;
                    changed = changed.max(conn.sent);
                    heard = heard.min(conn.exchange.last_sign());
                }
                State::Closed | State::Idle => {}
                State::Connecting | State::Waiting | State::Resting => return,
            }
        }
        let may_send = P::OPEN && open < own.len() && (self.rule.is_open() || self.waiting() > 0);
        let limit = ns(self.worker.job.timeout);
        if open == 0 || may_send || heard <= changed.saturating_add(limit) {
            return;
        }
        self.rule.stop();
        while let Some(due) = self.backlog.pop_front() {
            self.never_sent(due);
        }
        self.give_up_turns(u64::MAX);
        for number in own {
            if !self.worker.conns[number].exchange.is_open() {
                continue;
            }
            self.exchange_over(number, self.now, false);
            self.record_end(number, self.now, CUT_BY_CLIENT, false);
            let limit = Duration::from_nanos(limit);
            let expected = format!("the end of a stream within {limit:?} of the last one");
            let found = "none; a load of streams without an end needs a duration, not a count";
            let kind = WrongKind::Connection;
            let failure = Failure::new(|e| &mut e.timeout, kind, expected, found);
            self.fail_and_free(number, failure);
        }
    }
}
