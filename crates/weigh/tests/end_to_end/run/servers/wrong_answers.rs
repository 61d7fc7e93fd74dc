//! A wrong answer is never speed, however quickly it comes.

use crate::common::{Answering, DELAYED_PAGE, Done, Origin, Place, array, has};
use serde_json::Value;

/// Every comparison is invalid, and its sentence has these texts.
#[track_caller]
fn all_invalid(document: &Value, texts: &[&str]) {
    let comparisons = array(&document["comparisons"]);
    assert!(!comparisons.is_empty());
    for comparison in comparisons {
        assert_eq!(comparison["verdict"], "invalid", "{comparison}");
        assert!(comparison["ratio"].is_null(), "{comparison}");
        let sentence = comparison["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("invalid:"), "{sentence}");
        for text in texts {
            assert!(sentence.contains(text), "no {text}: {sentence}");
        }
    }
}

/// A short comparison of two subjects.
fn compare(place: &Place, subjects: &[String; 2]) -> Done {
    let mut call = vec!["compare", &subjects[0], &subjects[1]];
    call.extend(["-c", "4", "--blocks", "1", "--window", "200ms"]);
    call.extend(["--same=false", "--bottleneck=false"]);
    call.extend(["--format", "json", "--out", "r"]);
    place.run(&call)
}

#[test]
fn a_server_that_answers_502_to_everything_is_not_fast_but_invalid() {
    let place = Place::new();
    place.recipe(
        "gateway",
        "summary = \"answers /status/N with that status\"\n[start]\n\
         command = [\"{{ weigh }}\", \"origin\", \"--listen\", \"{{ listen.addr }}\"]\n\
         [ready]\npath = \"/\"\nstatus = 200\ntimeout = \"20s\"\n",
    );
    place.write(
        "x.toml",
        "title = \"good against bad\"\n[servers.good]\nrecipe = \"origin\"\n\
         [servers.bad]\nrecipe = \"gateway\"\n\
         [subjects]\ngood = \"http://good/\"\nbad = \"http://bad/status/502\"\n\
         [expect]\nstatus = 200\n\
         [design]\nblocks = 1\nwarmup = \"100ms\"\nwindow = \"200ms\"\nlatency_window = \"200ms\"\nbottleneck = false\nretries = 0\n",
    );
    let run = ["run", "x.toml", "--recipes", "recipes", "--out", "r"];
    let done = place.run(&run).expect(4);
    let shown = crate::common::flat(&done.out);
    has(&shown, "invalid: bad against good");
    assert!(!shown.contains("faster"), "{shown}");
    let document = place.run("report r --format json").expect(0).json();
    all_invalid(&document, &["bad", "502", "200"]);
    assert_eq!(document["trials"]["failed"], 1);
    let failure = &document["trials"]["failures"][0];
    assert_eq!(failure["subjects"][0], "bad");
    // The good one was measured all the same, and so was its second copy.
    assert_eq!(document["trials"]["done"], 2);
    assert_eq!(document["table"][0]["subject"], "good");
    assert!(document["table"][0]["requests_per_s"].as_f64().unwrap() > 0.0);
    for format in ["html", "md"] {
        let call = format!("report r --format {format}");
        let text = place.run(&call).expect(0).out;
        // The page's style has a colour for each verdict.
        let shown = text.rsplit("</style>").next().unwrap();
        assert!(shown.contains("502"), "{format}");
        assert!(!shown.contains("faster"), "{format}");
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_back_end_that_turns_to_502_in_mid_run_is_invalid() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let failing = Answering::start(|number| if number < 300 { 200 } else { 502 });
    let subjects = [
        format!("good={}{DELAYED_PAGE}", origin.url),
        format!("bad={}", failing.url()),
    ];
    let done = compare(&place, &subjects);
    let document = done.expect(4).result();
    assert!(failing.answers() > 300, "the test has to get that far");
    all_invalid(
        &document,
        &["bad", "answers were wrong: expected status 200, found 502"],
    );
    assert_eq!(document["trials"]["done"], 3);
    let invalid = &document["trials"]["invalid_trials"][0];
    assert_eq!(invalid["subject"], "bad");
    assert!(
        invalid["reasons"][0]
            .as_str()
            .unwrap()
            .contains("found 502")
    );
}

#[test]
fn a_baseline_that_is_wrong_makes_nothing_faster_than_it() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let failing = Answering::start(|number| if number < 300 { 200 } else { 404 });
    let subjects = [
        format!("base={}", failing.url()),
        format!("other={}/", origin.url),
    ];
    let done = compare(&place, &subjects);
    let document = done.expect(4).result();
    all_invalid(&document, &["base", "expected status 200, found 404"]);
}

#[test]
fn nobody_behind_a_url_is_a_failed_trial_with_its_reason() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let subjects = [
        format!("here={}{DELAYED_PAGE}", origin.url),
        format!("gone=http://{nobody}/"),
    ];
    let done = compare(&place, &subjects);
    let document = done.expect(4).result();
    all_invalid(&document, &["gone", "refused"]);
    assert_eq!(document["trials"]["failed"], 1);
    assert_eq!(document["trials"]["done"], 2);
}
