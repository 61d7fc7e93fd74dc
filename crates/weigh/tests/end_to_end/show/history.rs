//! Many runs: their history, and two beside each other.

use std::fs;

use crate::common::{Place, has};
use crate::compare::revisions::{commit, git};

/// Six blocks, since a busy machine may spoil some; a run with fewer than three usable ones has no
/// figure in the history.
const EXPERIMENT: &str = "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[subjects]\n\
    fast = \"http://o/delay/constant/1ms\"\nslow = \"http://o/delay/constant/20ms\"\n[load]\nconnections = 4\n[design]\n\
    blocks = 6\nwarmup = \"30ms\"\nwindow = \"100ms\"\nlatency_window = \"0s\"\nbottleneck = false\n\
    retries = 0\n";

#[test]
fn runs_have_a_history_and_two_stand_beside_each_other() {
    let place = Place::new();
    place.write("x.toml", EXPERIMENT);
    for run in 1..=3 {
        let (out, label) = (format!("runs/r{run}"), format!("v{run}"));
        // Whatever a busy machine makes of its verdict.
        place.run(&format!("run x.toml --out {out} --label {label}"));
    }
    let text = place.run("history runs").expect(0).out;
    has(&text, "x: 3 runs");
    has(&text, "throughput, slow against fast");
    assert!(place.path("runs/history.jsonl").is_file());

    let document = place.run("history runs --format json").expect(0).json();
    let series = &document["series"][0];
    assert_eq!(series["runs"].as_array().unwrap().len(), 3);
    assert_eq!(series["runs"][2]["version"], "v3");
    // One line: nothing about machine, versions or experiment has changed.
    assert_eq!(series["breaks"].as_array().unwrap().len(), 0, "{series}");
    let rebuilt = place.run("history runs --rebuild --format json");
    assert_eq!(rebuilt.expect(0).json(), document);

    place
        .run("history runs --format html -o runs/index.html")
        .expect(0);
    let page = place.read("runs/index.html");
    has(&page, "<a href=\"r2/report.html\">");
    let metrics = place.run("history runs --format openmetrics").expect(0).out;
    assert!(metrics.ends_with("# EOF\n"));

    let text = place.run("report runs/r1 runs/r2").expect(0).out;
    has(&text, "B over A");
    let other = EXPERIMENT.replace("connections = 4", "connections = 8");
    place.write("y.toml", &other);
    place.run("run y.toml --out runs/other");
    let refused = place.run("report runs/r1 runs/other").expect(2);
    has(&refused.err, "load.connections 4 -> 8");
    has(&refused.out, "What differs");

    let unknown = place.run("history runs --subject nobody").expect(2);
    has(&unknown.err, "expected one of slow");
    fs::create_dir(place.path("none")).unwrap();
    let none = place.run("history none").expect(2);
    has(&none.err, "expected a folder with runs below it");
}

#[test]
fn a_run_in_a_git_repository_has_its_commit() {
    let place = Place::new();
    place.write("x.toml", EXPERIMENT);
    commit(&place.path("."), "first");
    place.run("run x.toml --out runs/clean");
    place.write("x.toml", &format!("{EXPERIMENT}\n"));
    place.run("run x.toml --out runs/dirty");
    let document = place.run("history runs --format json").expect(0).json();
    let commit = git(&place.path("."), &["rev-parse", "HEAD"]);
    assert_eq!(document["runs"][0]["revision"], commit);
    assert_eq!(document["runs"][1]["revision"], format!("{commit}+changes"));
    let short = format!("{}+changes", &commit[..10]);
    assert_eq!(document["series"][0]["runs"][1]["version"], short);
}
