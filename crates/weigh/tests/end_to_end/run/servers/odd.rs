//! Servers that die, say nothing, or do not stop: a reason in the journal, and the run goes on.

use crate::common::{Place, RUN, array, has, trials};
use serde_json::Value;
use testing::Text as _;

/// A recipe that runs a shell script; `params.fate` is one of two words.
fn shell(place: &Place, script: &str, more: &str) {
    place.recipe(
        "odd",
        &format!(
            "summary = \"odd\"\nrun_as = \"nobody\"\nlog_files = [\"own.log\"]\n\
             [programs]\nsh = [\"sh\"]\nperl = [\"perl\"]\n\
             [params.fate]\ntype = \"string\"\ndefault = \"live\"\none_of = [\"live\", \"die\"]\n\
             [files]\n\"script\" = \"script.j2\"\n\
             [start]\ncommand = [\"{{{{ programs.sh }}}}\", \"{{{{ dir }}}}/script\"]\n{more}"
        ),
    );
    place.write("recipes/odd/script.j2", script);
}

/// Runs the good server against the odd one, with further lines in the experiment.
fn run(place: &Place, more: &str) -> (i32, String, Value) {
    place.experiment(&format!(
        "[servers.good]\nrecipe = \"origin\"\n\
             [servers.odd]\nrecipe = \"odd\"\n\
             [subjects]\ngood = \"http://good/\"\nodd = \"http://odd/\"\n\
             [load]\nconnections = 4\n{more}\n"
    ));
    let done = place.run(RUN);
    let document = done.result();
    assert!(place.left().is_empty(), "{:?}", place.left());
    (done.status, done.err, document)
}

fn reason(document: &Value) -> String {
    let failures = array(&document["trials"]["failures"]);
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures[0]["reason"].as_str().unwrap().to_owned()
}

const READY: &str = "[ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n";

#[test]
fn a_server_that_dies_at_start_is_quoted_and_other_conditions_go_on() {
    let place = Place::new();
    let script = "if [ {{ params.fate }} = die ]; then\n\
                  echo to the log: cannot find my parachute >own.log\n\
                  echo to the terminal: jumping >&2\nexit 3\nfi\n\
                  exec {{ weigh }} origin --listen {{ listen.addr }}\n";
    shell(&place, script, READY);
    let (status, said, document) = run(&place, "[factors]\n\"odd.fate\" = [\"live\", \"die\"]");
    assert_eq!(status, 4);
    let reason = reason(&document);
    has(&reason, "`odd` ended by itself (status 3)");
    // The rest is told once, with the file.
    let script = place.path("r/not-started/odd/script");
    let script = script.strip_prefix(place.path("")).unwrap();
    for text in [
        "its last output",
        "cannot find my parachute",
        "jumping",
        &format!("its configuration: {}", script.display()),
    ] {
        assert_eq!(said.matches(text).count(), 1, "`{text}` in {said}");
    }
    assert!(place.path("r/not-started/odd/script").is_file());
    // The good one is measured without the other.
    assert_eq!(document["trials"]["done"], 5);
    assert_eq!(document["trials"]["failed"], 1);
    for trial in trials(&place.path("r")) {
        let lived = trial["condition"]["odd.fate"] == "live" || trial["subject"] == "good";
        assert_eq!(trial["outcome"]["done"].is_object(), lived, "{trial}");
    }
    for comparison in array(&document["comparisons"]) {
        let lived = comparison["condition"]["odd.fate"] == "live";
        assert_eq!(comparison["verdict"] == "invalid", !lived, "{comparison}");
    }
}

#[test]
fn a_server_that_never_answers_is_given_up_after_its_time() {
    let place = Place::new();
    let script = "exec {{ programs.perl }} -MIO::Socket::INET -e '\
                  my $s = IO::Socket::INET->new(LocalAddr => \"{{ listen.addr }}\", Listen => 9,\
                  ReuseAddr => 1) or die; $| = 1; print \"nobody is at home\\n\";\
                  my @all; push @all, $s->accept while 1'\n";
    shell(&place, script, "[ready]\npath = \"/\"\ntimeout = \"1s\"\n");
    let (status, said, document) = run(&place, "");
    assert_eq!(status, 4);
    let reason = reason(&document);
    for text in [
        "`odd` did not answer as expected within 1000 ms",
        "no complete answer",
    ] {
        assert!(reason.contains(text), "no `{text}` in {reason}");
    }
    assert_eq!(said.matches("nobody is at home").count(), 1, "{said}");
}

#[test]
fn a_server_that_ignores_its_signal_is_killed_with_all_it_started_and_that_is_said() {
    let place = Place::new();
    // The origin is started in the background, from a shell that ignores what it is told.
    let script = "trap '' TERM INT\nsetsid {{ weigh }} origin --listen {{ listen.addr }} &\n\
                  while :; do sleep 100; done\n";
    let more = format!("[stop]\nsignals = [{{ signal = \"TERM\", wait = \"300ms\" }}]\n{READY}");
    shell(&place, script, &more);
    let (status, said, document) = run(&place, "");
    assert_eq!(status, 0, "the measurement itself is good");
    assert_eq!(document["trials"]["done"], 3);
    let warning = "server `odd` did not stop after its signals and was killed";
    has(&said, warning);
    assert!(
        array(&document["warnings"]).contains(&warning.into()),
        "{document}"
    );
}

#[test]
fn a_server_that_dies_under_load_fails_its_block_with_its_last_output() {
    let place = Place::new();
    // Long enough to become ready on a slow machine, shorter than the load.
    let script = "{{ weigh }} origin --listen {{ listen.addr }} &\nsleep 3\n\
                  echo out of memory >&2\nkill -9 $!\nexit 9\n";
    shell(&place, script, READY);
    place.write(
        "x.toml",
        "title = \"t\"\n[servers.odd]\nrecipe = \"odd\"\n[servers.good]\nrecipe = \"origin\"\n\
         [subjects]\ngood = \"http://good/\"\nodd = \"http://odd/\"\n[load]\nconnections = 4\n\
         timeout = \"1s\"\n\
         [design]\nblocks = 1\nwarmup = \"1s\"\nwindow = \"1s\"\nlatency_window = \"0s\"\nbottleneck = false\nretries = 0\n",
    );
    let done = place.run(RUN);
    let document = done.expect(4).result();
    // The other subject is measured without it.
    assert_eq!(document["trials"]["done"], 2, "{document}");
    let reason = reason(&document);
    reason.has("`odd` ended by itself (status 9)");
    reason.has("out of memory");
    for comparison in array(&document["comparisons"]) {
        assert_eq!(comparison["verdict"], "invalid", "{comparison}");
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_server_that_answers_something_else_is_given_up_with_what_it_said() {
    for (ready, texts) in [
        (
            "path = \"/\"\nstatus = 200\ncontains = \"lighthouse\"\n",
            ["without `lighthouse`", "Hello, world!"],
        ),
        // Of another protocol.
        (
            "send = \"PING\\r\\n\\r\\n\"\ncontains = \"+PONG\"\n",
            ["without `+PONG`", "HTTP/1.1 400"],
        ),
    ] {
        let place = Place::new();
        let script = "exec {{ weigh }} origin --listen {{ listen.addr }}\n";
        shell(
            &place,
            script,
            &format!("[ready]\n{ready}timeout = \"300ms\"\n"),
        );
        let (status, _, document) = run(&place, "");
        assert_eq!(status, 4);
        let reason = reason(&document);
        has(&reason, "did not answer as expected within 300 ms");
        texts.iter().for_each(|text| has(&reason, text));
    }
}

mod alone {
    use super::*;

    #[test]
    fn a_proxy_that_answers_without_its_back_end_is_invalid() {
        // An idle server is told by its CPU time, which others would blur.
        let place = Place::alone();
        place.origin_recipe("mute", &[], "upstreams = \"many\"\n");
        let measured = |path: &str, out: &str| {
            place.write(
                "x.toml",
                &format!(
                    "title = \"t\"\n[servers.back]\nrecipe = \"origin\"\n\
                     [servers.proxy]\nrecipe = \"mute\"\nupstreams = [\"back\"]\n\
                     [subjects]\ndirect = \"http://back/\"\nproxied = \"http://proxy{path}\"\n\
                     [load]\nconnections = 4\n[design]\nblocks = 1\nretries = 0\nwarmup = \"100ms\"\n\
                     window = \"1s\"\nlatency_window = \"0s\"\nbottleneck = false\n"
                ),
            );
            let call = ["run", "x.toml", "--recipes", "recipes", "--format", "json"];
            place
                .run(&[call.as_slice(), &["--out", out]].concat())
                .expect(4)
                .result()
        };
        let document = measured("/", "r");
        let invalid = array(&document["trials"]["invalid_trials"]).to_vec();
        let of_proxy = invalid.iter().find(|one| one["subject"] == "proxied");
        let reason = of_proxy.unwrap()["reasons"][0].as_str().unwrap();
        reason.has("server `proxy` answered");
        reason.has("without `back`");
        assert!(!invalid.iter().any(|one| one["subject"] == "direct"));
        let document = measured("/bytes/0", "empty");
        let failures = array(&document["trials"]["failures"]);
        let reason = failures[0]["reason"].as_str().unwrap();
        reason.has("the answer of `proxied` to its first request is 0 bytes long");
        reason.has("baseline `direct` 13 bytes");
    }
}
