//! Drivers: the program's own, the format with its mistakes, and what an experiment may ask of one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use testing::Text as _;

use crate::support::{
    assert_shown, changed, good, parse, parse_set, recipes, rendered, said, scratch,
};
use experiment::driver::{Driver, Drivers, RunContext};
use experiment::plan::Plan;
use experiment::{Experiment, HttpVersion, LoadSpec, TlsSpec};
use readings::QuicCongestion;

const GOOD: &str = include_str!("../good/driven.toml");

fn with(from: &str, to: &str) -> String {
    changed(GOOD, from, to)
}

fn complaint(text: &str) -> String {
    words(&rendered(&parse(text).expect_err("a mistake")))
}

/// Fails unless these words are said of a text.
fn is_refused(text: &str, why: &str) {
    let said = complaint(text);
    assert!(said.contains(why), "{said}");
}

/// A message in one line: where its lines end depends on how long the path in it is.
fn words(text: &str) -> String {
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|w| !["│", "|"].contains(w))
        .collect();
    words.join(" ")
}

/// A driver from the text of its file.
fn own(name: &str, text: &str) -> Result<Drivers, String> {
    let dir = scratch(&format!("driver-{name}"));
    std::fs::create_dir_all(dir.join(name)).unwrap();
    std::fs::write(dir.join(name).join("driver.toml"), text).unwrap();
    Drivers::load(std::slice::from_ref(&*dir))
        .map_err(|error| rendered(&error).replace(&dir.display().to_string(), "DIR"))
}

fn context(driver: &Driver) -> RunContext {
    RunContext {
        scheme: "http".into(),
        host: "127.0.0.1".into(),
        port: 8080,
        path: "/p?q=1".into(),
        connections: 64,
        http: HttpVersion::Http1,
        streams: 1,
        quic_congestion: None,
        threads: 2,
        duration_s: 3,
        warmup_s: 1,
        requests: 6400,
        rate_per_s: None,
        keepalive: true,
        requests_per_connection: None,
        timeout: Duration::from_millis(1500),
        method: "GET".into(),
        headers: Vec::new(),
        body: None,
        expect_status: 200,
        expect_contains: None,
        tls: TlsSpec::default(),
        params: driver.fill(&BTreeMap::new()).unwrap(),
        programs: driver
            .programs
            .iter()
            .map(|(name, names)| (name.clone(), PathBuf::from(&names[0])))
            .collect(),
        weigh: "weigh".into(),
    }
}

#[test]
fn every_driver_of_the_program_can_be_filled_in_for_all_that_it_can_do() {
    let recipes = recipes();
    for driver in recipes.drivers().iter() {
        let mut run = context(driver);
        run.scheme.clone_from(&driver.schemes[0]);
        let usual = driver.command(&run).unwrap();
        for part in ["8080", "64"] {
            let said = usual.iter().any(|word| word.contains(part));
            assert!(said, "{}: no {part} in {usual:?}", driver.name);
        }
        assert!(usual.iter().all(|word| !word.contains("{{")), "{usual:?}");
        let differs = |change: &dyn Fn(&mut RunContext)| {
            let mut other = run.clone();
            change(&mut other);
            let same = driver.command(&other).unwrap() == usual
                && driver.environment(&other).unwrap() == driver.environment(&run).unwrap();
            !same
        };
        let cases: [(&str, bool); 6] = [
            ("keepalive", differs(&|run| run.keepalive = false)),
            ("rate_per_s", differs(&|run| run.rate_per_s = Some(500.0))),
            ("method", differs(&|run| run.method = "PUT".into())),
            ("threads", differs(&|run| run.threads = 4)),
            (
                "requests_per_connection",
                differs(&|run| run.requests_per_connection = Some(9)),
            ),
            (
                "headers",
                differs(&|run| run.headers = vec![("X-Y".into(), "z".into())]),
            ),
        ];
        for (name, changes) in cases {
            assert_eq!(changes, driver.uses(name), "{}: {name}", driver.name);
        }
        for version in &driver.http {
            run.http = *version;
            run.streams = if *version == HttpVersion::Http1 { 1 } else { 8 };
            let command = driver.command(&run).unwrap();
            assert_eq!(command == usual, run.streams == 1, "{}", driver.name);
        }
        run = context(driver);
        if driver.schemes.contains(&"https".to_owned()) {
            run.scheme = "https".into();
            let usual = driver.command(&run).unwrap();
            run.tls.version = Some(tls::Version::Tls12);
            let changes = driver.command(&run).unwrap() != usual;
            assert_eq!(changes, driver.uses("tls_version"), "{}", driver.name);
        }
        assert!(!driver.title.is_empty() && !driver.notes.is_empty());
        let needs = driver.available();
        // What no package brings has a page that says how it is installed.
        let has_cure = needs.install_command.is_some() || driver.homepage.is_some();
        assert!(needs.is_complete() || has_cure);
    }
}

#[test]
fn how_tls_is_spoken_is_refused_where_a_driver_cannot_choose_it() {
    let recipes = recipes();
    let load = LoadSpec {
        tls: TlsSpec {
            version: Some(tls::Version::Tls13),
            suites: vec!["TLS_AES_128_GCM_SHA256".into()],
            groups: vec!["x25519".into()],
            resumption: true,
            ca: Some("ca.pem".into()),
            insecure: true,
            client_key: None,
        },
        ..LoadSpec::default()
    };
    let refused = |name: &str| {
        let refusals = recipes.driver(name).unwrap().refusals(&load);
        refusals.iter().map(|one| one.key).collect::<Vec<_>>()
    };
    let all = "tls_version tls_suites tls_groups tls_resumption tls_ca";
    let all: Vec<&str> = all.split(' ').collect();
    assert!(refused("weigh").is_empty(), "{:?}", refused("weigh"));
    assert_eq!(refused("wrk"), all);
    assert_eq!(refused("ab"), all[1..]);
}

#[test]
fn versions_of_http_and_streams_reach_the_drivers_that_have_them_and_others_refuse_them() {
    let recipes = recipes();
    for (name, http, url, words) in [
        ("h2load", HttpVersion::Http1, "http", "--h1 -m 1"),
        ("h2load", HttpVersion::Http2, "https", "h2load -m 8"),
        (
            "oha",
            HttpVersion::Http1,
            "http",
            "-c 64 --http-version 1.1",
        ),
        (
            "oha",
            HttpVersion::Http2,
            "https",
            "-c 64 -p 8 --http-version 2",
        ),
        ("weigh", HttpVersion::Http2, "http", "--http 2 --streams 8"),
        (
            "weigh",
            HttpVersion::Http3,
            "https",
            "--http 3 --streams 8 --quic-congestion=bbr",
        ),
    ] {
        let driver = recipes.driver(name).unwrap();
        let mut run = context(driver);
        run.scheme = url.into();
        run.http = http;
        run.streams = if http == HttpVersion::Http1 { 1 } else { 8 };
        run.quic_congestion = Some(QuicCongestion::Bbr);
        let command = driver.command(&run).unwrap().join(" ");
        assert!(command.contains(words), "{command}");
    }
    let refused = |name: &str, load: &LoadSpec| {
        let refusals = recipes.driver(name).unwrap().refusals(load);
        let what = refusals.into_iter().map(|one| (one.key, one.what));
        what.collect::<Vec<_>>()
    };
    let mut load = LoadSpec {
        http: HttpVersion::Http2,
        streams: 8,
        ..LoadSpec::default()
    };
    for name in ["wrk", "ab", "httperf"] {
        let said = ("http", "it speaks HTTP/1.1".to_owned());
        assert_eq!(refused(name, &load), [said]);
    }
    for name in ["h2load", "oha", "weigh"] {
        assert!(refused(name, &load).is_empty(), "{name}");
    }
    load.keepalive = false;
    let keys = |name| refused(name, &load).into_iter().map(|(key, _)| key);
    assert_eq!(keys("h2load").collect::<Vec<_>>(), ["keepalive"]);
    assert_eq!(keys("oha").collect::<Vec<_>>(), ["keepalive"]);
    assert_eq!(keys("weigh").count(), 0);
    load.keepalive = true;
    load.http = HttpVersion::Http3;
    let said = ("http", "it speaks HTTP/1.1 and HTTP/2".to_owned());
    assert_eq!(refused("h2load", &load), refused("oha", &load));
    assert_eq!(refused("h2load", &load), [said]);
    let drivers = own(
        "single",
        "title = \"t\"\nreader = \"wrk\"\nhttp = [\"2\"]\n\
         [run]\ncommand = [\"prog\", \"{{ url }}\"]\n[cannot]\nstreams = \"one is enough\"\n",
    )
    .unwrap();
    let single = drivers.get("single").unwrap();
    load.http = HttpVersion::Http2;
    let refusals = single.refusals(&load);
    assert_eq!((refusals.len(), refusals[0].key), (1, "streams"));
    assert_eq!(refusals[0].why.as_deref(), Some("one is enough"));
    assert_eq!(single.refusals(&LoadSpec::default())[0].key, "http");
}

#[test]
fn headers_come_where_the_command_says_and_empty_words_are_left_out() {
    let drivers = own(
        "mine",
        "title = \"t\"\nreader = \"wrk\"\n[programs]\np = [\"prog\"]\n\
         [run]\ncommand = [\"{{ programs.p }}\", \"{% if not keepalive %}-x{% endif %}\", \
         \"{{ headers }}\", \"{{ url }}\"]\nheader = [\"-H\", \"{{ header.name }}={{ header.value }}\"]\n\
         env = { LOAD = \"{{ connections }}\" }\n",
    )
    .unwrap();
    let driver = drivers.get("mine").unwrap();
    let mut run = context(driver);
    run.headers = vec![("A".into(), "1".into()), ("B".into(), "2 3".into())];
    assert_eq!(
        driver.command(&run).unwrap(),
        [
            "prog",
            "-H",
            "A=1",
            "-H",
            "B=2 3",
            "http://127.0.0.1:8080/p?q=1"
        ]
    );
    let env = driver.environment(&run).unwrap();
    assert_eq!(env, [("LOAD".to_owned(), "64".to_owned())]);
    assert!(
        drivers.get("ab").is_some(),
        "the program's own are there, too"
    );
}

#[test]
fn mistakes_in_a_driver_are_shown_in_it() {
    let error = own(
        "bad",
        "titel = \"t\"\nreader = \"wkr\"\nschemes = [\"HTTP\"]\n\
         [run]\ncommand = [\"prog\", \"{{ conections }}\", \"{{ url \"]\nheader = [\"-H\"]\n\
         statuses = [256]\n[cannot]\nfly = \"no wings\"\n",
    )
    .unwrap_err();
    assert_shown("driver-mistakes", &error);
    let error = own(
        "can",
        "title = \"t\"\nreader = \"ab\"\n[run]\ncommand = [\"prog\", \"{{ method }}\"]\n\
         [cannot]\nmethod = \"it cannot\"\n",
    )
    .unwrap_err();
    assert!(words(&error).contains("`cannot.method`"), "{error}");
    let error = own(
        "engine",
        "title = \"t\"\nreader = \"ab\"\n[run]\ncommand = [\"x\"]\n",
    )
    .unwrap_err();
    let error = words(&error);
    error.has("a driver cannot be called `engine`");
    let error = own("empty", "").unwrap_err();
    for key in [
        "`title` is missing",
        "`reader` is missing",
        "`run` is missing",
    ] {
        assert!(words(&error).contains(key), "{error}");
    }
}

#[test]
fn a_driver_can_be_for_all_for_one_subject_or_a_level() {
    let experiment = good(parse(GOOD));
    let labels = |experiment: &Experiment| -> Vec<String> {
        let choices = experiment.drivers();
        choices.iter().map(|choice| choice.label()).collect()
    };
    assert_eq!(labels(&experiment), ["wrk"]);
    let text = with(
        "b = { url = \"http://origin/bytes/100\" }",
        "b = { url = \"http://origin/\", driver = \"weigh\", with = { io = \"epoll\" } }",
    );
    let experiment = good(parse(&text));
    assert_eq!(labels(&experiment), ["wrk", "weigh (io=epoll)"]);
    let plan = Plan::new(&experiment, 1);
    let described = plan.describe(&[]);
    described.has("driver: wrk for a\ndriver: weigh (io=epoll) for b\n");
    // What is written out is read again as the same.
    let again = good(parse(&experiment.to_toml()));
    assert_eq!(again, experiment);

    let text = with("[load]", "[factors]\ndriver = [\"engine\", \"ab\"]\n[load]");
    let experiment = good(parse(&text));
    assert_eq!(labels(&experiment), ["engine", "ab"]);
    assert_eq!(good(parse(&experiment.to_toml())), experiment);
    let experiment = good(parse_set(GOOD, &[("load.driver", "ab")]));
    assert_eq!(labels(&experiment), ["ab"]);
    // No open loop can be made, so none is planned.
    assert!(experiment.design.latency_window.is_zero());
    let experiment = good(parse(&with("driver = \"wrk\"\n", "")));
    assert_eq!(labels(&experiment), ["engine"]);
    assert!(!experiment.design.latency_window.is_zero());
    assert!(
        Plan::new(&experiment, 1)
            .describe(&[])
            .contains("driver: engine\n")
    );
}

#[test]
fn names_that_no_driver_has() {
    is_refused(
        &with("driver = \"wrk\"", "with = { io = \"epoll\" }"),
        "`load.with` has no driver",
    );
    let text = with("[load]", "[factors]\ndriver = [\"wrk\", \"abb\"]\n[load]");
    is_refused(&text, "did you mean `ab`?");
    let text = with("connections = 64", "connections = 64\nwith = {}")
        .replace("[load]", "[factors]\ndriver = [\"wrk\", \"ab\"]\n[load]");
    is_refused(&text, "the factor `driver` varies the driver");
    is_refused(&with("url =", "ulr ="), "did you mean `url`?");
}

#[test]
fn what_a_driver_cannot_do_is_refused_at_the_key_that_asks_for_it() {
    for (text, what) in said("driver") {
        let (driver, line) = text.split_once('|').unwrap();
        let text = with("connections = 64", line).replace("\"wrk\"", &format!("\"{driver}\""));
        let said = complaint(&text);
        assert!(said.contains(&what), "{driver}, {line}: {said}");
        let key = line.split(' ').next().unwrap();
        assert!(
            said.contains(&format!("`{key}` is set for subject")),
            "{said}"
        );
    }
    let status = with("[design]", "[expect]\nstatus = 404\n[design]");
    is_refused(&status, "cannot accept status 404");
    good(parse(&status.replace("\"wrk\"", "\"weigh\"")));
    let factor = with("connections = 64", "")
        .replace("[load]", "[factors]\nconnections = [64, 2000]\n[load]");
    is_refused(
        &factor.replace("\"wrk\"", "\"httperf\""),
        "`connections` is set for subject",
    );
}

#[test]
fn the_engine_and_other_drivers_do_not_mix_and_each_has_its_scheme() {
    let redis = with(
        "a = \"http://origin/\"\nb = { url = \"http://origin/bytes/100\" }",
        "a = \"redis://127.0.0.1:6379/\"\nb = \"redis://127.0.0.1:6380/\"",
    );
    let said = complaint(&redis);
    said.has("`wrk` does not support redis://");
    said.has("redis-benchmark");
    let experiment = good(parse(&redis.replace("\"wrk\"", "\"redis-benchmark\"")));
    assert_eq!(good(parse(&experiment.to_toml())), experiment);
    is_refused(&redis.replace("redis://", "rdis://"), "this is not a URL");
}
