//! Wrong words and wrong files: status 2, the place of the mistake, and nothing on standard output.

use std::fs::File;
use std::net::TcpListener;

use crate::common::{Place, has};

const GOOD: &str = include_str!("words/good.toml");

/// Runs an experiment that is wrong.
#[track_caller]
fn refused(place: &Place, name: &str, text: &str, says: &[&str]) {
    place.write(name, text);
    let done = place
        .run(&["run", &format!("./{name}"), "--out", "never"])
        .expect(2);
    done.says(&[name]).says(says);
    assert_eq!(done.out, "");
    assert!(!place.path("never").exists(), "{name} made a folder");
}

#[test]
fn mistakes_in_an_experiment_are_shown_in_their_lines_with_what_to_write() {
    let place = Place::new();
    let text = GOOD
        .replace("blocks = 1", "block = 1")
        .replace("http://origin/", "ftp://origin/")
        .replace("\"0s\"", "\"0\"");
    let says = [
        "3 mistakes",
        "three.toml:8:",
        "three.toml:11:1",
        "unknown key `block`",
        "did you mean `blocks`",
        "three.toml:14:",
    ];
    refused(&place, "three.toml", &text, &says);
    refused(&place, "empty.toml", "", &["the file is empty"]);
    refused(&place, "half.toml", &GOOD[..70], &["half.toml:"]);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_hundred_megabytes_of_something_else_are_refused_at_once() {
    let place = Place::new();
    let zeros = File::create(place.path("zeros.toml")).unwrap();
    zeros.set_len(100 << 20).unwrap();
    for (verb, says) in [("run", "104857600 bytes"), ("balance", "at most")] {
        let done = place.run(&format!("{verb} zeros.toml")).expect(2);
        done.says(&["zeros.toml", says]);
        assert!(done.err.len() < 2_000, "{} bytes said", done.err.len());
    }
}

#[test]
fn a_port_in_use_is_found_before_anything_starts() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let text = GOOD.replace(
        "recipe = \"origin\"",
        &format!("recipe = \"origin\"\nport = {port}"),
    );
    place.write("port.toml", &text);
    let done = place.run("run port.toml --out never").expect(2);
    done.says(&["server `origin`", &port, "in use"]);
    assert!(!place.path("never").exists());
    let done = place
        .run(&["origin", "--listen", &format!("127.0.0.1:{port}")])
        .expect(2);
    done.says(&[&port, "in use"]);
}

#[test]
fn a_program_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let place = Place::new();
    place.recipe(
        "absent",
        "summary = \"is not there\"\n[packages]\ndebian = [\"absent-server\"]\n\
         [programs]\nd = [\"weigh-absent-d\"]\n[start]\ncommand = [\"{{ programs.d }}\"]\n",
    );
    place.write(
        "absent.toml",
        &GOOD.replace("\"origin\"\n[servers.b", "\"absent\"\n[servers.b"),
    );
    let run = "run absent.toml --recipes recipes --out never";
    let done = place.run(run).expect(2);
    done.says(&[
        "weigh-absent-d is not installed",
        "apt-get install",
        "absent-server",
    ]);
    assert!(!place.path("never").exists());
    // A plan can be had all the same, and says what is missing.
    let done = place
        .run("run absent.toml --recipes recipes --dry-run")
        .expect(0);
    has(&done.out, "weigh-absent-d is not installed");
}

#[test]
fn a_recipe_with_a_mistake_is_shown_in_its_line() {
    let place = Place::new();
    place.recipe("odd", "summary = \"odd\"\n[start]\ncomand = [\"x\"]\n");
    let done = place.run("list --recipes recipes").expect(2);
    done.says(&["comand", "recipe.toml:3:", "did you mean `command`"]);
}

#[test]
fn folders_that_cannot_be_used_are_named() {
    let place = Place::new();
    place.write("good.toml", GOOD);
    place.write("file", "");
    let done = place.run("run good.toml --out file/x").expect(2);
    done.says(&["file/x", "cannot write"]);
    place
        .run("run good.toml --out full --format json --set design.bottleneck=false")
        .result();
    let done = place.run("run good.toml --out full").expect(2);
    done.says(&["full", "holds a run already", "weigh run --resume"]);
    for (folder, file) in [("absent", "experiment.toml"), ("bare", "journal.jsonl")] {
        if folder == "bare" {
            std::fs::create_dir(place.path(folder)).unwrap();
            std::fs::copy(
                place.path("full/experiment.toml"),
                place.path("bare/experiment.toml"),
            )
            .unwrap();
        }
        let done = place.run(&format!("run --resume {folder}")).expect(2);
        done.says(&[&format!("{folder}/{file}")]);
        let done = place.run(&format!("report {folder}")).expect(2);
        done.says(&[&format!("{folder}/journal.jsonl")]);
    }
    place.write(
        "full/journal.jsonl",
        "{\"row\":\"end\",\"complete\":true}\nnonsense\n",
    );
    let done = place.run("report full").expect(2);
    done.says(&[
        "full/journal.jsonl",
        "header in the first line",
        "--salvage",
    ]);
}
