//! Messages for the operator.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Messages beyond this are dropped and counted.
const WAITING_MAX: usize = 64;

/// Bounded queue of messages for the operator, read by the supervisor.
#[derive(Debug, Default)]
pub struct Notices {
    waiting: Mutex<(VecDeque<String>, u64)>,
}

impl Notices {
    /// Adds a message: a lower-case fragment without a line end.
    pub fn push(&self, message: String) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (messages, dropped) = &mut *waiting;
        if messages.len() < WAITING_MAX {
            messages.push_back(message);
        } else {
            *dropped += 1;
        }
    }

    /// Takes all messages, and says how many were dropped.
    pub fn take(&self) -> Vec<String> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (messages, dropped) = &mut *waiting;
        let mut taken: Vec<String> = messages.drain(..).collect();
        match std::mem::take(dropped) {
            0 => {}
            dropped => taken.push(format!("{dropped} more messages were dropped")),
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_and_dropped_ones_are_counted() {
        let notices = Notices::default();
        for number in 0..WAITING_MAX + 3 {
            notices.push(number.to_string());
        }
        let taken = notices.take();
        assert_eq!(taken.len(), WAITING_MAX + 1);
        assert_eq!(taken[0], "0");
        assert_eq!(taken[WAITING_MAX], "3 more messages were dropped");
        assert!(notices.take().is_empty());
    }
}
