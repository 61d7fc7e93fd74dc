//! A run's answer for a terminal: what a reader with ten seconds needs, in ten to forty lines.
//!
//! The question, the ranking, the sentence, what changes the reading, and where the rest is. All of
//! the rest is in [`verbose`](crate::verbose).

mod grid_by_condition;
mod ranks;
mod studies;

use readings::text::{counted, grouped};
use readings::{Journal, Outcome, RunHeader};
use verdict::{Analysis, Comparison, primary, words};

use crate::section::columns::Columns;
use crate::section::run::by_metric;
use crate::text::grid::{grid, wrapped};
use crate::text::run::{Paint, mark};
use crate::text::visible::one_line;
use readings::text::compact::shortened;

/// Lines of a result under one condition, under several, and with many subjects.
const LINES: (usize, usize, usize) = (20, 40, 60);
/// From this number of subjects on, the longest limit holds.
const MANY_SUBJECTS: usize = 9;
/// The most comparisons that have a sentence where nothing is ranked.
const SENTENCES_MAX: usize = 4;
/// The most warnings below the answer.
const CAVEATS_MAX: usize = 5;
/// Lines that caveats and the rest always have.
const LINES_BELOW: usize = 3;

/// A run's answer for a terminal of `width` columns.
///
/// `colour` adds ANSI colours to the marks of sentences and to headings. `folder` is the run's
/// folder, which has everything else. `journal` is what `analysis` was made from.
pub fn terminal(
    journal: &Journal,
    analysis: &Analysis,
    width: usize,
    colour: bool,
    folder: Option<&str>,
) -> String {
    let journal = &*journal.by_load();
    let header = &journal.header;
    let width = width.max(40);
    let paint = Paint { colour };
    let most = lines_of(header, analysis);
    let mut out = head(journal, analysis, width, &paint);
    out.push_str(&studies::gates(&analysis.gates, width, &paint));
    out.push('\n');
    let growth = studies::growth(analysis, width);
    if !growth.is_empty() {
        out.push_str(&growth);
        out.push('\n');
    }
    for study in [studies::shares, studies::lasting] {
        let told = study(analysis, width);
        if !told.is_empty() {
            out.push_str(&told);
            out.push('\n');
        }
    }
    let below = below(analysis, width, folder);
    let used = out.lines().count() + below.fixed.lines().count() + LINES_BELOW;
    // A table of growths has what a ranking by level would repeat.
    let body = match studies::has_table_of_growths(analysis) {
        true => studies::failed_requests(analysis, width),
        false => body(analysis, width, &paint, most.saturating_sub(used)),
    };
    out.push_str(&body);
    let used = out.lines().count() + below.fixed.lines().count() + 1;
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
    out.push_str(&below.answer);
    let mut room = most.saturating_sub(used).max(2);
    // The gravest comes first, and is there whatever its length.
    let mut shown = 0;
    for line in below.caveats.iter().take(CAVEATS_MAX) {
        let lines = line.lines().count();
        if lines > room && shown > 0 {
            break;
        }
        out.push_str(line);
        room = room.saturating_sub(lines);
        shown += 1;
    }
    out.push_str(&rest(folder, below.caveats.len() - shown, width));
    out
}

/// Where all of the rest is, with how many warnings that are not shown here.
fn rest(folder: Option<&str>, left_out: usize, width: usize) -> String {
    let what = match left_out {
        0 => "Full report".to_owned(),
        more => format!("Full report, with {}", counted(more, "more warning")),
    };
    let text = match folder {
        Some(folder) => {
            format!("{what}: weigh report {folder} --verbose; pictures: report.html there.")
        }
        None => format!("{what}: --verbose."),
    };
    wrapped("", &text, 0, width)
}

/// The most lines that the result may have.
fn lines_of(header: &RunHeader, analysis: &Analysis) -> usize {
    let conditions = header.conditions.len();
    let subjects = analysis.rankings.iter().map(|one| one.rows.len()).max();
    match (subjects.unwrap_or(0), conditions) {
        (subjects, _) if subjects >= MANY_SUBJECTS => LINES.2,
        (_, 0 | 1) => LINES.0,
        _ => LINES.1,
    }
}

/// The question, and how it was answered.
fn head(journal: &Journal, analysis: &Analysis, width: usize, paint: &Paint) -> String {
    let header = &journal.header;
    let title = shortened(&one_line(&header.title), width);
    let mut done = format!(
        "{} of {}",
        grouped(u64::from(analysis.stage.blocks_done)),
        counted(header.blocks as usize, "block")
    );
    if let Some(took_s) = took_s(journal) {
        done.push_str(&format!(" in {}", long_time(took_s)));
    }
    let parts = [Some(done), words::placement_in_short(&analysis.placements)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!(
        "{}\n{}",
        paint.with("1", &title),
        wrapped("", &parts.join("; "), 0, width)
    )
}

/// From the run's start to the last sample of its trials, in seconds. A resumed run has its pause in
/// it.
fn took_s(journal: &Journal) -> Option<f64> {
    let ends = journal.trials().filter_map(|trial| match &trial.outcome {
        Outcome::Done(reading) => {
            let probed = [&reading.probed, &reading.latency_probed];
            let ends = probed.into_iter().flatten().map(|one| one.to_unix_s);
            ends.reduce(f64::max)
        }
        Outcome::Failed { .. } => None,
    });
    let took = ends.reduce(f64::max)? - journal.header.started_unix_s as f64;
    (journal.header.started_unix_s > 0 && took > 0.0).then_some(took)
}

/// `48 s`, `7 min`, `2 h 5 min`.
fn long_time(s: f64) -> String {
    match (s / 60.0).round() as u64 {
        0 | 1 => format!("{s:.0} s"),
        minutes if minutes < 60 => format!("{minutes} min"),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// The ranking, and what other studies say, in about `room` lines.
fn body(analysis: &Analysis, width: usize, paint: &Paint, room: usize) -> String {
    let mut out = String::new();
    let studies = studies::sentences(analysis, width, paint);
    let room = room.saturating_sub(studies.lines().count());
    match primary(analysis) {
        Some(metric) if ranks::fit(analysis, metric, room) => {
            out.push_str(&ranks::ranks(analysis, metric, width, paint));
        }
        Some(metric) => out.push_str(&grid_by_condition::grids(analysis, metric, width, room)),
        None => out.push_str(&without_ranking(analysis, width, paint, room)),
    }
    out + &studies
}

/// Where nothing was ranked: what comparisons say, or each subject's figures.
fn without_ranking(analysis: &Analysis, width: usize, paint: &Paint, room: usize) -> String {
    let mut out = String::new();
    if analysis.comparisons.is_empty() {
        for text in words::uncompared(analysis) {
            out.push_str(&wrapped("", &text, 2, width));
        }
    }
    // Of events the studies tell; and what spoilt the first metric, mostly spoilt the others.
    let compared = by_metric(analysis).into_iter();
    let mut compared = compared.filter(|c| !c.metric.is_of_events()).peekable();
    let first = compared.peek().map(|c| c.metric);
    let of_first: Vec<&Comparison> = compared.filter(|c| Some(c.metric) == first).collect();
    for c in of_first.iter().take(SENTENCES_MAX) {
        out.push_str(&sentence(c, width, paint));
    }
    if of_first.len() > SENTENCES_MAX {
        let of = counted(of_first.len(), "comparison");
        out.push_str(&format!("  None of {of} has a ratio.\n"));
    }
    let has_events = analysis.comparisons.iter().any(|c| c.metric.is_of_events());
    let table = grid(&Columns::of(&analysis.table), width);
    if !has_events && table.lines().count() <= room.max(4) {
        out.push_str(&table);
    }
    out
}

/// A comparison's sentence after its mark.
fn sentence(c: &Comparison, width: usize, paint: &Paint) -> String {
    let (mark, code) = mark(c.verdict);
    let lead = format!("{} ", paint.with(code, mark));
    wrapped(&lead, &words::comparison(c), 2, width)
}

/// What stands below the ranking.
struct Below {
    answer: String,
    /// Caveats, the gravest first, that are shown as far as there is room.
    caveats: Vec<String>,
    /// Answer and where the rest is, which are always there.
    fixed: String,
}

fn below(analysis: &Analysis, width: usize, folder: Option<&str>) -> Below {
    let mut answer = String::new();
    if primary(analysis).is_some()
        && let Some(text) = words::closing(analysis)
    {
        answer.push_str(&wrapped("", &text, 0, width));
    }
    let unplaced = words::unplaced(analysis);
    for text in unplaced.iter().take(2) {
        let text = shortened(&one_line(text), 2 * width - 10);
        answer.push_str(&wrapped("", &text, 0, width));
    }
    let mut caveats = words::caveats(&analysis.warnings, &analysis.table);
    let others = words::widening(&analysis.warnings).into_iter();
    // Trials that are missing come after what changes the answer most.
    let at = caveats.len().min(CAVEATS_MAX - 2);
    caveats.splice(at..at, lost(analysis).into_iter().chain(others));
    let caveats = caveats.iter().map(|text| {
        let text = shortened(&one_line(text), 2 * width - 10);
        wrapped("! ", &text, 2, width)
    });
    Below {
        fixed: format!("{answer}{}", rest(folder, caveats.len(), width)),
        answer,
        caveats: caveats.collect(),
    }
}

/// Trials that are missing from the figures.
fn lost(analysis: &Analysis) -> Option<String> {
    let (failed, invalid) = (analysis.trials_failed, analysis.invalid.len());
    let failed = (failed > 0).then(|| {
        let first = analysis.failures.first();
        let why = first.map_or_else(String::new, |one| {
            format!(" ({}: {})", one.subjects.join(", "), one.reason)
        });
        format!("{} failed{why}", counted(failed, "trial"))
    });
    let invalid = (invalid > 0).then(|| {
        let verb = if invalid == 1 { "is" } else { "are" };
        let reasons = analysis.invalid.iter().flat_map(|trial| &trial.reasons);
        let why = reasons.map(words::trial_flaw).next();
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        format!("{} {verb} invalid{why}", counted(invalid, "trial"))
    });
    let parts: Vec<String> = [failed, invalid].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

#[cfg(test)]
mod tests;
