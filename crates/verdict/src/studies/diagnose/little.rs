//! Little's law: requests in flight = requests per second x mean latency.

use readings::{Tool, ToolReading};

use super::known::lasted_s;
use super::target::is_loopback;
use super::{Concurrency, Diagnosis, Finding, ShownBy, Steadiness};

/// Rounding of printed figures that is let pass.
const ROUNDING: f64 = 0.02;
/// From here on all connections count as busy all the time.
const BUSY: f64 = 0.95;
/// Below this share connections stood still.
const STILL: f64 = 0.8;
/// A longest latency that is not known is at most so many times the mean.
const LONGEST: f64 = 10.0;
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

/// The law with all slots of a reading, or with those of the connections that surely opened.
///
/// A connection carries one request at once where nothing says how many.
fn law(r: &ToolReading, only_opened: bool) -> Option<Concurrency> {
    let connections = r.connections?;
    let failed = match only_opened {
        true => Some(r.errors.connect).filter(|failed| *failed < connections),
        false => None,
    };
    let slots = (connections - failed.unwrap_or(0)).saturating_mul(r.depth.unwrap_or(1));
    let law = Concurrency {
        requests_per_s: r.requests_per_s?,
        mean_us: r.latency.mean_us?,
        slots: slots as f64,
        are_connections: slots == connections,
    };
    (law.requests_per_s > 0.0 && law.mean_us > 0.0 && law.slots > 0.0).then_some(law)
}

/// The connections of wrk that opened, where some did not and the others account for the rate.
pub(super) fn opened(r: &ToolReading) -> Option<Concurrency> {
    let law = law(r, true).filter(|_| r.tool == Tool::Wrk && r.errors.connect > 0)?;
    let explained = STILL..=1.0 + ROUNDING;
    (!law.are_connections && explained.contains(&law.reached())).then_some(law)
}

/// What the law says of one reading.
pub(super) fn findings(readings: &[ToolReading], i: usize, saturated: bool) -> Option<Finding> {
    let r = &readings[i];
    let of_all = law(r, false)?;
    let one = |diagnosis| Some(Finding::new(vec![i], diagnosis));
    let (rate, mean_us) = (of_all.requests_per_s, of_all.mean_us);
    let half_step_us = r.latency.mean_step_us.unwrap_or(0.0) / 2.0;
    let least = rate * (mean_us - half_step_us) / 1e6;
    // Of the requests that were in flight at an end of the run, a part of the time was before.
    let ends = lasted_s(r).map_or(0.0, |s| mean_us / 1e6 / s);
    if least > of_all.slots * (1.0 + ROUNDING + ends) {
        return one(Diagnosis::ImpossibleMean(of_all));
    }
    if let Some(law) = law(r, true)
        && let Some(seconds) = lasted_s(r).filter(|s| *s >= SHORT_S)
    {
        // As a run ends, a connection may wait as long as the longest request takes.
        let longest_us = r.latency.max_us.unwrap_or(LONGEST * mean_us);
        let at_ends = law.slots * longest_us / 1e6 / seconds;
        // A closed connection's successor has to be opened first; some tools leave that out.
        let opening_us = match (r.keepalive, r.connect.mean_us) {
            (Some(false), connect_us) if r.tool != Tool::Ab => connect_us,
            _ => Some(0.0),
        };
        let most = |opening_us: f64| rate * (mean_us + half_step_us + opening_us) / 1e6 + at_ends;
        if opening_us.is_some_and(|us| most(us) < STILL * law.slots) {
            return one(Diagnosis::StoodStill(law));
        }
    }
    if least >= BUSY * of_all.slots
        && !saturated
        && !is_loopback(r)
        && let Some(steadiness) = steadiness(r)
    {
        return one(Diagnosis::AllBusy {
            concurrency: of_all,
            steadiness,
            shown_by: shown_by(readings, i),
            queue_varies: 1.0 / of_all.slots.sqrt(),
        });
    }
    None
}

/// Why a latency counts as that of an idle server: near its smallest, or without variation.
fn steadiness(r: &ToolReading) -> Option<Steadiness> {
    let mean_us = r.latency.mean_us?;
    if let Some(min_us) = r.latency.min_us.filter(|min| *min > 0.0) {
        // What is printed in coarse steps may be smaller.
        let step_us = r.latency.mean_step_us.unwrap_or(0.0);
        let is_near = mean_us <= NEAR_SMALLEST * (min_us - step_us / 2.0);
        return is_near.then_some(Steadiness::NearSmallest { min_us });
    }
    // A deviation of nothing is one that was rounded away.
    let stdev_us = r.latency.stdev_us.filter(|s| *s > 0.0)?;
    (stdev_us <= VARIES * mean_us).then_some(Steadiness::HardlyVaries {
        stdev_us,
        share: stdev_us / mean_us,
    })
}

/// What shows that the round trip set a throughput.
fn shown_by(readings: &[ToolReading], i: usize) -> Option<ShownBy> {
    if let Some(reading) = better(readings, i) {
        return Some(ShownBy::Better { reading });
    }
    if let Some((connect_us, trips)) = round_trip(&readings[i]) {
        let two_round_trips = trips > 1.0;
        return Some(ShownBy::Connecting {
            connect_us,
            two_round_trips,
        });
    }
    let reading = in_proportion(readings, i)?;
    Some(ShownBy::InProportion { reading })
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
    // Of many that are opened at once, the first is delayed least.
    let shortest = connect.min_us.or(median.map(|(_, us)| *us));
    let connect_us = shortest.or(connect.mean_us).filter(|us| *us > 0.0)?;
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
fn in_proportion(readings: &[ToolReading], i: usize) -> Option<usize> {
    let r = &readings[i];
    r.url.as_ref()?;
    let (connections, rate) = (r.connections? as f64, r.requests_per_s?);
    readings.iter().position(|o| {
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
fn better(readings: &[ToolReading], i: usize) -> Option<usize> {
    let r = &readings[i];
    r.url.as_ref()?;
    let rate = |r: &ToolReading| r.requests_per_s.unwrap_or(0.0);
    let is_better = |o: &usize| {
        let o = &readings[*o];
        o.url == r.url && o.connections == r.connections && rate(o) > BETTER * rate(r)
    };
    let better = (0..readings.len()).filter(is_better);
    better.max_by(|a, b| rate(&readings[*a]).total_cmp(&rate(&readings[*b])))
}
