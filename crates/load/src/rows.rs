//! Second by second: the threads' rows, put together as soon as all have told theirs.

use std::collections::BTreeMap;

use readings::{Histogram, LoadRow};

use crate::record::RowNotes;

/// Rows kept in a reading: more than an hour's at one a second. Later ones are told, and counted.
const ROWS_MAX: usize = 4096;

/// One row of a load, all threads together.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the stint.
    pub stint: usize,
    /// Number of the reading.
    pub reading: usize,
    /// The figures.
    pub row: LoadRow,
    /// The response times of the good answers.
    pub response: Histogram,
}

/// What a thread tells of its rows.
#[derive(Debug)]
pub(crate) enum Told {
    /// A row.
    Row {
        thread: usize,
        stint: usize,
        reading: usize,
        number: u64,
        notes: Box<RowNotes>,
    },
    /// There are no more rows of the stint.
    Over { thread: usize, stint: usize },
}

/// The rows of one reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) rows: Vec<LoadRow>,
    pub(crate) left_out: u64,
}

/// Puts the threads' rows together.
#[derive(Debug)]
pub(crate) struct Rows {
    stint: usize,
    /// Number of the next row of each thread; `u64::MAX` once it has no more.
    next: Vec<u64>,
    waiting: BTreeMap<u64, Row>,
    pub(crate) kept: Vec<Kept>,
}

impl Rows {
    pub(crate) fn new(threads: usize, readings: usize) -> Self {
        Self {
            stint: 0,
            next: vec![0; threads],
            waiting: BTreeMap::new(),
            kept: vec![Kept::default(); readings],
        }
    }

    /// Takes what a thread tells; rows that are complete by that go to `tell`, in order.
    pub(crate) fn take(&mut self, told: Told, tell: &mut impl FnMut(Row)) {
        let (Told::Row { thread, stint, .. } | Told::Over { thread, stint }) = told;
        if stint != self.stint {
            // Threads meet between stints: what still waits can get no more parts.
            self.release(u64::MAX, tell);
            self.next.fill(0);
            self.stint = stint;
        }
        match told {
            Told::Over { .. } => self.next[thread] = u64::MAX,
            Told::Row {
                reading,
                number,
                notes,
                ..
            } => {
                self.next[thread] = number + 1;
                self.add(stint, reading, number, *notes);
            }
        }
        let complete = self.next.iter().copied().min().unwrap_or(0);
        self.release(complete, tell);
    }

    fn add(&mut self, stint: usize, reading: usize, number: u64, notes: RowNotes) {
        match self.waiting.entry(number) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Row {
                    stint,
                    reading,
                    row: notes.row,
                    response: notes.response,
                });
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                let sum = place.get_mut();
                sum.row.duration_s = sum.row.duration_s.max(notes.row.duration_s);
                sum.row.due += notes.row.due;
                sum.row.requests += notes.row.requests;
                sum.row.errors += notes.row.errors;
                sum.row.bytes_read += notes.row.bytes_read;
                sum.response.merge(&notes.response);
            }
        }
    }

    /// Tells the rows below a number.
    fn release(&mut self, below: u64, tell: &mut impl FnMut(Row)) {
        while let Some(first) = self.waiting.first_entry()
            && *first.key() < below
        {
            let mut row = first.remove();
            row.row.latency_us = row.response.quantiles();
            let kept = &mut self.kept[row.reading];
            if kept.rows.len() < ROWS_MAX {
                kept.rows.push(row.row.clone());
            } else {
                kept.left_out += 1;
            }
            tell(row);
        }
    }

    /// Tells what is left at the end of the load.
    pub(crate) fn finish(&mut self, tell: &mut impl FnMut(Row)) {
        self.release(u64::MAX, tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(thread: usize, number: u64, requests: u64) -> Told {
        let mut notes = RowNotes::default();
        notes.row.requests = requests;
        notes.row.start_s = number as f64;
        notes.response.record_many_ns(1_000, requests);
        Told::Row {
            thread,
            stint: 0,
            reading: 0,
            number,
            notes: Box::new(notes),
        }
    }

    #[test]
    fn a_row_is_told_when_all_threads_have_told_theirs() {
        let mut rows = Rows::new(2, 1);
        let mut told = Vec::new();
        let mut tell = |row: Row| told.push((row.row.start_s, row.row.requests));
        rows.take(row(0, 0, 1), &mut tell);
        rows.take(row(0, 1, 2), &mut tell);
        rows.take(row(1, 0, 10), &mut tell);
        // The second thread is done early: the first goes on alone.
        rows.take(
            Told::Over {
                thread: 1,
                stint: 0,
            },
            &mut tell,
        );
        rows.take(row(0, 2, 4), &mut tell);
        rows.finish(&mut tell);
        assert_eq!(told, [(0.0, 11), (1.0, 2), (2.0, 4)]);
        assert_eq!(rows.kept[0].rows[0].latency_us.count, 11);
    }
}
