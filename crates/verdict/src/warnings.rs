use readings::{Condition, LoadReading, Pacing};

use crate::cells::{Cell, Cells};
use crate::compare::Unresolved;
use crate::floor::NoiseFloor;
use crate::machine::uncounted;
use crate::slices::depends_on_length;
use crate::steady::memory;
use crate::text::{condition, counted, fraction, grouped, number, rate};
use crate::{Comparison, Rules};

/// Below this share of the offered rate the servers did not keep up.
const KEPT_SHARE: f64 = 0.95;

/// What the reader of the result should know before trusting it.
pub(crate) fn warnings(
    rules: &Rules,
    cells: &Cells<'_>,
    comparisons: &[Comparison],
    floors: &[NoiseFloor],
    unresolved: &[Unresolved],
) -> Vec<String> {
    let mut found = Vec::new();
    for floor in floors.iter().filter(|f| f.is_biased(rules.matters)) {
        let sentence = floor.sentence.trim_end_matches('.');
        found.push(format!(
            "{sentence}: more than what matters ({}), so differences of this size mean nothing \
             here",
            fraction(rules.matters)
        ));
    }
    found.extend(comparisons.iter().filter_map(unsettled));
    found.extend(
        comparisons
            .iter()
            .filter_map(|c| dependent_blocks(c, comparisons.len())),
    );
    for place in &cells.conditions {
        // Where load generators are what is compared, each is to do as much as it can.
        let of_drivers = cells.drivers_differ(place);
        for subject in &cells.subjects {
            let trials = cells.of_subject(place, subject, false);
            let trials: Vec<&Cell<'_>> = trials.into_values().collect();
            let name = format!("{subject}{}", at(place));
            if *subject != rules.baseline {
                let all = comparisons.len();
                found.extend(depends_on_length(rules, cells, place, subject, all));
            }
            found.extend(at_least(&name, &trials).filter(|_| !of_drivers));
            let had_events = |cell: &&Cell<'_>| cell.reading().is_some_and(|r| r.events.is_some());
            if trials.iter().any(had_events) {
                // What failed or came late then is the result, and no latency is compared.
                continue;
            }
            found.extend(rate_not_kept(&name, &trials));
            found.extend(errors(&name, &trials));
            found.extend(stood_still(&name, &trials));
            found.extend(lost_syns(&name, &trials));
        }
    }
    for u in unresolved {
        found.push(format!(
            "the {} of {}{} is unresolved: too few requests stand behind it in {}; a longer \
             window would resolve it",
            u.metric.words(),
            u.subject,
            at(&u.condition),
            counted(u.blocks, "block")
        ));
    }
    found.extend(uncounted(cells));
    for (text, trials) in cells.trial_warnings() {
        found.push(match trials {
            1 => text,
            _ => format!("{text} (in {trials} trials)"),
        });
    }
    found
}

/// Fewer blocks than this say nothing on how they follow each other.
const FEWEST_IN_A_ROW: usize = 8;

/// Blocks that are like the ones before them are less evidence than their number says.
fn dependent_blocks(c: &Comparison, comparisons: usize) -> Option<String> {
    if c.by_block.len() < FEWEST_IN_A_ROW {
        return None;
    }
    let logs: Vec<f64> = c.by_block.iter().map(|b| b.ratio.ln()).collect();
    let lag1 = memory(&logs, comparisons)?;
    Some(format!(
        "the blocks' ratios of {} to {}, {}{}, are like those of the blocks before (lag-1 \
         autocorrelation {} over {}): they are not independent, and the interval is too narrow",
        c.subject,
        c.baseline,
        c.metric.words(),
        at(&c.condition),
        number(lag1, 2, false),
        counted(logs.len(), "block")
    ))
}

/// The subject itself, not the machine, still changed while it was measured.
fn unsettled(c: &Comparison) -> Option<String> {
    (c.unsettled_blocks * 2 > c.by_block.len()).then(|| {
        format!(
            "no steady state: the throughput of {}{} over that of {} still changed in the second \
             half of the slices in {} of {}; a longer warm-up or window is needed",
            c.subject,
            at(&c.condition),
            c.baseline,
            c.unsettled_blocks,
            counted(c.by_block.len(), "block")
        )
    })
}

fn at(place: &Condition) -> String {
    match condition(place) {
        text if text.is_empty() => text,
        text => format!(" at {text}"),
    }
}

fn at_least(name: &str, trials: &[&Cell<'_>]) -> Option<String> {
    let loads: Vec<&LoadReading> = trials.iter().filter_map(|c| c.throughput()).collect();
    let limited = loads.iter().filter(|l| l.client.saturated).count();
    (limited > 0).then(|| {
        format!(
            "the throughput of {name} is 'at least': the client was the bottleneck in {limited} \
             of {}",
            counted(loads.len(), "trial")
        )
    })
}

fn rate_not_kept(name: &str, trials: &[&Cell<'_>]) -> Option<String> {
    let short: Vec<(f64, f64)> = trials
        .iter()
        .filter_map(|c| c.latency())
        .filter_map(|load| match load.pacing {
            Pacing::Open { rate_per_s } => Some((load.requests_per_s(), rate_per_s)),
            Pacing::Closed => None,
        })
        .filter(|(got, offered)| *got < KEPT_SHARE * offered)
        .collect();
    let (got, offered) = short.iter().copied().reduce(|a, b| {
        // The worst of them.
        if b.0 / b.1 < a.0 / a.1 { b } else { a }
    })?;
    Some(format!(
        "{name} answered {} of {} requests/s that were offered: its latency is that of an \
         overload, and grows with the length of the window",
        rate(got),
        rate(offered)
    ))
}

/// Connections that are busy for less than this share of the time stood still.
const BUSY_SHARE: f64 = 0.8;

/// By Little's law a closed loop has requests/s times mean latency of its connections busy; the
/// others wait for something that no answer's latency shows.
fn stood_still(name: &str, trials: &[&Cell<'_>]) -> Option<String> {
    let busy: Vec<(f64, u64)> = trials
        .iter()
        .filter_map(|c| c.throughput())
        .filter(|load| !load.client.saturated && load.response.count() > 0)
        .filter_map(|load| {
            let opened = load.connects as f64 / load.requests_all.max(1) as f64;
            let response_s = load.response.quantiles().mean / 1e6;
            let connect_s = load.connect.quantiles().mean / 1e6;
            let slice_s = load.slices.iter().map(|s| s.duration_s);
            // Requests that a slice's edge cut off are not in the count.
            let shortest_s = slice_s.fold(load.duration_s, f64::min);
            (response_s < shortest_s / 10.0).then(|| {
                let busy = load.requests_per_s() * (response_s + opened * connect_s);
                (busy, load.connections)
            })
        })
        .collect();
    let still = |(busy, all): &&(f64, u64)| *busy < BUSY_SHARE * *all as f64;
    let idle: Vec<&(f64, u64)> = busy.iter().filter(still).collect();
    if idle.len() * 2 <= busy.len() {
        return None;
    }
    let (worst, all) = idle.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "the connections of {name} stood still for {:.0}% of the time: requests/s times mean \
         latency is {} of {} connections",
        (1.0 - worst / *all as f64) * 100.0,
        rate(*worst),
        grouped(*all)
    ))
}

/// A SYN that gets no answer is sent again after a second (RFC 6298).
const SYN_AGAIN_US: f64 = 0.95e6;

fn lost_syns(name: &str, trials: &[&Cell<'_>]) -> Option<String> {
    let (mut late, mut all, mut median_us) = (0, 0, f64::INFINITY);
    let loads = trials
        .iter()
        .flat_map(|c| [c.throughput(), c.latency()])
        .flatten();
    for load in loads.filter(|l| l.connect.count() > 0) {
        all += load.connect.count();
        median_us = median_us.min(load.connect.quantile_us(0.5));
        if load.connect.quantile_us(1.0) >= SYN_AGAIN_US {
            let slow = load.connect.buckets_us().into_iter();
            late += slow
                .filter(|(us, _)| *us >= SYN_AGAIN_US)
                .map(|(_, n)| n)
                .sum::<u64>();
        }
    }
    (late > 0 && median_us < SYN_AGAIN_US / 2.0).then(|| {
        format!(
            "{} of {} connections to {name} took a second or more to open, where the median took \
             {:.1} ms: their first SYN was lost, as by a full accept queue \
             or a link that loses packets",
            grouped(late),
            grouped(all),
            median_us / 1e3
        )
    })
}

/// Errors that are too few to make a load invalid, but missing from its latency.
fn errors(name: &str, trials: &[&Cell<'_>]) -> Option<String> {
    let loads = trials
        .iter()
        .flat_map(|c| [c.throughput(), c.latency()])
        .flatten();
    let (mut failed, mut all) = (0, 0);
    for load in loads {
        failed += load.errors_all.total();
        all += load.errors_all.total() + load.requests_all;
    }
    (failed > 0).then(|| {
        format!(
            "{} of {} requests to {name} failed: the latency figures leave them out",
            grouped(failed),
            grouped(all)
        )
    })
}
