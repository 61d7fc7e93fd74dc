//! A server in several versions: each is started from its own place, and the result says which ran.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::{Done, Place, RUN, has};

/// A program that says its version, and runs the command that it is given.
fn program(version: &str) -> String {
    format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo tiny {version}; exit; fi\nexec \"$@\"\n"
    )
}

/// A place with tiny 1.4.2 in PATH, and tiny 2.0 in the cache of `weigh install`.
fn place() -> Place {
    let place = Place::new();
    place.recipe(
        "tiny",
        "summary = \"tiny\"\n[packages]\ndebian = [\"tiny\"]\npip = \"tiny-bin==2.0\"\n[programs]\n\
         tiny = [\"tiny\"]\n[start]\ncommand = [\"{{ programs.tiny }}\", \"{{ weigh }}\", \"origin\", \
         \"--listen\", \"{{ listen.addr }}\"]\n[ready]\npath = \"/\"\nstatus = 200\n[version]\n\
         command = [\"{{ programs.tiny }}\", \"--version\"]\nafter = \"tiny \"\n",
    );
    place.write_script("bin/tiny", &program("1.4.2"));
    let cached = place.write_script(
        "cache/weigh/packages/pip/tiny-bin-2.0/programs/tiny",
        &program("2.0"),
    );
    // Servers run as users of their own.
    fs::set_permissions(&cached, fs::Permissions::from_mode(0o755)).unwrap();
    let bytes = fs::metadata(&cached).unwrap().len();
    let folder = "cache/weigh/packages/pip/tiny-bin-2.0";
    place.write(
        &format!("{folder}/record"),
        &format!("package a\nprogram b\nbytes {bytes}\n"),
    );
    place
}

fn experiment(more: &str, factors: &str) -> String {
    format!(
        "title = \"t\"\n[servers.old]\nrecipe = \"tiny\"\n[servers.new]\nrecipe = \"tiny\"\n{more}\
         [subjects]\nold = \"http://old/\"\nnew = \"http://new/\"\n{factors}[load]\nconnections = 4\n\
         [design]\nblocks = 1\nwarmup = \"50ms\"\nwindow = \"100ms\"\nlatency_window = \"0s\"\n\
         retries = 0\nbottleneck = false\nbaseline = \"old\"\n"
    )
}

fn run(place: &Place) -> Done {
    let mut command = place.weigh_with_bin(RUN);
    command.env("XDG_CACHE_HOME", place.path("cache"));
    place.start_command(command).end()
}

#[test]
fn two_subjects_of_one_recipe_run_two_versions() {
    let place = place();
    place.write("x.toml", &experiment("with = { version = \"2.0\" }\n", ""));
    let document = run(&place).none_failed();
    let told = |subject: usize| {
        document["settings"][0]["subjects"][subject]["servers"][0]["version"].clone()
    };
    assert_eq!((told(0), told(1)), ("1.4.2".into(), "2.0".into()));
    let hosts: Value = serde_json::from_str(&place.read("r/hosts.json")).unwrap();
    let servers = &hosts["local"]["servers"];
    assert_eq!(servers["old"]["version"], "1.4.2");
    assert_eq!(servers["new"]["version"], "2.0");
    assert_eq!(hosts["local"]["versions"]["tiny"], "2.0 and 1.4.2");
    has(place.read("r/summary.md"), "| new | new | tiny | 2.0 |");
}

#[test]
fn the_version_is_a_factor() {
    let place = place();
    let factors = "[factors]\n\"new.version\" = [\"1.4\", \"2.0\"]\n";
    place.write("x.toml", &experiment("", factors));
    let document = run(&place).none_failed();
    let mut told: Vec<&Value> = document["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["subjects"][1]["servers"][0]["version"])
        .collect();
    told.sort_by_key(|version| version.to_string());
    assert_eq!(told, [&Value::from("1.4.2"), &Value::from("2.0")]);
    let hosts: Value = serde_json::from_str(&place.read("r/hosts.json")).unwrap();
    let new = &hosts["local"]["servers"]["new"];
    let mut versions = [&new["version"], &new["otherwise"][0]["version"]];
    versions.sort_by_key(|version| version.to_string());
    assert_eq!(versions, [&Value::from("1.4.2"), &Value::from("2.0")]);
}

#[test]
fn a_version_that_is_not_there_is_refused_before_the_run() {
    let place = place();
    place.write("x.toml", &experiment("with = { version = \"1.5\" }\n", ""));
    let done = run(&place).expect(2);
    done.says(&["tiny 1.4.2 is installed, not 1.5"]);
    assert!(!place.path("r/journal.jsonl").exists());
}
