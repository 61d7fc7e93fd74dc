//! Comparisons and the noise floor, in sentences.

pub(crate) mod events;
pub(crate) mod notes;

use crate::{Bound, Comparison, Metric, NoiseFloor, Note, Verdict};
use readings::text::{change, counted, decimals_of_interval, fraction, percent, rate};
use readings::text::{condition, number};

use crate::metric::words::{
    Absolute, NOT_MEASURABLE, TIMES_FROM, absolute, bounded_change, is_measurable, metric_words,
    names_rate, shown_change, size_of_end, times,
};
use readings::at_condition as at;

/// The verdict as a performance engineer would write it.
pub fn comparison(c: &Comparison) -> String {
    comparison_placed(c, None)
}

/// The same with where servers and client ran, such as `proxy and back end on CPU 1, client on CPU
/// 0`.
pub fn comparison_placed(c: &Comparison, placement: Option<&str>) -> String {
    let measurable = c.interval().is_none_or(is_measurable);
    let worth_saying = |note: &&Note| {
        // A forecast is useless for what cannot be measured.
        measurable || !matches!(note, Note::MoreBlocks { .. } | Note::TooNoisy)
    };
    let kept: Vec<Note> = c.notes.iter().filter(worth_saying).cloned().collect();
    let note = notes::notes(&kept);
    let noted = |text: String| {
        let parts = [Some(text), how_sure(c), companion(c), note.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{}.", parts.join("; "))
    };
    let over = format!("over {}", counted(c.blocks, "block"));
    let place = format!("{}{}", place_and_rate(c), placement_clause(placement));
    if let Some(text) = events::comparison(c, &place) {
        return noted(text);
    }
    let about = format!("{} against {}, {}{place}", c.subject, c.baseline, what(c));
    match c.verdict {
        Verdict::Faster | Verdict::Slower => noted(format!("{}{place}, {over}", difference(c))),
        Verdict::Same => noted(format!(
            "{about}: no difference that matters (within {}): {}{}, {over}",
            fraction(c.matters),
            both_values(c),
            change_of(c)
        )),
        Verdict::Inconclusive if !measurable => noted(format!(
            "inconclusive: {about}: {NOT_MEASURABLE} ({}the interval spans more than a factor of \
             ten), {over}",
            both_values(c)
        )),
        Verdict::Inconclusive if c.ratio.is_some() => noted(format!(
            "inconclusive: {about}: {}{}, {over}",
            both_values(c),
            change_of(c)
        )),
        Verdict::Inconclusive | Verdict::Invalid => format!(
            "{}: {about}: {}.",
            c.verdict.word(),
            note.as_deref().unwrap_or("no figures")
        ),
    }
}

/// The change of a comparison, or the end of it that is known.
pub fn change_of(c: &Comparison) -> String {
    match (c.bound, c.low, c.high) {
        (Some(bound @ Bound::AtLeast), Some(low), _) => bounded_change(bound, low),
        (Some(bound @ Bound::AtMost), _, Some(high)) => bounded_change(bound, high),
        _ => shown_change(c.ratio.unwrap_or(1.0), c.interval()),
    }
}

/// Where servers and client ran, as part of a sentence; empty where that is not known.
pub fn placement_clause(placement: Option<&str>) -> String {
    placement.map_or_else(String::new, |text| format!(" ({text})"))
}
/// Whether a difference surely matters, or how probably.
pub(crate) fn how_sure(c: &Comparison) -> Option<String> {
    let differs = matches!(c.verdict, Verdict::Faster | Verdict::Slower);
    if c.surely {
        return Some(format!("surely {}", direction(c)));
    }
    if !differs && !c.notes.contains(&Note::MayMatter) {
        return None;
    }
    let probability = match c.p_beyond_matters? {
        p if p > 0.99 => "more than 99%".to_owned(),
        p => percent(p * 100.0, 0, false),
    };
    let matters = fraction(c.matters);
    Some(format!(
        "by more than {matters} with a probability of {probability}"
    ))
}

/// The verdict in a word or two: `slower`, `surely faster`, `more`.
pub fn verdict_word(c: &Comparison) -> String {
    match c.surely {
        true => format!("surely {}", direction(c)),
        false => direction(c).to_owned(),
    }
}

/// The direction of a difference. CPU time and memory are not faster or slower: there is more or
/// less of them.
pub fn direction(c: &Comparison) -> &'static str {
    let is_amount = c.metric.is_cost() || c.metric.is_of_driver();
    match c.verdict {
        Verdict::Faster if is_amount => "less",
        Verdict::Slower if is_amount => "more",
        verdict => verdict.word(),
    }
}

/// The robust estimate, if it differs from the mean and no note has said so.
fn companion(c: &Comparison) -> Option<String> {
    let told = |note: &Note| matches!(note, Note::CompanionDiffers { .. });
    let (robust, ratio, (low, high)) = (c.robust?, c.ratio?, c.interval()?);
    let half_width = (high / low).ln() / 2.0;
    let apart = (robust.ratio / ratio).ln().abs() > half_width / 2.0;
    (apart && !c.notes.iter().any(told)).then(|| {
        let figure = change(robust.ratio, robust.interval());
        format!("the Hodges-Lehmann estimate is {figure}")
    })
}

/// The baseline against itself.
pub fn noise_floor(floor: &NoiseFloor) -> String {
    let interval = floor.low.zip(floor.high);
    let about = format!(
        "noise floor, {}{}: {} against itself",
        metric_words(floor.metric, &floor.condition, None),
        at(&floor.condition),
        floor.baseline
    );
    let blocks = counted(floor.blocks, "block");
    let difference = events::floor_difference(floor);
    if difference.is_none() && interval.is_some_and(|interval| !is_measurable(interval)) {
        return format!(
            "{about}: {NOT_MEASURABLE}, over {blocks}: too few blocks, or they differ too much."
        );
    }
    let copies = match (floor.separate, floor.client_limited) {
        (_, true) => "; the client was the bottleneck, so this floor is the client's",
        (true, _) => "",
        (false, _) => {
            "; both copies were the same processes, so this floor lacks the variance of starts"
        }
    };
    format!(
        "{about} shows {}, over {blocks}{copies}.",
        difference.unwrap_or_else(|| shown_change(floor.ratio, interval))
    )
}

/// The metric in a sentence with [`place_and_rate`].
fn what(c: &Comparison) -> &'static str {
    metric_words(c.metric, &c.condition, c.rate_per_s)
}

/// ` at connections=96 and 20,000 requests/s`; empty without either. A rate that a factor names is
/// not said again.
fn place_and_rate(c: &Comparison) -> String {
    let mut parts = Vec::new();
    if !c.condition.is_empty() {
        parts.push(condition(&c.condition));
    }
    if let Some(per_s) = c.rate_per_s.filter(|_| !names_rate(&c.condition)) {
        let unit = if c.of_users { "users" } else { "requests" };
        parts.push(format!("{} {unit}/s", rate(per_s)));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!(" at {}", parts.join(" and "))
    }
}

fn values(c: &Comparison) -> Option<Absolute> {
    let (baseline, subject) = c.baseline_value.zip(c.subject_value)?;
    absolute(c.metric, baseline, subject)
}

/// `direct 0.400, balance 0.402 ms: ` for a time or a size; otherwise empty.
fn both_values(c: &Comparison) -> String {
    values(c).map_or_else(String::new, |both| {
        format!(
            "{} {}, {} {} {}: ",
            c.baseline, both.baseline, c.subject, both.subject, both.unit
        )
    })
}

/// The difference in words that fit its direction: times and sizes as values, then relative;
/// throughput with the interval in the same direction.
pub(crate) fn difference(c: &Comparison) -> String {
    if let Some(bound) = c.bound {
        return bounded(c, bound);
    }
    let (what, subject) = (what(c), &c.subject);
    let ratio = c.ratio.unwrap_or(1.0);
    let more = ratio > 1.0;
    if let Some(both) = values(c) {
        let relative = match c.interval() {
            Some(interval) if !is_measurable(interval) => at_least_of_wide(c),
            interval => shown_change(ratio, interval),
        };
        return format!(
            "{subject} {} the {what} from {} to {} {} ({}, {relative})",
            if more { "raises" } else { "lowers" },
            both.baseline,
            both.subject,
            both.unit,
            both.difference
        );
    }
    if c.interval()
        .is_some_and(|interval| !is_measurable(interval))
    {
        let verb = if more { "raises" } else { "lowers" };
        return format!("{subject} {verb} the {what} ({})", at_least_of_wide(c));
    }
    if ratio >= TIMES_FROM {
        let told = times(ratio, c.interval());
        let (times, interval) = told.split_once(" times").unwrap_or((&told, ""));
        return match c.metric {
            Metric::RequestsPerS => {
                format!("{subject} brings {times} times the {what}{interval}")
            }
            _ => format!("{subject} multiplies the {what} by {times}{interval}"),
        };
    }
    let (size, interval) = size(c);
    match (c.metric, more) {
        (Metric::RequestsPerS, false) => {
            format!("{subject} costs {size} of the {what} {interval}")
        }
        (Metric::RequestsPerS, true) => format!("{subject} brings {size} more {what} {interval}"),
        (_, true) => format!("{subject} adds {size} to the {what} {interval}"),
        (_, false) => format!("{subject} takes {size} off the {what} {interval}"),
    }
}

/// A difference whose interval is too wide to be shown, by the end that is nearer to none.
fn at_least_of_wide(c: &Comparison) -> String {
    let near = if c.ratio.unwrap_or(1.0) > 1.0 {
        c.low
    } else {
        c.high
    };
    let near = match near {
        Some(near) if near >= TIMES_FROM => format!("at least {} times", number(near, 1, false)),
        Some(near) => format!("by at least {}", size_of_end(near)),
        None => return NOT_MEASURABLE.to_owned(),
    };
    format!("{near}; how much is {NOT_MEASURABLE}")
}

/// A difference of which only one end is known, since the client limited one side.
fn bounded(c: &Comparison, bound: Bound) -> String {
    let (what, subject) = (what(c), &c.subject);
    let end = match bound {
        Bound::AtLeast => c.low,
        Bound::AtMost => c.high,
    };
    let end = end.or(c.ratio).unwrap_or(1.0);
    let size = size_of_end(end);
    match (c.metric, bound) {
        (Metric::RequestsPerS, Bound::AtMost) => {
            format!("{subject} costs at least {size} of the {what}")
        }
        (Metric::RequestsPerS, Bound::AtLeast) if end >= TIMES_FROM => {
            let times = number(end, 1, false);
            format!("{subject} brings at least {times} times the {what}")
        }
        (Metric::RequestsPerS, Bound::AtLeast) => {
            format!("{subject} brings at least {size} more {what}")
        }
        (_, Bound::AtMost) => format!("{subject} takes at least {size} off the {what}"),
        (_, Bound::AtLeast) if end >= TIMES_FROM => {
            let times = number(end, 1, false);
            format!("{subject} multiplies the {what} by at least {times}")
        }
        (_, Bound::AtLeast) => format!("{subject} adds at least {size} to the {what}"),
    }
}

/// The size of the difference as an unsigned percentage, and its interval in ascending order.
fn size(c: &Comparison) -> (String, String) {
    let ratio = c.ratio.unwrap_or(1.0);
    let sign = if ratio < 1.0 { -100.0 } else { 100.0 };
    let estimate = sign * (ratio - 1.0);
    let Some((low, high)) = c.interval() else {
        return (percent(estimate, 1, false), String::new());
    };
    let (a, b) = (sign * (low - 1.0), sign * (high - 1.0));
    let (low, high) = (a.min(b), a.max(b));
    let decimals = decimals_of_interval(low, high);
    (
        percent(estimate, decimals, false),
        format!(
            "[{}, {}]",
            percent(low, decimals, false),
            percent(high, decimals, false)
        ),
    )
}

#[cfg(test)]
pub(crate) mod tests;
