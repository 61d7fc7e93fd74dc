//! Rows of all threads, merged as soon as each thread has sent its part.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter::zip;

use readings::{Histogram, LATE_S, LoadRow};
use serde::{Deserialize, Serialize};

use crate::record::RowStats;

/// Most rows that a reading keeps: more than an hour of rows of a second. Later ones are only
/// reported and counted.
pub const ROWS_MAX: usize = 4096;

/// One row of a load, over all threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl Row {
    /// Adds another thread's or host's part of the same row.
    pub fn add(&mut self, row: &LoadRow, response: &Histogram) {
        self.row.duration_s = self.row.duration_s.max(row.duration_s);
        self.row.due = self.row.due.saturating_add(row.due);
        self.row.requests = self.row.requests.saturating_add(row.requests);
        for (all, more) in zip(&mut self.row.due_before, row.due_before) {
            *all = all.saturating_add(more);
        }
        self.row.errors = self.row.errors.saturating_add(row.errors);
        self.row.bytes_read = self.row.bytes_read.saturating_add(row.bytes_read);
        self.response.merge(response);
    }

    /// Sets the figures that follow from the response times, once all parts are added.
    pub fn summarise(&mut self) {
        self.row.latency_us = self.response.quantiles();
        self.row.late = self.response.count_above_us(LATE_S * 1e6);
    }
}

/// What a thread sends of its rows.
#[derive(Debug)]
pub(crate) enum RowMessage {
    Row {
        thread: usize,
        segment: usize,
        reading: usize,
        number: u64,
        stats: Box<RowStats>,
    },
    /// The segment has no more rows.
    Over { thread: usize, segment: usize },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ReadingRows {
    pub(crate) rows: Vec<LoadRow>,
    pub(crate) left_out: u64,
}

/// Merges the threads' rows.
#[derive(Debug)]
pub(crate) struct Rows {
    segment: usize,
    /// Number of the next row of each thread; `u64::MAX` once it has no more.
    next: Vec<u64>,
    waiting: BTreeMap<u64, Row>,
    pub(crate) readings: Vec<ReadingRows>,
}

impl Rows {
    pub(crate) fn new(threads: usize, readings: usize) -> Self {
        Self {
            segment: 0,
            next: vec![0; threads],
            waiting: BTreeMap::new(),
            readings: vec![ReadingRows::default(); readings],
        }
    }

    /// Takes a message; rows that it completes are passed to `report`, in order.
    pub(crate) fn take(&mut self, message: RowMessage, report: &mut impl FnMut(Row)) {
        let (RowMessage::Row {
            thread, segment, ..
        }
        | RowMessage::Over { thread, segment }) = message;
        if segment != self.segment {
            // Threads synchronise between segments: rows of the last one get no more parts.
            self.release(u64::MAX, report);
            self.next.fill(0);
            self.segment = segment;
        }
        match message {
            RowMessage::Over { .. } => self.next[thread] = u64::MAX,
            RowMessage::Row {
                reading,
                number,
                stats,
                ..
            } => {
                self.next[thread] = number + 1;
                self.add(segment, reading, number, *stats);
            }
        }
        let complete = self.next.iter().copied().min().unwrap_or(0);
        self.release(complete, report);
    }

    fn add(&mut self, segment: usize, reading: usize, number: u64, stats: RowStats) {
        match self.waiting.entry(number) {
            Entry::Vacant(entry) => {
                entry.insert(Row {
                    segment,
                    reading,
                    row: stats.row,
                    response: stats.response,
                });
            }
            Entry::Occupied(mut entry) => entry.get_mut().add(&stats.row, &stats.response),
        }
    }

    /// Reports the rows below a number.
    fn release(&mut self, below: u64, report: &mut impl FnMut(Row)) {
        while let Some(first) = self.waiting.first_entry()
            && *first.key() < below
        {
            let mut row = first.remove();
            row.summarise();
            let readings = &mut self.readings[row.reading];
            if readings.rows.len() < ROWS_MAX {
                readings.rows.push(row.row.clone());
            } else {
                readings.left_out += 1;
            }
            report(row);
        }
    }

    /// Reports what is left at the end of the load.
    pub(crate) fn finish(&mut self, report: &mut impl FnMut(Row)) {
        self.release(u64::MAX, report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(thread: usize, number: u64, requests: u64) -> RowMessage {
        let mut stats = RowStats::default();
        stats.row.requests = requests;
        stats.row.start_s = number as f64;
        stats.response.record_many_ns(1_000, requests);
        RowMessage::Row {
            thread,
            segment: 0,
            reading: 0,
            number,
            stats: Box::new(stats),
        }
    }

    #[test]
    fn a_row_is_reported_when_all_threads_have_sent_their_part() {
        let mut rows = Rows::new(2, 1);
        let mut reported = Vec::new();
        let mut report = |row: Row| reported.push((row.row.start_s, row.row.requests));
        rows.take(row(0, 0, 1), &mut report);
        rows.take(row(0, 1, 2), &mut report);
        rows.take(row(1, 0, 10), &mut report);
        // The second thread is done early: the first goes on alone.
        rows.take(
            RowMessage::Over {
                thread: 1,
                segment: 0,
            },
            &mut report,
        );
        rows.take(row(0, 2, 4), &mut report);
        rows.finish(&mut report);
        assert_eq!(reported, [(0.0, 11), (1.0, 2), (2.0, 4)]);
        assert_eq!(rows.readings[0].rows[0].latency_us.count, 11);
    }
}
