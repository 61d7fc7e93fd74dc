//! A history as JSON and CSV.

use report::visible;
use serde_json::{Value, json};

use crate::shown::date::date;
use crate::shown::sentence::change_sentence;
use crate::timeline::{History, Series, SeriesRun};

/// A history as one document.
pub fn json(history: &History, problems: &[String]) -> Value {
    let runs = history.runs.iter().map(|run| {
        let e = &run.entry;
        json!({
            "run": run.number,
            "experiment": e.experiment,
            "title": e.title,
            "folder": e.folder,
            "started_unix_s": e.started_unix_s,
            "label": e.label,
            "revision": e.revision,
            "complete": e.complete,
            "sentence": e.sentence,
            "machine": e.machine,
            "comparable": e.comparable,
        })
    });
    json!({
        "runs": runs.collect::<Vec<Value>>(),
        "series": history.series.iter().map(series).collect::<Vec<Value>>(),
        "problems": problems,
    })
}

fn series(series: &Series) -> Value {
    let key = &series.key;
    let breaks = series
        .breaks
        .iter()
        .map(|b| json!({"run": series.runs[b.at].number, "differs": b.what}));
    let changes = series.changes.iter().map(|c| {
        let (ratio, low, high) = c.ratio();
        let run = &series.runs[c.at];
        json!({
            "since_run": run.number,
            "before_run": c.before_number,
            "folder": run.folder,
            "started_unix_s": run.started_unix_s,
            "version": run.version,
            "commits": c.commits,
            "ratio": ratio,
            "low": low,
            "high": high,
            "p_value": c.change.p_value,
            "state": c.state(),
            "worse": c.worse,
            "sentence": change_sentence(series, c),
        })
    });
    json!({
        "experiment": key.experiment,
        "condition": key.condition,
        "subject": key.subject,
        "baseline": key.baseline,
        "metric": key.metric,
        "matters": series.matters,
        "p_value_max": series.level,
        "runs": series.runs.iter().map(run).collect::<Vec<Value>>(),
        "breaks": breaks.collect::<Vec<Value>>(),
        "changes": changes.collect::<Vec<Value>>(),
    })
}

fn run(run: &SeriesRun) -> Value {
    let figure = &run.figure;
    let (low, high) = figure.interval();
    let floor = figure.noise_floor.map(|floor| {
        let (low, high) = floor.interval();
        json!({
            "ratio": floor.log_ratio.exp(),
            "low": low.exp(),
            "high": high.exp(),
            "log_standard_error": floor.standard_error,
        })
    });
    json!({
        "run": run.number,
        "folder": run.folder,
        "started_unix_s": run.started_unix_s,
        "version": run.version,
        "commit": figure.commit,
        "baseline_commit": figure.baseline_commit,
        "line": run.line,
        "ratio": figure.log_ratio.exp(),
        "low": low.exp(),
        "high": high.exp(),
        "log_standard_error": figure.standard_error_of_blocks,
        "blocks": figure.blocks,
        "noise_floor": floor,
        "unused": figure.unused,
        "client_limited_baseline": figure.client_limited_baseline,
        "subject_value": figure.subject_value,
        "baseline_value": figure.baseline_value,
        "host": run.host,
    })
}

/// A history as CSV (RFC 4180, but with line feeds): a line for each run of each series.
pub fn csv(history: &History) -> String {
    let mut out = String::from(
        "experiment,condition,metric,subject,baseline,run,folder,started_utc,version,line,ratio,low,\
         high,log_standard_error,blocks,noise_floor_ratio,unused,change,change_ratio,change_low,\
         change_high,subject_value,baseline_value,host\n",
    );
    for series in &history.series {
        let key = &series.key;
        let condition = readings::text::condition(&key.condition);
        let start = [
            &key.experiment,
            &condition,
            &key.metric,
            &key.subject,
            &key.baseline,
        ];
        let start: Vec<String> = start.iter().map(|text| field(text)).collect();
        for (at, run) in series.runs.iter().enumerate() {
            let figure = &run.figure;
            let (low, high) = figure.interval();
            let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
            let change = series.changes.iter().find(|c| c.at == at);
            let ratio = change.map(|c| c.ratio());
            let cells = [
                run.number.to_string(),
                field(&run.folder),
                date(run.started_unix_s),
                field(run.version.as_deref().unwrap_or_default()),
                run.line.to_string(),
                figure.log_ratio.exp().to_string(),
                low.exp().to_string(),
                high.exp().to_string(),
                figure.standard_error_of_blocks.to_string(),
                figure.blocks.to_string(),
                number(figure.noise_floor.map(|floor| floor.log_ratio.exp())),
                field(figure.unused.as_deref().unwrap_or_default()),
                change.map_or(String::new(), |c| c.state().to_owned()),
                number(ratio.map(|(ratio, _, _)| ratio)),
                number(ratio.map(|(_, low, _)| low)),
                number(ratio.map(|(_, _, high)| high)),
                number(figure.subject_value),
                number(figure.baseline_value),
                field(&run.host),
            ];
            out.push_str(&format!("{},{}\n", start.join(","), cells.join(",")));
        }
    }
    out
}

/// A field, quoted if necessary. An apostrophe precedes what a spreadsheet takes for a formula.
fn field(text: &str) -> String {
    let text = visible(text);
    let text = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text.into_owned(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
