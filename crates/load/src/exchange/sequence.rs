//! The messages of one exchange in their order: gaps, due times, and what is wrong with their numbers.

use std::time::Duration;

use readings::LagBase;

use super::stamp::Stamp;
use super::{Due, Message, Note, Overdue, Times};
use crate::ns;

/// Without a bound of the user's, a gap is a stall above so many paces.
const STALL_PACES: u64 = 10;
/// Messages that arrive within this time came together. It is longer than the reading of one buffer
/// takes, and shorter than any pace that is worth measuring.
const TOGETHER_NS: u64 = 100_000;
/// So many of the last numbers are remembered. One that comes later than that counts as repeated.
const REMEMBERED: u64 = 1024;
/// With another clock, so many messages wait for the least lag among them, which counts as 0: what was
/// held back on the way comes in bursts whose first message is the latest.
const HELD_MAX: usize = 256;

/// The messages of an exchange so far.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// As the user named it, ns.
    pace: Option<u64>,
    stall: Option<u64>,
    /// Whether stamps are of the worker's clock.
    is_own_clock: bool,
    /// Messages so far, and when the first and the last of them arrived; before the first, `last` is when
    /// the exchange opened.
    count: u64,
    first: u64,
    last: u64,
    /// The first stamp, the one with the greatest number, and the last.
    oldest: Option<Stamp>,
    newest: Option<Stamp>,
    latest: Option<Stamp>,
    /// Which of the numbers up to the greatest have come, by the remainder.
    seen: [u64; (REMEMBERED / 64) as usize],
    /// Numbers that have not come, up to the greatest.
    missing: u64,
    /// Arrivals and due times of the sender's clock that wait for its offset.
    held: Vec<(u64, u64)>,
    /// The least lag by the sender's clock, ns.
    least: i64,
}

impl Sequence {
    /// With the pace of messages that are not stamped, and the bound of stalls.
    pub(crate) fn new(pace: Option<Duration>, stall: Option<Duration>) -> Self {
        Self {
            pace: pace.map(ns).filter(|pace| *pace > 0),
            stall: stall.map(ns),
            is_own_clock: false,
            count: 0,
            first: 0,
            last: 0,
            oldest: None,
            newest: None,
            latest: None,
            seen: [0; (REMEMBERED / 64) as usize],
            missing: 0,
            held: Vec::new(),
            least: i64::MAX,
        }
    }

    /// Begins the next exchange.
    pub(crate) fn begin(&mut self) {
        let (pace, stall) = (self.pace, self.stall);
        *self = Self {
            pace,
            stall,
            ..Self::new(None, None)
        };
    }

    /// The exchange is open since then.
    pub(crate) fn opened(&mut self, at: u64) {
        self.last = at;
    }

    /// Whether stamps are of the worker's clock.
    pub(crate) fn set_own_clock(&mut self, is_own: bool) {
        self.is_own_clock = is_own;
    }

    /// Messages so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether they are stamped.
    pub(crate) fn is_stamped(&self) -> bool {
        self.newest.is_some()
    }

    /// Numbers that have not come, of this many messages, or up to the greatest that came.
    pub(crate) fn missing(&self, expected: Option<u64>) -> u64 {
        self.missing + self.missing_at_end(expected)
    }

    fn missing_at_end(&self, expected: Option<u64>) -> u64 {
        let next = self.newest.map_or(0, |newest| newest.number + 1);
        expected.map_or(0, |expected| expected.saturating_sub(next))
    }

    /// The pace, ns: by the stamps, or as the user named it.
    fn pace(&self) -> Option<u64> {
        match (self.oldest, self.newest) {
            (Some(oldest), Some(newest)) if newest.number > oldest.number => {
                let numbers = newest.number - oldest.number;
                Some(newest.due_ns.saturating_sub(oldest.due_ns) / numbers).filter(|it| *it > 0)
            }
            _ => self.pace,
        }
    }

    fn is_stall(&self, gap: u64) -> bool {
        let by_pace = || self.pace().map(|pace| pace.saturating_mul(STALL_PACES));
        self.stall.or_else(by_pace).is_some_and(|bound| gap > bound)
    }

    /// Takes a message of so many bytes.
    pub(crate) fn take(
        &mut self,
        stamp: Option<Stamp>,
        bytes: u64,
        arrived: u64,
        mut note: impl FnMut(Note),
    ) {
        let gap = (self.count > 0).then(|| arrived.saturating_sub(self.last));
        let mut message = Message {
            arrived,
            gap,
            bytes,
            ..Message::default()
        };
        if self.count == 0 {
            self.first = arrived;
        }
        let before = self.latest;
        if let Some(stamp) = stamp {
            self.number(stamp, &mut message);
        }
        message.is_stall = gap.is_some_and(|gap| self.is_stall(gap));
        let distance = match (before, stamp) {
            (Some(before), Some(stamp)) => Some(stamp.due_ns.saturating_sub(before.due_ns)),
            (None, None) => self.pace,
            _ => None,
        };
        if let (Some(distance), Some(gap), Some(pace)) = (distance, gap, self.pace()) {
            let were_apart = distance.saturating_mul(2) >= pace;
            message.is_merged =
                were_apart && gap <= TOGETHER_NS && gap.saturating_mul(4) < distance;
        }
        message.due = match stamp {
            Some(stamp) if self.is_own_clock => Some(Due {
                at: stamp.due_ns,
                base: LagBase::Sender,
            }),
            Some(_) => None,
            None => self.pace.map(|pace| Due {
                at: self.first.saturating_add(pace.saturating_mul(self.count)),
                base: LagBase::Pace,
            }),
        };
        self.latest = stamp;
        self.last = arrived;
        self.count += 1;
        note(Note::Message(message));
        if let Some(stamp) = stamp.filter(|_| !self.is_own_clock) {
            self.hold(stamp.due_ns, arrived, note);
        }
    }

    /// Takes the number of a message.
    fn number(&mut self, stamp: Stamp, message: &mut Message) {
        let number = stamp.number;
        self.oldest = self.oldest.or(Some(stamp));
        // The first one that comes may itself have been overtaken, or follow lost ones.
        let next = self.newest.map_or(0, |newest| newest.number + 1);
        if number >= next {
            let left_out = number - next;
            for between in number.saturating_sub(left_out.min(REMEMBERED))..number {
                self.mark(between, false);
            }
            self.mark(number, true);
            self.newest = Some(stamp);
            self.missing = self.missing.saturating_add(left_out);
            message.lost = i64::try_from(left_out).unwrap_or(i64::MAX);
        } else if next - number > REMEMBERED || self.has(number) {
            message.is_repeated = true;
        } else {
            self.mark(number, true);
            self.missing = self.missing.saturating_sub(1);
            message.lost = -1;
            message.is_reordered = true;
        }
    }

    fn mark(&mut self, number: u64, came: bool) {
        let bit = number % REMEMBERED;
        let word = &mut self.seen[(bit / 64) as usize];
        match came {
            true => *word |= 1 << (bit % 64),
            false => *word &= !(1 << (bit % 64)),
        }
    }

    fn has(&self, number: u64) -> bool {
        let bit = number % REMEMBERED;
        self.seen[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Takes a message whose lag is known once the offset of the sender's clock is.
    fn hold(&mut self, due_ns: u64, arrived: u64, note: impl FnMut(Note)) {
        let lag = arrived.wrapping_sub(due_ns) as i64;
        self.least = self.least.min(lag);
        self.held.push((arrived, due_ns));
        if self.held.len() >= HELD_MAX || self.count > HELD_MAX as u64 {
            self.release(note);
        }
    }

    fn release(&mut self, mut note: impl FnMut(Note)) {
        let offset = self.least as u64;
        for (arrived, due_ns) in std::mem::take(&mut self.held) {
            let due = Due {
                at: due_ns.wrapping_add(offset),
                base: LagBase::SenderOfOtherClock,
            };
            note(Note::Lag { due, arrived });
        }
    }

    /// The exchange is over, of this many messages if that is known. An end that is not `due` yet may
    /// end a stall.
    pub(crate) fn over(
        &mut self,
        expected: Option<u64>,
        times: Times,
        is_due: bool,
        mut note: impl FnMut(Note),
    ) {
        self.release(&mut note);
        let lost = self.missing_at_end(expected);
        if lost > 0 {
            note(Note::Lost(lost));
        }
        if self.count == 0 {
            note(Note::Empty);
        }
        let silent = times.arrived.saturating_sub(self.last);
        if !is_due && self.last > 0 && self.is_stall(silent) {
            note(Note::Silent(silent));
        }
        // What its end has announced is lost already.
        if let Some(overdue) = self.overdue().filter(|_| !is_due && expected.is_none())
            && overdue.first.at < times.arrived
        {
            note(Note::Overdue(overdue));
        }
    }

    /// The messages that come next, as far as their due times are known.
    fn overdue(&self) -> Option<Overdue> {
        let pace = self.pace()?;
        let first = match self.newest {
            Some(newest) => {
                let due_ns = newest.due_ns.wrapping_add(pace);
                let (base, offset) = match self.is_own_clock {
                    true => (LagBase::Sender, 0),
                    false => (LagBase::SenderOfOtherClock, self.least as u64),
                };
                let at = due_ns.wrapping_add(offset);
                Due { at, base }
            }
            None if self.count > 0 => Due {
                at: self.first.saturating_add(pace.saturating_mul(self.count)),
                base: LagBase::Pace,
            },
            None => return None,
        };
        Some(Overdue { first, pace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: u64 = 20_000_000;

    /// Takes messages with these numbers at these times in paces, each of 10 bytes.
    fn taken(sequence: &mut Sequence, messages: &[(u64, f64)]) -> Vec<Note> {
        let mut notes = Vec::new();
        for &(number, at) in messages {
            let due_ns = number * PACE;
            let stamp = Some(Stamp { number, due_ns });
            sequence.take(stamp, 10, (at * PACE as f64) as u64, |note| {
                notes.push(note)
            });
        }
        notes
    }

    fn stamped() -> Sequence {
        let mut sequence = Sequence::new(None, None);
        sequence.set_own_clock(true);
        sequence
    }

    fn messages(notes: &[Note]) -> Vec<Message> {
        let messages = notes.iter().filter_map(|note| match note {
            Note::Message(message) => Some(*message),
            _ => None,
        });
        messages.collect()
    }

    fn lags(notes: &[Note]) -> Vec<u64> {
        let lags = notes.iter().filter_map(|note| match note {
            Note::Message(Message {
                due: Some(due),
                arrived,
                ..
            })
            | Note::Lag { due, arrived } => Some(arrived - due.at),
            _ => None,
        });
        lags.collect()
    }

    /// The end of an exchange at this time.
    fn at(arrived: u64) -> Times {
        Times {
            intended: 0,
            sent: 0,
            arrived,
        }
    }

    fn ended(sequence: &mut Sequence, expected: Option<u64>, times: Times) -> Vec<Note> {
        let mut notes = Vec::new();
        sequence.over(expected, times, false, |note| notes.push(note));
        notes
    }

    #[test]
    fn numbers_that_are_left_out_come_late_or_twice_are_told_apart() {
        let mut sequence = stamped();
        let order = [0, 1, 4, 2, 4, 5, 0, 7];
        let each: Vec<(u64, f64)> = order
            .iter()
            .zip(10..)
            .map(|(n, at)| (*n, at.into()))
            .collect();
        let found = messages(&taken(&mut sequence, &each));
        let lost: Vec<i64> = found.iter().map(|one| one.lost).collect();
        assert_eq!(lost, [0, 0, 2, -1, 0, 0, 0, 1]);
        let which = |is: fn(&Message) -> bool| {
            let all = found.iter().zip(order);
            all.filter(|(one, _)| is(one))
                .map(|(_, n)| n)
                .collect::<Vec<u64>>()
        };
        assert_eq!(which(|one| one.is_reordered), [2]);
        assert_eq!(which(|one| one.is_repeated), [4, 0]);
        // 3 and 6 never came, nor 8 and 9.
        assert_eq!((sequence.missing(None), sequence.missing(Some(10))), (2, 4));
        let rest = ended(&mut sequence, Some(10), at(17 * PACE));
        assert_eq!(rest, [Note::Lost(2)]);
        sequence.begin();
        assert_eq!((sequence.count(), sequence.missing(Some(3))), (0, 3));
    }

    #[test]
    fn a_number_far_ahead_costs_no_time_and_one_far_behind_is_a_repetition() {
        let mut sequence = stamped();
        let far = 1 << 40;
        let found = messages(&taken(
            &mut sequence,
            &[(0, 0.0), (far, 1.0), (far - 3, 2.0), (5, 3.0)],
        ));
        assert_eq!(found[1].lost, far as i64 - 1);
        assert!(found[2].is_reordered && found[3].is_repeated);
        assert_eq!(sequence.missing(None), far - 2);
    }

    #[test]
    fn messages_that_were_held_back_together_are_merged_and_late() {
        let mut sequence = stamped();
        let held = [(0, 0.0), (1, 4.0), (2, 4.0), (3, 4.0), (4, 4.0), (5, 5.0)];
        let notes = taken(&mut sequence, &held);
        let merged: Vec<bool> = messages(&notes).iter().map(|one| one.is_merged).collect();
        assert_eq!(merged, [false, false, true, true, true, false]);
        let paces: Vec<u64> = lags(&notes).iter().map(|lag| lag / PACE).collect();
        assert_eq!(paces, [0, 3, 2, 1, 0, 0]);
        // What was due together may come together.
        let mut sequence = stamped();
        let mut notes = Vec::new();
        for (number, due_ns) in [(0, 0), (1, 0), (2, PACE), (3, PACE)] {
            sequence.take(Some(Stamp { number, due_ns }), 1, due_ns, |note| {
                notes.push(note)
            });
        }
        assert!(messages(&notes).iter().all(|one| !one.is_merged));
    }

    #[test]
    fn a_stall_is_a_gap_of_ten_paces_or_of_what_the_user_says() {
        let late = [(0, 0.0), (1, 1.0), (2, 11.5), (3, 21.0)];
        let stalls = |sequence: &mut Sequence| {
            let found = messages(&taken(sequence, &late));
            found.iter().map(|one| one.is_stall).collect::<Vec<_>>()
        };
        assert_eq!(stalls(&mut stamped()), [false, false, true, false]);
        let mut own = Sequence::new(None, Some(Duration::from_millis(15)));
        assert_eq!(stalls(&mut own), [false, true, true, true]);
        // One that the end cuts shows, unless the end was due.
        assert_eq!(ended(&mut own, None, at(22 * PACE)).len(), 6);
        assert_eq!(
            ended(&mut own, Some(4), at(22 * PACE)),
            [Note::Silent(PACE)]
        );
        let mut notes = Vec::new();
        own.over(None, at(22 * PACE), true, |note| notes.push(note));
        assert_eq!(notes, []);
    }

    #[test]
    fn with_another_clock_the_least_lag_counts_as_nothing() {
        let mut sequence = Sequence::new(None, None);
        // Four messages come in one burst, as of a buffer; the clock is two hours ahead.
        let mut notes = Vec::new();
        let ahead = 7_200_000_000_000;
        for (number, paces) in [(0, 3), (1, 3), (2, 3), (3, 3), (4, 4)] {
            let due_ns = ahead + number * PACE;
            let stamp = Some(Stamp { number, due_ns });
            sequence.take(stamp, 10, paces * PACE, |note| notes.push(note));
        }
        assert_eq!((lags(&notes).len(), messages(&notes).len()), (0, 5));
        let rest = ended(&mut sequence, None, at(5 * PACE));
        assert_eq!(lags(&rest), [3 * PACE, 2 * PACE, PACE, 0, 0]);
        assert_eq!(
            overdue(&ended(&mut sequence, None, at(6 * PACE))),
            Some((5 * PACE, PACE))
        );
        // An endless stream is not held for ever.
        sequence.begin();
        let many: Vec<(u64, f64)> = (0..1_000).map(|n| (n, n as f64 + 0.25)).collect();
        let notes = taken(&mut sequence, &many);
        assert_eq!(lags(&notes), [0; 1_000]);
        assert!(sequence.held.is_empty());
    }

    #[test]
    fn without_stamps_the_first_message_and_the_pace_say_what_is_due() {
        let mut sequence = Sequence::new(Some(Duration::from_nanos(PACE)), None);
        let mut notes = Vec::new();
        for at in [100, 101, 104, 104] {
            sequence.take(None, 1, at * PACE, |note| notes.push(note));
        }
        assert_eq!(lags(&notes), [0, 0, 2 * PACE, PACE]);
        let found = messages(&notes);
        assert!(found[3].is_merged && !found[2].is_merged);
        assert_eq!(found[3].due.map(|due| due.base), Some(LagBase::Pace));
        assert_eq!(
            overdue(&ended(&mut sequence, None, at(105 * PACE))),
            Some((104 * PACE, PACE))
        );
        assert!(ended(&mut sequence, None, at(104 * PACE)).is_empty());
    }

    #[test]
    fn messages_that_are_held_back_when_it_is_cut_are_overdue() {
        let mut sequence = stamped();
        taken(&mut sequence, &[(0, 0.0), (1, 1.0), (2, 2.0)]);
        let rest = ended(&mut sequence, None, at(8 * PACE));
        assert_eq!(overdue(&rest), Some((3 * PACE, PACE)));
        let mut notes = Vec::new();
        sequence.over(None, at(8 * PACE), true, |note| notes.push(note));
        assert_eq!(notes, [], "it is complete");
        // One that has only a head leaves a trace, and is silent since then.
        let mut mute = Sequence::new(None, Some(Duration::from_nanos(PACE)));
        mute.opened(3 * PACE);
        let rest = ended(&mut mute, None, at(8 * PACE));
        assert_eq!(rest, [Note::Empty, Note::Silent(5 * PACE)]);
    }

    /// When the first overdue message was due, and the pace.
    fn overdue(notes: &[Note]) -> Option<(u64, u64)> {
        notes.iter().find_map(|note| match note {
            Note::Overdue(overdue) => Some((overdue.first.at, overdue.pace)),
            _ => None,
        })
    }
}
