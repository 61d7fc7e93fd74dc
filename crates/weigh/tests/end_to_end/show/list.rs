//! What there is to run: `list`, `doctor`, and the plans of the catalogue's experiments.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{Place, array, counts, find, has, texts};
use serde_json::Value;

/// The catalogue's names, from the files themselves.
fn names() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let names: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    assert!(names.contains("proxy-cost"));
    names
}

fn named(list: &Value) -> BTreeSet<String> {
    array(list)
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_experiment_and_recipe_is_listed() {
    let place = Place::new();
    let document = place.run("list --format json").expect(0).json();
    assert_eq!(named(&document["experiments"]), names());
    let recipes = named(&document["recipes"]);
    for recipe in ["origin", "balance", "apache", "lighttpd"] {
        assert!(recipes.contains(recipe), "{recipes:?}");
    }
    assert!(!array(&document["drivers"]).is_empty());
    let text = place.run("list").expect(0).out;
    for experiment in array(&document["experiments"]) {
        let name = experiment["name"].as_str().unwrap();
        assert!(text.contains(name), "{name} is not in\n{text}");
        let missing = array(&experiment["missing"]);
        assert_eq!(experiment["can_run"].as_bool().unwrap(), missing.is_empty());
    }
}

#[test]
fn recipes_of_the_users_own_are_listed_with_what_they_lack() {
    let place = Place::new();
    place.recipe(
        "mine",
        "summary = \"mine\"\n[programs]\nd = [\"weigh-absent-d\"]\n\
         [start]\ncommand = [\"{{ programs.d }}\"]\n",
    );
    let list = "list --recipes recipes --format json";
    let document = place.run(list).expect(0).json();
    let mine = find(array(&document["recipes"]), "name", "mine");
    assert_eq!(mine["can_run"], false);
    assert_eq!(mine["missing"][0], "weigh-absent-d");
    assert_eq!(mine["source"], "path");
}

#[test]
fn doctor_examines_the_machine_for_an_experiment() {
    let place = Place::new();
    // Each call keeps all CPUs busy for a second.
    let text = place.run("doctor nginx-node").expect(0).out;
    has(text.lines().last().unwrap(), "nginx-node");
    let document = place.run("doctor --format json").expect(0).json();
    let findings = array(&document["findings"]);
    assert!(!findings.is_empty());
    for key in ["level", "topic", "found", "wanted", "why"] {
        texts(findings, key);
    }
    assert!(document["worst"].is_string());
    let names = place.names();
    assert!(names.is_empty(), "doctor wrote {names:?}");
}

#[test]
fn a_dry_run_prints_the_plan_and_starts_and_writes_nothing() {
    let place = Place::new();
    for name in names() {
        for quick in [&[][..], &["--quick"]] {
            let mut call = vec!["run", &name, "--dry-run", "--seed", "7"];
            call.extend(quick);
            // Nothing could be started: there is no place for its files.
            let mut command = place.weigh(&call);
            command.env("TMPDIR", place.path("absent"));
            let text = place.start_command(command).end().expect(0).out;
            has(&text, "seed 7");
            call.extend(["--format", "json"]);
            let document = place.run(&call).expect(0).json();
            assert_eq!(document["seed"], 7);
            let trials = array(&document["trials"]);
            has(&text, &format!("{} trials", trials.len()));
            let numbers = counts(trials, "trial");
            let expected: Vec<u64> = (1..=trials.len() as u64).collect();
            assert_eq!(numbers, expected);
            let again = trials
                .iter()
                .filter(|trial| trial["baseline_copy"] == true)
                .count();
            assert!(again > 0 && again < trials.len());
        }
    }
    let call = "run proxy-cost --dry-run --out never";
    place.run(call).expect(0);
    assert!(place.names().is_empty(), "{:?}", place.names());
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn what_the_plan_decides_and_the_limits_that_it_exceeds_are_said_before_it_starts() {
    let place = Place::new();
    let plan = place.run("run proxy-cost --quick --dry-run").expect(0).out;
    has(&plan, " decide differences of throughput from about ");
    let call = "run proxy-cost --quick --within 90s --dry-run --format json";
    let document = place.run(call).expect(0).json();
    let difference = document["decides"]["difference"].as_f64().unwrap();
    assert!(difference > 0.0, "{document}");
    assert!(document["within"]["blocks"].as_u64().unwrap() >= 3);
    assert_eq!(document["blockers"], serde_json::json!([]));
    // More than there are ports.
    let call = "run proxy-cost --quick --set load.connections=70000 --out never";
    let said = "warning: local ports: ";
    has(&place.run(&format!("{call} --dry-run")).expect(0).out, said);
    let refused = place.run(call).expect(1).err;
    has(&refused, said);
    has(&refused, "this experiment cannot run here");
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn a_dry_run_names_a_cpu_that_does_not_exist() {
    let place = Place::new();
    place.write(
        "x.toml",
        "title = \"x\"\n[hosts.one]\ncpus = [999]\n\
         [servers.origin]\nrecipe = \"origin\"\nhost = \"one\"\n\
         [subjects]\na = \"http://origin/\"\n[load]\nhost = \"one\"\n",
    );
    let plan = place.run("run x.toml --dry-run").expect(0).out;
    let said = "not ready to run:\n  host `one` is bound to CPU 999, which does not exist";
    has(&plan, said);
}

#[test]
fn one_of_the_list_is_shown_whole() {
    let place = Place::new();
    let nginx = place.run("list nginx").expect(0).out;
    for text in [
        "upstream_keepalive = 0",
        "document_root = none",
        "nginx-light",
        "access.log",
    ] {
        assert!(nginx.contains(text), "{text} is not in\n{nginx}");
    }
    let document = place.run("list nginx --format json").expect(0).json();
    let recipe = &document["recipes"][0];
    let workers = find(array(&recipe["params"]), "name", "workers");
    assert_eq!(
        (&workers["default"], &workers["type"]),
        (&1.into(), &"integer".into())
    );
    assert!(recipe["can_run"].is_boolean(), "{recipe}");
    assert!(array(&document["experiments"]).is_empty());

    let driver = place.run("list wrk --format json").expect(0).json();
    let rate = find(array(&driver["drivers"][0]["load"]), "key", "rate");
    assert_eq!(rate["supported"], false);
    assert!(place.run("list engine").expect(0).out.contains("curve"));

    let experiment = place.run("list proxy-cost --format json").expect(0).json();
    let experiment = &experiment["experiments"][0];
    assert_eq!(experiment["baseline"], "direct");
    assert!(
        experiment["full"]["estimated_s"].as_f64() > experiment["quick"]["estimated_s"].as_f64()
    );
}

#[test]
fn a_name_that_is_not_in_the_list_and_a_file_with_mistakes_are_told() {
    let place = Place::new();
    let wrong = place.run("list ngnix").expect(2);
    has(&wrong.err, "did you mean `nginx`?");
    fs::write(
        place.path("own.toml"),
        "title = \"own\"\n[subjects]\nx = \"http://a/\"\n",
    )
    .unwrap();
    let wrong = place.run("list ./own.toml").expect(2);
    has(&wrong.err, "own.toml");
    let own = "title = \"own\"\n[subjects]\nx = \"http://127.0.0.1:1/\"\n";
    fs::write(place.path("own.toml"), own).unwrap();
    let shown = place.run("list ./own.toml").expect(0).out;
    has(&shown, "http://127.0.0.1:1/");
}
