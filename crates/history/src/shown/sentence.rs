//! What a history says, in sentences.

use readings::text::{change, counted};

use crate::shown::date::date;
use crate::timeline::{Series, SeriesChange, SeriesRun};

/// `run 31 (2026-03-01 10:15, 4f2a91c)`.
pub(crate) fn run_words(run: &SeriesRun) -> String {
    let version = run.version.as_ref();
    let version = version.map_or(String::new(), |v| format!(", {v}"));
    format!("run {} ({}{version})", run.number, date(run.started_unix_s))
}

/// What changed, since when, and how sure that is.
pub(crate) fn change_sentence(series: &Series, c: &SeriesChange) -> String {
    let since = run_words(&series.runs[c.at]);
    let what = format!(
        "{}: the ratio is {} since {since}",
        series.key.words(),
        c.words()
    );
    let what = match c.commit_words() {
        Some(commits) => format!("{what}, {commits}"),
        None => what,
    };
    let direction = if c.worse { "worse" } else { "better" };
    match c.change.confirmed {
        true => format!("{what}, {direction}; confirmed"),
        false => format!("{what}, {direction}; possible: later runs confirm it or not"),
    }
}

/// The newest run of a series: its ratio with interval, and the noise floor.
pub(crate) fn newest(series: &Series) -> Option<String> {
    let run = series.runs.last()?;
    let figure = &run.figure;
    let (low, high) = figure.interval();
    let ratio = change(figure.log_ratio.exp(), Some((low.exp(), high.exp())));
    let floor = figure.noise_floor.map_or(String::new(), |floor| {
        let (low, high) = floor.interval();
        let text = change(floor.log_ratio.exp(), Some((low.exp(), high.exp())));
        format!("; noise floor {text}")
    });
    Some(format!("run {}: {ratio}{floor}", run.number))
}

/// Why runs take no part in the search for changes.
pub(crate) fn unused(series: &Series) -> Vec<String> {
    let found = series.unused().into_iter();
    let mut said: Vec<String> = found
        .map(|(count, why)| {
            let takes = if count == 1 { "takes" } else { "take" };
            format!(
                "{} {takes} no part in the search: {why}",
                counted(count, "run")
            )
        })
        .collect();
    let limited = series
        .runs
        .iter()
        .filter(|r| r.figure.client_limited_baseline);
    let limited = limited.count();
    if limited > 0 {
        said.push(format!(
            "in {} the client was the bottleneck for {}: the ratio is to what the client could \
             carry",
            counted(limited, "run"),
            series.key.baseline
        ));
    }
    said
}
