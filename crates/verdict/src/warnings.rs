use readings::{Condition, LoadReading, Pacing};

use crate::Rules;
use crate::cells::{Cell, Cells};
use crate::compare::Unresolved;
use crate::floor::NoiseFloor;
use crate::text::{condition, counted, fraction, grouped, rate};

/// Below this share of the offered rate the servers did not keep up.
const KEPT_SHARE: f64 = 0.95;

/// What the reader of the result should know before trusting it.
pub(crate) fn warnings(
    rules: &Rules,
    cells: &Cells<'_>,
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
    for place in &cells.conditions {
        // Where load generators are what is compared, each is to do as much as it can.
        let of_drivers = cells.drivers_differ(place);
        for subject in &cells.subjects {
            let trials = cells.of_subject(place, subject, false);
            let trials: Vec<&Cell<'_>> = trials.into_values().collect();
            let name = format!("{subject}{}", at(place));
            found.extend(at_least(&name, &trials).filter(|_| !of_drivers));
            found.extend(rate_not_kept(&name, &trials));
            found.extend(errors(&name, &trials));
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
    for (text, trials) in cells.trial_warnings() {
        found.push(match trials {
            1 => text,
            _ => format!("{text} (in {trials} trials)"),
        });
    }
    found
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
