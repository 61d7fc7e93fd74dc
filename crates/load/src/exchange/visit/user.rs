//! The user whose session is on a place.

use super::cookies::Cookies;

/// The user on a place, or the place of one.
#[derive(Debug, Default)]
pub(crate) struct User {
    /// Its number, from 0 over all threads and hosts; `None` while the place has no user.
    pub(crate) number: Option<u64>,
    /// The number of its round, in the same way, and of the rounds that it has made before.
    pub(crate) round: u64,
    pub(crate) rounds_before: u64,
    /// When its round was due, ns of the worker's clock.
    pub(crate) due: u64,
    /// Whether that lies in a measured window.
    pub(crate) is_counted: bool,
    /// The step under way, or the one that comes next; `None` if that begins a round.
    pub(crate) step: Option<usize>,
    /// When its next request is due, or that of the user who comes next; `None` during a request, and
    /// where an open loop has the next user.
    pub(crate) next: Option<u64>,
    /// Whether it waits for [`Self::next`].
    pub(crate) is_paused: bool,
    /// Whether it leaves with the answer that it waits for.
    pub(crate) leaves: bool,
    /// What is captured of answers, by number.
    pub(crate) captured: Vec<Vec<u8>>,
    pub(crate) cookies: Cookies,
    /// The path of its request, without the query, if cookies are kept.
    pub(crate) path: Vec<u8>,
}

impl User {
    /// A new user has the place.
    pub(crate) fn arrive(&mut self, number: u64) {
        self.leave();
        self.number = Some(number);
    }

    /// The user is gone; the place is free.
    pub(crate) fn leave(&mut self) {
        (self.number, self.step, self.next) = (None, None, None);
        (self.is_paused, self.leaves, self.rounds_before) = (false, false, 0);
        self.captured.clear();
        self.cookies.clear();
    }

    /// Whether it is in the middle of a round.
    pub(crate) fn is_under_way(&self) -> bool {
        self.number.is_some() && self.step.is_some()
    }
}
