//! Which loads count, and why others do not.

mod bodies;
pub(crate) mod machine;
pub(crate) mod path;

use readings::{
    EVENT_ROW_MS, EventsReading, IdleReading, LoadReading, LoadRow, NO_PORT, Pacing, Slice,
    WrongKind,
};

use crate::stats::steady::{Series, unsteady};
use crate::trial::flaw::host_fault::host_fault;
use crate::trial::lag::late_beside;
use crate::trial::overload::overload;
use crate::trial::validity::path::name_the_queue_of;
use crate::{CpusOfOthers, Flaw, HostFault};

/// Wrong answers above this share of all answers make a load invalid.
const WRONG_SHARE: f64 = 0.001;
/// Transport errors above this share of all requests make a load invalid, unless the run says
/// another.
pub(crate) const TRANSPORT_SHARE: f64 = 0.01;
/// The share of idle connections that the server may end.
const IDLE_SHARE: f64 = 0.01;
/// A row of a load with events, in seconds. Requests that are sent so late fall into another row, and
/// so do the answers around an event that is so late.
const EVENT_ROW_S: f64 = EVENT_ROW_MS as f64 / 1e3;
/// The share of requests that may be later than that.
const LATE_SHARE: f64 = 0.05;

/// Why a load's figures cannot be used; empty for a valid load.
///
/// A load is invalid when more than 0.1% of the answers were wrong, more than 1% of the requests
/// failed on the way, no good answer came, a closed loop ran on fewer connections than it was
/// asked for, an open loop's client could not keep its own schedule, an open loop offered more than
/// was carried, rows of a second show no steady state, or a host was lost or began late. A closed loop whose client was busy is valid: its throughput is a lower bound.
pub fn load_flaws(load: &LoadReading) -> Vec<Flaw> {
    let mut found = flaws(load, TRANSPORT_SHARE, None);
    name_the_queue_of(&mut found, load);
    found
}

/// Rows shorter than this, in seconds, vary too much by nature to be judged.
const ROW_S: f64 = 0.9;

/// Why a load did not reach a steady state, from its rows of a second; empty where it did, and
/// where there are fewer than 60 rows.
///
/// Only a load that ran without a pause at one rate is judged so. Slices of a block are judged by
/// the ratio of two subjects, in which changes of the machine cancel.
fn no_steady_state(load: &LoadReading) -> Vec<Flaw> {
    // Of streams the sender sets the pace.
    if load.slices.len() > 1 || !load.stages.is_empty() || load.messages() > 0 {
        return Vec::new();
    }
    // The last row may have been cut short.
    let rows: Vec<&LoadRow> = load.rows.iter().filter(|r| r.duration_s >= ROW_S).collect();
    let throughput: Vec<f64> = rows.iter().map(|r| r.requests_per_s()).collect();
    let answered = rows.iter().filter(|r| r.latency_us.count > 0);
    let p50: Vec<f64> = answered.map(|r| r.latency_us.p50).collect();
    let found = [
        unsteady(Series::Throughput, &throughput),
        unsteady(Series::MedianLatency, &p50),
    ];
    found.into_iter().flatten().map(Flaw::Unsteady).collect()
}

/// `max_error` is the share of requests that may fail on the way; `others` is what other programs
/// took of the machine meanwhile.
pub(crate) fn flaws(load: &LoadReading, max_error: f64, others: Option<CpusOfOthers>) -> Vec<Flaw> {
    let mut found = Vec::new();
    match host_fault(load) {
        // Whatever else is wrong may follow from the missing part.
        Some(lost @ HostFault::Lost { .. }) => return vec![Flaw::Host(lost)],
        late => found.extend(late.map(Flaw::Host)),
    }
    found.extend(wrong_answers(load));
    found.extend(failed_requests(load, max_error));
    if load.requests == 0 && !has_messages(load) && found.is_empty() {
        found.push(no_answer());
    }
    match load.pacing {
        Pacing::Closed => {
            let is_named = found
                .iter()
                .any(|flaw| matches!(flaw, Flaw::FailedRequests { .. }));
            found.extend(missing_connections(load, is_named));
        }
        Pacing::Open { .. } => found.extend(not_offered_as_asked(load, others)),
    }
    found.extend(no_steady_state(load));
    found.extend(bodies::flaw(load));
    found.extend(load.idle.as_ref().and_then(idle_flaw));
    found
}

/// Whether exchanges outlast the load's windows, and have messages in them.
fn has_messages(load: &LoadReading) -> bool {
    load.lasting.as_ref().is_some_and(|one| one.has_messages())
}

/// The server has ended more of the idle connections than may be missing.
pub fn idle_flaw(idle: &IdleReading) -> Option<Flaw> {
    let ended = idle.closed_count();
    let after = idle.closed.iter().map(|one| one.first_after_s);
    (ended as f64 > IDLE_SHARE * idle.connections as f64).then(|| Flaw::IdleEnded {
        ended,
        connections: idle.connections,
        after_s: after.fold(f64::INFINITY, f64::min),
    })
}

fn no_answer() -> Flaw {
    Flaw::NoAnswer { queues: Vec::new() }
}

/// Whether connections failed for want of a local port, which is the client's lack.
fn no_port_is_free(load: &LoadReading) -> bool {
    load.wrong.iter().any(|wrong| wrong.found.contains(NO_PORT))
}

/// The same for a load with events, in which failures are expected. Flaws are that no good answer came;
/// that the client stalled, since requests that it sends late and all at once fail because of it; and
/// that an event was late, since the times that are compared contain the delay.
pub(crate) fn flaws_beside_failures(load: &LoadReading, events: &EventsReading) -> Vec<Flaw> {
    let lag = load.schedule_lag.quantile_us(1.0 - LATE_SHARE);
    let stalled = (lag > EVENT_ROW_S * 1e6).then_some(Flaw::ClientStalled {
        share: LATE_SHARE,
        lag_us: lag,
    });
    let late = events.events.iter().filter_map(|event| {
        let late_s = event.late_s.filter(|late_s| *late_s > EVENT_ROW_S)?;
        Some(Flaw::LateEvent {
            what: event.what.clone(),
            target: event.target().to_owned(),
            late_s,
        })
    });
    let nothing = (load.requests_all == 0 && !has_messages(load)).then(no_answer);
    stalled.into_iter().chain(late).chain(nothing).collect()
}

/// The flaws of a load that make its trial invalid for the other loads too: it failed. Its answers
/// may all take longer than the window.
pub(crate) fn flaws_of_beside(load: &LoadReading, max_error: f64) -> Vec<Flaw> {
    let nothing = load.requests_all == 0 && load.errors_all.total() == 0 && !has_messages(load);
    wrong_answers(load)
        .into_iter()
        .chain(failed_requests(load, max_error))
        .chain(nothing.then(no_answer))
        .collect()
}

fn wrong_answers(load: &LoadReading) -> Option<Flaw> {
    let wrong = load.errors_all.wrong_answers();
    let answers = load.requests_all + wrong;
    if wrong == 0 || wrong as f64 <= WRONG_SHARE * answers as f64 {
        return None;
    }
    let mut kept = load.wrong.iter();
    let first = kept.find(|w| w.kind != WrongKind::Connection);
    Some(Flaw::WrongAnswers {
        wrong,
        answers,
        first: first.or(load.wrong.first()).cloned(),
    })
}

fn failed_requests(load: &LoadReading, max_error: f64) -> Option<Flaw> {
    let errors = load.errors_all;
    let failed = errors.total() - errors.wrong_answers();
    let requests = load.requests_all + errors.total();
    if failed == 0 || failed as f64 <= max_error * requests as f64 {
        return None;
    }
    let mut kept = load.wrong.iter();
    let first = kept.find(|w| matches!(w.kind, WrongKind::Connection | WrongKind::Protocol));
    Some(Flaw::FailedRequests {
        errors,
        requests,
        first: first.cloned(),
        no_port: no_port_is_free(load),
        queues: Vec::new(),
    })
}

/// The first failure is given unless it is named already.
fn missing_connections(load: &LoadReading, is_named: bool) -> Option<Flaw> {
    let (open, asked) = (load.connections_open_min, load.connections);
    let mut kept = load.wrong.iter();
    (open + reopening(load) < asked).then(|| Flaw::MissingConnections {
        open,
        asked,
        first: kept
            .find(|w| w.kind == WrongKind::Connection && !is_named)
            .cloned(),
        queues: Vec::new(),
    })
}

/// How many connections may be missing at any moment because they are being opened again.
///
/// A server that closes connections after so many answers, or a load that does, always has some
/// of them on the way: by Little's law the rate of opening times the median time that it takes,
/// and three standard deviations of a Poisson count on top. The median keeps connections that
/// wait for seconds in a full accept queue from excusing themselves.
///
/// With a connection per request all of them may be: answers come in batches, and each closes its
/// connection. Failed attempts to open one count as errors there.
fn reopening(load: &LoadReading) -> u64 {
    if load.connects < load.connections.saturating_mul(2) {
        return 0;
    }
    if load.connects >= load.requests {
        return load.connections;
    }
    // The ramp-up of each slice opens connections too.
    let slices = Slice::one_after_another(&load.slices);
    let end_s = slices.last().map(|s| s.start_s + s.duration_s);
    let end_s = end_s.unwrap_or(0.0).max(load.duration_s);
    if end_s <= 0.0 {
        return 0;
    }
    let typical = load.connects as f64 / end_s * load.opening_us_p50() / 1e6;
    (typical + 3.0 * typical.sqrt()).ceil() as u64
}

fn not_offered_as_asked(load: &LoadReading, others: Option<CpusOfOthers>) -> Option<Flaw> {
    if load.client.saturated {
        let rate_per_s = load.offered_requests_per_s()?;
        return Some(Flaw::ClientBusy { rate_per_s });
    }
    // Of an overload the lag explains nothing.
    match overload(load) {
        Some(overload) => Some(Flaw::Overload(overload)),
        None => late_beside(load, 0.5, others).map(Flaw::LateClient),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, open};
    use readings::{LastingReading, Wrong};

    #[test]
    fn a_plain_load_is_valid() {
        assert!(load_flaws(&closed(20_000.0)).is_empty());
        assert!(load_flaws(&open(10_000.0, 400.0)).is_empty());
    }

    #[test]
    fn a_bad_gateway_is_not_speed() {
        let mut load = closed(0.0);
        load.requests = 0;
        load.requests_all = 0;
        load.errors_all.status = 31_204;
        load.wrong = vec![Wrong {
            kind: WrongKind::Status,
            expected: "200".into(),
            found: "502".into(),
        }];
        let expected = Flaw::WrongAnswers {
            wrong: 31_204,
            answers: 31_204,
            first: load.wrong.first().cloned(),
        };
        assert_eq!(load_flaws(&load), [expected]);
    }

    #[test]
    fn one_wrong_answer_in_a_thousand_is_the_limit() {
        let mut load = closed(1000.0);
        load.requests_all = 99_900;
        load.errors_all.verify = 100;
        assert!(load_flaws(&load).is_empty());
        load.errors_all.verify = 101;
        assert!(matches!(
            load_flaws(&load)[..],
            [Flaw::WrongAnswers {
                wrong: 101,
                answers: 100_001,
                first: None
            }]
        ));
    }

    #[test]
    fn one_failure_on_the_way_in_a_hundred_is_the_limit() {
        let mut load = closed(1000.0);
        load.requests_all = 9_900;
        load.errors_all.timeout = 60;
        load.errors_all.connect = 40;
        assert!(load_flaws(&load).is_empty());
        load.errors_all.timeout = 61;
        assert!(matches!(
            load_flaws(&load)[..],
            [Flaw::FailedRequests {
                requests: 10_001,
                no_port: false,
                ..
            }]
        ));
    }

    #[test]
    fn silence_is_invalid() {
        let mut load = closed(0.0);
        load.requests = 0;
        assert_eq!(load_flaws(&load), [no_answer()]);
        // A stream without an end is none.
        load.lasting = Some(Box::new(LastingReading {
            messages: 1,
            ..LastingReading::default()
        }));
        assert!(load_flaws(&load).is_empty());
    }

    #[test]
    fn missing_connections_count_in_a_closed_loop_only() {
        let mut load = closed(1000.0);
        load.connections_open_min = 31;
        let missing = |first| Flaw::MissingConnections {
            open: 31,
            asked: 32,
            first,
            queues: Vec::new(),
        };
        assert_eq!(load_flaws(&load), [missing(None)]);
        let refused = Wrong {
            kind: WrongKind::Connection,
            expected: "an open connection".into(),
            found: "Connection refused".into(),
        };
        load.wrong.push(refused.clone());
        assert_eq!(load_flaws(&load), [missing(Some(refused.clone()))]);
        // Not a second time after the share of failed requests.
        load.errors_all.connect = load.requests_all;
        let found = load_flaws(&load);
        assert!(matches!(&found[0], Flaw::FailedRequests { first, .. } if *first == Some(refused)));
        assert_eq!(found[1..], [missing(None)]);
        load.errors_all.connect = 0;
        load.pacing = Pacing::Open { rate_per_s: 100.0 };
        assert!(load_flaws(&load).is_empty());
    }

    #[test]
    fn connections_that_are_opened_again_all_the_time_may_be_on_the_way() {
        let mut load = closed(10_000.0);
        load.connects = 100_000;
        load.requests = 1_000_000;
        load.connections_open_min = 29;
        for _ in 0..1000 {
            load.connect.record_ns(50_000);
        }
        assert!(load_flaws(&load).is_empty(), "{:?}", load_flaws(&load));
        load.connections_open_min = 20;
        assert_eq!(load_flaws(&load).len(), 1);
        // One for each request.
        load.requests = load.connects;
        assert!(load_flaws(&load).is_empty(), "{:?}", load_flaws(&load));
    }

    #[test]
    fn connections_are_opened_in_the_ramp_ups_of_slices_too() {
        // Ten seconds are measured, in slices that each have a ramp-up of a second.
        let mut load = closed(100_000.0);
        load.connects = 200_000;
        for _ in 0..1000 {
            load.connect.record_ns(50_000);
        }
        load.connections_open_min = 28;
        assert!(load_flaws(&load).is_empty());
        load.slices = vec![
            Slice {
                start_s: 1.0,
                duration_s: 1.0,
                requests: 100_000,
                ..Slice::default()
            };
            10
        ];
        assert_eq!(load_flaws(&load).len(), 1, "{:?}", load_flaws(&load));
    }

    #[test]
    fn a_busy_client_spoils_an_open_loop_and_bounds_a_closed_one() {
        let mut load = closed(1000.0);
        load.client.saturated = true;
        assert!(load_flaws(&load).is_empty());
        let mut load = open(20_000.0, 400.0);
        load.client.saturated = true;
        let busy = Flaw::ClientBusy {
            rate_per_s: 20_000.0,
        };
        assert_eq!(load_flaws(&load), [busy]);
    }

    /// Rows of a second each with these throughputs.
    fn with_rows(mut load: LoadReading, per_s: impl Fn(usize) -> u64) -> LoadReading {
        load.rows = (0..90)
            .map(|i| LoadRow {
                start_s: i as f64,
                duration_s: 1.0,
                requests: per_s(i),
                latency_us: readings::Quantiles {
                    count: per_s(i),
                    p50: 400.0,
                    ..readings::Quantiles::default()
                },
                ..LoadRow::default()
            })
            .collect();
        load
    }

    #[test]
    fn a_load_that_never_settles_is_invalid() {
        let step = |i| if i < 60 { 1000 } else { 800 };
        let load = with_rows(closed(1000.0), step);
        let found = load_flaws(&load);
        let [Flaw::Unsteady(found)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((found.series, found.values), (Series::Throughput, 90));
        assert_eq!((found.before, found.after), (1000.0, 800.0));
        assert!(load_flaws(&with_rows(closed(1000.0), |i| 1000 + i as u64 % 7)).is_empty());
        // A warm-up within the window is no reason.
        let warm = with_rows(closed(1000.0), |i| if i < 15 { 500 } else { 1000 });
        assert!(load_flaws(&warm).is_empty());
        // Neither are slices, of which other subjects' lie between, nor rows of a tenth.
        let mut slices = load.clone();
        slices.slices = vec![readings::Slice::default(); 2];
        assert!(load_flaws(&slices).is_empty());
        let mut short = load;
        for row in &mut short.rows {
            row.duration_s = 0.1;
        }
        assert!(load_flaws(&short).is_empty());
    }
}
