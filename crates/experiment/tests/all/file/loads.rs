//! Several loads at the same time: what a file may say.

use std::time::Duration;

use crate::support::{changed, good, parse};
use experiment::{Experiment, HttpVersion, LoadRole, Rate};
use readings::Condition;

/// Two compared loads and one in the background, and no mistake.
const LOADS: &str = include_str!("../../good/loads.toml");

fn with(from: &str, to: &str) -> String {
    changed(LOADS, from, to)
}

fn condition(page: &str, connections: &str, background: &str) -> Condition {
    Condition::from([
        ("page".to_owned(), page.to_owned()),
        ("quick.connections".to_owned(), connections.to_owned()),
        ("background".to_owned(), background.to_owned()),
    ])
}

fn names(experiment: &Experiment, condition: &Condition) -> Vec<String> {
    let beside = experiment.under(condition).beside.into_iter();
    beside.map(|one| one.name).collect()
}

#[test]
fn each_load_has_its_own_hosts_paths_rate_and_version() {
    let experiment = good(parse(LOADS));
    assert_eq!(experiment.conditions().len(), 8);
    assert!(!experiment.design.bottleneck);
    let resolved = experiment.under(&condition("b", "64", "download"));
    assert_eq!(resolved.load_name.as_deref(), Some("quick"));
    assert_eq!(resolved.load.connections, 64);
    assert_eq!(resolved.load.host.as_deref(), Some("near"));
    let paths = resolved.subjects.iter().map(|one| one.path.as_str());
    assert_eq!(paths.collect::<Vec<_>>(), ["/b", "/b"]);
    let [slow, download] = resolved.beside.as_slice() else {
        panic!("{:?}", resolved.beside);
    };
    assert_eq!(
        (slow.name.as_str(), slow.role),
        ("slow", LoadRole::Compared)
    );
    assert_eq!(slow.load.rate, Rate::PerSecond(20.0));
    assert_eq!(slow.load.timeout, Duration::from_secs(60));
    assert_eq!(slow.load.more_hosts, ["far"]);
    for subject in &slow.subjects {
        assert_eq!((subject.path.as_str(), subject.connections), ("/", 8));
        assert_eq!(
            (subject.http, subject.streams),
            (HttpVersion::Http2, Some(4))
        );
    }
    assert_eq!(download.role, LoadRole::Background);
    assert_eq!(download.subjects[1].path, "/bytes/100000");
}

#[test]
fn the_factor_or_the_subjects_say_where_background_loads_are_made() {
    let experiment = good(parse(LOADS));
    assert_eq!(names(&experiment, &condition("a", "16", "none")), ["slow"]);
    let both = names(&experiment, &condition("a", "16", "download"));
    assert_eq!(both, ["slow", "download"]);
    let all = with("background = [\"none\", \"download\"]\n", "");
    let all = good(parse(&all));
    assert_eq!(names(&all, &Condition::new()), ["slow", "download"]);
    let own = with("background = [\"none\", \"download\"]\n", "").replace(
        "proxy = \"http://proxy/\"",
        "proxy = { url = \"http://proxy/\", background = [\"download\"] }",
    );
    let own = good(parse(&own));
    let resolved = own.under(&Condition::new());
    let download = resolved.beside.iter().find(|one| one.name == "download");
    let subjects = download
        .unwrap()
        .subjects
        .iter()
        .map(|one| one.name.as_str());
    assert_eq!(subjects.collect::<Vec<_>>(), ["proxy"]);
    for one in [experiment, all, own] {
        let again = good(parse(&one.to_toml()));
        assert_eq!(again, one, "{}", one.to_toml());
    }
}

#[test]
fn a_level_may_be_several_background_loads() {
    let text = with(
        "[factors]",
        "[loads.upload]\nrole = \"background\"\nhost = \"far\"\n[factors]",
    )
    .replace(
        "[\"none\", \"download\"]",
        "[\"none\", [\"download\", \"upload\"]]",
    );
    let experiment = good(parse(&text));
    let both = names(&experiment, &condition("a", "16", "download,upload"));
    assert_eq!(both, ["slow", "download", "upload"]);
    assert_eq!(good(parse(&experiment.to_toml())), experiment);
}

#[test]
fn a_rate_acts_on_the_open_loop_only_unless_it_is_of_a_background_load() {
    let of = |factor: &str| {
        let text = with("[factors]\n", &format!("[factors]\n{factor}\n"));
        good(parse(&text)).open_loop_factors()
    };
    assert_eq!(of("\"slow.rate\" = [10, 20]"), ["slow.rate"]);
    assert!(of("\"download.rate\" = [10, 20]").is_empty());
}
