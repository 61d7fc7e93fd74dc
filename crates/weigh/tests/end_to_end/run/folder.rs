//! A run's document, its folder, and all that can be made again from its journal.

use std::fs;
use std::path::Path;

use crate::common::{KILL, Place, RUN, array, has, journal, quickly, trials};
use serde_json::Value;

const SETS: [&str; 4] = [
    "design.blocks=3",
    "design.window=300ms",
    "design.latency_window=300ms",
    "design.retries=0",
];

#[test]
fn pages_of_any_size_are_measured() {
    let place = Place::new();
    fs::create_dir(place.path("recipes")).unwrap();
    place.experiment(
        "[servers.o]\nrecipe = \"origin\"\n\
         [subjects]\nx = \"http://o/bytes/{bytes}\"\n\
         [factors]\nbytes = [100, 2000000]\n[load]\nconnections = 4\n",
    );
    let document = place.run(RUN).none_failed();
    assert_eq!(array(&document["table"]).len(), 2, "{document}");
}

#[test]
fn each_way_in_which_a_server_is_set_is_kept_once() {
    let place = Place::new();
    place.recipe(
        "echo",
        "summary = \"t\"\n[params.size]\ntype = \"integer\"\ndefault = 1\n[start]\n\
         command = [\"{{ weigh }}\", \"origin\", \"--listen\", \"{{ listen.addr }}\"]\n\
         [files]\n\"size.conf\" = \"size.conf.j2\"\n[ready]\npath = \"/\"\n",
    );
    place.write(
        "recipes/echo/size.conf.j2",
        "size {{ params.size }} at {{ listen.addr }}",
    );
    place.write(
        "x.toml",
        "title = \"t\"\n[servers.a]\nrecipe = \"echo\"\n[servers.b]\nrecipe = \"origin\"\n\
         [subjects]\nx = \"http://a/bytes/{bytes}\"\ny = \"http://b/bytes/{bytes}\"\n\
         [factors]\n\"a.size\" = [1, 2]\nbytes = [10, 20]\n[load]\nconnections = 4\n\
         [design]\nblocks = 2\nbaseline = \"x\"\nwarmup = \"50ms\"\nwindow = \"100ms\"\n\
         latency_window = \"0s\"\nbottleneck = false\nretries = 0\napart = \"never\"\n",
    );
    let look = |folder: &str| {
        let text = fs::read_to_string(place.path(folder).join("hosts.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        document["local"]["servers"].clone()
    };
    let conditions = |way: &Value| {
        let conditions = array(&way["conditions"]).iter();
        let levels = |one: &Value| (one["a.size"].clone(), one["bytes"].clone());
        conditions.map(levels).collect::<Vec<_>>()
    };
    let whole = |servers: &Value| {
        let a = &servers["a"];
        let mut texts = Vec::new();
        for way in [a, &a["otherwise"][0]] {
            let text = way["files"]["size.conf"].as_str().unwrap();
            let found = conditions(way);
            assert_eq!(found.len(), 2, "{servers}");
            for (size, _) in found {
                let size = size.as_str().unwrap().to_owned();
                assert!(text.starts_with(&format!("size {size} at ")), "{servers}");
            }
            texts.push(text[..6].to_owned());
        }
        texts.sort();
        assert_eq!(texts, ["size 1", "size 2"]);
        assert_eq!(array(&a["otherwise"]).len(), 1, "{servers}");
        // What no factor sets is there once.
        assert_eq!(conditions(&servers["b"]).len(), 4, "{servers}");
        assert!(servers["b"].get("otherwise").is_none(), "{servers}");
    };
    place.run(RUN).result();
    whole(&look("r"));
    // A run that goes on adds what it has not seen, and keeps what it has.
    let half = RUN.replace("--out r", "--out half --set design.blocks=1");
    let mut running = place.start(&half);
    let folder = place.path("half");
    running.until("a condition was measured", || {
        folder.join("hosts.json").exists()
    });
    running.signal(KILL);
    running.end().expect(-KILL);
    let before = look("half");
    place
        .run("run --resume half --recipes recipes --format json")
        .result();
    let after = look("half");
    whole(&after);
    assert_eq!(after["a"]["files"], before["a"]["files"]);
}

/// The figures that scripts rely on.
fn contract(document: &Value) {
    let comparisons = array(&document["comparisons"]);
    assert!(!comparisons.is_empty());
    let verdicts = ["faster", "slower", "same", "inconclusive", "invalid"];
    for comparison in comparisons {
        assert!(comparison["condition"].is_object());
        assert_eq!(comparison["subject"], "balanced");
        assert_eq!(comparison["baseline"], "direct");
        assert!(comparison["metric"].is_string());
        let verdict = comparison["verdict"].as_str().unwrap();
        assert!(verdicts.contains(&verdict), "{comparison}");
        let is_there = |key: &str| comparison[key].is_number();
        assert_eq!(is_there("ratio"), verdict != "invalid", "{comparison}");
        // One end is unknown where the client limited one side, both where it limited both.
        let ends = [is_there("low"), is_there("high")];
        let known = ends.iter().filter(|known| **known).count();
        match (verdict, comparison["bound"].is_string()) {
            ("invalid", _) => assert_eq!(known, 0, "{comparison}"),
            ("inconclusive", false) => assert_ne!(known, 1, "{comparison}"),
            // Of two blocks there is no interval, so no end of one.
            ("inconclusive", true) => assert!(known <= 1, "{comparison}"),
            (_, is_bound) => assert_eq!(known, 2 - usize::from(is_bound), "{comparison}"),
        }
        assert_eq!(comparison["confidence"], 0.95);
        assert_eq!(comparison["matters"], 0.03);
        assert!(comparison["blocks"].as_u64().unwrap() <= 3);
        let sentence = comparison["sentence"].as_str().unwrap();
        has(sentence, "balanced");
    }
    assert_eq!(comparisons[0]["metric"], "requests_per_s");
    assert_eq!(comparisons[0]["blocks"], 3);
    assert!(document["bottlenecks"].is_array() && document["warnings"].is_array());
    assert_eq!(document["trials"]["done"], 9);
    assert_eq!(document["trials"]["failed"], 0);
}

fn contract_of_the_folder(folder: &Path) {
    let rows = journal(folder);
    assert_eq!(rows[0]["row"], "run");
    assert_eq!(rows.last().unwrap()["row"], "end");
    assert_eq!(rows.last().unwrap()["complete"], true);
    assert_eq!(trials(folder).len(), 9);
    let text = fs::read_to_string(folder.join("hosts.json")).unwrap();
    let hosts: Value = serde_json::from_str(&text).unwrap();
    let host = &hosts["local"];
    assert!(host["kernel"].is_string() && host["sysctls"].is_object());
    let cpus: Vec<u64> = net::os::allowed_cpus()
        .unwrap()
        .into_iter()
        .map(u64::from)
        .collect();
    assert_eq!(host["cpus"], Value::from(cpus));
    for recipe in ["origin", "balance"] {
        let version = host["versions"][recipe].as_str().unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"), "{recipe}");
    }
    let configuration = host["servers"]["balancer"]["files"]["balance.toml"].as_str();
    assert!(configuration.unwrap().contains("upstream1 = "));
    let command = array(&host["servers"]["origin"]["command"]);
    assert_eq!(command[1], "origin");
    let logs = fs::read_to_string(folder.join("trials/1/origin-output.log")).unwrap();
    has(&logs, "origin on http://");
    let experiment = fs::read_to_string(folder.join("experiment.toml")).unwrap();
    // As it was run, and defaults that the file did not give.
    for line in ["blocks = 3", "window = \"300ms\"", "threads = 1"] {
        assert!(experiment.contains(line), "no {line} in\n{experiment}");
    }
    for name in ["report.html", "summary.md", "summary.json"] {
        assert!(folder.join(name).metadata().unwrap().len() > 100, "{name}");
    }
}

#[test]
fn a_run_leaves_all_that_is_needed_to_judge_it() {
    let place = Place::new();
    let done = place.run(&quickly("proxy-cost", &SETS, "r"));
    let document = done.result();
    contract(&document);
    let folder = place.path("r");
    contract_of_the_folder(&folder);
    assert!(place.left().is_empty(), "{:?}", place.left());

    let kept = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (html, markdown, json) = (
        kept("report.html"),
        kept("summary.md"),
        kept("summary.json"),
    );
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), document);
    for name in ["report.html", "summary.md", "summary.json"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let again = |format: &str| {
        let call = ["report", "r", "--format", format];
        let printed = place.run(&call).expect(0).out;
        let file = format!("again.{format}");
        let mut call = call.to_vec();
        call.extend(["-o", &file]);
        assert_eq!(place.run(&call).expect(0).out, "");
        assert_eq!(place.read(&file), printed);
        printed
    };
    assert_eq!(again("html"), html);
    assert_eq!(again("md"), markdown);
    assert_eq!(again("json"), json);
    assert!(html.starts_with("<!doctype html>") || html.starts_with("<!DOCTYPE html>"));
    let csv = again("csv");
    // Each trial has a closed and an open loop.
    assert_eq!(csv.lines().count(), 1 + 2 * 9, "{csv}");
    assert!(csv.starts_with("trial,block,subject,"));
    let text = place.run("report r --verbose").expect(0).out;
    let sentence = document["comparisons"][0]["sentence"].as_str().unwrap();
    let start: Vec<&str> = sentence.split_whitespace().take(3).collect();
    has(&text, &start.join(" "));
    assert!(
        !folder.join("report.html").exists(),
        "report writes nothing"
    );

    // Going on with a run that is complete measures nothing, and says the same.
    let before = trials(&folder);
    let call = "run --resume r --format json";
    assert_eq!(place.run(call).result(), document);
    assert_eq!(trials(&folder), before);
    assert_eq!(kept("summary.json"), json);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn the_folder_of_a_run_is_made_below_the_working_folder_when_none_is_named() {
    let place = Place::new();
    place.write(
        "tiny.toml",
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\n[subjects]\nx = \"http://o/\"\n\
         y = \"http://o/bytes/9\"\n[design]\nblocks = 1\nwarmup = \"50ms\"\nwindow = \"100ms\"\n\
         latency_window = \"0s\"\nbottleneck = false\nretries = 0\n",
    );
    let done = place.run("run tiny.toml --format json");
    assert_eq!(done.result()["trials"]["done"], 3);
    let runs: Vec<_> = fs::read_dir(place.path("weigh-runs")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    let folder = runs[0].as_ref().unwrap().path();
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("tiny-2"), "{name}");
    assert!(done.err.contains(&name), "it says where: {}", done.err);
    // The experiment as it was run is an experiment.
    let file = folder.join("experiment.toml");
    let call = format!("run {} --dry-run", file.to_str().unwrap());
    assert!(place.run(&call).expect(0).out.contains("3 trials"));
}
