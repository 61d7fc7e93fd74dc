//! The outcome of a gate in a sentence.

use crate::plan::{MOST_BLOCKS, Needed};
use crate::{Bound, GateOutcome, GateReason, GateResult};
use readings::text::{change, counted, number, rate, time};
use readings::{GateMetric, GateUnit};

use crate::metric::words::{bounded_change, resolved_by, shown_change};
use crate::studies::plan::words::rough;
use crate::trial::flaw::words::reason_or_none;
use readings::at_condition as at;
use readings::text::compact::bytes;

/// `breached: throughput > -3%: head -12% [-13%, -11%], over 10 blocks`.
pub fn gate(result: &GateResult) -> String {
    format!("{}: {}", result.outcome.words(), after_outcome(result))
}

/// The same without the outcome in front.
pub fn after_outcome(result: &GateResult) -> String {
    let mut out = named(result);
    out.push_str(&format!(": {}", result.subject));
    if let Some(value) = measured(result) {
        out.push_str(&format!(" {value}"));
    }
    out.push_str(&at(&result.condition));
    if let Some(rate_per_s) = result.rate_per_s {
        let before = if result.condition.is_empty() {
            "at"
        } else {
            "and"
        };
        out.push_str(&format!(" {before} {} requests/s", rate(rate_per_s)));
    }
    if result.blocks > 0 {
        out.push_str(&format!(", over {}", counted(result.blocks, "block")));
    }
    if let Some(text) = why(result) {
        out.push_str(&format!("; {text}"));
    }
    out
}

/// The gate's text, after its name if it has one.
fn named(result: &GateResult) -> String {
    match result.name == result.gate {
        true => result.gate.clone(),
        false => format!("{} ({})", result.name, result.gate),
    }
}

/// What was measured, with its interval: against the baseline, or in the metric's unit.
pub fn measured(result: &GateResult) -> Option<String> {
    let value = result.value?;
    if result.baseline.is_some() {
        return Some(match (result.low, result.high) {
            (Some(low), Some(high)) => shown_change(1.0 + value, Some((1.0 + low, 1.0 + high))),
            (Some(low), None) => bounded_change(Bound::AtLeast, 1.0 + low),
            (None, Some(high)) => bounded_change(Bound::AtMost, 1.0 + high),
            (None, None) => change(1.0 + value, None),
        });
    }
    let unit = |value: f64| with_unit(result.metric, value);
    Some(match (result.low, result.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", unit(value), unit(low), unit(high)),
        (Some(low), None) => format!("at least {}", unit(low)),
        (None, Some(high)) => format!("at most {}", unit(high)),
        (None, None) => unit(value),
    })
}

fn with_unit(metric: GateMetric, value: f64) -> String {
    match metric.unit() {
        GateUnit::RequestsPerS => format!("{}/s", rate(value)),
        // A request takes microseconds, so tenths of them matter.
        GateUnit::CpuUs if value < 99.95 => format!("{} us", number(value, 1, false)),
        GateUnit::CpuUs | GateUnit::LatencyUs => time(value),
        GateUnit::Bytes => bytes(value),
        GateUnit::Share => share(value),
    }
}

/// A share of requests with as many digits as a small one needs: `0.0023%`.
fn share(value: f64) -> String {
    let text = format!("{:.4}", value * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// Why a gate is unsettled or was not judged, and what would settle it.
pub fn why(result: &GateResult) -> Option<String> {
    let reason = result.reason.as_ref().map(reason);
    if result.outcome != GateOutcome::Unsettled {
        return reason;
    }
    let is_clean = result.metric == GateMetric::Failed && result.value == Some(0.0);
    let helps = match (&result.needed, &result.reason) {
        _ if result.metric == GateMetric::Capacity => {
            Some("a longer search, with more --rounds, would narrow the interval".to_owned())
        }
        (_, Some(GateReason::TooFewRequests(_))) => None,
        (Some(needed), None) if is_clean => Some(clean_would_settle(needed)),
        (None, None) if is_clean => Some(format!(
            "more than {MOST_BLOCKS} blocks without a failure would be needed"
        )),
        (Some(needed), _) => Some(would_settle(needed)),
        (None, None | Some(GateReason::NoChange)) => Some(format!(
            "more than {MOST_BLOCKS} blocks would be needed: the figure is too near the bound for \
             the noise here"
        )),
        (None, Some(_)) => None,
    };
    let parts: Vec<String> = reason.into_iter().chain(helps).collect();
    Some(parts.join("; "))
}

/// What settles a gate of failures where none was seen: `a run of 34 blocks (12 min) without a failure
/// would settle it`.
fn clean_would_settle(needed: &Needed) -> String {
    let time = needed.time_s.map(|s| format!(" ({})", rough(s)));
    format!(
        "a run of {}{} without a failure would settle it",
        counted(needed.blocks as usize, "block"),
        time.unwrap_or_default()
    )
}

/// `a run of about 34 blocks (12 min) would settle it`.
fn would_settle(needed: &Needed) -> String {
    let time = needed.time_s.map(|s| format!(" ({})", rough(s)));
    format!(
        "a run of about {}{} would settle it",
        counted(needed.blocks as usize, "block"),
        time.unwrap_or_default()
    )
}

fn reason(why: &GateReason) -> String {
    match why {
        GateReason::NotMeasured => "the run did not measure it".to_owned(),
        GateReason::Unusable {
            blocks,
            tried,
            reason,
        } => format!(
            "{blocks} of {} cannot be used: {}",
            counted(*tried, "block"),
            reason_or_none(reason.as_ref())
        ),
        GateReason::TooFewRequests(by) => {
            let by = resolved_by(by.as_ref());
            format!("too few requests are behind this percentile; {by}")
        }
        GateReason::TooFewBlocks { usable, needed } => format!(
            "{} can be used, and a gate needs at least {needed}",
            counted(*usable, "block")
        ),
        GateReason::Overloaded {
            subject,
            blocks,
            tried,
            offered_per_s,
            carried_per_s,
        } => {
            let carried = carried_per_s.map_or_else(String::new, |carried| {
                format!(", and carries about {}", rate(carried))
            });
            format!(
                "{subject} was overloaded in {blocks} of {}: it was offered {}{carried}",
                counted(*tried, "block"),
                rate(*offered_per_s)
            )
        }
        GateReason::NoChange => "the interval of the change holds zero".to_owned(),
        GateReason::ClientLimits(None) => {
            "the client was the bottleneck for both, so their throughput cannot be compared; give \
             it more CPUs, or use a gate on cpu"
                .to_owned()
        }
        GateReason::ClientLimits(Some(subject)) => {
            format!(
                "the client was the bottleneck for {subject}, whose throughput may be higher than \
                 measured"
            )
        }
        GateReason::FailedStarts(subject, starts) => format!(
            "{} of {} of {subject} failed ({})",
            starts.failed,
            counted(starts.all, "trial"),
            reason_or_none(starts.reason.as_ref())
        ),
        GateReason::WithinFloor(floor) => format!(
            "the baseline differs from itself by {}, which is more than the distance to the bound",
            shown_change(floor.ratio, floor.low.zip(floor.high))
        ),
        GateReason::SliceBias => {
            "the ratio depends on the length of the slices by as much".to_owned()
        }
        GateReason::ClientLag => {
            "the client's own lag is a large part of the latency, and the service times, without \
             it, do not show the same"
                .to_owned()
        }
        GateReason::FewBlocksDecide => {
            "the t test alone would settle it, but the Hodges-Lehmann estimate does not agree: a \
             few blocks decide"
                .to_owned()
        }
        GateReason::Skewed => {
            "the t test alone would settle it, but the blocks are too skewed for it".to_owned()
        }
    }
}
