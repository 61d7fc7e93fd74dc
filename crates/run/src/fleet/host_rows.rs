//! Merges the rows of the hosts that make one load together.

use std::collections::BTreeMap;

use load::{ROWS_MAX, Row};
use readings::LoadRow;

/// The rows of all hosts. All have the same window, so rows that begin at the same time are one.
pub(crate) struct HostRows {
    /// Of each host the start of the row that it sends next at the earliest, ns; `u64::MAX` if it
    /// sends none any more.
    next_ns: Vec<u64>,
    waiting: BTreeMap<u64, Row>,
    /// The rows that are complete, up to [`ROWS_MAX`].
    pub(crate) rows: Vec<LoadRow>,
    pub(crate) left_out: u64,
}

impl HostRows {
    pub(crate) fn of(hosts: usize) -> Self {
        Self {
            next_ns: vec![0; hosts],
            waiting: BTreeMap::new(),
            rows: Vec::new(),
            left_out: 0,
        }
    }

    /// Takes a host's row. Those that are complete now are reported, in order. A row that
    /// the host has already sent is ignored.
    pub(crate) fn take(&mut self, host: usize, row: Row, report: &mut dyn FnMut(Row)) {
        let start_ns = (row.row.start_s * 1e9).round() as u64;
        if start_ns < self.next_ns[host] {
            return;
        }
        match self.waiting.get_mut(&start_ns) {
            None => {
                self.waiting.insert(start_ns, row);
            }
            Some(sum) => sum.add(&row.row, &row.response),
        }
        self.sends_next(host, start_ns.saturating_add(1), report);
    }

    /// Takes note that a host sends no further rows: hosts may differ in whether answers came after
    /// the end.
    pub(crate) fn end(&mut self, host: usize, report: &mut dyn FnMut(Row)) {
        self.sends_next(host, u64::MAX, report);
    }

    fn sends_next(&mut self, host: usize, next_ns: u64, report: &mut dyn FnMut(Row)) {
        self.next_ns[host] = next_ns;
        let complete_ns = self.next_ns.iter().copied().min().unwrap_or(0);
        self.release(complete_ns, report);
    }

    /// Reports the rows that begin before a time.
    fn release(&mut self, before_ns: u64, report: &mut dyn FnMut(Row)) {
        while let Some(first) = self.waiting.first_entry()
            && *first.key() < before_ns
        {
            let mut row = first.remove();
            row.summarise();
            match self.rows.len() < ROWS_MAX {
                true => self.rows.push(row.row.clone()),
                false => self.left_out += 1,
            }
            report(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Histogram;

    fn row(start_s: f64, requests: u64, ms: u64) -> Row {
        let mut response = Histogram::new();
        response.record_many_ns(ms * 1_000_000, requests);
        Row {
            segment: 0,
            reading: 0,
            row: LoadRow {
                start_s,
                duration_s: 1.0,
                due: requests,
                requests,
                ..LoadRow::default()
            },
            response,
        }
    }

    #[test]
    fn a_row_is_reported_once_every_host_has_sent_it() {
        let mut rows = HostRows::of(2);
        let mut reported = Vec::new();
        let mut report = |row: Row| reported.push((row.row.start_s, row.row.requests));
        rows.take(0, row(0.0, 60, 1), &mut report);
        rows.take(0, row(1.0, 6, 1), &mut report);
        rows.take(1, row(0.0, 40, 400), &mut report);
        assert_eq!(rows.rows.len(), 1);
        // The second host has no answers after the end, the first one has.
        rows.take(1, row(1.0, 4, 1), &mut report);
        rows.take(0, row(2.0, 3, 1), &mut report);
        rows.end(1, &mut report);
        assert_eq!(reported, [(0.0, 100), (1.0, 10), (2.0, 3)]);
        let first = &rows.rows[0];
        assert_eq!(
            (first.due, first.late, first.latency_us.count),
            (100, 40, 100)
        );
        assert!((first.latency_us.p50 / 1e3 - 1.0).abs() < 0.01);
        assert!((first.latency_us.p75 / 1e3 - 400.0).abs() < 4.0);
    }
    #[test]
    fn a_row_that_comes_again_and_one_without_a_time_are_not_reported() {
        let mut rows = HostRows::of(1);
        let mut reported = Vec::new();
        let mut report = |row: Row| reported.push((row.row.start_s, row.row.requests));
        for start_s in [0.0, 1.0, 0.0, 1.0, 2.0, 1e300] {
            rows.take(0, row(start_s, 5, 1), &mut report);
        }
        assert_eq!(reported, [(0.0, 5), (1.0, 5), (2.0, 5)]);
    }
}
