//! What threads count. Requests and bytes are published before an answer goes out, so that whoever
//! has an answer finds it counted; everything else once per turn of their loops.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use net::http::Request;
use net::os::SharedCounts;
use readings::{Arrivals, Histogram, Received};

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stats {
    /// Connections accepted.
    pub connections: u64,
    /// Requests whose head and body came, and what was sent to them.
    #[serde(flatten)]
    pub received: Received,
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

/// Where all threads count.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) counts: Arc<SharedCounts>,
    /// When requests came; only where the counts are in a file.
    pub(super) arrivals: Option<Arc<SharedCounts>>,
}

/// The counts of one thread, in pages that other processes may read: [`Received::CELLS`] of them, as
/// [`Received::of_cells`] reads them, and [`Arrivals::CELLS`].
#[derive(Clone)]
pub(super) struct ThreadCounts {
    pages: Pages,
    thread: usize,
    /// The slot in which this turn of the thread's loop began.
    slot: u64,
}

impl ThreadCounts {
    pub(super) fn of(pages: Pages, thread: usize) -> Self {
        Self {
            pages,
            thread,
            slot: 0,
        }
    }

    /// The counts of all threads.
    pub(super) fn page(&self) -> &SharedCounts {
        &self.pages.counts
    }

    /// Requests that are counted from now on came at this time.
    #[inline]
    pub(super) fn begin_turn(&mut self, now_ns: u64) {
        self.slot = Arrivals::slot_of(now_ns);
    }

    /// Only this thread writes these cells.
    #[inline]
    fn add(&self, cell: usize, count: u64) {
        let cell = &self.pages.counts.all()[self.thread * Received::CELLS + cell];
        cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    /// A request has come.
    #[inline]
    pub(super) fn request(&self, body: RequestBody) {
        if body.bytes > 0 {
            self.add(Received::BODY_BYTES, body.bytes);
            self.add(Received::BODY_CHECKSUM, u64::from(body.crc32));
        }
        if let Some(arrivals) = &self.pages.arrivals {
            let cell = self.thread * Arrivals::CELLS + Arrivals::cell_of(self.slot);
            let cell = &arrivals.all()[cell];
            let counted = Arrivals::counted(cell.load(Ordering::Relaxed), self.slot);
            cell.store(counted, Ordering::Relaxed);
        }
        self.add(Received::REQUESTS, 1);
    }

    /// So many bytes are sent.
    #[inline]
    pub(super) fn sent(&self, bytes: usize) {
        self.add(Received::SENT_BYTES, bytes as u64);
    }
}

/// What is counted of a request's body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestBody {
    bytes: u64,
    crc32: u32,
}

impl RequestBody {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            bytes: request.body_bytes,
            crc32: request.body_crc32,
        }
    }
}

/// The sums over all threads.
pub(super) fn stats(counters: &[Arc<Counters>], page: &SharedCounts) -> Stats {
    let cells = page.all().iter().map(|cell| cell.load(Ordering::Acquire));
    let sum = |f: fn(&Counters) -> &AtomicU64| {
        counters
            .iter()
            .map(|c| f(c).load(Ordering::Relaxed))
            .sum::<u64>()
    };
    Stats {
        connections: sum(|c| &c.connections),
        received: Received::of_cells(&cells.collect::<Vec<_>>()),
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
