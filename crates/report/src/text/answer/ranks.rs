//! The subjects of a condition, the best first: a bar, the value, its interval, and the other
//! metrics beside it.

use readings::text::compact::ends_kept;
use verdict::{Analysis, Bound, Metric, Ranked, Ranking, SubjectRow, of_answer, words};

use crate::section::columns::Columns;
use crate::text::grid::grid;
use crate::text::run::Paint;
use readings::at_condition as at;

pub(super) const BESIDE: [Metric; 4] = [
    Metric::RequestsPerS,
    Metric::LatencyUsP50,
    Metric::LatencyUsP99,
    Metric::ServerCpuUsPerRequest,
];
/// The most conditions whose subjects have lines of their own.
const CONDITIONS_MAX: usize = 2;
pub(super) const NAME_MAX: usize = 24;
/// Characters of a bar, from the widest to the narrowest.
const BARS: [usize; 4] = [20, 14, 8, 6];

/// Whether the subjects of every condition have lines of their own in this room.
pub(super) fn fit(analysis: &Analysis, metric: Metric, room: usize) -> bool {
    let all = of_metric(analysis, metric);
    let lines: usize = all.iter().map(|one| one.rows.len() + 2).sum();
    all.len() <= CONDITIONS_MAX && lines <= room.max(4)
}

pub(super) fn of_metric(analysis: &Analysis, metric: Metric) -> Vec<&Ranking> {
    let all = of_answer(analysis).into_iter();
    all.filter(|one| one.metric == metric).collect()
}

/// A block of lines for each condition.
pub(super) fn ranks(analysis: &Analysis, metric: Metric, width: usize, paint: &Paint) -> String {
    let all = of_metric(analysis, metric);
    let tables = tables(analysis, &all, width);
    let each = all.iter().zip(tables).map(|(ranking, table)| {
        let lead = ends_kept(&lead(analysis, ranking), width);
        format!("{}\n{table}", paint.with("1", &lead))
    });
    each.collect()
}

/// `Throughput at connections=96; latency at 2,000/s; CPU in the closed loop`.
fn lead(analysis: &Analysis, ranking: &Ranking) -> String {
    let what = crate::section::run::capitalised(ranking.metric.words());
    let mut text = format!("{what}{}", at(&ranking.condition));
    let mut beside = beside(analysis, ranking).filter(|one| one.metric.quantile().is_some());
    if let Some(rate) = beside.find_map(words::rate_of) {
        text.push_str(&format!("; latency {rate}"));
    }
    let cpu = Metric::ServerCpuUsPerRequest;
    if ranking.metric != cpu && figures(analysis, ranking, cpu).is_some() {
        text.push_str("; CPU in the closed loop");
    }
    text
}

/// The rankings of other metrics under the same condition.
fn beside<'a>(analysis: &'a Analysis, ranking: &'a Ranking) -> impl Iterator<Item = &'a Ranking> {
    let all = of_answer(analysis).into_iter();
    all.filter(|one| {
        one.condition == ranking.condition
            && one.metric != ranking.metric
            && BESIDE.contains(&one.metric)
    })
}

/// As much as the width has room for, every subject in a line; the same columns under all conditions.
fn tables(analysis: &Analysis, all: &[&Ranking], width: usize) -> Vec<String> {
    let bars = BARS.into_iter().chain([0]);
    let narrower = bars.map(|bar| (bar, true, BESIDE.len()));
    // Other metrics go before the interval.
    let narrower = narrower.chain((0..BESIDE.len()).rev().map(|beside| (0, true, beside)));
    let narrower = narrower.chain([(0, false, 0)]);
    let mut tables = Vec::new();
    for (bar, interval, beside) in narrower {
        let table = |one: &&Ranking| grid(&columns(analysis, one, bar, interval, beside), width);
        tables = all.iter().map(table).collect();
        let mut each = all.iter().zip(&tables);
        if each.all(|(one, table): (_, &String)| table.lines().count() == one.rows.len() + 1) {
            break;
        }
    }
    tables
}

fn columns(
    analysis: &Analysis,
    ranking: &Ranking,
    bar: usize,
    interval: bool,
    beside: usize,
) -> Columns {
    let rows = &ranking.rows;
    let mut columns = Columns::empty(rows.len());
    let mut add = |head: &str, numeric: bool, cell: &dyn Fn(&Ranked) -> String| {
        let cells = rows.iter().map(|row| Some(cell(row)));
        columns.add(head, numeric, cells.collect());
    };
    add("#", false, &|row| words::place(row.places));
    add("subject", false, &|row| ends_kept(&row.subject, NAME_MAX));
    if bar > 0 {
        let ends = rows
            .iter()
            .map(|row| row.high.unwrap_or(row.value).max(row.value));
        let largest = ends.fold(0.0, f64::max);
        add("", false, &|row| drawn(row, largest, bar));
    }
    add("value", true, &|row| {
        end(row).to_owned() + &words::value(ranking.metric, row.value)
    });
    if interval {
        add("95% interval", true, &|row| between(ranking.metric, row));
    }
    let baseline = rows.iter().find(|row| row.is_baseline);
    let name = baseline.map_or("baseline", |row| row.subject.as_str());
    let against = format!("against {}", ends_kept(name, NAME_MAX / 2));
    add(&against, true, &|row| change(row));
    let others = BESIDE.into_iter().filter(|m| *m != ranking.metric);
    for metric in others.take(beside) {
        if let Some(cells) = figures(analysis, ranking, metric) {
            let head = match metric {
                Metric::ServerCpuUsPerRequest => "CPU us/req",
                metric => words::short(metric),
            };
            columns.add(head, true, cells);
        }
    }
    columns
}

/// The figures of another metric, in the order of the ranking; `None` where no subject has one.
fn figures(analysis: &Analysis, ranking: &Ranking, metric: Metric) -> Option<Vec<Option<String>>> {
    let own = beside(analysis, ranking).find(|one| one.metric == metric);
    let value = |subject: &str| {
        let ranked = own.and_then(|one| one.rows.iter().find(|row| row.subject == subject));
        let bound = ranked.map_or("", end);
        let in_table = || {
            let mut table = analysis.table.iter();
            let is_its =
                |row: &&SubjectRow| row.subject == subject && row.condition == ranking.condition;
            of_row(table.find(is_its)?, metric)
        };
        let value = ranked.map(|row| row.value).or_else(in_table)?;
        let cell = match (ranked.and(own), bound) {
            (Some(own), "") if !own.has_order() => words::rough_cell(metric, value),
            _ => words::cell(metric, value),
        };
        Some(format!("{bound}{cell}"))
    };
    let cells: Vec<Option<String>> = ranking.rows.iter().map(|row| value(&row.subject)).collect();
    cells.iter().any(Option::is_some).then_some(cells)
}

fn of_row(row: &SubjectRow, metric: Metric) -> Option<f64> {
    match metric {
        Metric::LatencyUsP50 => row.latency_us_p50,
        Metric::LatencyUsP99 => row.latency_us_p99,
        metric => row.figures.get(&metric).copied(),
    }
}

/// The sign before a figure of which one end alone is known.
pub(super) fn end(row: &Ranked) -> &'static str {
    match (row.bound, row.ratio) {
        (Some(Bound::AtLeast), _) => ">= ",
        // Too few answers stand behind a quantile.
        (Some(Bound::AtMost), None) => "<= ",
        _ => "",
    }
}

/// A bar as long as the value; the part inside of the interval is lighter.
fn drawn(row: &Ranked, largest: f64, most: usize) -> String {
    if largest <= 0.0 {
        return String::new();
    }
    let length = |value: f64| ((value / largest * most as f64).round() as usize).min(most);
    let (low, high) = (row.low.unwrap_or(row.value), row.high.unwrap_or(row.value));
    let full = length(low.min(row.value)).max(1);
    let light = length(high.max(row.value)).saturating_sub(full);
    format!("{}{}", "█".repeat(full), "░".repeat(light))
}

/// `[13,700, 13,900]`, in the unit of the value.
fn between(metric: Metric, row: &Ranked) -> String {
    // With a bound the other end is not known, and the baseline has no interval.
    match (row.low, row.high, row.bound) {
        (Some(low), Some(high), None) if words::is_measurable((low, high)) => {
            let text = |value: f64| {
                let text = words::value(metric, value);
                text.trim_end_matches("/s")
                    .trim_end_matches(" us/request")
                    .to_owned()
            };
            format!("[{}, {}]", text(low), text(high))
        }
        (Some(_), Some(_), None) => "[?]".to_owned(),
        _ => "-".to_owned(),
    }
}

/// `-31%`, `2.4 times`, `at least 57% lower`, `baseline`.
fn change(row: &Ranked) -> String {
    if row.is_baseline {
        return "baseline".to_owned();
    }
    let Some(ratio) = row.ratio else {
        return "-".to_owned();
    };
    let of = |bound: Bound, end: Option<f64>| {
        let end = end.and_then(|end| row.ratio_at(end));
        words::bounded_change(bound, end.unwrap_or(ratio))
    };
    let baseline = row.value / ratio;
    // Of an interval that is too wide to be shown, the end at the baseline's side still says something.
    let wide = (row.low.zip(row.high)).filter(|ends| !words::is_measurable(*ends));
    match (row.bound, wide) {
        (Some(bound @ Bound::AtLeast), _) => of(bound, row.low),
        (Some(bound @ Bound::AtMost), _) => of(bound, row.high),
        (None, Some((low, _))) if low > baseline => of(Bound::AtLeast, row.low),
        (None, Some((_, high))) if high < baseline => of(Bound::AtMost, row.high),
        (None, _) => words::shown_change(ratio, None),
    }
}
