//! Servers that are killed, stopped or cut off from the network, and the time until the full rate is back.

use serde_json::Value;

use crate::common::{Place, array, hosts_or_skip, number, spec, trials};
use crate::quiet::events::{experiment, noticed, of};

#[test]
fn a_server_that_is_killed_or_stopped_is_missed_and_comes_back() {
    let place = Place::alone();
    place.write("x.toml", &experiment(false, "[\"kill\", \"stop\"]"));
    let done = place.run(&["run", "x.toml", "--out", "r", "--format", "json"]);
    let document = done.result();
    assert_eq!(document["trials"]["failed"], 0, "{}", document["trials"]);
    let all = trials(&place.path("r"));
    noticed(&all, "kill");
    noticed(&all, "stop");
    // What was sent to it waited there.
    let stopped = &of(&all, "stop", "direct")["events"]["events"][0];
    // A hundred requests wait for their answer at any time. A busy machine takes few samples of it.
    assert!(number(&stopped["connections_max"]) > 5.0, "{stopped}");
    let metrics: Vec<&Value> = array(&document["comparisons"])
        .iter()
        .map(|one| &one["metric"])
        .collect();
    assert!(metrics.iter().any(|metric| **metric == "failed_share"));
    assert!(metrics.iter().any(|metric| **metric == "full_rate_after_s"));
    for (name, column) in [
        ("summary.md", "full rate after"),
        ("report.html", "full rate after"),
        ("summary.json", "not_full_at_end"),
    ] {
        let text = std::fs::read_to_string(place.path("r").join(name)).unwrap();
        // If other work takes the CPUs, all of them may be spoilt.
        let is_spoilt = document["trials"]["invalid"] != 0;
        assert!(is_spoilt || text.contains(column), "{name}");
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_server_that_is_cut_off_is_missed_and_comes_back() {
    let Some(topology) = hosts_or_skip(&[spec("small")], None) else {
        return;
    };
    drop(topology);
    let place = Place::alone();
    place.write("x.toml", &experiment(true, "[\"cut\"]"));
    let done = place.run(&["run", "x.toml", "--out", "r", "--format", "json"]);
    let document = done.result();
    assert_eq!(document["trials"]["failed"], 0, "{}", document["trials"]);
    noticed(&trials(&place.path("r")), "cut");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
