//! What threads count, and publish once per turn of their loops.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use readings::Histogram;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Requests answered.
    pub requests: u64,
    /// Messages sent in exchanges that last.
    pub messages: u64,
    /// Those of them that were sent late because the client did not read.
    pub messages_held: u64,
    /// Messages to members of topics that were lost, as these or their threads were too slow; and of
    /// clients that sent more than the origin keeps.
    pub messages_lost: u64,
    /// Exchanges that last and are open.
    pub lasting: u64,
    /// Those of them that are members of topics.
    pub members: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) messages: AtomicU64,
    pub(super) messages_held: AtomicU64,
    pub(super) messages_lost: AtomicU64,
    pub(super) lasting: AtomicU64,
    pub(super) members: AtomicU64,
    /// The `errno` of the last accept that failed; 0 if none has failed since it was last read.
    pub(super) accept_errno: AtomicI32,
    /// Actual delays.
    pub(super) delays: Mutex<Histogram>,
    /// How late messages were written.
    pub(super) lateness: Mutex<Histogram>,
}

/// The sums over all threads.
pub(super) fn stats(counters: &[Arc<Counters>]) -> Stats {
    let sum = |f: fn(&Counters) -> &AtomicU64| {
        counters
            .iter()
            .map(|c| f(c).load(Ordering::Relaxed))
            .sum::<u64>()
    };
    Stats {
        connections: sum(|c| &c.connections),
        requests: sum(|c| &c.requests),
        messages: sum(|c| &c.messages),
        messages_held: sum(|c| &c.messages_held),
        messages_lost: sum(|c| &c.messages_lost),
        lasting: sum(|c| &c.lasting),
        members: sum(|c| &c.members),
    }
}

/// Moves what a thread has recorded to where other threads see it.
pub(super) fn publish(own: &mut Histogram, shared: &Mutex<Histogram>) {
    if own.count() > 0
        && let Ok(mut shared) = shared.lock()
    {
        shared.merge(own);
        own.clear();
    }
}

/// The sum of one of the histograms of all threads.
pub(super) fn merged(
    counters: &[Arc<Counters>],
    histogram: fn(&Counters) -> &Mutex<Histogram>,
) -> Histogram {
    let mut sum = Histogram::new();
    for own in counters {
        if let Ok(own) = histogram(own).lock() {
            sum.merge(&own);
        }
    }
    sum
}
