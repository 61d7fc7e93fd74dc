//! Little's law: requests on the way = requests per second x mean latency.

use readings::{Tool, ToolReading};

use super::name::{in_flight, is_loopback, lines, name, per_s, share, time};
use super::{Finding, FindingKind};
use crate::text::{grouped, number};

/// Rounding of printed figures that is let pass.
const ROUNDING: f64 = 0.02;
/// From here on all connections count as busy all the time.
const BUSY: f64 = 0.95;
/// Below this share connections stood still.
const STILL: f64 = 0.8;
/// A shorter run is mostly its beginning and its end.
const SHORT_S: f64 = 1.0;
/// Latency whose standard deviation is less than this share of its mean hardly varies.
const VARIES: f64 = 0.1;
/// Latency whose mean is within so much of its smallest value is near it.
const NEAR_SMALLEST: f64 = 1.2;
/// A target that did so many times better elsewhere was not at its limit here.
const BETTER: f64 = 1.5;
/// Round trips account for a latency of up to so many times of them.
const TRIP: f64 = 1.25;
/// So many times the connections are another load...
const MORE: f64 = 1.5;
/// ...which shows that the server was not full if this share of what they are more came.
const PROPORTION: f64 = 0.8;

/// What the law says of one reading.
pub(super) fn findings(readings: &[ToolReading], i: usize, saturated: bool) -> Option<Finding> {
    let r = &readings[i];
    let (rate, mean_us) = (r.requests_per_s?, r.latency.mean_us?);
    let most = in_flight(r)?;
    if rate <= 0.0 || mean_us <= 0.0 || most <= 0.0 {
        return None;
    }
    let busy = rate * mean_us / 1e6;
    let bound = most * 1e6 / mean_us;
    let reached = busy / most;
    let one = |kind, sentence| {
        Some(Finding {
            readings: vec![i],
            kind,
            sentence,
        })
    };
    let slots = if Some(most as u64) == r.connections {
        "connections"
    } else {
        "requests that its connections can carry at once"
    };
    let slots = format!("{} {slots}", grouped(most as u64));
    if reached > 1.0 + ROUNDING {
        let why = match r.tool {
            Tool::Wrk => "; wrk 4 corrects its latencies after the fact",
            _ => "",
        };
        return one(
            FindingKind::ImpossibleMean,
            format!(
                "{}: {} requests/s x {} = {} requests on the way, and there are only {slots}: by \
                 Little's law this mean latency cannot be{why}.",
                name(r),
                per_s(rate),
                time(mean_us),
                number(busy, 1, false),
            ),
        );
    }
    if reached < STILL && lasted_s(r).is_none_or(|s| s >= SHORT_S) {
        // A closed connection's successor has to be opened first; some tools leave that out.
        let opening = match (r.keepalive, r.connect.mean_us) {
            (Some(false), Some(connect_us)) if r.tool != Tool::Ab => connect_us,
            (Some(false), None) if r.tool != Tool::Ab => return None,
            _ => 0.0,
        };
        if rate * (mean_us + opening) / 1e6 >= STILL * most {
            return None;
        }
        return one(
            FindingKind::StoodStill,
            format!(
                "{}: {slots} / {} would be {} requests/s, and {} were measured, {} of that: \
                 connections stood still for {} of the time (waiting for an answer that was given \
                 up, for a new connection, or for the client), and the mean latency leaves that out.",
                name(r),
                time(mean_us),
                grouped(bound.round() as u64),
                per_s(rate),
                share(reached),
                share(1.0 - reached),
            ),
        );
    }
    if reached >= BUSY
        && !saturated
        && !is_loopback(r)
        && let Some(steady) = steadiness(r)
    {
        let busy = format!(
            "{}: {slots} / {} = {} requests/s, and {} were measured ({}): every connection was busy \
             all the time, and {steady}. ",
            name(r),
            time(mean_us),
            grouped(bound.round() as u64),
            per_s(rate),
            share(reached),
        );
        return match known(readings, i) {
            Some(why) => one(
                FindingKind::RoundTripBound,
                format!(
                    "{busy}The round trip and the number of connections set the throughput, not the \
                     server: {why}."
                ),
            ),
            None => one(
                FindingKind::RoundTripSuspected,
                format!(
                    "{busy}Either the round trip and the number of connections set the throughput, \
                     or the server was full and answered its queue in turn: with {slots} the \
                     latency of a full queue varies by {} of its mean or less, too. A load with \
                     twice the connections tells: it brings twice the throughput in the first case, \
                     and twice the latency in the second; so does the round trip by itself (ping).",
                    share(1.0 / most.sqrt())
                ),
            ),
        };
    }
    None
}

/// How long a run lasted.
fn lasted_s(r: &ToolReading) -> Option<f64> {
    let requests = r.requests.map(|n| n as f64);
    r.duration_s.or_else(|| Some(requests? / r.requests_per_s?))
}

/// Why a latency counts as that of an idle server: near its smallest, or without variation.
fn steadiness(r: &ToolReading) -> Option<String> {
    let mean_us = r.latency.mean_us?;
    if let Some(min_us) = r.latency.min_us.filter(|min| *min > 0.0) {
        return (mean_us <= NEAR_SMALLEST * min_us)
            .then(|| format!("latency is near its smallest ({})", time(min_us)));
    }
    // A deviation of nothing is one that was rounded away.
    let stdev_us = r.latency.stdev_us.filter(|s| *s > 0.0)?;
    (stdev_us <= VARIES * mean_us).then(|| {
        format!(
            "latency hardly varies (standard deviation {}, {} of the mean)",
            time(stdev_us),
            share(stdev_us / mean_us)
        )
    })
}

/// What shows that the round trip set a throughput.
fn known(readings: &[ToolReading], i: usize) -> Option<String> {
    let r = &readings[i];
    let at = |other: &ToolReading| lines(&[other]).map_or(String::new(), |l| format!(" ({l})"));
    if let Some(better) = better(readings, i) {
        return Some(format!(
            "the same target answered {} requests/s to as many connections elsewhere in the text{}",
            per_s(better.requests_per_s.unwrap_or(0.0)),
            at(better)
        ));
    }
    if let Some((connect_us, trips)) = round_trip(r) {
        let trips = if trips > 1.0 {
            "two of them are"
        } else {
            "it is"
        };
        return Some(format!(
            "opening a connection is one round trip and took {}, and {trips} most of the latency",
            time(connect_us)
        ));
    }
    let more = in_proportion(readings, i)?;
    Some(format!(
        "{} connections brought {} requests/s at {}{}, as much more as they are",
        grouped(more.connections?),
        per_s(more.requests_per_s?),
        time(more.latency.mean_us?),
        at(more)
    ))
}

/// The time that a connection took to open, where that accounts for the latency, and how many times
/// it is in it. A handshake is answered by the kernel, whatever the server does; that of TLS is not.
fn round_trip(r: &ToolReading) -> Option<(f64, f64)> {
    if r.tls.is_some()
        || r.url
            .as_ref()
            .is_some_and(|url| url.starts_with("https://"))
    {
        return None;
    }
    let connect = &r.connect;
    let median = connect
        .quantiles_us
        .iter()
        .find(|(q, _)| (*q - 0.5).abs() < 1e-9);
    let connect_us = connect.mean_us.or(median.map(|(_, us)| *us))?;
    // ab's latency runs from when it begins to connect.
    let trips = match (r.tool, r.keepalive) {
        (Tool::Ab, Some(true)) => return None,
        (Tool::Ab, _) => 2.0,
        _ => 1.0,
    };
    let is_most = r.latency.mean_us? <= TRIP * trips * connect_us;
    is_most.then_some((connect_us, trips))
}

/// A reading of the same target with more connections that brought as much more.
fn in_proportion(readings: &[ToolReading], i: usize) -> Option<&ToolReading> {
    let r = &readings[i];
    r.url.as_ref()?;
    let (connections, rate) = (r.connections? as f64, r.requests_per_s?);
    readings.iter().find(|o| {
        let same = o.url == r.url && o.tool == r.tool && o.keepalive == r.keepalive;
        let more = o.connections.map_or(0.0, |c| c as f64 / connections);
        let brought = o.requests_per_s.map_or(0.0, |per_s| per_s / rate);
        same && more >= MORE
            && brought >= 1.0 + PROPORTION * (more - 1.0)
            && o.offered_per_s.is_none()
            && o.latency.mean_us.is_some()
    })
}

/// A reading of the same target with the same connections that did much better.
fn better(readings: &[ToolReading], i: usize) -> Option<&ToolReading> {
    let r = &readings[i];
    r.url.as_ref()?;
    let rate = |r: &ToolReading| r.requests_per_s.unwrap_or(0.0);
    readings
        .iter()
        .filter(|o| o.url == r.url && o.connections == r.connections && rate(o) > BETTER * rate(r))
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))
}
