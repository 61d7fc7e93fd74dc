//! What back ends counted of a load themselves, and caches say of their answers.

mod ages;
mod arrivals;

pub use ages::AgeReading;
pub use arrivals::{ARRIVAL_SLOT_NS, Arrivals};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sums::add_count;

/// What one back end received, and sent, while a load went on.
///
/// In a file of counts each thread has [`Received::CELLS`] numbers of 8 bytes in the machine's byte
/// order; those that are not named here are reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Requests whose head and body came.
    pub requests: u64,
    pub body_bytes: u64,
    /// The sum of the CRC-32 of each body.
    pub body_checksum: u64,
    /// Bytes of answers, heads included. With HTTP/3 without framing; with HTTP/2 with it.
    pub sent_bytes: u64,
    /// Its weight, where the server in front of it declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

impl Received {
    /// Numbers of each thread: one cache line.
    pub const CELLS: usize = 8;
    pub const REQUESTS: usize = 0;
    pub const BODY_BYTES: usize = 1;
    pub const BODY_CHECKSUM: usize = 2;
    pub const SENT_BYTES: usize = 3;

    /// The sum over the cells of all threads.
    pub fn of_cells(cells: &[u64]) -> Self {
        let mut sum = Self::default();
        for own in cells.chunks_exact(Self::CELLS) {
            sum.add(&Self {
                requests: own[Self::REQUESTS],
                body_bytes: own[Self::BODY_BYTES],
                body_checksum: own[Self::BODY_CHECKSUM],
                sent_bytes: own[Self::SENT_BYTES],
                weight: None,
            });
        }
        sum
    }

    /// Adds what another server, or another thread, counted.
    pub fn add(&mut self, other: &Self) {
        add_count(&mut self.requests, other.requests);
        add_count(&mut self.body_bytes, other.body_bytes);
        add_count(&mut self.body_checksum, other.body_checksum);
        add_count(&mut self.sent_bytes, other.sent_bytes);
        self.weight = self.weight.or(other.weight);
    }

    /// What was counted since an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            body_bytes: self.body_bytes.saturating_sub(before.body_bytes),
            body_checksum: self.body_checksum.saturating_sub(before.body_checksum),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            weight: self.weight,
        }
    }

    /// All back ends together.
    pub fn sum(of: &BTreeMap<String, Self>) -> Self {
        let mut sum = Self::default();
        of.values().for_each(|one| sum.add(one));
        sum
    }
}

/// The body of each request of a load, where all have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestBody {
    pub bytes: u64,
    /// Its CRC-32.
    pub crc32: u32,
}

impl RequestBody {
    /// `None` for an empty body.
    pub fn of(body: &[u8]) -> Option<Self> {
        (!body.is_empty()).then(|| Self {
            bytes: body.len() as u64,
            crc32: crc32fast::hash(body),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_and_differences_are_what_came_between() {
        let cells = |n: u64| [[n, 2, 3, 4, 9, 9, 9, 9], [n, 0, 0, 1, 9, 9, 9, 9]].concat();
        let (before, after) = (Received::of_cells(&cells(1)), Received::of_cells(&cells(6)));
        let expected = Received {
            requests: 2,
            body_bytes: 2,
            body_checksum: 3,
            sent_bytes: 5,
            weight: None,
        };
        assert_eq!(before, expected);
        assert_eq!(after.since(&before).requests, 10);
        assert_eq!(after.since(&before).sent_bytes, 0);
        let both = BTreeMap::from([("a".to_owned(), before), ("b".to_owned(), after)]);
        assert_eq!(Received::sum(&both).requests, 14);
    }
}
