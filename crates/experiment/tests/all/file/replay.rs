//! `[load] replay`: an access log.

use std::path::Path;
use std::time::Duration;

use crate::support::{recipes, said, scratch};
use experiment::{Experiment, ExperimentError, Rate};

/// Three lines that are replayed within 4 s, and one that is not.
const LOG: &str = "\
1.2.3.4 - - [27/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 5\n\
1.2.3.4 - - [27/Nov/2026:10:00:02 +0000] \"GET /b HTTP/1.1\" 200 5\n\
1.2.3.4 - - [27/Nov/2026:10:00:03 +0000] \"POST /c HTTP/1.1\" 200 5\n\
1.2.3.4 - - [27/Nov/2026:10:00:04 +0000] \"GET /a HTTP/1.1\" 200 5\n";

fn read(folder: &Path, more: &str) -> Result<Experiment, ExperimentError> {
    let path = folder.join("x.toml");
    let text = format!(
        "title = \"t\"\n[subjects]\na = \"http://127.0.0.1:1/\"\nb = \"http://127.0.0.1:2/\"\n\
         [load]\nreplay = \"access.log\"\n{more}"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.join("access.log"), LOG).unwrap();
    Experiment::read(&path, &[], false, recipes())
}

#[test]
fn a_log_has_the_times_and_the_rate() {
    let folder = scratch("replay-of-a-log");
    let experiment = read(&folder, "speed = 2\n").unwrap();
    let design = &experiment.design;
    assert_eq!(design.window, Duration::ZERO);
    assert_eq!(design.latency_window, Duration::from_millis(2_001));
    assert!(!design.bottleneck);
    match experiment.load.rate {
        Rate::PerSecond(rate) => assert!((rate - 1.5).abs() < 1e-6, "{rate}"),
        Rate::Auto => panic!("no rate"),
    }
    let again = Experiment::parse("run.toml", &experiment.to_toml(), &[], false, recipes());
    assert_eq!(again.unwrap(), experiment);
    // A part of it.
    let part = read(&folder, "from = \"10:00:01\"\nto = \"10:00:03\"\n").unwrap();
    let set = &part.load.replay.as_ref().unwrap().set;
    assert_eq!(set.requests.len(), 1);
    assert_eq!(
        read(&folder, "[design]\nwindow = \"0s\"\n")
            .unwrap()
            .design
            .window,
        Duration::ZERO
    );
    // Windows are not shortened to fit.
    let longest = experiment::within::Windows::of(design);
    assert_eq!(experiment.shorter_windows(longest), [longest]);
}

#[test]
fn what_a_log_excludes_is_told() {
    let folder = scratch("replay-and-others");
    for (more, part) in said("replay") {
        let error = read(&folder, &more).unwrap_err();
        let said = format!("{error:?} {error}");
        assert!(said.contains(&part), "no {part:?} in {said}");
    }
    let alone = "title = \"t\"\n[subjects]\na = \"http://h:1/\"\n[load]\nspeed = 2\n";
    let error = Experiment::parse("x.toml", alone, &[], false, recipes()).unwrap_err();
    assert!(error.to_string().contains("without `replay`"), "{error}");
}

#[test]
fn many_requests_of_a_log_are_counted_by_their_methods() {
    let folder = scratch("replay-of-many-requests");
    let names = |count: usize| {
        let line = |number: usize| {
            format!("h - - [27/Nov/2026:10:00:00 +0000] \"GET /{number} HTTP/1.1\" 200 5\n")
        };
        let lines: String = (0..count).map(line).collect();
        std::fs::write(folder.join("many.log"), lines).unwrap();
        let text =
            "title = \"t\"\n[subjects]\na = \"http://h:1/\"\n[load]\nreplay = \"many.log\"\n";
        std::fs::write(folder.join("x.toml"), text).unwrap();
        let path = folder.join("x.toml");
        let experiment = Experiment::read(&path, &[], false, recipes()).unwrap();
        let set = experiment.load.replay.unwrap().set;
        let names = set.requests.iter().map(|one| one.name.clone());
        names.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((names(100), names(101)), (100, 1));
}
