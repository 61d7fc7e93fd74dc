//! The time budget of a run: a block that would not end within it is not begun.

use std::time::{Duration, Instant};

/// The end of a run's time, and how long its blocks take.
pub(crate) struct Deadline {
    within: Option<Duration>,
    started: Instant,
    block_began: Instant,
    longest_block: Duration,
}

impl Deadline {
    /// `within` from now; without it there is no end.
    pub(crate) fn of(within: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            within,
            started: now,
            block_began: now,
            longest_block: Duration::ZERO,
        }
    }

    /// A group of the first block begins: what came before is no part of a block.
    pub(crate) fn first_block_begins(&mut self) {
        self.block_began = Instant::now();
    }

    /// A block has ended and another one would begin. Returns why it must not.
    pub(crate) fn next_block(&mut self, done: u32, planned: u32) -> Option<String> {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.block_began);
        self.block_began = now;
        self.judge(
            now.saturating_duration_since(self.started),
            took,
            done,
            planned,
        )
    }

    fn judge(
        &mut self,
        spent: Duration,
        took: Duration,
        done: u32,
        planned: u32,
    ) -> Option<String> {
        let within = self.within?;
        self.longest_block = self.longest_block.max(took);
        (spent + self.longest_block > within).then(|| {
            format!(
                "the time limit of {} s allowed {done} of {planned} blocks: a block took up to {:.0} s, \
                 so another would have exceeded it",
                within.as_secs_f64(),
                self.longest_block.as_secs_f64().max(1.0)
            )
        })
    }

    /// Time since the block began: at least what a group of it takes.
    pub(crate) fn block_so_far(&self) -> Duration {
        self.block_began.elapsed()
    }

    /// Whether this much further work would end in time.
    pub(crate) fn allows(&self, more: Duration) -> bool {
        let allows = |within| self.started.elapsed() + more <= within;
        self.within.is_none_or(allows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_begins_that_would_end_after_the_time_by_the_longest_so_far() {
        let s = Duration::from_secs;
        let mut deadline = Deadline::of(Some(s(60)));
        assert_eq!(deadline.judge(s(10), s(10), 1, 8), None);
        assert_eq!(deadline.judge(s(30), s(20), 2, 8), None);
        assert_eq!(
            deadline.judge(s(40), s(10), 3, 8),
            None,
            "it ends just in time"
        );
        let why = deadline.judge(s(41), s(1), 4, 8).unwrap();
        assert!(why.contains("60 s allowed 4 of 8 blocks"), "{why}");
        assert!(why.contains("up to 20 s"), "{why}");
        let mut endless = Deadline::of(None);
        assert_eq!(endless.judge(s(4000), s(4000), 1, 8), None);
        assert!(endless.allows(s(4000)) && !deadline.allows(s(61)));
    }
}
