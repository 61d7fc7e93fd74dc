//! `weigh history`.

use std::path::{Component, Path, PathBuf};

use ::history::store::{self, Updated};
use ::history::{Filters, History};

use crate::cli::{HistoryArgs, HistoryFormat};
use crate::failure::Failure;
use crate::terminal::output::{json_text, print_text, width};

/// Exit status when a change for the worse is confirmed.
const BREACHED: u8 = 3;

/// Brings the index of a folder of runs up to date, and shows what changed from run to run.
pub fn history(args: &HistoryArgs) -> Result<u8, Failure> {
    let updated = store::update(&args.folder, args.rebuild).map_err(Failure::words)?;
    for problem in &updated.problems {
        eprintln!("weigh: {problem}");
    }
    if updated.renewed > 0 {
        eprintln!(
            "weigh: {} read again: the journal had changed since the index was written",
            readings::text::counted(updated.renewed, "run")
        );
    }
    let runs = updated.index.runs();
    if runs.is_empty() {
        return Err(Failure::words(format!(
            "{}: expected a folder with runs below it, found no journal.jsonl; `weigh run` and \
             `weigh compare` write runs to weigh-runs",
            args.folder.display()
        )));
    }
    check_names(args, &updated)?;
    let filters = Filters {
        experiment: args.experiment.clone(),
        metric: args.metric.clone(),
        subject: args.subject.clone(),
        last: args.last.map(|n| n as usize),
    };
    let history = ::history::history(runs, &filters);
    let text = shown(args, &history, &updated.problems);
    match &args.output {
        None => print_text(&text),
        Some(path) => std::fs::write(path, report::visible(&text).as_bytes())
            .map_err(|e| Failure::words(format!("cannot write {}: {e}", path.display())))?,
    }
    let mut changes = history.series.iter().flat_map(|series| &series.changes);
    let worse = changes.any(|c| c.change.confirmed && c.worse);
    Ok(if args.fail_on_change && worse {
        BREACHED
    } else {
        0
    })
}

fn shown(args: &HistoryArgs, history: &History, problems: &[String]) -> String {
    match args.format {
        HistoryFormat::Text => ::history::terminal(history, width()),
        HistoryFormat::Html => {
            let from = match args.output.as_deref().map(Path::parent) {
                Some(Some(parent)) => parent.to_path_buf(),
                _ => args.folder.clone(),
            };
            let link = |run: &str| {
                let report = args.folder.join(run).join("report.html");
                let way = report.is_file().then(|| way(&from, &report))??;
                Some(address(&way))
            };
            ::history::html(history, problems, link)
        }
        HistoryFormat::Csv => ::history::csv(history),
        HistoryFormat::Json => json_text(&::history::json(history, problems)) + "\n",
        HistoryFormat::Openmetrics => ::history::openmetrics(history),
    }
}

/// Refuses names that no run has, since a filter without matches would look like no change.
fn check_names(args: &HistoryArgs, updated: &Updated) -> Result<(), Failure> {
    let runs = updated.index.runs();
    let check = |option: &str, wanted: &Option<String>, mut known: Vec<&str>| {
        known.sort_unstable();
        known.dedup();
        match wanted {
            Some(name) if !known.contains(&name.as_str()) => Err(Failure::words(format!(
                "{option} {name}: no run has it; expected one of {}",
                known.join(", ")
            ))),
            _ => Ok(()),
        }
    };
    let experiments = runs.iter().map(|run| run.experiment.as_str()).collect();
    check("--experiment", &args.experiment, experiments)?;
    let figures = runs.iter().flat_map(|run| &run.figures);
    let subjects = figures.map(|figure| figure.subject.as_str()).collect();
    check("--subject", &args.subject, subjects)
}

/// The relative path from a folder to a file.
fn way(from: &Path, to: &Path) -> Option<PathBuf> {
    let whole = |path: &Path| {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        std::fs::canonicalize(path).ok()
    };
    let (from, to) = (whole(from)?, whole(to)?);
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    Some(up.chain(to.components().skip(shared)).collect())
}

/// A path as a relative URL; characters with a meaning in URLs are encoded.
fn address(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_report() {
        let folder = std::env::temp_dir().join(format!("weigh-way-{}", std::process::id()));
        let run = folder.join("runs/a b%");
        std::fs::create_dir_all(&run).unwrap();
        std::fs::create_dir_all(folder.join("site")).unwrap();
        let report = run.join("report.html");
        std::fs::write(&report, "").unwrap();
        let link = |from: &str| address(&way(&folder.join(from), &report).unwrap());
        assert_eq!(link("runs"), "a%20b%25/report.html");
        assert_eq!(link("site"), "../runs/a%20b%25/report.html");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
