//! `[load] requests`: a file of requests.

use std::path::Path;

use crate::support::{recipes, scratch};
use experiment::{Experiment, ExperimentError};

const REQUESTS: &str = "[[request]]\nname = \"a\"\npath = \"/{{ seq }}\"\n";

fn read(folder: &Path, more: &str) -> Result<Experiment, ExperimentError> {
    let text = format!(
        "title = \"t\"\n[subjects]\na = \"http://127.0.0.1:1/\"\nb = \"http://127.0.0.1:2/\"\n\
         [load]\nrequests = \"shop.toml\"\n{more}"
    );
    let path = folder.join("x.toml");
    std::fs::write(&path, text).unwrap();
    Experiment::read(&path, &[], false, recipes())
}

#[test]
fn a_file_of_requests_is_found_beside_the_experiment_and_from_elsewhere() {
    let folder = scratch("requests-beside-the-experiment");
    std::fs::write(folder.join("shop.toml"), REQUESTS).unwrap();
    let experiment = read(&folder, "").unwrap();
    let file = experiment.load.requests.as_ref().unwrap();
    assert_eq!(file.set.requests[0].name, "a");
    // A run's folder has the experiment too, and is another one.
    let again = Experiment::parse("run.toml", &experiment.to_toml(), &[], false, recipes());
    assert_eq!(again.unwrap().load, experiment.load);
}

#[test]
fn mistakes_in_it_and_what_it_excludes_are_told() {
    let folder = scratch("requests-with-mistakes");
    let said = |more: &str| {
        let error = read(&folder, more).unwrap_err();
        format!("{error:?} {error}")
    };
    assert!(said("").contains("cannot be read"), "{}", said(""));
    std::fs::write(
        folder.join("shop.toml"),
        "[[request]]\npath = \"/{{ sek }}\"\n",
    )
    .unwrap();
    for part in [
        "shop.toml, line 2",
        "unknown name `sek`",
        "did you mean `seq`?",
    ] {
        assert!(said("").contains(part), "no {part:?} in {}", said(""));
    }
    std::fs::write(folder.join("shop.toml"), REQUESTS).unwrap();
    for (more, part) in [
        ("method = \"POST\"\n", "`requests` and `method` exclude"),
        ("body = \"a\"\n", "`requests` and `body` exclude"),
        ("websocket = true\n", "`requests` and `websocket` exclude"),
        ("events = true\n", "`requests` and `events` exclude"),
    ] {
        assert!(said(more).contains(part), "no {part:?} in {}", said(more));
    }
}
