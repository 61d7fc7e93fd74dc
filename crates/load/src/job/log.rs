//! The requests of a log, with their times.

use std::sync::Arc;

use readings::requests::Replay;
use serde::{Deserialize, Serialize};

use super::packed::{self, Unpackable};

/// When requests are due, and which they are, as a log says. An entry takes the bytes of two varints:
/// of the ns since the one before, and of the number of the request. At 1,000 requests per second and
/// with up to 16,384 different ones that is 5 bytes at most. In a written job it is compressed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct Log {
    entries: u64,
    /// When the last is due, ns since the first.
    last_ns: u64,
    /// The highest number of a request.
    highest: u32,
    bytes: Arc<[u8]>,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// ns since the first.
    pub(crate) due_ns: u64,
    pub(crate) request: u32,
}

/// A place in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    at: usize,
    /// Of the next entry.
    number: u64,
    /// When the last one was due.
    due_ns: u64,
}

impl Log {
    /// Of times in ascending order; one that is earlier than the one before counts as simultaneous.
    pub fn of(replay: &Replay) -> Self {
        let mut bytes = Vec::with_capacity(replay.due_ns.len() * 5);
        let mut log = Self::default();
        for (&due_ns, &request) in replay.due_ns.iter().zip(&replay.requests) {
            packed::write(due_ns.saturating_sub(log.last_ns), &mut bytes);
            packed::write(request.into(), &mut bytes);
            log.last_ns = log.last_ns.max(due_ns);
            log.highest = log.highest.max(request);
            log.entries += 1;
        }
        log.bytes = bytes.into();
        log
    }

    /// How many requests it has.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The highest number of a request; `None` if it has none.
    pub(crate) fn highest(&self) -> Option<u32> {
        (self.entries > 0).then_some(self.highest)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The next entry of the thread with this number of so many, which each take every so many-th.
    #[inline]
    pub(crate) fn next(&self, cursor: &mut Cursor, (thread, threads): (u64, u64)) -> Option<Entry> {
        loop {
            let delta = packed::read(&self.bytes, &mut cursor.at)?;
            let request = packed::read(&self.bytes, &mut cursor.at)?;
            cursor.due_ns = cursor.due_ns.saturating_add(delta);
            cursor.number += 1;
            if (cursor.number - 1) % threads == thread {
                return Some(Entry {
                    due_ns: cursor.due_ns,
                    request: u32::try_from(request).unwrap_or(u32::MAX),
                });
            }
        }
    }

    /// Leaves out the entries of a thread that are due before a time.
    pub(crate) fn skip(&self, cursor: &mut Cursor, share: (u64, u64), before_ns: u64) {
        let mut ahead = *cursor;
        while self
            .next(&mut ahead, share)
            .is_some_and(|entry| entry.due_ns < before_ns)
        {
            *cursor = ahead;
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Packed {
    entries: u64,
    bytes: String,
}

impl From<Log> for Packed {
    fn from(log: Log) -> Self {
        Self {
            entries: log.entries,
            bytes: packed::pack(&log.bytes),
        }
    }
}

impl TryFrom<Packed> for Log {
    type Error = Unpackable;

    fn try_from(packed: Packed) -> Result<Self, Unpackable> {
        let mut log = Self {
            bytes: packed::unpack(&packed.bytes)?.into(),
            ..Self::default()
        };
        let mut cursor = Cursor::default();
        while let Some(entry) = log.next(&mut cursor, (0, 1)) {
            log.entries += 1;
            log.last_ns = entry.due_ns;
            log.highest = log.highest.max(entry.request);
        }
        match log.entries == packed.entries && cursor.at == log.bytes.len() {
            true => Ok(log),
            false => Err(Unpackable),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replay(entries: &[(u64, u32)]) -> Replay {
        let mut due_ns: Vec<u64> = entries.iter().map(|(due, _)| *due).collect();
        due_ns.sort_unstable();
        Replay {
            due_ns,
            requests: entries.iter().map(|(_, request)| *request).collect(),
            left_out: Vec::new(),
        }
    }

    fn all(log: &Log, share: (u64, u64)) -> Vec<Entry> {
        let mut cursor = Cursor::default();
        std::iter::from_fn(|| log.next(&mut cursor, share)).collect()
    }

    proptest! {
        #[test]
        fn threads_share_the_entries_in_order(
            entries: Vec<(u64, u32)>,
            threads in 1u64..6,
            before: u64,
        ) {
            let replay = replay(&entries);
            let log = Log::of(&replay);
            let text = serde_json::to_string(&log).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Log>(&text).unwrap(), &log);
            let both = replay.due_ns.iter().zip(&replay.requests);
            let expected: Vec<Entry> = both
                .map(|(&due_ns, &request)| Entry { due_ns, request })
                .collect();
            for thread in 0..threads {
                let own = expected.iter().skip(thread as usize).step_by(threads as usize);
                let own: Vec<Entry> = own.copied().collect();
                prop_assert_eq!(&all(&log, (thread, threads)), &own);
                let mut cursor = Cursor::default();
                log.skip(&mut cursor, (thread, threads), before);
                let next = log.next(&mut cursor, (thread, threads));
                prop_assert_eq!(next, own.iter().find(|one| one.due_ns >= before).copied());
            }
        }
    }

    #[test]
    fn a_million_entries_are_small() {
        // As of a log with milliseconds, 1,000 a second of 1,000 different ones.
        let mut random = fastrand::Rng::with_seed(1);
        let mut at = 0;
        let entries: Vec<(u64, u32)> = (0..1_000_000)
            .map(|_| {
                at += random.u64(0..3) * 1_000_000;
                (at, random.u32(0..1_000))
            })
            .collect();
        let log = Log::of(&replay(&entries));
        assert!(log.bytes() <= 5_000_000, "{}", log.bytes());
        let text = serde_json::to_string(&log).unwrap();
        assert!(text.len() < 3_000_000, "{}", text.len());
    }
}
