//! The effect of events on clients.

use std::collections::BTreeMap;
use std::time::Duration;

use readings::{
    ARRIVAL_SLOT_NS, Arrivals, DuringEvent, EVENT_ROW_MS, EventReading, EventsReading, LATE_S,
    LoadReading, LoadRow, Silence,
};

use super::in_time::{LATE_ROWS, answered_in_time};
use super::leaving::left;

/// A second is at the full rate if at least this share of its due requests succeeded.
const FULL: f64 = 0.95;
/// Time after a reload within which most requests and connections from before it have ended, s.
const SETTLES_S: f64 = 1.0;

/// The effect of the events on clients.
pub(super) fn events_reading(
    load: &LoadReading,
    arrivals: Option<&BTreeMap<String, Arrivals>>,
    events: Vec<EventReading>,
    window: Duration,
) -> EventsReading {
    let failed = load.errors_all.total();
    let window_s = window.as_secs_f64();
    let first_s = events.iter().map(|event| event.at_s);
    let first_s = first_s.fold(window_s, f64::min);
    let counted = |event: &EventReading| rotation(arrivals?.get(&event.server)?, event);
    let leaving = |event: &EventReading| {
        let arrivals = arrivals?.get(&event.server)?;
        let is_lost = event.has_rotation() && !event.is_graceful();
        is_lost.then(|| left(arrivals, &load.rows, event, window_s))?
    };
    let events = events.into_iter().map(|event| {
        let (left_after_s, watched_for_s) = leaving(&event).unwrap_or_default();
        let by_cpu = (event.in_rotation_after_s, event.looked_for_s);
        let (in_rotation_after_s, looked_for_s) = counted(&event).unwrap_or(by_cpu);
        EventReading {
            during: during(&load.rows, &event, window_s),
            in_rotation_after_s,
            looked_for_s,
            left_after_s,
            watched_for_s,
            ..event
        }
    });
    let silence = longest_silence(&load.silences, first_s);
    let reopened = load.connects.saturating_sub(load.connections);
    let events: Vec<EventReading> = events.collect();
    if events.is_empty() {
        // Nothing to recover from: no time since an event.
        return EventsReading {
            requests: load.requests_all + failed,
            failed,
            reopened,
            ..EventsReading::default()
        };
    }
    EventsReading {
        requests: load.requests_all + failed,
        failed,
        full_rate_after_s: full_rate_after_s(&load.rows, &load.silences, first_s),
        longest_silence_s: silence.map(|one| one.duration_s),
        longest_silence_at_s: silence.map(|one| one.start_s),
        longest_response_s: longest_response_s(&load.rows, first_s),
        observed_s: window_s - first_s,
        memory_before_bytes: None,
        memory_after_bytes: None,
        reopened,
        events,
    }
}

/// Slots in which a back end that is used again has half of its usual requests: half a second.
const USED_SLOTS: usize = 50;

/// Time from when a server was back until it had half of its usual share again, by its own counts, or
/// `None` where it had not; and how long that was looked for, s. `None` where its counts do not say:
/// nothing is usual, or too few slots are left.
fn rotation(arrivals: &Arrivals, event: &EventReading) -> Option<(Option<f64>, f64)> {
    let slot_s = ARRIVAL_SLOT_NS as f64 / 1e9;
    let slot_at = |at_s: f64| ((at_s - arrivals.start_s) / slot_s).max(0.0);
    let back_s = event.back_s?;
    let counts = &arrivals.counts;
    let sum = |counts: &[u32]| counts.iter().map(|count| f64::from(*count)).sum::<f64>();
    let before = &counts[..(slot_at(event.at_s) as usize).min(counts.len())];
    let usual = sum(before) / before.len().max(1) as f64;
    let least = 0.5 * usual * USED_SLOTS as f64;
    let from = slot_at(back_s).ceil() as usize;
    let last = counts.len().checked_sub(USED_SLOTS)?;
    if usual <= 0.0 || from > last {
        return None;
    }
    let is_used = |at: &usize| counts[*at] > 0 && sum(&counts[*at..*at + USED_SLOTS]) >= least;
    let since_back_s = |slot: usize| (arrivals.start_s + slot as f64 * slot_s - back_s).max(0.0);
    let used = (from..=last).find(is_used);
    Some((used.map(since_back_s), since_back_s(counts.len())))
}

/// The load while an event lasted: until it was undone, or for a reload until [`SETTLES_S`] after
/// it was in effect.
fn during(rows: &[LoadRow], event: &EventReading, window_s: f64) -> Option<DuringEvent> {
    let in_effect = event.in_effect_after_s;
    let settled_s = in_effect.map(|after_s| event.at_s + after_s + SETTLES_S);
    let end_s = settled_s.or(event.back_s).unwrap_or(window_s).min(window_s);
    let lasts = |row: &&LoadRow| {
        row.start_s + row.duration_s > event.at_s && row.start_s < end_s.max(event.at_s)
    };
    let mut rows = rows.iter().filter(lasts);
    let first = rows.next()?;
    let begin = DuringEvent {
        start_s: first.start_s,
        ..DuringEvent::default()
    };
    let sum = |sum: DuringEvent, row: &LoadRow| DuringEvent {
        end_s: row.start_s + row.duration_s,
        requests: sum.requests + row.requests,
        errors: sum.errors + row.errors,
        response_us_max: sum.response_us_max.max(row.latency_us.max),
        row_p99_us_max: sum.row_p99_us_max.max(row.latency_us.p99),
        ..sum
    };
    Some(std::iter::once(first).chain(rows).fold(begin, sum))
}

/// The longest silence from `since_s` on. Of a silence that began before, only the rest counts.
fn longest_silence(silences: &[Silence], since_s: f64) -> Option<Silence> {
    let rest = |silence: &Silence| {
        let start_s = silence.start_s.max(since_s);
        Silence {
            start_s,
            duration_s: silence.end_s() - start_s,
        }
    };
    let after = silences.iter().filter(|silence| silence.end_s() > since_s);
    after
        .map(rest)
        .max_by(|a, b| a.duration_s.total_cmp(&b.duration_s))
}

/// The longest response among the rows from `since_s` on.
fn longest_response_s(rows: &[LoadRow], since_s: f64) -> Option<f64> {
    let after = rows
        .iter()
        .filter(|row| row.requests > 0 && row.start_s + row.duration_s > since_s);
    after
        .map(|row| row.latency_us.max / 1e6)
        .max_by(f64::total_cmp)
}

/// Time from `since_s` until the load is at its full rate and stays there up to the last row;
/// `None` if it never is again. At the full rate, 95% of the requests that are due in a second have
/// a good answer within [`LATE_S`].
///
/// A later answer counts for no second: requests that waited at a stopped server are answered in a
/// burst, which says nothing about the rate. An answer in time counts for the second in which its
/// request was due, also if it came after that second ([`answered_in_time`]). The last seconds are
/// not judged, because some of the rows that follow them are missing.
///
/// Requests that are due in the last moments of a stop are answered in time. So after a silence of
/// more than [`LATE_S`] the rate is full only from the end of the silence on.
fn full_rate_after_s(rows: &[LoadRow], silences: &[Silence], since_s: f64) -> Option<f64> {
    let first = rows
        .iter()
        .position(|row| row.start_s + row.duration_s > since_s)?;
    let good = &answered_in_time(rows)[first..];
    let rows = &rows[first..];
    let second = (1000 / EVENT_ROW_MS as usize).min(rows.len());
    let is_full = |begin: usize| {
        let own = begin..begin + second;
        let due: u64 = rows[own.clone()].iter().map(|row| row.due).sum();
        good[own].iter().sum::<u64>() as f64 >= FULL * due as f64
    };
    let full: Vec<bool> = (0..=rows.len() - second).map(is_full).collect();
    let judged = full.len().saturating_sub(LATE_ROWS).max(1);
    let Some(last) = full[..judged].iter().rposition(|full| !full) else {
        return Some(0.0);
    };
    let back = last + 1 + full[last + 1..].iter().position(|full| *full)?;
    let back_s = rows[back].start_s;
    let silence = silences.iter().find(|silence| {
        silence.duration_s > LATE_S && silence.start_s <= back_s && back_s < silence.end_s()
    });
    let back_s = silence.map_or(back_s, Silence::end_s);
    Some((back_s - since_s).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::super::in_time::tests::rows_of;
    use super::*;

    fn rows(good: &[u64]) -> Vec<LoadRow> {
        let row = |(number, good): (usize, &u64)| LoadRow {
            start_s: number as f64 * 0.1,
            duration_s: 0.1,
            due: 200,
            requests: *good,
            ..LoadRow::default()
        };
        good.iter().enumerate().map(row).collect()
    }

    #[test]
    fn the_rate_is_full_after_the_last_deficient_second() {
        let mut good = vec![200; 60];
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), Some(0.0));
        // For a second, a third of the requests fails.
        good[20..30].fill(133);
        let after = full_rate_after_s(&rows(&good), &[], 2.0).unwrap();
        // The last of these rows alone do not push a second below the threshold.
        assert!((0.8..=1.0).contains(&after), "{after}");
        // Rows before `since_s` do not count.
        good[..20].fill(0);
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), Some(after));
        // Not full a second time.
        good[45] = 0;
        let after = full_rate_after_s(&rows(&good), &[], 2.0).unwrap();
        assert!((after - 2.6).abs() < 1e-9, "{after}");
        good[40..].fill(100);
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), None);
    }

    #[test]
    fn a_back_end_is_used_again_when_its_own_count_says_so() {
        let mut counts = vec![2; 200];
        // Away for two seconds, then a probe, and then half of what it had.
        counts.extend([0; 200]);
        counts[320] = 1;
        counts.extend([1; 200]);
        let arrivals = Arrivals {
            start_s: 0.004,
            counts,
        };
        let event = EventReading {
            at_s: 2.0,
            back_s: Some(3.0),
            ..EventReading::default()
        };
        let (after_s, looked_s) = rotation(&arrivals, &event).unwrap();
        assert!((after_s.unwrap() - 1.004).abs() < 1e-9, "{after_s:?}");
        assert!((looked_s - 3.004).abs() < 1e-9, "{looked_s}");
        let few = Arrivals {
            counts: [vec![5; 200], vec![0; 100], vec![1; 100]].concat(),
            ..arrivals.clone()
        };
        assert_eq!(rotation(&few, &event).unwrap().0, None);
        let never = EventReading {
            back_s: None,
            ..event
        };
        assert_eq!(rotation(&arrivals, &never), None);
    }

    #[test]
    fn counts_that_say_nothing_leave_what_the_cpu_time_says() {
        let event = |back_s| EventReading {
            server: "one".to_owned(),
            at_s: 2.0,
            back_s: Some(back_s),
            in_rotation_after_s: Some(0.25),
            looked_for_s: 1.0,
            ..EventReading::default()
        };
        let load = LoadReading {
            rows: rows(&[200; 60]),
            ..LoadReading::default()
        };
        let read = |counts: Vec<u32>, back_s| {
            let arrivals = Arrivals {
                start_s: 0.0,
                counts,
            };
            let arrivals = BTreeMap::from([("one".to_owned(), arrivals)]);
            let events = vec![event(back_s)];
            let window = Duration::from_secs(6);
            let reading = events_reading(&load, Some(&arrivals), events, window);
            reading.events[0].in_rotation_after_s
        };
        let idle_before = [vec![0; 300], vec![5; 300]].concat();
        assert_eq!(read(idle_before, 3.0), Some(0.25));
        let usual = [vec![5; 200], vec![0; 400]].concat();
        // Back 0.3 s before the end.
        assert_eq!(read(usual.clone(), 5.7), Some(0.25));
        assert_eq!(read(usual, 3.0), None);
    }

    #[test]
    fn a_subject_without_an_event_has_no_time_since_one() {
        let load = LoadReading {
            rows: rows(&[200; 60]),
            requests_all: 12_000,
            silences: vec![Silence {
                start_s: 5.9,
                duration_s: 0.2,
            }],
            ..LoadReading::default()
        };
        let control = events_reading(&load, None, Vec::new(), Duration::from_secs(6));
        let expected = EventsReading {
            requests: 12_000,
            ..EventsReading::default()
        };
        assert_eq!(control, expected);
        assert!(!control.has_events());
    }

    #[test]
    fn late_answers_count_for_their_second() {
        let mut good = vec![200; 60];
        good[25..28].fill(50);
        good[28..31].fill(350);
        let mut late = rows(&good);
        for row in &mut late[28..31] {
            row.due_before = [0, 0, 150];
        }
        assert_eq!(full_rate_after_s(&late, &[], 2.0), Some(0.0));
        // Lost answers do not.
        good[28..31].fill(200);
        assert!(full_rate_after_s(&rows(&good), &[], 2.0).unwrap() > 0.5);
    }

    #[test]
    fn answers_that_are_steadily_late_by_less_than_the_limit_are_in_time() {
        let after = |ms: u64, lost_every_ms: u64| {
            let response = |due_ms: u64| match due_ms {
                ..3_000 => Some(1),
                _ => (!due_ms.is_multiple_of(lost_every_ms)).then_some(ms),
            };
            full_rate_after_s(&rows_of(8, response), &[], 1.0)
        };
        for ms in [50, 150, 200, 250, 290] {
            assert_eq!(after(ms, u64::MAX), Some(0.0), "{ms}");
            // 2.5% of the requests have no answer, or 10%.
            assert_eq!(after(ms, 200), Some(0.0), "{ms}");
            assert_eq!(after(ms, 50), None, "{ms}");
        }
        assert_eq!(after(350, u64::MAX), None);
    }

    #[test]
    fn a_short_stop_leaves_the_rate_full() {
        let after = |end_ms: u64| {
            let response = |due_ms: u64| match due_ms {
                3_000.. if due_ms < end_ms => Some(end_ms - due_ms),
                _ => Some(1),
            };
            full_rate_after_s(&rows_of(8, response), &[], 1.0)
        };
        for end_ms in [3_050, 3_150, 3_250, 3_290] {
            assert_eq!(after(end_ms), Some(0.0), "{end_ms}");
        }
        // The requests of the first 0.2 s were answered too late.
        let after = after(3_500).unwrap();
        assert!((2.1..2.3).contains(&after), "{after}");
    }

    #[test]
    fn what_had_waited_at_a_stopped_server_is_no_rate() {
        // Stopped from 2 s to 3 s: nothing fails, and all that waited comes at once.
        let mut good = vec![200; 60];
        good[20..30].fill(0);
        good[30] = 2_200;
        let mut rows = rows(&good);
        // What was due in the last 0.3 s of the stop was not late.
        rows[30].late = 1_400;
        let stop = Silence {
            start_s: 1.9995,
            duration_s: 1.0105,
        };
        let after = full_rate_after_s(&rows, &[stop], 2.0).unwrap();
        assert!((after - 1.01).abs() < 1e-9, "{after}");
        // Without the silences the time is exact only to 0.3 s.
        let after = full_rate_after_s(&rows, &[], 2.0).unwrap();
        assert!((0.6..=1.0).contains(&after), "{after}");
    }

    #[test]
    fn a_silence_counts_from_the_first_event_on() {
        let silences = [(0.25, 1.5), (2.5, 1.0), (4.0, 0.5)].map(|(start_s, duration_s)| Silence {
            start_s,
            duration_s,
        });
        let longest = |since_s| longest_silence(&silences, since_s).map(|one| one.duration_s);
        assert_eq!(longest(0.0), Some(1.5));
        assert_eq!(longest(2.0), Some(1.0));
        assert_eq!(longest(3.25), Some(0.5));
        assert_eq!(longest(5.0), None);
    }

    #[test]
    fn the_load_of_an_event_is_that_of_its_rows() {
        let mut rows = rows(&[200; 60]);
        rows[25].errors = 3;
        rows[25].latency_us.max = 90_000.0;
        rows[31].errors = 5;
        rows[40].errors = 7;
        let event = EventReading {
            at_s: 2.25,
            back_s: Some(3.05),
            ..EventReading::default()
        };
        let one = during(&rows, &event, 6.0).unwrap();
        assert_eq!((one.requests, one.errors), (9 * 200, 3));
        assert!((one.start_s - 2.2).abs() < 1e-9 && (one.end_s - 3.1).abs() < 1e-9);
        assert_eq!(one.response_us_max, 90_000.0);
        // A reload lasts until a second after it was in effect.
        let reload = EventReading {
            what: "reload".to_owned(),
            back_s: Some(5.0),
            in_effect_after_s: Some(0.1),
            ..event.clone()
        };
        assert_eq!(during(&rows, &reload, 6.0).unwrap().errors, 8);
        // An event that was not undone lasts to the window's end.
        let open = EventReading {
            back_s: None,
            ..event
        };
        assert_eq!(during(&rows, &open, 6.0).unwrap().errors, 15);
    }
}
