//! The summary table of each condition: the figures of every subject, and how they differ.

use std::collections::{HashMap, HashSet};

use readings::text::{condition, counted, rate};
use readings::{Condition, RunHeader};
use verdict::{Analysis, Comparison, Metric, SubjectRow};

use crate::html::picture::svg::escaped;
use crate::html::table::{boxed, folded, proof};
use readings::text::compact::three_digits;
use verdict::words::{self, change_of, verdict_word};

/// The most rows of tables that are not folded, heads included.
const ROWS_MAX: usize = 14;
const COLUMNS_MAX: usize = 5;

/// A table for each condition under which anything was measured.
pub(crate) fn tables(analysis: &Analysis, header: &RunHeader) -> String {
    let mut places: Vec<&Condition> = Vec::new();
    let measured = analysis.table.iter().map(|row| &row.condition);
    for place in measured.chain(analysis.comparisons.iter().map(|c| &c.condition)) {
        // Comparisons that several conditions share are in the tables of each of these.
        let is_part = |one: &&Condition| place.iter().all(|(k, v)| one.get(k) == Some(v));
        if !places.iter().any(is_part) {
            places.push(place);
        }
    }
    let each: Vec<String> = places
        .iter()
        .map(|place| under(analysis, header, place))
        .collect();
    // The rest is folded, so that the first screen stays short.
    let mut rows = 0;
    let fits = |table: &&String| {
        rows += table.matches("<tr>").count();
        rows <= ROWS_MAX
    };
    let open = each.iter().take_while(fits).count().max(1);
    let (open, rest) = each.split_at(open.min(each.len()));
    let summary = counted(rest.len(), "more condition");
    open.concat() + &folded(&summary, &rest.concat())
}

/// One subject's figure of a metric, and how it compares.
struct Cell<'a> {
    value: Option<String>,
    compared: Option<(usize, &'a Comparison)>,
}

fn under(analysis: &Analysis, header: &RunHeader, place: &Condition) -> String {
    let applies = |c: &Comparison| c.condition.iter().all(|(k, v)| place.get(k) == Some(v));
    // The first comparison of each subject and metric. A map, as there may be thousands of subjects.
    let mut comparisons: HashMap<(&str, Metric), (usize, &Comparison)> = HashMap::new();
    let all = analysis.comparisons.iter().enumerate();
    for (number, c) in all.filter(|(_, c)| applies(c)) {
        let entry = comparisons.entry((c.subject.as_str(), c.metric));
        entry.or_insert((number, c));
    }
    let mut rows: HashMap<&str, &SubjectRow> = HashMap::new();
    let measured = || analysis.table.iter().filter(|row| row.condition == *place);
    for row in measured() {
        rows.entry(row.subject.as_str()).or_insert(row);
    }
    let compared = |subject: &str, metric: Metric| comparisons.get(&(subject, metric)).copied();
    // A load in the background of one subject has no baseline.
    let mut subjects: Vec<&str> = Vec::new();
    let mut listed: HashSet<&str> = HashSet::new();
    if rows.contains_key(header.baseline.as_str()) || !comparisons.is_empty() {
        subjects.push(&header.baseline);
        listed.insert(&header.baseline);
    }
    let names = header
        .subjects
        .iter()
        .chain(measured().map(|row| &row.subject));
    let compared_subjects: HashSet<&str> =
        comparisons.keys().map(|(subject, _)| *subject).collect();
    for name in names.chain(analysis.comparisons.iter().map(|c| &c.subject)) {
        let is_known =
            rows.contains_key(name.as_str()) || compared_subjects.contains(name.as_str());
        if is_known && listed.insert(name) {
            subjects.push(name);
        }
    }
    let metrics_compared: HashSet<Metric> = comparisons.keys().map(|(_, metric)| *metric).collect();
    let cell = |subject: &str, metric: Metric| {
        let row = rows.get(subject).copied();
        let is_compared = metrics_compared.contains(&metric);
        Cell {
            value: row.and_then(|row| value(metric, row, is_compared)),
            compared: compared(subject, metric),
        }
    };
    let has = |metric: &Metric| {
        subjects.iter().any(|subject| {
            let cell = cell(subject, *metric);
            cell.value.is_some() || cell.compared.is_some()
        })
    };
    let at_rate = has(&Metric::ServerCpuUsPerRequestAtRate);
    let is_told_twice = |metric: &Metric| at_rate && *metric == Metric::ServerCpuUsPerRequest;
    // With a median, the column of the 99th percentile is shown even if empty: readers look for it.
    let has_median = has(&Metric::LatencyUsP50);
    let is_missed = |metric: &Metric| has_median && *metric == Metric::LatencyUsP99;
    // The most important first; CPU time is that at the given rate, if it is known.
    let mut ranked = Metric::ALL;
    ranked.sort_by_key(|metric| metric.rank());
    let shown: Vec<Metric> = ranked
        .into_iter()
        .filter(|metric| (has(metric) || is_missed(metric)) && !is_told_twice(metric))
        .take(COLUMNS_MAX)
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let rate_of = |metric: Metric| {
        let all = subjects
            .iter()
            .filter_map(|subject| compared(subject, metric));
        all.filter_map(|(_, c)| c.rate_per_s).next().or_else(|| {
            measured()
                .find_map(|row| row.rate_per_s)
                .filter(|_| metric.is_of_open_loop())
        })
    };
    let heads: Vec<String> = shown
        .iter()
        .map(|metric| match metric {
            // A background load may be an open loop, so the head names no loop.
            Metric::RequestsPerS if header.is_background(place) => "throughput".to_owned(),
            metric => head(*metric, rate_of(*metric)),
        })
        .collect();
    let head_cells: String = heads
        .iter()
        .map(|text| format!("<th scope=\"col\">{}</th>", escaped(text)))
        .collect();
    let rows: String = subjects
        .iter()
        .map(|subject| {
            let cells = shown.iter().zip(&heads).map(|(metric, head)| {
                let is_baseline = *subject == header.baseline;
                drawn(&cell(subject, *metric), head, is_baseline)
            });
            format!(
                "<tr><th scope=\"row\">{}</th>{}</tr>\n",
                escaped(subject),
                cells.collect::<String>()
            )
        })
        .collect();
    let table = format!(
        "<table class=\"first\">\n<thead>\n<tr><th scope=\"col\">subject</th>{head_cells}</tr>\n</thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n"
    );
    let title = match condition(place) {
        text if text.is_empty() => String::new(),
        text => format!("<h3>{}</h3>\n", escaped(&text)),
    };
    title + &boxed(&table, "result", "scroll stack")
}

fn head(metric: Metric, per_s: Option<f64>) -> String {
    let at = per_s.map_or_else(String::new, |per_s| format!(" at {}/s", rate(per_s)));
    match metric {
        Metric::RequestsPerS => "throughput (closed loop)".to_owned(),
        Metric::LatencyUsP50 => format!("median latency{at}"),
        Metric::LatencyUsP99 => format!("p99 latency{at}"),
        Metric::ServerCpuUsPerRequest => format!("{} (closed loop)", metric.words()),
        Metric::ServerCpuUsPerRequestAtRate => format!("CPU of all servers{at}"),
        other => other.words().to_owned(),
    }
}

fn drawn(cell: &Cell<'_>, head: &str, is_baseline: bool) -> String {
    let mut inner = match &cell.value {
        Some(value) => format!("<span class=\"v\">{}</span>", escaped(value)),
        None if cell.compared.is_none() => {
            return format!(
                "<td data-label=\"{}\"><span class=\"d\">not resolved</span></td>",
                escaped(head)
            );
        }
        None => "<span class=\"v\">\u{2013}</span>".to_owned(),
    };
    match cell.compared {
        Some((number, c)) => {
            let change = words::difference(c).or_else(|| c.ratio.map(|_| change_of(c)));
            if let Some(change) = change {
                inner.push_str(&format!("<span class=\"d\">{}</span>", escaped(&change)));
            }
            inner.push_str(&format!(
                "<a class=\"word {}\" href=\"#{}\">{}</a>",
                c.verdict.word(),
                proof::id(number),
                escaped(&verdict_word(c))
            ));
        }
        None if is_baseline => inner.push_str("<span class=\"d\">baseline</span>"),
        None => {}
    }
    format!("<td data-label=\"{}\">{inner}</td>", escaped(head))
}

/// The figure in its most readable form. What servers and drivers cost stands there where it is
/// compared.
fn value(metric: Metric, row: &SubjectRow, is_compared: bool) -> Option<String> {
    if let (Metric::LatencyUsP99, Some(bound)) = (metric, &row.latency_us_p99_bound) {
        return Some(words::bounded(bound));
    }
    let is_cost = row.figures.contains_key(&metric) && metric != Metric::RequestsPerS;
    let figure = row.figure(metric).filter(|_| is_compared || !is_cost)?;
    let text = words::value(metric, figure);
    Some(match (metric, row.rate_per_s) {
        (Metric::RequestsPerS, _) if row.at_least => format!("\u{2265} {text}"),
        (Metric::ServerCpuUsPerRequestAtRate, Some(per_s)) => format!(
            "{} cores ({} us each)",
            three_digits(figure * per_s / 1e6),
            three_digits(figure)
        ),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::journals as fixtures;

    #[test]
    fn a_load_that_the_baseline_does_not_have_has_no_row_of_the_baseline() {
        let journal = fixtures::journal();
        let mut analysis = verdict::analyse(&journal);
        let is_subject = |row: &&SubjectRow| row.subject != journal.header.baseline;
        let mut row = analysis.table.iter().find(is_subject).unwrap().clone();
        row.condition = Condition::from([("load".to_owned(), "download".to_owned())]);
        analysis.table.push(row);
        let page = tables(&analysis, &journal.header);
        let row = format!("<th scope=\"row\">{}</th>", journal.header.baseline);
        let (before, after) = page.split_once("<h3>load=download</h3>").unwrap();
        assert!(before.contains(&row) && !after.contains(&row), "{page}");
    }
}
