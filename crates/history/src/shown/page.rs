//! The page of a folder of runs: a list of them, and each series as a picture.

use readings::text::{change, counted};
use report::drawing::{Anchor, Picture, Scale, escaped, ratio_ticks, shell};

use crate::shown::date::date;
use crate::shown::sentence::{change_sentence, newest, run_words, unused};
use crate::timeline::{History, NumberedRun, Series};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 206.0;
/// Space at the edges for the dates of the first and last run.
const EDGE: f64 = 18.0;

/// A folder of runs as one HTML page that fetches nothing. `link` maps a run's folder to the
/// address of its report.
pub fn html(
    history: &History,
    problems: &[String],
    link: impl Fn(&str) -> Option<String>,
) -> String {
    let mut main = format!(
        "<h1>Runs over time</h1>\n<p class=\"sub\">{}</p>\n",
        counted(history.runs.len(), "run")
    );
    main.push_str(&findings(history));
    for (number, series) in history.series.iter().enumerate() {
        let heading = escaped(&series.key.words());
        main.push_str(&format!(
            "<section>\n<h2>{heading}</h2>\n<p class=\"sub\">{}</p>\n{}{}</section>\n",
            escaped(&series.key.experiment),
            picture(number, series),
            below(series)
        ));
    }
    main.push_str(&list(history, link));
    if !problems.is_empty() {
        main.push_str(&format!(
            "<section>\n<h2>Skipped</h2>\n{}</section>\n",
            items(problems)
        ));
    }
    main.push_str(
        "<footer>A ratio is subject over the baseline of the same run. Whiskers are 95% intervals, \
         lines are levels between changes, a dashed line is a change, and a solid one a break: what \
         stands on its two sides was measured with another machine, version or experiment. Hollow \
         marks take no part in the search for changes.</footer>\n",
    );
    shell("Runs over time", &main)
}

fn items(texts: &[String]) -> String {
    let items = texts
        .iter()
        .map(|text| format!("<li>{}</li>\n", escaped(text)));
    format!("<ul>\n{}</ul>\n", items.collect::<String>())
}

/// The changes of all series; those for the worse come first.
fn findings(history: &History) -> String {
    let all = history.series.iter();
    let mut changes: Vec<_> = all
        .flat_map(|s| s.changes.iter().map(move |c| (s, c)))
        .collect();
    changes.sort_by_key(|(_, c)| (!c.change.confirmed, !c.worse));
    if changes.is_empty() {
        return "<p>No change was found.</p>\n".to_owned();
    }
    let items = changes.into_iter().map(|(series, c)| {
        let class = match (c.change.confirmed, c.worse) {
            (false, _) => "inconclusive",
            (true, true) => "slower",
            (true, false) => "faster",
        };
        let word = if c.worse { "worse" } else { "better" };
        format!(
            "<li class=\"{class}\"><b>{word}, {}</b>{}</li>\n",
            c.state(),
            escaped(&change_sentence(series, c))
        )
    });
    format!(
        "<ul class=\"verdicts\">\n{}</ul>\n",
        items.collect::<String>()
    )
}

/// A series as a picture.
pub fn series_picture(number: usize, series: &Series) -> String {
    picture(number, series)
}

/// What is to be said of a series: its changes, its newest run, what takes no part, and its breaks.
pub fn series_sentences(series: &Series) -> Vec<String> {
    let changes = series.changes.iter().map(|c| change_sentence(series, c));
    changes.chain(notes(series)).collect()
}

fn below(series: &Series) -> String {
    items(&notes(series))
}

fn notes(series: &Series) -> Vec<String> {
    let mut texts: Vec<String> = newest(series).into_iter().collect();
    texts.extend(unused(series));
    texts.extend(series.breaks.iter().map(|b| {
        let run = run_words(&series.runs[b.at]);
        format!("the line breaks before {run}: {}", b.what.join("; "))
    }));
    texts
}

fn picture(number: usize, series: &Series) -> String {
    let runs = &series.runs;
    let used = || runs.iter().filter(|run| run.figure.unused.is_none());
    let shown: Vec<f64> = used().map(|run| run.figure.log_ratio).collect();
    if shown.is_empty() {
        return String::new();
    }
    let (low, high) = (
        shown.iter().copied().fold(f64::INFINITY, f64::min),
        shown.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    // Half of the margin at least, and some of the intervals.
    let room = (0.25 * (high - low)).max(series.matters.ln_1p());
    let (low, high) = (low - room, high + room);
    let y = Scale::new(low, high, BOTTOM, TOP);
    let x = Scale::new(
        0.0,
        (runs.len() - 1).max(1) as f64,
        LEFT + EDGE,
        WIDTH - EDGE,
    );
    let place = |at: usize| x.place(at as f64);
    let mut picture = Picture::new(
        &format!("series{number}"),
        WIDTH,
        &series.key.words(),
        &description(series),
    );
    for (value, label) in ratio_ticks(low, high) {
        picture.line("grid", (LEFT, y.place(value)), (WIDTH, y.place(value)));
        let at = (LEFT - 6.0, y.place(value) + 4.0);
        picture.text("tick", at, Anchor::End, &label);
    }
    for b in &series.breaks {
        let at = x.place(b.at as f64 - 0.5);
        picture.line("zero", (at, TOP), (at, BOTTOM));
        picture.text("tick", (at + 3.0, TOP + 8.0), Anchor::Start, "break");
    }
    for level in &series.levels {
        let (from, to) = (place(level.from) - 5.0, place(level.to) + 5.0);
        let at = y.place(level.log_ratio);
        picture.polyline("curve c0", &[(from, at), (to, at)]);
    }
    for c in &series.changes {
        let at = x.place(c.at as f64 - 0.5);
        let tone = if c.worse { "v-slower" } else { "v-faster" };
        let dashes = if c.change.confirmed { "d1" } else { "d2" };
        picture.line(&format!("whisker {tone} {dashes}"), (at, TOP), (at, BOTTOM));
        let (text, anchor, off) = (c.words(), Anchor::Start, 4.0);
        let end = at > 0.72 * WIDTH;
        let (anchor, off) = if end {
            (Anchor::End, -off)
        } else {
            (anchor, off)
        };
        picture.text("tick", (at + off, BOTTOM - 4.0), anchor, &text);
    }
    for (at, run) in runs.iter().enumerate() {
        let figure = &run.figure;
        let (from, to) = figure.interval();
        let (from, to) = (from.max(low), to.min(high));
        if from < to {
            let (a, b) = ((place(at), y.place(from)), (place(at), y.place(to)));
            picture.line("whisker c0 thin", a, b);
        }
        let class = match figure.unused {
            None => "mark c0",
            Some(_) => "open c0",
        };
        let (a, b) = figure.interval();
        let ratio = change(figure.log_ratio.exp(), Some((a.exp(), b.exp())));
        let mut hint = format!("{}: {ratio}", run_words(run));
        if let Some(why) = &figure.unused {
            hint.push_str(&format!("; {why}"));
        }
        picture.mark(0, class, (place(at), y.place(figure.log_ratio)), &hint);
    }
    let ends = [(0, Anchor::Start), (runs.len() - 1, Anchor::End)];
    for (at, anchor) in ends.into_iter().take(runs.len()) {
        let run = &runs[at];
        let day = &date(run.started_unix_s)[..10];
        let shift = if at == 0 { -EDGE } else { EDGE };
        let text = format!("run {}, {day}", run.number);
        picture.text("tick", (place(at) + shift, BOTTOM + 20.0), anchor, &text);
    }
    format!(
        "<div class=\"wide\"><figure>\n{}</figure></div>\n",
        picture.finish(HEIGHT)
    )
}

fn description(series: &Series) -> String {
    let changes = series.changes.iter().map(|c| change_sentence(series, c));
    let changes: Vec<String> = changes.collect();
    let runs = counted(series.runs.len(), "run");
    match changes.is_empty() {
        true => format!("The ratio over {runs}, without a change."),
        false => format!("The ratio over {runs}. {}.", changes.join(". ")),
    }
}

/// The runs, newest first.
fn list(history: &History, link: impl Fn(&str) -> Option<String>) -> String {
    let row = |run: &NumberedRun| {
        let e = &run.entry;
        let folder = escaped(&e.folder);
        let folder = match link(&e.folder) {
            Some(to) => format!("<a href=\"{}\">{folder}</a>", escaped(&to)),
            None => folder,
        };
        let ended = if e.complete { "" } else { " (not complete)" };
        let sentence = e.sentence.as_deref().unwrap_or("no comparison");
        format!(
            "<tr><td class=\"n\">{}</td><td>{}</td><td>{}{ended}</td><td>{}</td><td \
             style=\"white-space: normal; min-width: 22rem\">{}</td><td>{}</td><td>{folder}</td></tr>\n",
            run.number,
            date(e.started_unix_s),
            escaped(&e.experiment),
            escaped(&e.name_of_version().unwrap_or_default()),
            escaped(sentence),
            escaped(&e.machine),
        )
    };
    let mut runs: Vec<&NumberedRun> = history.runs.iter().collect();
    runs.reverse();
    let rows: String = runs.into_iter().map(row).collect();
    format!(
        "<section>\n<h2>Runs</h2>\n<div class=\"scroll\"><table>\n<tr><th>run</th><th>date \
         (UTC)</th><th>experiment</th><th>revision</th><th>result</th><th>machine</th><th>report</th>\
         </tr>\n{rows}</table></div>\n</section>\n"
    )
}
