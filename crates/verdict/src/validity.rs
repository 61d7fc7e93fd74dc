//! Which loads count, and why others do not.

use readings::{FailureCause, LoadReading, LoadRow, NO_PORT, Pacing, Wrong, WrongKind};

use crate::CpusOfOthers;
use crate::lag::late_beside;
use crate::overload::{Overload, overload};
use crate::path::name_the_queue_of;
use crate::steady::unsteady;
use crate::text::{fraction, grouped, rate};

/// Wrong answers above this share of all answers make a load invalid.
const WRONG_SHARE: f64 = 0.001;
/// Transport errors above this share of all requests make a load invalid, unless the run says
/// another.
const TRANSPORT_SHARE: f64 = 0.01;
/// Schedule lag that moves requests to the next row of a load, in microseconds.
const LAG_OF_ROW_US: f64 = 100_000.0;
/// The share of requests that may be later than that.
const LATE_SHARE: f64 = 0.05;

/// Why a load's figures cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flaw {
    pub reason: String,
    /// Whether it spoils the whole trial, and not this load only.
    pub whole_trial: bool,
    /// Who caused it.
    pub cause: FailureCause,
    /// Whether an open loop offered more than the subject carries.
    pub is_overload: bool,
}

impl Flaw {
    /// A flaw of the whole trial that the subject caused.
    pub fn of_subject(reason: String) -> Self {
        Self {
            reason,
            whole_trial: true,
            cause: FailureCause::Subject,
            is_overload: false,
        }
    }

    /// A flaw of one load that the machine or the client caused.
    pub fn of_load(reason: String) -> Self {
        Self {
            reason,
            whole_trial: false,
            cause: FailureCause::Other,
            is_overload: false,
        }
    }

    fn of_overload(overload: &Overload) -> Self {
        Self {
            is_overload: true,
            ..Self::of_load(overload.reason())
        }
    }

    fn caused_by(mut self, cause: FailureCause) -> Self {
        self.cause = cause;
        self
    }
}

/// Why a load's figures cannot be used, one sentence fragment each; empty for a valid load.
///
/// A load is invalid when more than 0.1% of the answers were wrong, more than 1% of the requests
/// failed on the way, no good answer came, a closed loop ran on fewer connections than it was
/// asked for, an open loop's client could not keep its own schedule, an open loop offered more than
/// was carried, or rows of a second show no
/// steady state. A closed loop whose client was busy is valid: its throughput is a lower bound.
pub fn reasons(load: &LoadReading) -> Vec<String> {
    let mut found = flaws(load, TRANSPORT_SHARE, None);
    name_the_queue_of(&mut found, load);
    found.into_iter().map(|flaw| flaw.reason).collect()
}

/// Rows shorter than this, in seconds, vary too much by nature to be judged.
const ROW_S: f64 = 0.9;

/// Why a load did not reach a steady state, from its rows of a second; empty where it did, and
/// where there are fewer than 60 rows.
///
/// Only a load that ran without a pause at one rate is judged so. Slices of a block are judged by
/// the ratio of two subjects, in which changes of the machine cancel.
fn no_steady_state(load: &LoadReading) -> Vec<String> {
    if load.slices.len() > 1 || !load.stages.is_empty() {
        return Vec::new();
    }
    // The last row may have been cut short.
    let rows: Vec<&LoadRow> = load.rows.iter().filter(|r| r.duration_s >= ROW_S).collect();
    let throughput: Vec<f64> = rows.iter().map(|r| r.requests_per_s()).collect();
    let answered = rows.iter().filter(|r| r.latency_us.count > 0);
    let p50: Vec<f64> = answered.map(|r| r.latency_us.p50).collect();
    [
        unsteady("throughput", &throughput),
        unsteady("the median latency", &p50),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `max_error` is the share of requests that may fail on the way; `others` is what other programs
/// took of the machine meanwhile.
pub(crate) fn flaws(load: &LoadReading, max_error: f64, others: Option<CpusOfOthers>) -> Vec<Flaw> {
    let mut found = Vec::new();
    found.extend(wrong_answers(load).map(Flaw::of_subject));
    let by = match no_port_is_free(load) {
        true => FailureCause::Other,
        false => FailureCause::Subject,
    };
    let failed = transport_errors(load, max_error).map(Flaw::of_subject);
    found.extend(failed.map(|flaw| flaw.caused_by(by)));
    if load.requests == 0 && found.is_empty() {
        found.push(Flaw::of_subject("no good answer came".to_owned()));
    }
    match load.pacing {
        Pacing::Closed => found.extend(
            missing_connections(load)
                .map(|reason| Flaw::of_load(reason).caused_by(FailureCause::Subject)),
        ),
        Pacing::Open { rate_per_s } => {
            found.extend(not_offered_as_asked(load, rate_per_s, others));
        }
    }
    let unsteady = no_steady_state(load).into_iter().map(Flaw::of_load);
    found.extend(unsteady.map(|flaw| flaw.caused_by(FailureCause::Subject)));
    found
}

/// Whether connections failed for want of a local port, which is the client's lack.
fn no_port_is_free(load: &LoadReading) -> bool {
    load.wrong.iter().any(|wrong| wrong.found.contains(NO_PORT))
}

/// The same for a load with events, in which failures are expected: only a client that stalled is a
/// flaw, since requests that it sends late and all at once fail because of it.
pub(crate) fn flaws_beside_failures(load: &LoadReading) -> Vec<Flaw> {
    let lag = load.schedule_lag.quantile_us(1.0 - LATE_SHARE);
    let late = (lag > LAG_OF_ROW_US).then(|| {
        format!(
            "the client stalled: {} of its requests were sent late by {:.1} s and more",
            fraction(LATE_SHARE),
            lag / 1e6
        )
    });
    let late = late.map(|reason| Flaw::of_subject(reason).caused_by(FailureCause::Other));
    let nothing = (load.requests_all == 0).then(|| "no good answer came".to_owned());
    late.into_iter()
        .chain(nothing.map(Flaw::of_subject))
        .collect()
}

/// The flaws of a load that make its trial invalid for the other loads too: it failed. Its answers
/// may all take longer than the window.
pub(crate) fn flaws_of_beside(load: &LoadReading, max_error: f64) -> Vec<Flaw> {
    let nothing = load.requests_all == 0 && load.errors_all.total() == 0;
    let nothing = nothing.then(|| "no good answer came".to_owned());
    wrong_answers(load)
        .into_iter()
        .chain(transport_errors(load, max_error))
        .chain(nothing)
        .map(Flaw::of_subject)
        .collect()
}

fn wrong_answers(load: &LoadReading) -> Option<String> {
    let wrong = load.errors_all.wrong_answers();
    let answers = load.requests_all + wrong;
    if wrong == 0 || wrong as f64 <= WRONG_SHARE * answers as f64 {
        return None;
    }
    let mut text = format!(
        "{} of {} answers were wrong",
        grouped(wrong),
        grouped(answers)
    );
    let first = load
        .wrong
        .iter()
        .find(|w| w.kind != WrongKind::Connection)
        .or(load.wrong.first());
    if let Some(first) = first {
        text.push_str(": ");
        text.push_str(&describe(first));
    }
    Some(text)
}

/// `expected status 200, found 502`.
fn describe(wrong: &Wrong) -> String {
    let bare = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let expected = match wrong.kind {
        WrongKind::Status if bare(&wrong.expected) => format!("status {}", wrong.expected),
        WrongKind::Length if bare(&wrong.expected) => format!("a length of {}", wrong.expected),
        _ => wrong.expected.clone(),
    };
    let found = match wrong.kind {
        WrongKind::Status => wrong
            .found
            .strip_prefix("status ")
            .unwrap_or(&wrong.found)
            .to_owned(),
        _ => wrong.found.clone(),
    };
    format!("expected {expected}, found {found}")
}

fn transport_errors(load: &LoadReading, max_error: f64) -> Option<String> {
    let e = &load.errors_all;
    let failed = e.connect + e.read + e.write + e.timeout;
    let requests = load.requests_all + e.total();
    if failed == 0 || failed as f64 <= max_error * requests as f64 {
        return None;
    }
    let kinds = [
        (e.connect, "connect"),
        (e.read, "read"),
        (e.write, "write"),
        (e.timeout, "timeout"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", grouped(*count)))
        .collect();
    let mut text = format!(
        "{} of {} requests failed on the way ({})",
        grouped(failed),
        grouped(requests),
        kinds.join(", ")
    );
    let first = load
        .wrong
        .iter()
        .find(|w| matches!(w.kind, WrongKind::Connection | WrongKind::Protocol));
    if let Some(first) = first {
        text.push_str(": ");
        text.push_str(&describe(first));
    }
    Some(text)
}

fn missing_connections(load: &LoadReading) -> Option<String> {
    let open = load.connections_open_min;
    if open + reopening(load) >= load.connections {
        return None;
    }
    Some(format!(
        "only {} of {} connections were open at the end of a window",
        grouped(open),
        grouped(load.connections)
    ))
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
    let end_s = load
        .slices
        .iter()
        .map(|s| s.start_s + s.duration_s)
        .fold(load.duration_s, f64::max);
    if end_s <= 0.0 {
        return 0;
    }
    let typical = load.connects as f64 / end_s * load.opening_us_p50() / 1e6;
    (typical + 3.0 * typical.sqrt()).ceil() as u64
}

fn not_offered_as_asked(
    load: &LoadReading,
    rate_per_s: f64,
    others: Option<CpusOfOthers>,
) -> Option<Flaw> {
    if load.client.saturated {
        return Some(Flaw::of_load(format!(
            "the client was too busy to offer {} requests/s on time",
            rate(rate_per_s)
        )));
    }
    // Of an overload the lag explains nothing.
    match overload(load) {
        Some(overload) => Some(Flaw::of_overload(&overload)),
        None => late_beside(load, 0.5, others).map(Flaw::of_load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, open};
    use readings::Wrong;

    #[test]
    fn a_plain_load_is_valid() {
        assert!(reasons(&closed(20_000.0)).is_empty());
        assert!(reasons(&open(10_000.0, 400.0)).is_empty());
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
        assert_eq!(
            reasons(&load),
            ["31,204 of 31,204 answers were wrong: expected status 200, found 502"]
        );
        load.wrong[0].expected = "status 200".into();
        load.wrong[0].found = "status 502".into();
        assert!(reasons(&load)[0].ends_with("expected status 200, found 502"));
    }

    #[test]
    fn one_wrong_answer_in_a_thousand_is_the_limit() {
        let mut load = closed(1000.0);
        load.requests_all = 99_900;
        load.errors_all.verify = 100;
        assert!(reasons(&load).is_empty());
        load.errors_all.verify = 101;
        assert_eq!(reasons(&load), ["101 of 100,001 answers were wrong"]);
    }

    #[test]
    fn one_failure_on_the_way_in_a_hundred_is_the_limit() {
        let mut load = closed(1000.0);
        load.requests_all = 9_900;
        load.errors_all.timeout = 60;
        load.errors_all.connect = 40;
        assert!(reasons(&load).is_empty());
        load.errors_all.timeout = 61;
        assert_eq!(
            reasons(&load),
            ["101 of 10,001 requests failed on the way (40 connect, 61 timeout)"]
        );
    }

    #[test]
    fn silence_is_invalid() {
        let mut load = closed(0.0);
        load.requests = 0;
        assert_eq!(reasons(&load), ["no good answer came"]);
    }

    #[test]
    fn missing_connections_count_in_a_closed_loop_only() {
        let mut load = closed(1000.0);
        load.connections_open_min = 31;
        assert_eq!(
            reasons(&load),
            ["only 31 of 32 connections were open at the end of a window"]
        );
        load.pacing = Pacing::Open { rate_per_s: 100.0 };
        assert!(reasons(&load).is_empty());
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
        assert!(reasons(&load).is_empty(), "{:?}", reasons(&load));
        load.connections_open_min = 20;
        assert_eq!(reasons(&load).len(), 1);
        // One for each request.
        load.requests = load.connects;
        assert!(reasons(&load).is_empty(), "{:?}", reasons(&load));
    }

    #[test]
    fn a_busy_client_spoils_an_open_loop_and_bounds_a_closed_one() {
        let mut load = closed(1000.0);
        load.client.saturated = true;
        assert!(reasons(&load).is_empty());
        let mut load = open(20_000.0, 400.0);
        load.client.saturated = true;
        assert_eq!(
            reasons(&load),
            ["the client was too busy to offer 20,000 requests/s on time"]
        );
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
        assert_eq!(
            reasons(&load),
            [
                "no steady state was reached: throughput still changed in the second half of 90 \
                 values: it moved by -20.0%"
            ]
        );
        assert!(reasons(&with_rows(closed(1000.0), |i| 1000 + i as u64 % 7)).is_empty());
        // A warm-up within the window is no reason.
        let warm = with_rows(closed(1000.0), |i| if i < 15 { 500 } else { 1000 });
        assert!(reasons(&warm).is_empty());
        // Neither are slices, of which other subjects' lie between, nor rows of a tenth.
        let mut slices = load.clone();
        slices.slices = vec![readings::Slice::default(); 2];
        assert!(reasons(&slices).is_empty());
        let mut short = load;
        for row in &mut short.rows {
            row.duration_s = 0.1;
        }
        assert!(reasons(&short).is_empty());
    }
}
