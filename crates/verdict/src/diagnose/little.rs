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
        let mut sentence = format!(
            "{}: {slots} / {} = {} requests/s, and {} were measured ({}): every connection was busy \
             all the time, and {steady}. The round trip and the number of connections set the \
             throughput, not the server",
            name(r),
            time(mean_us),
            grouped(bound.round() as u64),
            per_s(rate),
            share(reached),
        );
        if let Some(better) = better(readings, i) {
            let at = lines(&[better]).map_or(String::new(), |l| format!(" ({l})"));
            sentence.push_str(&format!(
                ": the same target answered {} requests/s to as many connections elsewhere in the text{at}",
                per_s(better.requests_per_s.unwrap_or(0.0))
            ));
        }
        sentence.push('.');
        return one(FindingKind::RoundTripBound, sentence);
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
