//! Many subjects under several conditions: a row for each subject, a column for each condition.

use std::collections::BTreeMap;

use readings::Condition;
use readings::text::compact::ends_kept;
use verdict::{Analysis, Metric, Ranked, Ranking, Unit, words};

use super::ranks::{BESIDE, NAME_MAX, end, of_metric};
use crate::section::columns::Columns;
use crate::section::run::capitalised;
use crate::text::grid::grid;

/// Characters of the head of a column.
const HEAD_MAX: usize = 14;
/// The most conditions that are numbered where heads would be cut.
const NUMBERED_MAX: usize = 6;

/// A grid for each metric, the first one whatever its length, the others as far as there is room.
pub(super) fn grids(analysis: &Analysis, first: Metric, width: usize, room: usize) -> String {
    let order = order(&of_metric(analysis, first));
    let mut out = legend(&of_metric(analysis, first), &order, width);
    let mut left_out = Vec::new();
    let metrics = BESIDE.into_iter().filter(|metric| *metric != first);
    for metric in [first].into_iter().chain(metrics) {
        let all = of_metric(analysis, metric);
        if all.is_empty() {
            continue;
        }
        let room = room.saturating_sub(out.lines().count() + 1);
        let of_metric = of(&all, &order, width, room.max(order.len() + 2));
        let fits = of_metric.lines().count() <= room && left_out.is_empty();
        match metric == first || fits {
            true => out.push_str(&of_metric),
            false => left_out.push(words::short(metric)),
        }
    }
    if !left_out.is_empty() {
        out.push_str(&format!("(--verbose has {} too)\n", left_out.join(", ")));
    }
    out
}

/// Subjects by their geometric mean over conditions, the best first.
fn order(all: &[&Ranking]) -> Vec<String> {
    let mut logs: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for row in all.iter().flat_map(|one| &one.rows) {
        let sum = logs.entry(&row.subject).or_default();
        sum.0 += row.value.ln();
        sum.1 += 1;
    }
    let higher = all.first().is_some_and(|one| one.metric.higher_is_better());
    let sign = if higher { -1.0 } else { 1.0 };
    let mut names: Vec<(&str, f64)> = logs
        .into_iter()
        .map(|(name, (sum, count))| (name, sign * sum / count as f64))
        .collect();
    names.sort_by(|a, b| a.1.total_cmp(&b.1));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// A metric's grid in at most so many lines. Conditions that do not fit are counted.
fn of(all: &[&Ranking], order: &[String], width: usize, room: usize) -> String {
    let Some(first) = all.first() else {
        return String::new();
    };
    let (common, varied) = factors(all);
    let mut lead = capitalised(first.metric.words());
    if first.metric.unit() == Unit::UsPerRequest {
        lead.push_str(" in us");
    }
    let rate =
        words::rate_of(first).filter(|_| all.iter().all(|o| o.rate_per_s == first.rate_per_s));
    if let Some(rate) = rate {
        lead.push_str(&format!(" {rate}"));
    }
    if !common.is_empty() {
        lead.push_str(&format!(" at {}", readings::text::condition(&common)));
    }
    if !varied.is_empty() {
        lead.push_str(&format!(", by {}", varied.join(", ")));
    }
    let mut out = format!("{}\n", ends_kept(&lead, width));
    let heads = heads(all, order, &varied, width);
    let mut from = 0;
    while from < all.len() {
        let mut count = all.len() - from;
        // As many columns as fit beside each other.
        let mut band = band(&all[from..], &heads[from..], order);
        while count > 1 && grid(&band, width).lines().count() > order.len() + 1 {
            count -= 1;
            band = self::band(&all[from..from + count], &heads[from..], order);
        }
        let text = grid(&band, width);
        if from > 0 && out.lines().count() + text.lines().count() > room {
            out.push_str(&format!(
                "({} more of {} conditions: --verbose)\n",
                all.len() - from,
                all.len()
            ));
            break;
        }
        out.push_str(&text);
        from += count;
    }
    out
}

/// The factors that all conditions have alike, and the names of the others.
fn factors(all: &[&Ranking]) -> (Condition, Vec<String>) {
    let first = all.first().map(|one| one.condition.clone());
    let mut common = first.unwrap_or_default();
    let names: Vec<String> = common.keys().cloned().collect();
    common.retain(|name, level| all.iter().all(|one| one.condition.get(name) == Some(level)));
    let varied = names.into_iter().filter(|name| !common.contains_key(name));
    let varied = varied.collect();
    (common, varied)
}

/// What differs between conditions, in full.
fn levels(all: &[&Ranking], varied: &[String]) -> Vec<String> {
    let of = |one: &&Ranking| {
        let levels = varied.iter().filter_map(|name| one.condition.get(name));
        let levels: Vec<&str> = levels.map(String::as_str).collect();
        levels.join(", ")
    };
    all.iter().map(of).collect()
}

/// The heads of all columns: in full if all columns then fit beside each other, else numbers that
/// [`legend`] explains, or, with many columns, cut.
fn heads(all: &[&Ranking], order: &[String], varied: &[String], width: usize) -> Vec<String> {
    let full = levels(all, varied);
    let fits = grid(&band(all, &full, order), width).lines().count() <= order.len() + 1;
    let is_short = |head: &String| head.chars().count() <= HEAD_MAX;
    if fits || full.iter().all(is_short) {
        return full;
    }
    match all.len() <= NUMBERED_MAX {
        true => (1..=all.len())
            .map(|number| format!("({number})"))
            .collect(),
        false => full.iter().map(|head| ends_kept(head, HEAD_MAX)).collect(),
    }
}

/// What the numbers in heads mean, where there are any.
fn legend(all: &[&Ranking], order: &[String], width: usize) -> String {
    let (_, varied) = factors(all);
    let heads = heads(all, order, &varied, width);
    let levels = levels(all, &varied);
    let each = heads
        .iter()
        .zip(&levels)
        .filter(|(head, _)| head.starts_with('('));
    each.map(|(head, level)| format!("{}\n", ends_kept(&format!("{head} {level}"), width)))
        .collect()
}

fn band(all: &[&Ranking], heads: &[String], order: &[String]) -> Columns {
    let mut columns = Columns::empty(order.len());
    let names = order.iter().map(|name| Some(ends_kept(name, NAME_MAX)));
    columns.add("subject", false, names.collect());
    for (one, head) in all.iter().zip(heads) {
        let row = |name: &String| one.rows.iter().find(|row| row.subject == *name);
        let cells = |cell: &dyn Fn(&Ranked) -> String| {
            order.iter().map(|name| row(name).map(cell)).collect()
        };
        let value = |row: &Ranked| end(row).to_owned() + &words::cell(one.metric, row.value);
        columns.add(head, true, cells(&value));
        columns.add("#", true, cells(&|row| words::place(row.places)));
    }
    columns
}
