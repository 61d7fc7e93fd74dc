//! Second by second: the threads' rows, put together as soon as all have told theirs.

use std::collections::BTreeMap;

use readings::{Histogram, LoadRow};

use crate::record::RowStats;

/// Rows kept in a reading: more than an hour's at one a second. Later ones are told, and counted.
const ROWS_MAX: usize = 4096;

/// One row of a load, all threads together.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the segment.
    pub segment: usize,
    /// Number of the reading.
    pub reading: usize,
    /// The figures.
    pub row: LoadRow,
    /// The response times of the good answers.
    pub response: Histogram,
}

/// What a thread tells of its rows.
#[derive(Debug)]
pub(crate) enum RowMessage {
    /// A row.
    Row {
        thread: usize,
        segment: usize,
        reading: usize,
        number: u64,
        notes: Box<RowStats>,
    },
    /// There are no more rows of the segment.
    Over { thread: usize, segment: usize },
}

/// The rows of one reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadingRows {
    pub(crate) rows: Vec<LoadRow>,
    pub(crate) left_out: u64,
}

/// Puts the threads' rows together.
#[derive(Debug)]
pub(crate) struct Rows {
    segment: usize,
    /// Number of the next row of each thread; `u64::MAX` once it has no more.
    next: Vec<u64>,
    waiting: BTreeMap<u64, Row>,
    pub(crate) kept: Vec<ReadingRows>,
}

impl Rows {
    pub(crate) fn new(threads: usize, readings: usize) -> Self {
        Self {
            segment: 0,
            next: vec![0; threads],
            waiting: BTreeMap::new(),
            kept: vec![ReadingRows::default(); readings],
        }
    }

    /// Takes what a thread tells; rows that are complete by that go to `tell`, in order.
    pub(crate) fn take(&mut self, told: RowMessage, tell: &mut impl FnMut(Row)) {
        let (RowMessage::Row {
            thread, segment, ..
        }
        | RowMessage::Over { thread, segment }) = told;
        if segment != self.segment {
            // Threads meet between segments: what still waits can get no more parts.
            self.release(u64::MAX, tell);
            self.next.fill(0);
            self.segment = segment;
        }
        match told {
            RowMessage::Over { .. } => self.next[thread] = u64::MAX,
            RowMessage::Row {
                reading,
                number,
                notes,
                ..
            } => {
                self.next[thread] = number + 1;
                self.add(segment, reading, number, *notes);
            }
        }
        let complete = self.next.iter().copied().min().unwrap_or(0);
        self.release(complete, tell);
    }

    fn add(&mut self, segment: usize, reading: usize, number: u64, notes: RowStats) {
        match self.waiting.entry(number) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Row {
                    segment,
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

    fn row(thread: usize, number: u64, requests: u64) -> RowMessage {
        let mut notes = RowStats::default();
        notes.row.requests = requests;
        notes.row.start_s = number as f64;
        notes.response.record_many_ns(1_000, requests);
        RowMessage::Row {
            thread,
            segment: 0,
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
            RowMessage::Over {
                thread: 1,
                segment: 0,
            },
            &mut tell,
        );
        rows.take(row(0, 2, 4), &mut tell);
        rows.finish(&mut tell);
        assert_eq!(told, [(0.0, 11), (1.0, 2), (2.0, 4)]);
        assert_eq!(rows.kept[0].rows[0].latency_us.count, 11);
    }
}
