//! The requests of an open loop that wait for a free connection, any or their own.

use std::collections::VecDeque;

use crate::progress::LoadError;

/// Due times that all threads of a machine keep together: 256 MiB of them.
const WAITING_MAX: usize = 1 << 25;
/// Due times that memory is first reserved for.
const FIRST: usize = 64;

/// Due times of requests for which no connection was free, in order.
#[derive(Debug)]
pub(super) struct Backlog {
    due: VecDeque<u64>,
    /// The most that it keeps.
    max: usize,
}

impl Backlog {
    /// One thread's part.
    pub(super) fn of_one_of(threads: usize) -> Self {
        Self {
            due: VecDeque::new(),
            max: WAITING_MAX / threads.max(1),
        }
    }

    /// # Errors
    /// When it is full, or there is no memory.
    #[inline]
    pub(super) fn push(&mut self, due: u64) -> Result<(), LoadError> {
        if self.due.len() == self.due.capacity() {
            self.grow()?;
        }
        self.due.push_back(due);
        Ok(())
    }

    /// The limit is checked here only, which spares the loop a comparison for each request.
    #[cold]
    fn grow(&mut self) -> Result<(), LoadError> {
        let len = self.due.len();
        let most = (len * 2).clamp(FIRST.min(self.max), self.max);
        let more = most.saturating_sub(len);
        if more == 0 || self.due.try_reserve_exact(more).is_err() {
            return Err(LoadError::Backlog {
                waiting: len as u64,
            });
        }
        Ok(())
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<u64> {
        self.due.pop_front()
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&u64> {
        self.due.front()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

/// Due messages of connections that each have their own, in turn: one that stalls keeps them waiting.
#[derive(Debug)]
pub(super) struct Turns {
    links: Vec<Turn>,
    /// The link of the first, and from one to the next.
    first: usize,
    step: usize,
    /// Whose turn it is.
    next: usize,
    waiting: usize,
    max: usize,
}

#[derive(Debug, Default)]
struct Turn {
    free: Vec<u32>,
    due: VecDeque<u64>,
}

impl Turns {
    /// Of so many links from `first` on, each `step` behind the one before, on one of so many threads.
    pub(super) fn new(first: usize, step: usize, links: usize, threads: usize) -> Self {
        Self {
            links: std::iter::repeat_with(Turn::default).take(links).collect(),
            first,
            step,
            next: 0,
            waiting: 0,
            max: WAITING_MAX / threads.max(1),
        }
    }

    /// Gives a due message to the link whose turn it is. Returns the link.
    ///
    /// # Errors
    /// When more wait than are kept.
    pub(super) fn push(&mut self, due: u64) -> Result<usize, LoadError> {
        if self.waiting >= self.max || self.links.is_empty() {
            let waiting = self.waiting as u64;
            return Err(LoadError::Backlog { waiting });
        }
        let at = self.next;
        self.next = (at + 1) % self.links.len();
        self.links[at].due.push_back(due);
        self.waiting += 1;
        Ok(self.first + at * self.step)
    }

    fn turn(&mut self, link: usize) -> &mut Turn {
        &mut self.links[(link - self.first) / self.step]
    }

    /// When the next message of a link that needs no place is due.
    pub(super) fn next_of(&mut self, link: usize) -> Option<u64> {
        self.turn(link).due.front().copied()
    }

    /// That message was sent.
    pub(super) fn sent(&mut self, link: usize) {
        if self.turn(link).due.pop_front().is_some() {
            self.waiting -= 1;
        }
    }

    /// A place of a link is free.
    pub(super) fn free(&mut self, place: usize, link: usize) {
        self.turn(link).free.push(place as u32);
    }

    /// A free place of a link for its next due message.
    pub(super) fn take(&mut self, link: usize) -> Option<(usize, u64)> {
        let turn = self.turn(link);
        let due = *turn.due.front()?;
        let place = turn.free.pop()?;
        turn.due.pop_front();
        self.waiting -= 1;
        Some((place as usize, due))
    }

    /// A message that was due before a time, which is not kept any longer.
    pub(super) fn give_up(&mut self, before: u64) -> Option<u64> {
        let is_late = |turn: &&mut Turn| turn.due.front().is_some_and(|due| *due < before);
        let due = self.links.iter_mut().find(is_late)?.due.pop_front();
        self.waiting -= 1;
        due
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_so_many_and_then_refuses() {
        let mut backlog = Backlog::of_one_of(WAITING_MAX / 1_000);
        let max = backlog.max as u64;
        for due in 0..max {
            backlog.push(due).unwrap();
        }
        for _ in 0..2 {
            let refused = backlog.push(0);
            assert!(matches!(refused, Err(LoadError::Backlog { waiting }) if waiting == max));
        }
        assert_eq!(backlog.pop_front(), Some(0));
        backlog.push(max).unwrap();
        assert_eq!((backlog.front(), backlog.len() as u64), (Some(&1), max));
    }

    #[test]
    fn a_long_overload_fits() {
        // 100,000/s for a minute.
        assert!(Backlog::of_one_of(1).max > 5 * 100_000 * 60);
        assert_eq!(
            Backlog::of_one_of(1).due.capacity(),
            0,
            "nothing is kept for a closed loop"
        );
    }
}
