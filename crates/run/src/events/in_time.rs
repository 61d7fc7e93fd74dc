//! Which second an answer in time counts for.

use readings::{EVENT_ROW_MS, LATE_S, LoadRow};

/// An answer in time comes at most this many rows after its request was due.
pub(super) const LATE_ROWS: usize = (LATE_S * 1e3) as usize / EVENT_ROW_MS as usize;

/// For each row, the requests that were due in it and had a good answer within [`LATE_S`]. The last
/// [`LATE_ROWS`] lack the answers that came after the last row.
pub(super) fn answered_in_time(rows: &[LoadRow]) -> Vec<u64> {
    let own = |row: &LoadRow| {
        let others = row.late + row.due_before.iter().sum::<u64>();
        row.requests.saturating_sub(others)
    };
    let of_row = |at: usize| {
        let next = rows[at + 1..].iter().enumerate().take(LATE_ROWS);
        own(&rows[at]) + next.map(|(after, row)| row.due_before[after]).sum::<u64>()
    };
    (0..rows.len()).map(of_row).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Rows of a load whose requests are due every 5 ms and answered after a time by their due
    /// time; `None`: not answered.
    pub(crate) fn rows_of(
        seconds: usize,
        response_ms: impl Fn(u64) -> Option<u64>,
    ) -> Vec<LoadRow> {
        let count = seconds * 10;
        let mut rows: Vec<LoadRow> = (0..count)
            .map(|number| LoadRow {
                start_s: number as f64 * EVENT_ROW_MS as f64 / 1e3,
                duration_s: EVENT_ROW_MS as f64 / 1e3,
                due: 20,
                ..LoadRow::default()
            })
            .collect();
        for due_ms in (0..seconds as u64 * 1_000).step_by(5) {
            let Some(ms) = response_ms(due_ms) else {
                continue;
            };
            let came = (due_ms + ms) / EVENT_ROW_MS;
            let Some(row) = rows.get_mut(came as usize) else {
                continue;
            };
            row.requests += 1;
            let before = came - due_ms / EVENT_ROW_MS;
            match before {
                _ if ms as f64 > LATE_S * 1e3 => row.late += 1,
                0 => {}
                _ => row.due_before[before as usize - 1] += 1,
            }
        }
        rows
    }

    #[test]
    fn an_answer_counts_for_the_row_in_which_its_request_was_due() {
        // From 3 s on answers take this long, and every fourth request has none.
        for ms in [1, 50, 105, 200, 250, 290, 350] {
            let response = |due_ms: u64| match due_ms {
                ..3_000 => Some(1),
                _ => (!due_ms.is_multiple_of(20)).then_some(ms),
            };
            let found = answered_in_time(&rows_of(6, response));
            let expected = |row: usize| match row {
                ..30 => 20,
                _ if ms > 300 => 0,
                _ => 15,
            };
            let judged = found.len() - LATE_ROWS;
            assert_eq!(
                found[..judged],
                (0..judged).map(expected).collect::<Vec<_>>(),
                "{ms}"
            );
        }
        // Stopped for 290 ms: what waited is answered in a burst, in time.
        let stopped = |due_ms: u64| {
            Some(match due_ms {
                3_000..3_290 => 3_290 - due_ms,
                _ => 1,
            })
        };
        let found = answered_in_time(&rows_of(6, stopped));
        assert!(
            found[..50].iter().all(|answered| *answered == 20),
            "{found:?}"
        );
    }
}
