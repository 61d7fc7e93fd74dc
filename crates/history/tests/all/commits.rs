//! Subjects that were built from a revision: a line follows them from commit to commit.

use std::fs;
use std::path::Path;
use testing::Text as _;

use history::store::{load, update};
use history::{Filters, RunEntry, csv, history, html, json, pair, pair_terminal, terminal};
use readings::{Condition, JournalRow, ServerSettings, SettingsReading, SubjectSettings};

use crate::made::{Folder, entry, header, rows};

/// Sixty runs of sixty commits; from the thirtieth on, the subject is slower.
fn of_commits() -> Vec<RunEntry> {
    let of = |number: u64| {
        let wobble = 0.002 * (number % 5) as f64;
        let level = if number < 30 { -0.5 } else { -0.6 };
        let mut entry = entry(number, level + wobble, 0.005);
        entry.figures[0].commit = Some(format!("{number:012x}"));
        entry.figures[0].baseline_commit = Some("ba5e".into());
        entry
    };
    (0..60).map(of).collect()
}

#[test]
fn a_change_is_found_between_commits_and_names_both() {
    let all = history(&of_commits(), &Filters::default());
    let series = &all.series[0];
    assert!(series.breaks.is_empty(), "{series:?}");
    let [change] = &series.changes[..] else {
        panic!("{series:?}");
    };
    assert!(change.change.confirmed && change.worse && change.at == 30);
    let both = "between 00000000001d and 00000000001e";
    for text in [
        terminal(&all, 100),
        html(&all, &[], |_| None),
        json(&all, &[]).to_string(),
    ] {
        assert!(text.contains(both), "{text}");
    }
    let document = json(&all, &[]);
    let series = &document["series"][0];
    assert_eq!(series["changes"][0]["commits"][1], "00000000001e");
    assert_eq!(series["runs"][7]["version"], "000000000007");
    assert_eq!(series["runs"][7]["commit"], "000000000007");
    assert_eq!(series["runs"][7]["baseline_commit"], "ba5e");
    assert!(csv(&all).contains(",000000000007,"));
}

#[test]
fn a_label_stands_beside_the_commits_and_one_commit_is_said_once() {
    let mut entries = of_commits();
    for entry in &mut entries {
        entry.label = Some("night".into());
    }
    let text = terminal(&history(&entries, &Filters::default()), 100);
    let labelled = "night, between 00000000001d and 00000000001e";
    assert!(text.contains(labelled), "{text}");
    for entry in &mut entries {
        entry.figures[0].commit = Some("c0ffee".into());
    }
    let text = terminal(&history(&entries, &Filters::default()), 100);
    text.has("night, c0ffee on both sides");
}

#[test]
fn another_commit_of_the_baseline_breaks_the_line() {
    let mut entries = of_commits();
    for entry in &mut entries[30..] {
        entry.figures[0].baseline_commit = Some("f00d".into());
    }
    let all = history(&entries, &Filters::default());
    assert!(all.series[0].changes.is_empty());
    let breaks = &all.series[0].breaks;
    assert_eq!(breaks[0].what, ["the baseline's commit ba5e -> f00d"]);
}

/// Writes the run of a baseline `direct` and a subject `proxy`, both built from revisions.
fn write(folder: &Path, at: u64, revisions: [(&str, &str); 2], build: &str) {
    let names = ["direct", "proxy"];
    let mut all = rows(header(at), &[0.50, 0.51, 0.49, 0.50], 1e4);
    let subjects = names
        .iter()
        .zip(revisions)
        .map(|(name, (revision, commit))| {
            let server = ServerSettings {
                server: format!("s-{name}"),
                recipe: "command".into(),
                version: Some(format!("{revision} ({commit})")),
                ..ServerSettings::default()
            };
            SubjectSettings {
                subject: (*name).into(),
                servers: vec![server],
            }
        });
    let settings = SettingsReading {
        condition: Condition::new(),
        subjects: subjects.collect(),
    };
    all.insert(1, JournalRow::Settings(settings));
    fs::create_dir_all(folder).unwrap();
    let text: Vec<u8> = all.iter().flat_map(|row| row.to_line().unwrap()).collect();
    fs::write(folder.join("journal.jsonl"), text).unwrap();
    let [one, other] = names.map(|name| format!("servers.s-{name}.with"));
    let experiment = format!(
        "title = \"t\"\n[{one}]\nrevision = \"{}\"\nbuild = \"make\"\n[{other}]\nrevision = \
         \"{}\"\nbuild = \"{build}\"\n",
        revisions[0].0, revisions[1].0
    );
    fs::write(folder.join("experiment.toml"), experiment).unwrap();
    let hosts = serde_json::json!({"local": {
        "host": "vm", "kernel": "6.1", "versions": {"command": null},
        "servers": {
            "s-direct": {"revision": {"name": revisions[0].0, "commit": revisions[0].1}},
            "s-proxy": {"revision": {"name": revisions[1].0, "commit": revisions[1].1}},
        },
    }});
    fs::write(folder.join("hosts.json"), hosts.to_string()).unwrap();
}

#[test]
fn the_commit_and_the_name_of_a_revision_do_not_identify_a_line_but_options_do() {
    let place = Folder::new("commits");
    let folder = |name: &str| place.0.join(name);
    write(&folder("a"), 1, [("v1", "ba5e"), (".", "c1")], "make");
    write(&folder("b"), 2, [("v1", "ba5e"), (".", "c2")], "make");
    write(&folder("c"), 3, [("v1.0", "ba5e"), ("main", "c3")], "make");
    write(
        &folder("d"),
        4,
        [("v1", "ba5e"), (".", "c3")],
        "make FAST=1",
    );
    let index = update(&place.0, false).unwrap().index;
    let all = history(index.runs(), &Filters::default());
    let series = &all.series[0];
    let lines: Vec<usize> = series.runs.iter().map(|run| run.line).collect();
    assert_eq!(lines, [0, 0, 0, 1]);
    assert_eq!(series.breaks[0].what, ["the servers' settings"]);
    let versions = series.runs.iter().map(|run| run.version.as_deref());
    let versions: Vec<&str> = versions.flatten().collect();
    assert_eq!(versions, ["c1", "c2", "c3", "c3"]);
    let page = html(&all, &[], |_| None);
    page.has("<td>c2</td>");
    // Two runs beside each other name the server.
    let [a, b] = ["a", "b"].map(|name| load(&folder(name)).unwrap());
    let text = pair_terminal(&pair(("a", &a), ("b", &b)));
    text.has("versions: s-proxy . (c1) -> . (c2)");
}
