//! A site of runs: what is written, and what is left alone.

use std::collections::BTreeMap;
use std::fs;

use readings::{Journal, JournalRow};

use crate::common::{Place, has};

/// Writes the folder of a run of which all is known, in the experiment `name`.
fn run(place: &Place, folder: &str, name: &str) {
    let journal = testing::journals::journal();
    let Journal {
        mut header, rows, ..
    } = journal;
    header.experiment = name.to_owned();
    let rows = [JournalRow::Run(header)].into_iter().chain(rows);
    let lines: String = rows
        .map(|row| serde_json::to_string(&row).unwrap() + "\n")
        .collect();
    place.write(&format!("{folder}/journal.jsonl"), &lines);
}

fn files(place: &Place, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(place.path(folder)).unwrap();
    let each = entries.map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    });
    each.collect()
}

#[test]
fn the_same_journals_give_the_same_bytes_wherever_they_are() {
    let place = Place::new();
    run(&place, "runs/deep/a", "one");
    run(&place, "runs/b", "two");
    let done = place.run("board runs --out site").expect(0);
    assert_eq!(done.out.trim(), "site/index.html");
    let first = files(&place, "site");
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    for name in [
        "index.html",
        "index.json",
        "experiment-one.html",
        "subject-balance.html",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    let list = String::from_utf8(first["board-files.txt"].clone()).unwrap();
    assert_eq!(list.lines().count(), first.len() - 1);
    // Elsewhere, named one by one, and in another order.
    run(&place, "other/x", "two");
    run(&place, "other/y", "one");
    let elsewhere = place.path("elsewhere").display().to_string();
    place
        .run(&[
            "board", "other/x", "other/y", "other/x", "--out", &elsewhere,
        ])
        .expect(0);
    assert_eq!(files(&place, "elsewhere"), first);
    // Again into the same folder.
    place.run("board runs --out site").expect(0);
    assert_eq!(files(&place, "site"), first);
    for (name, text) in &first {
        let text = String::from_utf8(text.clone()).unwrap();
        let here = place.path("").display().to_string();
        assert!(!text.contains(here.trim_end_matches('/')), "{name}");
    }
}

#[test]
fn what_a_board_did_not_make_is_left_alone() {
    let place = Place::new();
    run(&place, "a", "one");
    run(&place, "b", "two");
    place.write("full/notes.txt", "mine");
    let refused = place.run("board a --out full").expect(2);
    refused.says(&["expected a new or an empty folder", "board-files.txt"]);
    assert_eq!(files(&place, "full").len(), 1);
    // A page of an experiment that is no longer there is removed, a file of somebody else's is not,
    // and one in the way of a page stops everything.
    place.run("board a b --out site").expect(0);
    place.write("site/photo.html", "mine");
    place.run("board a --out site").expect(0);
    let names: Vec<String> = files(&place, "site").into_keys().collect();
    assert!(names.contains(&"photo.html".to_owned()), "{names:?}");
    assert!(
        !names.contains(&"experiment-two.html".to_owned()),
        "{names:?}"
    );
    place.write("site/experiment-two.html", "mine");
    let refused = place.run("board a b --out site").expect(2);
    refused.says(&["experiment-two.html", "did not make it"]);
    assert_eq!(place.read("site/experiment-two.html"), "mine");
    // A list that names other files removes none of them.
    place.write("site/board-files.txt", "../a/journal.jsonl\nphoto.html\n");
    place.write("site/experiment-two.html", "mine");
    let _ = place.run("board a b --out site");
    assert!(place.path("a/journal.jsonl").is_file());
    assert_eq!(place.read("site/photo.html"), "mine");
}

#[test]
fn what_is_no_run_or_is_damaged_is_named() {
    let place = Place::new();
    run(&place, "a", "one");
    fs::create_dir(place.path("empty")).unwrap();
    let refused = place.run("board a empty --out site").expect(2);
    refused.says(&[
        "empty: expected the folder of a run",
        "found no journal.jsonl",
    ]);
    place.run("board nowhere --out site").expect(2);
    let text = place.read("a/journal.jsonl");
    place.write(
        "broken/journal.jsonl",
        &text.replacen("\"row\":\"trial\"", "\"row\":", 1),
    );
    let refused = place.run("board a broken --out site").expect(2);
    refused.says(&["broken/journal.jsonl", "--salvage broken"]);
    assert!(!place.path("site").exists());
    place.run("board a").expect(2);
    let schema = place.run("schema board").expect(0).json();
    has(schema["title"].to_string(), "boards");
}
