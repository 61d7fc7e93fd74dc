//! Wrong words and wrong files: status 2, the place of the mistake, and nothing on standard output.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;

use crate::common::{Place, has};

const GOOD: &str = r#"title = "origin, direct and through the balancer"
[servers.origin]
recipe = "origin"
[servers.balancer]
recipe = "balance"
upstreams = ["origin"]
[subjects]
direct = "http://origin/"
balanced = "http://balancer/"
[design]
blocks = 1
warmup = "100ms"
window = "100ms"
latency_window = "0s"
retries = 0
"#;

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
fn a_mistake_in_an_experiment_is_shown_in_its_line_with_what_to_write() {
    let place = Place::new();
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from));
        GOOD.replacen(from, to, 1)
    };
    refused(
        &place,
        "key.toml",
        &with("blocks = 1", "block = 1"),
        &[
            "unknown key `block`",
            "key.toml:11:1",
            "did you mean `blocks`",
        ],
    );
    refused(
        &place,
        "unit.toml",
        &with("\"100ms\"", "\"100mm\""),
        &["design.warmup", "unit.toml:12:", "100mm"],
    );
    refused(
        &place,
        "bare.toml",
        &with("\"100ms\"", "100"),
        &["design.warmup", "the unit is missing"],
    );
    refused(
        &place,
        "server.toml",
        &with("http://balancer/", "http://balance/"),
        &[
            "no server is called `balance`",
            "server.toml:9:",
            "did you mean `balancer`",
        ],
    );
    refused(
        &place,
        "recipe.toml",
        &with("\"balance\"", "\"ballance\""),
        &["ballance", "recipe.toml:5:", "did you mean `balance`"],
    );
    let circle = "title = \"c\"\n[servers.a]\nrecipe = \"balance\"\nupstreams = [\"b\"]\n\
                  [servers.b]\nrecipe = \"balance\"\nupstreams = [\"a\"]\n\
                  [subjects]\nx = \"http://a/\"\n";
    refused(
        &place,
        "circle.toml",
        circle,
        &["the upstreams form a cycle", "circle.toml:"],
    );
    refused(&place, "empty.toml", "", &["the file is empty"]);
    refused(&place, "half.toml", &GOOD[..70], &["half.toml:"]);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn all_mistakes_of_an_experiment_are_shown_at_once() {
    let place = Place::new();
    let text = GOOD
        .replace("blocks = 1", "blocks = 0")
        .replace("http://origin/", "ftp://origin/")
        .replace("\"0s\"", "\"0\"");
    refused(
        &place,
        "three.toml",
        &text,
        &[
            "3 mistakes",
            "three.toml:8:",
            "three.toml:11:",
            "three.toml:14:",
        ],
    );
}

#[test]
fn a_value_that_is_set_is_checked_like_one_in_the_file() {
    let place = Place::new();
    place.write("good.toml", GOOD);
    for (set, says) in [
        ("design.block=3", "did you mean"),
        ("design.window=3", "the unit is missing"),
        ("design.blocks=many", "many"),
        ("nonsense", "NAME=VALUE"),
    ] {
        let done = place.run(&format!("run good.toml --set {set}")).expect(2);
        done.says(&[says, set.split('=').next().unwrap()]);
    }
}

#[test]
fn a_hundred_megabytes_of_something_else_are_refused_at_once() {
    let place = Place::new();
    let mut noise = File::create(place.path("noise.toml")).unwrap();
    let mut some = vec![0; 1 << 20];
    File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    for _ in 0..100 {
        noise.write_all(&some).unwrap();
    }
    let zeros = File::create(place.path("zeros.toml")).unwrap();
    zeros.set_len(100 << 20).unwrap();
    for file in ["noise.toml", "zeros.toml"] {
        for verb in ["run", "balance"] {
            let done = place.run(&format!("{verb} {file}")).expect(2);
            done.says(&[file]);
            assert!(done.err.len() < 2_000, "{} bytes said", done.err.len());
        }
        place
            .run(&format!("run {file}"))
            .expect(2)
            .says(&["104857600 bytes"]);
    }
    place.run("balance zeros.toml").says(&["at most"]);
    // Small enough to be read, and still nothing that could be an experiment.
    File::create(place.path("some.toml"))
        .unwrap()
        .write_all(&some[..9_000])
        .unwrap();
    place.run("run some.toml").expect(2).says(&["some.toml"]);
}

#[test]
fn an_unknown_experiment_is_answered_with_the_nearest_name() {
    let place = Place::new();
    let done = place.run("run proxy-cots").expect(2);
    done.says(&["proxy-cots", "did you mean `proxy-cost`"]);
    place
        .run("doctor ./proxy-cots.toml")
        .expect(2)
        .says(&["proxy-cots"]);
    place.run("run").expect(2).says(&["<EXPERIMENT"]);
    place.run("rum").expect(2).says(&["rum", "run"]);
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
    let run = [
        "run",
        "absent.toml",
        "--recipes",
        "recipes",
        "--out",
        "never",
    ];
    let done = place.run(&run).expect(2);
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

#[test]
fn wrong_words_of_load_compare_and_run_are_named() {
    let place = Place::new();
    let url = "http://127.0.0.1:9/";
    for (arguments, says) in [
        (vec!["load", "127.0.0.1:9"], "127.0.0.1:9: expected a URL"),
        (vec!["load", "ftp://127.0.0.1/"], "expected a URL"),
        (vec!["load", "http://no host/"], "expected a URL"),
        (vec!["load", url, "-d", "10"], "the unit is missing"),
        (
            vec!["load", url, "-d", "10"],
            "such as \"10s\" or \"150ms\"",
        ),
        (
            vec!["load", url, "-d", "-1s"],
            "such as \"10s\" or \"150ms\"",
        ),
        (vec!["load", url, "-c", "-1"], "-1 is not in 1..=1000000"),
        (vec!["load", url, "--cpus", "1-0"], "such as 2 or 0-3,5"),
        (vec!["load", url, "-d", "10x"], "'10x'"),
        (
            vec!["load", url, "-d", "1s", "-n", "5"],
            "cannot be used with",
        ),
        (vec!["load", url, "-c", "0"], "'0'"),
        (vec!["load", url, "--rate", "-3"], "-3"),
        (vec!["load", url, "-H", "no colon"], "expected a header"),
        (vec!["load", url, "--io", "kqueue"], "kqueue"),
        (vec!["load", url, "--body", "absent"], "--body absent"),
        (vec!["compare", "a=http://127.0.0.1:9/"], "NAME=SUBJECT"),
        (vec!["compare", "a=b", "c=d"], "this is not a URL"),
        (
            vec!["compare", "a=http://127.0.0.1:9/", "b"],
            "expected NAME=VALUE",
        ),
        (
            vec![
                "compare",
                "a=http://x:1/",
                "b=http://x:1/",
                "--matters",
                "3",
            ],
            "matters",
        ),
        (
            vec!["run", "--resume", "x", "--dry-run"],
            "cannot be used with",
        ),
        (
            vec!["run", "nginx-offload", "--bottleneck"],
            "--bottleneck is not possible here: the experiment has several loads at the same time",
        ),
        (
            vec!["run", "crossroads-failover", "--bottleneck"],
            "--bottleneck is not possible here: the experiment has events",
        ),
    ] {
        let done = place.run(&arguments).expect(2);
        done.says(&[says]);
        assert_eq!(done.out, "", "{arguments:?}");
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn a_balancer_is_told_its_mistake_in_the_line() {
    let place = Place::new();
    let listen = "listen = \"127.0.0.1:0\"\n";
    for (text, says) in [
        (String::new(), "`listen` or `services` is missing"),
        (listen.to_owned(), "`upstreams` is missing"),
        (format!("{listen}upstreams = []\n"), "at least one upstream"),
        (
            format!("{listen}upstreams = [\"x\"]\n"),
            "expected an address",
        ),
        (
            format!("{listen}upstreams = [\"127.0.0.1:1\"]\nthreads = 0\n"),
            "from 1 to 1024",
        ),
        (
            format!("{listen}upstreams = [\"127.0.0.1:1\"]\nthread = 1\n"),
            "unknown key `thread`",
        ),
        (
            "listen = \"127.0.0.1:5\"\nupstreams = [\"127.0.0.1:5\"]\n".to_owned(),
            "its own upstream",
        ),
    ] {
        place.write("b.toml", &text);
        let done = place.run("balance b.toml").expect(2);
        done.says(&[says, "b.toml"]);
        assert_eq!(done.out, "");
    }
    place.write(
        "b.toml",
        &format!("{listen}upstreams = [\"127.0.0.1:1\"]\n"),
    );
    place.run("balance --check b.toml").expect(0);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.write(
        "b.toml",
        &format!("listen = \"{address}\"\nupstreams = [\"127.0.0.1:1\"]\n"),
    );
    place
        .run("balance b.toml")
        .expect(2)
        .says(&[&address, "in use"]);
    place
        .run("balance absent.toml")
        .expect(2)
        .says(&["absent.toml"]);
}
