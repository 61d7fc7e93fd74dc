//! Folders of runs: the index is written, read, renewed and rebuilt.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use history::store::{INDEX_NAME, load, update};
use readings::JournalRow;

use crate::made::{Folder, header, rows, write_run};

const SHARES: [f64; 4] = [0.50, 0.51, 0.49, 0.50];

#[test]
fn an_index_grows_with_its_runs_and_a_rebuilt_one_is_the_same() {
    let place = Folder::new("grows");
    let write = |name: &str, at| {
        write_run(
            &place.0.join(name),
            &rows(header(at), &SHARES, 1e4),
            "6.1",
            64,
        );
    };
    write("b", 20);
    write("nested/a", 30);
    let first = update(&place.0, false).unwrap();
    assert_eq!(
        (first.added, first.renewed, first.problems.len()),
        (2, 0, 0)
    );
    write("c", 10);
    let second = update(&place.0, false).unwrap();
    assert_eq!((second.added, second.renewed), (1, 0));
    let folders = |runs: Vec<&history::RunEntry>| {
        runs.iter()
            .map(|run| run.folder.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(folders(second.index.runs()), ["c", "b", "nested/a"]);
    assert_eq!(update(&place.0, false).unwrap().added, 0);
    let rebuilt = update(&place.0, true).unwrap();
    assert_eq!(rebuilt.index.runs(), second.index.runs());
    let figure = &rebuilt.index.runs()[0].figures[0];
    assert!((figure.log_ratio - 0.5_f64.ln()).abs() < 1e-3);
    assert!(figure.noise_floor.unwrap().log_ratio.abs() < 0.01);
    // The machine's name is not part of what makes runs comparable.
    assert!(rebuilt.index.runs()[0].host.ends_with("/vm"));
}

#[test]
fn intervals_are_those_of_the_report_and_the_search_has_the_spread_of_the_blocks() {
    let place = Folder::new("intervals");
    let folder = place.0.join("r");
    write_run(&folder, &rows(header(5), &SHARES, 1e4), "6.1", 64);
    let updated = update(&place.0, false).unwrap();
    let figure = &updated.index.runs()[0].figures[0];
    let analysis = verdict::analyse(&load(&folder).unwrap().journal);
    let is_same = |metric: verdict::Metric| metric.name() == figure.metric;
    let comparison = analysis.comparisons.iter().find(|c| is_same(c.metric));
    let floor = analysis.noise_floor.iter().find(|f| is_same(f.metric));
    let (comparison, floor) = (comparison.unwrap(), floor.unwrap());
    let near = |(low, high): (f64, f64), of: (f64, f64)| {
        (low - of.0.ln()).abs() < 1e-8 && (high - of.1.ln()).abs() < 1e-8
    };
    assert!(near(figure.interval(), comparison.interval().unwrap()));
    let shown = figure.noise_floor.unwrap().interval();
    assert!(near(shown, (floor.low.unwrap(), floor.high.unwrap())));
    let logs = SHARES.map(f64::ln);
    let mean = logs.iter().sum::<f64>() / 4.0;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let plain = (squares / 3.0 / 4.0).sqrt();
    let point = figure.point();
    assert!(
        (point.standard_error / plain - 1.0).abs() < 0.01,
        "{point:?} {plain}"
    );
    // What the verdict allows for beside that.
    assert!(figure.standard_error > 1.3 * plain, "{figure:?}");
}

#[test]
fn a_journal_that_grew_is_read_again() {
    let place = Folder::new("grew");
    let all = rows(header(5), &SHARES, 1e4);
    let folder = place.0.join("r");
    write_run(&folder, &all[..10], "6.1", 64);
    assert!(!update(&place.0, false).unwrap().index.runs()[0].complete);
    write_run(&folder, &all, "6.1", 64);
    let updated = update(&place.0, false).unwrap();
    assert_eq!((updated.added, updated.renewed), (0, 1));
    let run = updated.index.runs()[0].clone();
    assert!(run.complete);
    assert_eq!(run.figures[0].blocks, 4);
    // Both lines are in the file; the later one counts.
    let text = fs::read_to_string(place.0.join(INDEX_NAME)).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert_eq!(*update(&place.0, false).unwrap().index.runs()[0], run);
}

#[test]
fn damage_is_told_and_the_rest_is_used() {
    let place = Folder::new("damage");
    write_run(
        &place.0.join("good"),
        &rows(header(5), &SHARES, 1e4),
        "6.1",
        64,
    );
    let bad = place.0.join("bad");
    write_run(&bad, &rows(header(6), &SHARES, 1e4), "6.1", 64);
    let text = fs::read_to_string(bad.join("journal.jsonl")).unwrap();
    fs::write(
        bad.join("journal.jsonl"),
        text.replacen("\"trial\":2", "\"trial\":3", 1),
    )
    .unwrap();
    fs::write(place.0.join(INDEX_NAME), "not ours\n{\"sum\":\"cut").unwrap();
    let updated = update(&place.0, false).unwrap();
    assert_eq!(updated.index.runs().len(), 1);
    let told = updated.problems.join("\n");
    assert_eq!(updated.problems.len(), 3, "{told}");
    assert!(told.contains("history.jsonl, line 1: expected"), "{told}");
    assert!(told.contains("bad/journal.jsonl: line"), "{told}");
    // The new line does not continue the one that was cut off.
    let again = update(&place.0, false).unwrap();
    assert_eq!((again.index.runs().len(), again.added), (1, 0));
    let rebuilt = update(&place.0, true).unwrap();
    assert_eq!(rebuilt.problems.len(), 1, "{rebuilt:?}");
}

/// Makes a named pipe, which would be waited for.
fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let place = Folder::new("pipes");
    let run = place.0.join("r");
    write_run(&run, &rows(header(5), &SHARES, 1e4), "6.1", 64);
    fs::remove_file(run.join("hosts.json")).unwrap();
    pipe(&run.join("hosts.json"));
    pipe(&place.0.join(INDEX_NAME));
    let why = update(&place.0, false).unwrap_err().to_string();
    assert!(why.contains("expected a regular file"), "{why}");
    // A rebuilt index takes its place.
    let rebuilt = update(&place.0, true).unwrap();
    assert!(rebuilt.problems.is_empty(), "{rebuilt:?}");
    assert_eq!(rebuilt.index.runs().len(), 1);
    assert_eq!(update(&place.0, false).unwrap().added, 0);
    fs::remove_file(run.join("journal.jsonl")).unwrap();
    pipe(&run.join("journal.jsonl"));
    assert!(load(&run).is_err());
}

#[test]
fn an_index_is_written_into_its_folder_only() {
    let place = Folder::new("linked");
    let elsewhere = Folder::new("elsewhere");
    let other = elsewhere.0.join("other");
    fs::write(&other, "").unwrap();
    let index = place.0.join(INDEX_NAME);
    symlink(&other, &index).unwrap();
    let run = place.0.join("r");
    write_run(&run, &rows(header(5), &SHARES, 1e4), "6.1", 64);
    let updated = update(&place.0, false).unwrap();
    assert_eq!(updated.index.runs().len(), 1);
    let told = updated.problems.join("\n");
    assert!(told.contains("it is a symbolic link"), "{told}");
    // Where the rebuilt index is made first.
    let beside = index.with_extension(format!("jsonl.{}", std::process::id()));
    symlink(&other, &beside).unwrap();
    let rebuilt = update(&place.0, true).unwrap();
    assert!(rebuilt.problems.is_empty(), "{rebuilt:?}");
    assert!(!index.is_symlink() && !beside.is_symlink());
    assert_eq!(fs::read_to_string(&other).unwrap(), "");
}

#[test]
fn a_run_whose_folder_is_gone_is_kept_until_the_index_is_rebuilt() {
    let place = Folder::new("gone");
    write_run(
        &place.0.join("r"),
        &rows(header(5), &SHARES, 1e4),
        "6.1",
        64,
    );
    update(&place.0, false).unwrap();
    fs::remove_dir_all(place.0.join("r")).unwrap();
    assert_eq!(update(&place.0, false).unwrap().index.runs().len(), 1);
    assert_eq!(update(&place.0, true).unwrap().index.runs().len(), 0);
}

#[test]
fn figures_that_the_client_limited_on_the_subjects_side_are_not_used() {
    let place = Folder::new("limited");
    let limited = |who: &str| {
        let mut rows = rows(header(5), &SHARES, 1e4);
        for row in &mut rows {
            let JournalRow::Trial(trial) = row else {
                continue;
            };
            let is_it = trial.subject == who;
            if let readings::Outcome::Done(reading) = &mut trial.outcome {
                reading.throughput.as_mut().unwrap().client.saturated = is_it;
            }
        }
        rows
    };
    write_run(&place.0.join("a"), &limited("direct"), "6.1", 64);
    write_run(&place.0.join("b"), &limited("proxy"), "6.1", 64);
    let updated = update(&place.0, false).unwrap();
    let figure = |name| &updated.index.get(name).unwrap().figures[0];
    assert!(figure("a").client_limited_baseline && figure("a").unused.is_none());
    let why = figure("b").unused.as_deref().unwrap();
    assert_eq!(why, "the client was the bottleneck for the subject");
}
