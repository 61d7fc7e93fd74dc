//! What studies other than the ranking say in the answer.

use verdict::{Analysis, Comparison, GateOutcome, GateResult, Growth, Verdict, words};

use super::sentence;
use crate::section::columns::Columns;
use crate::section::run::by_metric;
use crate::study::gates::colour_code;
use crate::text::grid::{grid, wrapped};
use crate::text::run::Paint;
use crate::text::visible::one_line;
use readings::at_condition as at;
use readings::text::compact::shortened;
use readings::text::{condition, counted, once};

/// The most lines of a table.
const TABLE_MAX: usize = 12;
/// The most growths of one metric that have a sentence each; more are a table.
const GROWTH_MAX: usize = 4;
/// The most sentences on streams, and on long-lived connections.
const LASTING_MAX: usize = 6;
const SENTENCES_MAX: usize = 4;

/// A line for each gate: its outcome, and its figure or why it has none.
pub(super) fn gates(all: &[GateResult], width: usize, paint: &Paint) -> String {
    let lines = all.iter().map(|gate| {
        let word = format!("{:<10}", gate.outcome.words());
        let name = match gate.name.contains(&gate.gate) {
            true => gate.name.clone(),
            false => format!("{}: {}", gate.name, gate.gate),
        };
        let mut text = format!("{name}{}: {}", at(&gate.condition), gate.subject);
        if let Some(measured) = words::gate_measured(gate) {
            text.push_str(&format!(" {measured}"));
        }
        if gate.outcome != GateOutcome::Passed
            && let Some(why) = words::gate_why(gate)
        {
            text.push_str(&format!("; {why}"));
        }
        let text = one_line(&text);
        let line = match gate.outcome {
            GateOutcome::Passed => shortened(&text, width.saturating_sub(11)) + "\n",
            // What would settle it, or why it is breached, is not cut.
            _ => wrapped("", &text, 0, width.saturating_sub(11)).replace('\n', "\n           "),
        };
        format!(
            "{} {}\n",
            paint.with(colour_code(gate.outcome), &word),
            line.trim_end()
        )
    });
    lines.collect()
}

/// What events did, and latency against the offered rate.
pub(super) fn sentences(analysis: &Analysis, width: usize, paint: &Paint) -> String {
    let mut out = upgrades(analysis, width);
    out.push_str(&events(analysis, width, paint));
    for curves in &analysis.curves {
        for text in words::curves(curves).iter().take(SENTENCES_MAX) {
            out.push_str(&wrapped("", text, 2, width));
        }
    }
    out
}

/// How metrics change with the factors that the run declares for that: sentences, or a table for
/// each factor under each condition.
pub(super) fn growth(analysis: &Analysis, width: usize) -> String {
    let all = &analysis.growth;
    if !has_table_of_growths(analysis) {
        let said = all
            .iter()
            .map(|one| wrapped("", &one_line(&words::growth(one)), 2, width));
        return said.collect();
    }
    let places = once(all.iter().map(|one| (&one.condition, &*one.factor)));
    let tables = places.into_iter().map(|place| {
        let its = all
            .iter()
            .filter(|one| (&one.condition, &*one.factor) == place);
        let its: Vec<&Growth> = its.collect();
        let head = match place.0.is_empty() {
            true => String::new(),
            false => wrapped("", &format!("{}:", condition(place.0)), 0, width),
        };
        head + &grid(&growths(&its), width)
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// Whether the growth of several metrics is known, or that of one for many subjects.
pub(super) fn has_table_of_growths(analysis: &Analysis) -> bool {
    let mut all = analysis.growth.iter().map(|one| one.metric);
    analysis.growth.len() > GROWTH_MAX
        || all
            .next()
            .is_some_and(|first| all.any(|other| other != first))
}

/// A row for each growth over one factor; a metric has its name in its first row.
fn growths(its: &[&Growth]) -> Columns {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (at, one) in its.iter().enumerate() {
        let mut row = Vec::from(words::growth_row(one));
        if at > 0 && its[at - 1].metric == one.metric {
            row[0].clear();
        }
        rows.push(row);
    }
    let head = its.first().map(|one| Vec::from(words::growth_heads(one)));
    Columns {
        head: head.unwrap_or_default(),
        rows,
        numeric: vec![false, false, false, true, true, false],
    }
}

/// What the back ends received.
pub(super) fn shares(analysis: &Analysis, width: usize) -> String {
    let of_shares = analysis.shares.iter().map(words::shares);
    let of_limits = analysis.limits.iter().map(words::limiting);
    let of_expiries = analysis.expiries.iter().map(words::expiries);
    let shown = of_shares.take(LASTING_MAX);
    let shown = shown.chain(of_limits.take(LASTING_MAX));
    shown
        .chain(of_expiries.take(LASTING_MAX))
        .map(|text| wrapped("", &one_line(&text), 2, width))
        .collect()
}

/// Who holds events back, and how long-lived connections survived what happened to servers.
pub(super) fn lasting(analysis: &Analysis, width: usize) -> String {
    let held_back = analysis.held_back.iter().map(words::held_back);
    let survivals = analysis.survivals.iter().map(words::survival);
    let shown = held_back
        .take(LASTING_MAX)
        .chain(survivals.take(LASTING_MAX));
    shown
        .map(|text| wrapped("", &one_line(&text), 2, width))
        .collect()
}

/// What another version of the same server costs.
fn upgrades(analysis: &Analysis, width: usize) -> String {
    let said = words::upgrades(&analysis.upgrades).into_iter();
    let said = said.take(SENTENCES_MAX);
    said.map(|text| wrapped("", &one_line(&text), 2, width))
        .collect()
}

/// Who failed requests around events.
pub(super) fn failed_requests(analysis: &Analysis, width: usize) -> String {
    let text = words::failed_requests(analysis);
    text.map_or_else(String::new, |text| wrapped("", &one_line(&text), 2, width))
}

/// What happened around events, a row for each subject; `None` if the table is too long.
fn around_events(analysis: &Analysis, width: usize) -> Option<String> {
    let table = &analysis.table;
    let place = &table.first()?.condition;
    let is_one = table.iter().all(|row| row.condition == *place);
    let mut columns = Columns::of_events(table);
    if is_one {
        columns = columns.without("condition");
    }
    let shown = grid(&columns, width);
    let at = if is_one { at(place) } else { String::new() };
    (shown.lines().count() <= TABLE_MAX).then(|| format!("Around events{at}\n{shown}"))
}

/// What events did to each subject, the differences between them, and how many comparisons found
/// none.
fn events(analysis: &Analysis, width: usize, paint: &Paint) -> String {
    let all: Vec<&Comparison> = by_metric(analysis)
        .into_iter()
        .filter(|c| c.metric.is_of_events())
        .collect();
    if all.is_empty() {
        // Where nothing is compared, sentences on what happened have them.
        return match analysis.comparisons.is_empty() {
            true => String::new(),
            false => failed_requests(analysis, width),
        };
    }
    let table = around_events(analysis, width);
    let mut out = table.unwrap_or_else(|| failed_requests(analysis, width));
    let differs = |c: &&&Comparison| matches!(c.verdict, Verdict::Faster | Verdict::Slower);
    let differing = all.iter().filter(differs).count();
    let shown = all.iter().filter(differs).take(SENTENCES_MAX);
    out.extend(shown.map(|c| sentence(c, width, paint)));
    let of = counted(all.len(), "comparison");
    let text = match differing {
        0 => {
            let why = all.first().and_then(|c| words::notes(&c.notes));
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            format!("None of {of} found a difference{why}.")
        }
        some => format!("Of {of}, {some} found a difference."),
    };
    out.push_str(&wrapped("", &text, 0, width));
    out
}
