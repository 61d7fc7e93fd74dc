//! What each condition makes of an experiment.

use crate::support::{changed, good, parse, rendered};
use experiment::manifest::Value;
use experiment::{Experiment, Rate, ServerSpec};

const TEXT: &str = include_str!("../../good/factors.toml");

fn at(experiment: &Experiment, levels: &[(&str, &str)]) -> experiment::ResolvedCondition {
    let condition = levels
        .iter()
        .map(|(factor, level)| ((*factor).to_owned(), (*level).to_owned()))
        .collect();
    experiment.under(&condition)
}

fn server<'s>(setting: &'s experiment::ResolvedCondition, name: &str) -> &'s ServerSpec {
    setting.servers.iter().find(|s| s.name == name).unwrap()
}

#[test]
fn each_kind_of_factor_changes_its_own_thing() {
    let experiment = good(parse(TEXT));
    assert_eq!(experiment.conditions().len(), 64);
    let setting = at(
        &experiment,
        &[
            ("threads_everywhere", "4"),
            ("connections", "2"),
            ("rate", "100/s"),
            ("size", "2000"),
            ("mpm", "prefork"),
            ("site.listen_backlog", "20"),
        ],
    );
    assert_eq!(setting.load.connections, 2);
    assert_eq!(setting.load.rate, Rate::PerSecond(100.0));
    assert_eq!(
        setting.load.threads,
        Some(2),
        "no thread without a connection"
    );
    assert_eq!(
        server(&setting, "origin").params["threads"],
        Value::Integer(4)
    );
    assert_eq!(server(&setting, "origin").cpus, [0, 1]);
    assert_eq!(
        server(&setting, "front").params["threads"],
        Value::Integer(1)
    );
    let site = &server(&setting, "site").params;
    assert_eq!(site["mpm"], Value::Text("prefork".to_owned()));
    assert_eq!(site["listen_backlog"], Value::Integer(20));
    assert_eq!(site["max_keepalive_requests"], Value::Integer(500));
    assert_eq!(setting.subjects[0].path, "/bytes/2000?again=2000");
}

#[test]
fn every_condition_is_checked_before_anything_starts() {
    let text = TEXT.replace("\"event\", \"prefork\"", "\"event\", \"evnt\"");
    let shown = rendered(&parse(&text).unwrap_err());
    assert!(shown.contains("evnt"), "{shown}");
}

#[test]
fn a_level_in_a_path_is_percent_encoded() {
    let experiment = good(parse(&TEXT.replace("[100, 2000]", "[\"a b\"]")));
    let setting = at(&experiment, &[("size", "a b")]);
    assert_eq!(setting.subjects[0].path, "/bytes/a%20b?again=a%20b");
}

#[test]
fn a_rate_acts_on_the_open_loop_only_unless_something_else_uses_it() {
    let of = |text: &str| good(parse(text)).open_loop_factors();
    assert_eq!(of(TEXT), ["rate"]);
    // A single level compares nothing.
    assert!(of(&TEXT.replace("[\"auto\", \"100/s\"]", "[\"100/s\"]")).is_empty());
    // The pages that are asked for differ, too.
    assert!(of(&TEXT.replace("http://front/{size}", "http://front/{size}?at={rate}")).is_empty());
    let with_load = |levels: &str| TEXT.replace("rate = [\"auto\", \"100/s\"]", levels);
    let rates = "load = [{ rate = \"100/s\" }, { rate = \"200/s\" }]";
    assert_eq!(of(&with_load(rates)), ["load"]);
    let more =
        "load = [{ rate = \"100/s\", method = \"GET\" }, { rate = \"200/s\", method = \"POST\" }]";
    assert!(of(&with_load(more)).is_empty());
}

const GROWTH: &str = r#"title = "t"
[servers.origin]
recipe = "origin"
[subjects]
origin = "http://origin/"
[factors]
idle = [0, 10, 100]
[design]
growth = ["idle"]
"#;

#[test]
fn idle_connections_are_a_key_a_factor_and_something_to_grow_with() {
    let experiment = good(parse(GROWTH));
    assert_eq!(experiment.design.growth, ["idle"]);
    let idle = |level| at(&experiment, &[("idle", level)]).load.idle;
    assert_eq!((idle("0"), idle("100")), (0, 100));
    let key = changed(GROWTH, "[design]", "[load]\nidle = 7\n[design]");
    let key = changed(&key, "idle = [0, 10, 100]", "connections = [1, 2, 4]");
    let key = good(parse(&changed(&key, "[\"idle\"]", "[\"connections\"]")));
    assert_eq!(key.load.idle, 7);
    // Written and read again, it is the same.
    let written = key.to_toml();
    assert_eq!(good(parse(&written)).load.idle, 7, "{written}");
    for (from, to, words) in [
        ("[\"idle\"]", "[\"idel\"]", "unknown factor: `idel`"),
        ("[0, 10, 100]", "[0, 10]", "3 or more, all of them numbers"),
        ("[0, 10, 100]", "[0, 10, 60000]", "out of range"),
    ] {
        let text = rendered(&parse(&changed(GROWTH, from, to)).unwrap_err());
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn an_experiment_may_have_the_open_loop_only() {
    let with = |window: &str, load: &str, more: &str| {
        format!(
            "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\nb = \"http://127.0.0.1:2/\"\n\
             [load]\n{load}\n[design]\nwindow = \"{window}\"\n{more}"
        )
    };
    let experiment = good(parse(&with("0s", "rate = 100", "")));
    assert!(experiment.design.window.is_zero() && !experiment.design.bottleneck);
    let again = good(parse(&experiment.to_toml()));
    assert!(again.design.window.is_zero());
    let varied = with("0s", "", "[factors]\nrate = [100, 200]");
    assert!(good(parse(&varied)).design.window.is_zero());
}
