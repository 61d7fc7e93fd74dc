//! A history for the terminal.

use readings::text::counted;
use report::one_line;

use crate::shown::date::date;
use crate::shown::sentence::{newest, unused};
use crate::timeline::{History, Series, SeriesChange, SeriesRun};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A run that takes no part in the search.
const UNUSED: char = '·';
const BREAK: char = '¦';

/// A history as text, at most `width` columns wide if possible.
pub fn terminal(history: &History, width: usize) -> String {
    let mut out = String::new();
    let mut experiment = None;
    for series in &history.series {
        if experiment != Some(&series.key.experiment) {
            experiment = Some(&series.key.experiment);
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&heading(history, &series.key.experiment));
        }
        out.push_str(&one(series, width));
    }
    if history.series.is_empty() {
        out.push_str("There is nothing to show: no run has three blocks of a comparison.\n");
    }
    out
}

fn heading(history: &History, experiment: &str) -> String {
    let runs = || {
        let runs = history.runs.iter();
        runs.filter(move |run| run.entry.experiment == experiment)
    };
    let day = |unix_s| date(unix_s)[..10].to_owned();
    let ends = runs().next().zip(runs().next_back()).map(|(a, b)| {
        let (a, b) = (day(a.entry.started_unix_s), day(b.entry.started_unix_s));
        if a == b {
            format!(", {a}")
        } else {
            format!(", {a} to {b}")
        }
    });
    format!(
        "{}: {}{}\n",
        one_line(experiment),
        counted(runs().count(), "run"),
        ends.unwrap_or_default()
    )
}

fn one(series: &Series, width: usize) -> String {
    let mut out = format!("\n{}\n", one_line(&series.key.words()));
    out.push_str(&format!(
        "  {}\n",
        sparkline(series, width.saturating_sub(2).max(20))
    ));
    if let Some(text) = newest(series) {
        out.push_str(&format!("  {}\n", one_line(&text)));
    }
    for text in unused(series) {
        out.push_str(&format!("  {}\n", one_line(&text)));
    }
    for b in &series.breaks {
        let run = &series.runs[b.at];
        let what = b.what.join("; ");
        out.push_str(&format!(
            "  {BREAK} the line breaks before run {}: {}\n",
            run.number,
            one_line(&what)
        ));
    }
    if series.changes.is_empty() {
        out.push_str("  no change found\n");
        return out;
    }
    let rows: Vec<[String; 5]> = series
        .changes
        .iter()
        .map(|c| {
            let run = &series.runs[c.at];
            [
                format!("run {}", run.number),
                date(run.started_unix_s),
                one_line(&version(run, c)).into_owned(),
                c.words(),
                format!(
                    "{}, {}",
                    if c.worse { "worse" } else { "better" },
                    c.state()
                ),
            ]
        })
        .collect();
    let head = ["since", "date", "revision", "change", ""].map(str::to_owned);
    let len = |text: &str| text.chars().count();
    let sizes: [usize; 5] = std::array::from_fn(|i| {
        let cells = rows.iter().chain([&head]).map(|row| len(&row[i]));
        cells.max().unwrap_or(0)
    });
    for row in [&head].into_iter().chain(&rows) {
        let cells = row.iter().zip(sizes);
        let line: String = cells
            // Empty columns are left out.
            .filter(|(_, size)| *size > 0)
            .map(|(cell, size)| format!("  {cell}{}", " ".repeat(size - len(cell))))
            .collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The version since which something changed; of a subject with commits, those of both sides.
fn version(run: &SeriesRun, c: &SeriesChange) -> String {
    let version = run.version.clone().unwrap_or_default();
    match (c.commit_words(), &c.commits) {
        (Some(words), Some([_, after])) => match version.strip_suffix(after.as_str()) {
            // What is left is the label.
            Some(label) => format!("{label}{words}"),
            None => words,
        },
        _ => version,
    }
}

/// The newest runs as bars. The range is at least the margin, so that noise is not magnified.
fn sparkline(series: &Series, width: usize) -> String {
    let logs: Vec<f64> = series.runs.iter().map(|r| r.figure.log_ratio).collect();
    let is_used = |at: usize| series.runs[at].figure.unused.is_none();
    let used = || (0..logs.len()).filter(|at| is_used(*at)).map(|at| logs[at]);
    let (low, high) = (
        used().fold(f64::INFINITY, f64::min),
        used().fold(f64::NEG_INFINITY, f64::max),
    );
    let room = (series.matters.ln_1p() * 2.0 - (high - low)).max(0.0) / 2.0;
    let (low, high) = (low - room, high + room);
    let mut marks: Vec<char> = Vec::new();
    for (at, log) in logs.iter().enumerate() {
        if series.breaks.iter().any(|b| b.at == at) {
            marks.push(BREAK);
        }
        let share = ((log - low) / (high - low)).clamp(0.0, 1.0);
        let bar = (share * (BARS.len() - 1) as f64).round() as usize;
        // NaN if all are equal, which gives the lowest bar.
        marks.push(if is_used(at) { BARS[bar] } else { UNUSED });
    }
    marks[marks.len().saturating_sub(width)..].iter().collect()
}
