//! What a thread records of the messages of its exchanges.

use readings::Histogram;

use crate::exchange::Due;

/// The messages in the windows of a reading.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) count: u64,
    /// How late they arrived, of those that were due at a known time.
    pub(crate) lag: Histogram,
}

impl Messages {
    #[inline]
    pub(crate) fn record(&mut self, due: Due, arrived: u64) {
        self.count += 1;
        if let Some(due) = due {
            self.lag.record_ns(arrived.saturating_sub(due));
        }
    }

    /// Adds another thread's messages.
    pub(crate) fn merge(&mut self, part: &Messages) {
        self.count += part.count;
        self.lag.merge(&part.lag);
    }
}
