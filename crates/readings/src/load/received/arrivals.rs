//! When a back end received requests.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The length of a slot, ns.
pub const ARRIVAL_SLOT_NS: u64 = 10_000_000;

/// The low bits of a cell, which hold its count; the others hold the number of its slot.
const COUNT_BITS: u32 = 24;

/// The requests that a back end received in each slot of a measured window.
///
/// In a file of arrivals each thread has [`Arrivals::CELLS`] numbers of 8 bytes in the machine's byte
/// order. That of a slot stands at the slot's number, since the start of CLOCK_MONOTONIC, modulo the
/// number of cells, and says which slot it is of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// From the beginning of the window to that of the first slot, s: less than a slot.
    pub start_s: f64,
    /// Requests by slot, in order of time.
    pub counts: Vec<u32>,
}

impl Arrivals {
    /// Numbers of each thread: 164 s.
    pub const CELLS: usize = 1 << 14;

    /// The file of arrivals that belongs to a file of counts.
    pub fn file_beside(counts: &Path) -> PathBuf {
        let mut name = counts.as_os_str().to_owned();
        name.push(".arrivals");
        name.into()
    }

    /// The slot of a time by CLOCK_MONOTONIC.
    #[inline]
    pub fn slot_of(ns: u64) -> u64 {
        ns / ARRIVAL_SLOT_NS
    }

    /// The cell of a slot.
    #[inline]
    pub fn cell_of(slot: u64) -> usize {
        slot as usize % Self::CELLS
    }

    /// What the cell of a slot holds once another request was received in it.
    #[inline]
    pub fn counted(cell: u64, slot: u64) -> u64 {
        match cell >> COUNT_BITS == slot {
            true => cell + 1,
            false => slot << COUNT_BITS | 1,
        }
    }

    /// The whole slots between two times, from the cells of all threads; `None` for a longer time than
    /// the cells hold.
    pub fn of_cells(cells: &[u64], from_ns: u64, to_ns: u64) -> Option<Self> {
        let first = from_ns.div_ceil(ARRIVAL_SLOT_NS);
        let end = Self::slot_of(to_ns);
        if end.saturating_sub(first) > Self::CELLS as u64 {
            return None;
        }
        let in_slot = |slot: u64| {
            let threads = cells.chunks_exact(Self::CELLS);
            let its = threads.map(|own| own[Self::cell_of(slot)]);
            let its = its.filter(|cell| cell >> COUNT_BITS == slot);
            let sum: u64 = its.map(|cell| cell & ((1 << COUNT_BITS) - 1)).sum();
            u32::try_from(sum).unwrap_or(u32::MAX)
        };
        Some(Self {
            start_s: (first * ARRIVAL_SLOT_NS).saturating_sub(from_ns) as f64 / 1e9,
            counts: (first..end).map(in_slot).collect(),
        })
    }

    /// The slots of several back ends together; those of all have to begin at the same time.
    pub fn sum<'a>(mut of: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let mut sum = of.next()?.clone();
        for other in of {
            for (count, more) in sum.counts.iter_mut().zip(&other.counts) {
                *count = count.saturating_add(*more);
            }
        }
        Some(sum)
    }

    /// Requests in all slots.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The length of all slots together, s.
    pub fn duration_s(&self) -> f64 {
        self.counts.len() as f64 * ARRIVAL_SLOT_NS as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_all_threads_add_up_and_old_ones_do_not_count() {
        let mut cells = vec![0; 2 * Arrivals::CELLS];
        let mut count = |thread: usize, slot: u64| {
            let cell = &mut cells[thread * Arrivals::CELLS + Arrivals::cell_of(slot)];
            *cell = Arrivals::counted(*cell, slot);
        };
        let first = 3 * Arrivals::CELLS as u64 - 2;
        // One of a round before stands where no request came in this one.
        count(0, first + 3 - Arrivals::CELLS as u64);
        for slot in [first, first, first + 1, first + 2, first + 4] {
            count(0, slot);
        }
        count(1, first + 1);
        let ns = |slot: u64| slot * ARRIVAL_SLOT_NS;
        let all = |from, to| Arrivals::of_cells(&cells, from, to);
        let found = all(ns(first), ns(first + 5)).unwrap();
        assert_eq!((found.start_s, &*found.counts), (0.0, &[2, 2, 1, 0, 1][..]));
        assert_eq!((found.total(), found.duration_s()), (6, 0.05));
        // Parts of slots at both ends are left out.
        let part = all(ns(first) + 4_000_000, ns(first + 3) + 9_999_999).unwrap();
        assert_eq!((part.start_s, &*part.counts), (0.006, &[2, 1][..]));
        assert_eq!(all(0, ns(Arrivals::CELLS as u64 + 1)), None);
        let both = Arrivals::sum([&found, &found].into_iter()).unwrap();
        assert_eq!(both.counts, [4, 4, 2, 0, 2]);
    }
}
