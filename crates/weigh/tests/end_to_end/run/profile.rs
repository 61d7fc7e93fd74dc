//! `weigh run --profile`: a function that was planted in a real server shows in the difference.

use std::fs;
use std::process::Command;

use crate::common::{Place, has, skip};

/// A web server of one thread that answers each request, and with `hot` burns time before.
const SERVER: &str = include_str!("profile/planted.c");

const RECIPE: &str = include_str!("profile/recipe.toml");

const EXPERIMENT: &str = include_str!("profile/experiment.toml");

fn place() -> Option<Place> {
    let place = Place::new();
    place.recipe("planted", RECIPE);
    fs::write(place.path("server.c"), SERVER).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-g", "-fno-omit-frame-pointer", "-o"])
        .arg(place.path("recipes/planted/server"))
        .arg(place.path("server.c"))
        .status();
    if !built.is_ok_and(|status| status.success()) {
        skip("no C compiler");
        return None;
    }
    place.experiment(EXPERIMENT);
    Some(place)
}

fn perf_works(place: &Place) -> bool {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-o"]);
    perf.arg(place.path("try.data")).args(["--", "true"]);
    perf.stderr(std::process::Stdio::null());
    perf.stdout(std::process::Stdio::null());
    perf.status().is_ok_and(|status| status.success())
}

/// The samples of a file of stacks: those with the function, and all.
fn samples(folded: &str, function: &str) -> (u64, u64) {
    let mut found = (0, 0);
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        found.1 += count;
        if stack.split(';').any(|frame| frame == function) {
            found.0 += count;
        }
    }
    found
}

const CALL: &str = "run x.toml --recipes recipes --profile --out r";

#[test]
fn a_planted_function_stands_in_the_difference_to_the_baseline() {
    let Some(place) = place() else { return };
    if !perf_works(&place) {
        return skip("perf is not installed or not allowed");
    }
    // A single block decides nothing.
    let end = place.run(CALL);
    let read = |name: &str| {
        let path = place.path(&format!("r/profile/{name}"));
        fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}\n{}", end.err))
    };
    let (hot, all) = samples(&read("burning-hot.folded"), "planted_hot_function");
    assert!(all > 100 && hot * 3 > all, "{hot} of {all} samples");
    let (hot, all) = samples(&read("plain-base.folded"), "planted_hot_function");
    assert!(all > 100 && hot == 0, "{hot} of {all} samples");
    for name in ["plain-base.svg", "burning-hot.svg"] {
        assert!(read(name).contains("<svg"), "{name}");
    }
    let graph = read("burning-difference.svg");
    let title = graph
        .split("<title>")
        .find(|one| one.starts_with("planted_hot_function"));
    // Its share of the samples grew from nothing.
    assert!(title.unwrap_or_default().contains("; +"), "{title:?}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn without_perf_one_line_says_so_and_the_run_goes_on() {
    let Some(place) = place() else { return };
    let mut command = place.weigh(CALL);
    command.env("PATH", place.path("nothing-here"));
    let end = place.start_command(command).end();
    let journal = place.read("r/journal.jsonl");
    let rows = journal
        .lines()
        .filter(|row| row.contains("perf is not installed"));
    assert_eq!(rows.count(), 1, "{journal}\n{}", end.err);
    has(&journal, "\"complete\":true");
    assert!(!place.path("r/profile").exists());
}
