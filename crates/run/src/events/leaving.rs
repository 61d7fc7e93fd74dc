//! When clients no longer depend on a back end that was lost.

use readings::{ARRIVAL_SLOT_NS, Arrivals, EVENT_ROW_MS, EventReading, LATE_S, LoadRow};

use super::in_time::{LATE_ROWS, answered_in_time};

/// Rows in which a back end that is still used has half of its usual requests: half a second.
const USED_ROWS: usize = 500 / EVENT_ROW_MS as usize;

/// More than what sums of times are rounded by, s.
const ROUNDED_S: f64 = 1e-6;

/// Time from the event until the load had left the server, or `None` where it had not before the event
/// was undone; and how long that was looked for, s. `None` where it cannot be said: nothing is usual, or
/// the event was shorter than 0.8 s.
///
/// Two things show that a server is still used: requests that it counts, and, since one that is stopped
/// counts nothing, requests that have no good answer in time. It is left once neither makes up half of its
/// usual requests of half a second.
pub(super) fn left(
    arrivals: &Arrivals,
    rows: &[LoadRow],
    event: &EventReading,
    window_s: f64,
) -> Option<(Option<f64>, f64)> {
    let slot_s = ARRIVAL_SLOT_NS as f64 / 1e9;
    let slot_at = |at_s: f64| ((at_s - arrivals.start_s) / slot_s).max(0.0).round() as usize;
    let count = |from_s: f64, to_s: f64| {
        let to = slot_at(to_s).min(arrivals.counts.len());
        let from = slot_at(from_s).min(to);
        arrivals.counts[from..to]
            .iter()
            .map(|count| u64::from(*count))
            .sum::<u64>()
    };
    let from_s = event.at_s;
    let usual_per_s = count(0.0, from_s) as f64 / from_s;
    // What was due in the last moments before it was back is answered in time by it.
    let end_s = event
        .back_s
        .map_or(window_s, |back_s| back_s - LATE_S + ROUNDED_S);
    let judged = rows.len().saturating_sub(LATE_ROWS);
    let in_time = answered_in_time(rows);
    let lasts = |(row, _): &(&LoadRow, &u64)| {
        row.start_s + row.duration_s > from_s && row.start_s + row.duration_s <= end_s
    };
    let during: Vec<(&LoadRow, &u64)> = rows[..judged].iter().zip(&in_time).filter(lasts).collect();
    if !usual_per_s.is_finite() || usual_per_s <= 0.0 || during.len() < USED_ROWS {
        return None;
    }
    let used = |(row, in_time): &(&LoadRow, &u64)| {
        let arrived = count(row.start_s.max(from_s), row.start_s + row.duration_s);
        arrived.max(row.due.saturating_sub(**in_time)) as f64
    };
    let used: Vec<f64> = during.iter().map(used).collect();
    let row_least = 0.5 * usual_per_s * EVENT_ROW_MS as f64 / 1e3;
    let is_used = |rows: &[f64]| rows.iter().sum::<f64>() >= row_least * rows.len() as f64;
    let since_s = |row: &LoadRow| row.start_s + row.duration_s - from_s;
    let looked_s = during.last().map_or(0.0, |(row, _)| since_s(row));
    let Some(last) = used.windows(USED_ROWS).rposition(is_used) else {
        return Some((Some(0.0), looked_s));
    };
    if last + USED_ROWS == used.len() {
        return Some((None, looked_s));
    }
    let most = &used[last..last + USED_ROWS];
    let end = most
        .iter()
        .rposition(|used| *used >= row_least)
        .unwrap_or(0);
    Some((Some(since_s(during[last + end].0)), looked_s))
}

#[cfg(test)]
mod tests {
    use super::super::in_time::tests::rows_of;
    use super::*;

    /// A back end with a quarter of 200 requests a second for 8 s, of which `counted` says how many come
    /// in a slot of 10 ms. One that comes every other slot is half of a request a slot: its usual share.
    fn arrivals(counted: impl Fn(usize) -> u32) -> Arrivals {
        Arrivals {
            start_s: 0.0,
            counts: (0..800).map(counted).collect(),
        }
    }

    fn usual(slot: usize) -> u32 {
        u32::from(slot.is_multiple_of(2))
    }

    fn event() -> EventReading {
        EventReading {
            what: "stop".to_owned(),
            at_s: 2.0,
            back_s: Some(5.0),
            ..EventReading::default()
        }
    }

    /// Every fourth request from 2 s on has no answer until `end_ms`.
    fn lost_until(end_ms: u64) -> Vec<LoadRow> {
        rows_of(8, |due_ms| {
            let is_lost = (2_000..end_ms).contains(&due_ms) && due_ms.is_multiple_of(20);
            (!is_lost).then_some(1)
        })
    }

    fn assert_left(got: Option<(Option<f64>, f64)>, expected_s: f64) {
        let (left_s, looked_s) = got.unwrap();
        assert!((left_s.unwrap() - expected_s).abs() < 1e-9, "{left_s:?}");
        assert!((looked_s - 2.7).abs() < 1e-9, "{looked_s}");
    }

    #[test]
    fn one_that_counts_nothing_is_left_when_requests_are_answered_in_time() {
        let silent = arrivals(|slot| if slot < 200 { usual(slot) } else { 0 });
        assert_left(left(&silent, &lost_until(3_200), &event(), 8.0), 1.2);
        assert_left(left(&silent, &lost_until(2_000), &event(), 8.0), 0.0);
        // Never, before it was back.
        let never = left(&silent, &lost_until(5_000), &event(), 8.0).unwrap();
        assert_eq!(never.0, None);
        let waited = rows_of(8, |due_ms| {
            let waits = (2_000..5_000).contains(&due_ms) && due_ms.is_multiple_of(20);
            Some(if waits { 5_000 - due_ms } else { 1 })
        });
        assert_eq!(left(&silent, &waited, &event(), 8.0).unwrap().0, None);
        // A probe a second is no use.
        let probed = rows_of(8, |due_ms| {
            let is_lost = (2_000..2_600).contains(&due_ms) && due_ms.is_multiple_of(20);
            let is_probe = (2_600..5_000).contains(&due_ms) && due_ms.is_multiple_of(1_000);
            (!is_lost && !is_probe).then_some(1)
        });
        assert_left(left(&silent, &probed, &event(), 8.0), 0.6);
    }

    #[test]
    fn one_that_still_counts_is_left_when_nothing_comes() {
        let rows = lost_until(0);
        let until = |last: usize| {
            arrivals(move |slot| {
                if slot < last || slot > 500 {
                    usual(slot)
                } else {
                    0
                }
            })
        };
        assert_left(left(&until(350), &rows, &event(), 8.0), 1.5);
        assert_eq!(left(&until(800), &rows, &event(), 8.0).unwrap().0, None);
    }

    #[test]
    fn what_cannot_be_said_is_not_said() {
        let rows = lost_until(3_000);
        let idle = arrivals(|slot| u32::from(slot >= 200));
        assert_eq!(left(&idle, &rows, &event(), 8.0), None);
        let short = EventReading {
            back_s: Some(2.3),
            ..event()
        };
        assert_eq!(left(&arrivals(usual), &rows, &short, 8.0), None);
    }
}
