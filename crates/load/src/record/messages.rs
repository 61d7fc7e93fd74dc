//! What a thread records of exchanges that last, and of their messages.

use readings::{ExchangeEnd, Histogram, LagBase, LastingReading, TrafficKind};

use crate::exchange::{Due, Message, Overdue};

/// Ways to end that are told apart; a hostile server may have any number of codes.
const ENDS_MAX: usize = 64;
/// The lags of overdue messages are recorded in at most so many groups: a hostile server chooses their
/// pace.
const OVERDUE_GROUPS: u64 = 1_000;
/// The name of all others.
const OTHER_END: &str = "other";

/// The exchanges and messages of a reading.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) traffic: TrafficKind,
    pub(crate) opened: u64,
    /// How many were open at the end of each segment's window.
    pub(crate) open: Vec<u64>,
    /// Messages since the last progress, inside the windows or not.
    pub(crate) ticked: u64,
    /// Messages that members of topics were to receive.
    pub(crate) expected: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) first: Histogram,
    pub(crate) gap: Histogram,
    /// From a message of the client's to its answer.
    pub(crate) answer: Histogram,
    /// Of those that were due at a known time.
    pub(crate) lag: Histogram,
    pub(crate) lag_base: Option<LagBase>,
    pub(crate) stalls: u64,
    pub(crate) stall_longest_ns: u64,
    /// Below zero where numbers came that had been left out before the window.
    pub(crate) lost: i64,
    pub(crate) overdue: u64,
    pub(crate) without_message: u64,
    pub(crate) merged: u64,
    pub(crate) reordered: u64,
    pub(crate) repeated: u64,
    pub(crate) ends: Vec<ExchangeEnd>,
}

impl Messages {
    pub(crate) fn new(traffic: TrafficKind) -> Self {
        Self {
            traffic,
            ..Self::default()
        }
    }

    /// Records a message of an exchange whose request counts from this time on.
    #[inline]
    pub(crate) fn record(&mut self, message: &Message, from: u64) {
        self.count += 1;
        self.bytes += message.bytes;
        match message.gap {
            Some(gap) => self.gap.record_ns(gap),
            None => self.first.record_ns(message.arrived.saturating_sub(from)),
        }
        if let Some(due) = message.due {
            self.record_lag(due, message.arrived);
        }
        if let Some(gap) = message.gap.filter(|_| message.is_stall) {
            self.record_stall(gap);
        }
        self.lost = self.lost.saturating_add(message.lost);
        self.merged += u64::from(message.is_merged);
        self.reordered += u64::from(message.is_reordered);
        self.repeated += u64::from(message.is_repeated);
    }

    #[inline]
    pub(crate) fn record_lag(&mut self, due: Due, arrived: u64) {
        self.lag.record_ns(arrived.saturating_sub(due.at));
        self.lag_base = self.lag_base.max(Some(due.base));
    }

    /// Records messages that were due in this time, and had not come at its end. They are at least so
    /// late.
    pub(crate) fn record_overdue(&mut self, overdue: Overdue, from: u64, end: u64) {
        let Overdue { first, pace } = overdue;
        let before = from.saturating_sub(first.at).div_ceil(pace);
        let due = first.at.saturating_add(before.saturating_mul(pace));
        if due >= end {
            return;
        }
        let count = (end - due - 1) / pace + 1;
        self.overdue = self.overdue.saturating_add(count);
        self.lag_base = self.lag_base.max(Some(first.base));
        let size = count.div_ceil(OVERDUE_GROUPS);
        let mut recorded = 0;
        while recorded < count {
            let group = size.min(count - recorded);
            // The last of a group: it is the least late.
            let last = due + (recorded + group - 1) * pace;
            self.lag.record_many_ns(end - last, group);
            recorded += group;
        }
    }

    pub(crate) fn record_stall(&mut self, gap: u64) {
        self.stalls += 1;
        self.stall_longest_ns = self.stall_longest_ns.max(gap);
    }

    pub(crate) fn record_end(&mut self, how: &str, is_cut: bool) {
        let is_known = self.ends.iter().any(|one| one.how == how);
        let how = match is_known || self.ends.len() < ENDS_MAX {
            true => how,
            false => OTHER_END,
        };
        readings::count_end(&mut self.ends, how, is_cut, 1);
    }

    /// Adds another thread's.
    pub(crate) fn merge(&mut self, part: &Messages) {
        self.opened += part.opened;
        for (at, open) in part.open.iter().enumerate() {
            match self.open.get_mut(at) {
                Some(sum) => *sum += open,
                None => self.open.push(*open),
            }
        }
        self.expected += part.expected;
        self.count += part.count;
        self.bytes += part.bytes;
        self.first.merge(&part.first);
        self.gap.merge(&part.gap);
        self.answer.merge(&part.answer);
        self.lag.merge(&part.lag);
        self.lag_base = self.lag_base.max(part.lag_base);
        self.stalls += part.stalls;
        self.stall_longest_ns = self.stall_longest_ns.max(part.stall_longest_ns);
        self.lost = self.lost.saturating_add(part.lost);
        self.overdue = self.overdue.saturating_add(part.overdue);
        self.without_message += part.without_message;
        self.merged += part.merged;
        self.reordered += part.reordered;
        self.repeated += part.repeated;
        for end in &part.ends {
            readings::count_end(&mut self.ends, &end.how, end.is_cut, end.count);
        }
    }

    pub(crate) fn reading(mut self) -> LastingReading {
        if self.expected > 0 {
            let unreached = (self.expected + self.repeated).saturating_sub(self.count);
            self.lost = i64::try_from(unreached).unwrap_or(i64::MAX);
        }
        self.ends.sort_by_key(|one| std::cmp::Reverse(one.count));
        LastingReading {
            traffic: self.traffic,
            opened: self.opened,
            open_min: self.open.iter().copied().min().unwrap_or(0),
            expected: self.expected,
            messages: self.count,
            message_bytes: self.bytes,
            first_message: self.first,
            gap: self.gap,
            answer: self.answer,
            lag: self.lag,
            lag_base: self.lag_base,
            stalls: self.stalls,
            stall_longest_s: self.stall_longest_ns as f64 / 1e9,
            lost: u64::try_from(self.lost).unwrap_or(0),
            overdue: self.overdue,
            without_message: self.without_message,
            merged: self.merged,
            reordered: self.reordered,
            repeated: self.repeated,
            ends: self.ends,
            ..LastingReading::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overdue_messages_are_as_late_as_is_known() {
        let first = Due {
            at: 1_000,
            base: LagBase::Sender,
        };
        let recorded = |pace, from, end| {
            let mut messages = Messages::default();
            messages.record_overdue(Overdue { first, pace }, from, end);
            assert_eq!(messages.lag.count(), messages.overdue);
            (messages.overdue, messages.lag.quantile_us(1.0).round())
        };
        // Due at 1, 2, 3, 4 us.
        assert_eq!(recorded(1_000, 0, 5_000), (4, 4.0));
        assert_eq!(recorded(1_000, 2_500, 5_000), (2, 2.0));
        assert_eq!(recorded(1_000, 3_000, 3_001).0, 1);
        assert_eq!(recorded(1_000, 0, 1_000).0, 0);
        assert_eq!(recorded(1_000, 3_500, 4_000).0, 0);
        assert_eq!(recorded(1, 0, u64::MAX).0, u64::MAX - 1_000);
    }
}
