//! Placeholders in paths, headers and bodies, with their feeds.

use std::path::Path;

use crate::support::{recipes, said, scratch};
use experiment::{Experiment, ExperimentError};
use readings::requests::{FeedOrder, Fill, Piece};

fn read(folder: &Path, text: &str) -> Result<Experiment, ExperimentError> {
    let path = folder.join("x.toml");
    std::fs::write(&path, format!("title = \"t\"\n{text}")).unwrap();
    Experiment::read(&path, &[], false, recipes())
}

fn fills(experiment: &Experiment, level: Option<&str>) -> Vec<Fill> {
    let conditions = experiment.conditions();
    let mut all = conditions.iter();
    let condition = all.find(|one| level.is_none_or(|level| one.values().any(|it| it == level)));
    let resolved = experiment.under(condition.unwrap());
    let set = resolved.load.request_set(&resolved.subjects[0].path);
    let set = set.into_iter().flat_map(|set| set.requests);
    let texts = set.flat_map(|one| {
        let fields = one.fields.into_iter().map(|(_, value)| value);
        [one.path].into_iter().chain(fields).chain(one.body)
    });
    texts
        .flat_map(|text| text.0)
        .filter_map(|piece| match piece {
            Piece::Place { fill, .. } => Some(fill),
            Piece::Text(_) => None,
        })
        .collect()
}

#[test]
fn a_feed_fills_path_header_and_body() {
    let folder = scratch("placeholders-with-a-feed");
    std::fs::write(folder.join("users.csv"), "id,name\n7,a\n8,b\n").unwrap();
    let text = "[subjects]\na = \"http://127.0.0.1:1/u/{{ user.id }}?x={{seq}}\"\n[load]\n\
                method = \"POST\"\nbody = \"{{ user.name }}\"\n\
                feeds = { user = { file = \"users.csv\", order = \"random\" } }\n\
                headers = { X-User = \"{{ user.id }}\" }\n";
    let experiment = read(&folder, text).unwrap();
    let feeds = &experiment.load.feeds.feeds;
    assert_eq!(feeds[0].order, FeedOrder::Random);
    let column = |column| Fill::Column { feed: 0, column };
    let found = fills(&experiment, None);
    assert_eq!(found, [column(0), Fill::Seq, column(0), column(1)]);
    // A run's folder has the experiment too, and is another one.
    let again = Experiment::parse("run.toml", &experiment.to_toml(), &[], false, recipes());
    assert_eq!(again.unwrap(), experiment);
}

#[test]
fn a_factor_is_filled_in_before_a_placeholder_is_read() {
    let folder = scratch("placeholders-and-factors");
    let text = "[subjects]\na = \"http://127.0.0.1:1{path}/{{ int(1, {n}) }}\"\n\
                [factors]\nn = [10, 20]\npath = [\"/p\", \"/{{ hex(4) }}\"]\n";
    let experiment = read(&folder, text).unwrap();
    assert_eq!(
        fills(&experiment, Some("20")),
        [Fill::Int { from: 1, to: 20 }]
    );
    let both = fills(&experiment, Some("/{{ hex(4) }}"));
    assert_eq!(
        both,
        [Fill::Hex { digits: 4 }, Fill::Int { from: 1, to: 10 }]
    );
    // Double braces are no factor.
    let text = "[subjects]\na = \"http://127.0.0.1:1/{{seq}}\"\n[factors]\nseq = [1]\n";
    let error = read(&folder, text).unwrap_err().to_string();
    assert!(error.contains("seq"), "{error}");
}

#[test]
fn mistakes_in_placeholders_have_their_place() {
    let folder = scratch("placeholders-with-mistakes");
    std::fs::write(folder.join("users.csv"), "id\n7\n").unwrap();
    let told = |text: &str| {
        let error = read(&folder, text).unwrap_err();
        format!("{error:?} {error}")
    };
    let path = |path: &str| format!("[subjects]\na = \"http://127.0.0.1:1{path}\"\n[load]\n");
    for (text, part) in said("placeholder") {
        let (own, load) = text.split_once('|').unwrap();
        let said = told(&(path(own) + load));
        assert!(said.contains(&part), "no {part:?} in {said}");
    }
    let error = read(&folder, &path("/{{ sek }}")).unwrap_err();
    let ExperimentError::Mistakes(mistakes) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(mistakes.all()[0].line().map(|(_, line)| line), Some(3));
}

#[test]
fn each_of_several_loads_has_its_own() {
    let folder = scratch("placeholders-of-several-loads");
    std::fs::write(folder.join("users.csv"), "id\n7\n").unwrap();
    let text = |path: &str| {
        format!(
            "[subjects]\na = \"http://127.0.0.1:1/\"\n[loads.quick]\nrate = 10\n[loads.slow]\n\
             rate = 1\npath = \"{path}\"\nfeeds = {{ user = \"users.csv\" }}\n"
        )
    };
    let experiment = read(&folder, &text("/{{ user.id }}")).unwrap();
    let resolved = experiment.under(&experiment.conditions()[0]);
    assert!(resolved.load.request_set("/").is_none());
    let beside = &resolved.beside[0];
    assert!(beside.load.request_set(&beside.subjects[0].path).is_some());
    for (path, part) in [
        ("/{{ user.name }}", "has no column `name`"),
        ("/{user.id}", "no factor is called `user.id`"),
        ("/", "no placeholder names the feed `user`"),
        ("{{ user.id }}", "is not a path"),
    ] {
        let error = read(&folder, &text(path)).unwrap_err();
        let said = format!("{error:?} {error}");
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let replay = "[subjects]\na = \"http://h:1/\"\n[loads.x]\nreplay = \"a.log\"\n";
    let error = read(&folder, replay).unwrap_err().to_string();
    assert!(error.contains("not possible with several loads"), "{error}");
}
