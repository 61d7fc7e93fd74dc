//! HTTP/2, as a user has it.

use serde_json::Value;

use crate::common::{Origin, Place, array, load, no_errors, number};

#[test]
fn a_load_over_http2_has_streams() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let more = ["--http", "2", "--streams", "8", "-c", "2", "-n", "400"];
    let (done, document) = load(&place, &origin.url, &more);
    assert_eq!(done.status, 0, "{}", document["problems"]);
    no_errors(&document);
    assert_eq!(document["requests"], 400);
    assert_eq!(document["connects"], 2);
    assert_eq!(document["streams"], 8);
    let open = [
        "--http",
        "2",
        "--streams",
        "8",
        "-c",
        "2",
        "-d",
        "1s",
        "--rate",
        "300",
    ];
    let (_, document) = load(&place, &origin.url, &open);
    no_errors(&document);
    assert!(
        (250.0..350.0).contains(&number(&document["requests"])),
        "{document}"
    );
}

#[test]
fn options_that_http2_cannot_have_are_refused() {
    let place = Place::new();
    for (more, words) in [
        (&["--streams", "2"][..], "--http 2"),
        (&["--http", "3"], "1.1, 2"),
        (
            &["--http", "2", "--each-connection", "5"],
            "--each-connection",
        ),
        (
            &["--http", "2", "--proxy", "http://127.0.0.1:1/"],
            "--proxy",
        ),
    ] {
        let mut line = vec!["load", "http://127.0.0.1:1/"];
        line.extend(more);
        let done = place.run(&line).expect(2);
        assert!(done.err.contains(words), "{more:?}: {}", done.err);
    }
}

#[test]
fn a_server_without_http2_is_named() {
    let place = Place::new();
    // The balancer speaks HTTP/1.1 only.
    let origin = Origin::start(&place);
    place.write(
        "b.toml",
        &format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n\
             [services.web.backends]\none = \"{}\"\n",
            origin
                .url
                .trim_start_matches("http://")
                .trim_end_matches('/')
        ),
    );
    let mut balancer = place.start(&["balance", "b.toml"]);
    balancer.until_said("127.0.0.1:");
    let said = balancer.errors();
    let from = said.find("127.0.0.1:").unwrap();
    let end = |c: char| !(c.is_ascii_digit() || c == '.' || c == ':');
    let address = said[from..]
        .split(end)
        .next()
        .unwrap()
        .trim_end_matches(':');
    let url = format!("http://{address}/");
    let done = place
        .run(&["load", &url, "--http", "2", "-n", "5"])
        .expect(1);
    assert!(done.err.contains("HTTP/2"), "{}", done.err);
}

#[test]
fn subjects_of_one_experiment_may_differ_in_their_version_of_http() {
    let place = Place::new();
    place.write(
        "x.toml",
        "title = \"t\"\n[servers.o]\nrecipe = \"origin\"\nwith = { tls = true }\n\
         [subjects]\nhttp1 = { url = \"https://o/\", connections = 6 }\n\
         http2 = { url = \"https://o/\", http = \"2\", connections = 1, streams = 12 }\n\
         [design]\nblocks = 3\nwarmup = \"50ms\"\nwindow = \"200ms\"\nlatency_window = \"0s\"\n\
         bottleneck = false\nretries = 0\n",
    );
    let done = place.run(&["run", "x.toml", "--format", "json", "--out", "r"]);
    let document = done.result();
    assert_eq!(document["trials"]["failed"], 0, "{document}");
    let journal = std::fs::read_to_string(place.path("r").join("journal.jsonl")).unwrap();
    let rows = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut seen = Vec::new();
    for row in rows {
        let load = &row["outcome"]["done"]["throughput"];
        if let Some(subject) = row["subject"].as_str().filter(|_| load.is_object()) {
            let agreed = &array(&load["tls"]["negotiated"])[0]["alpn"];
            let one = (
                subject.to_owned(),
                load["connections"].clone(),
                agreed.clone(),
            );
            if !seen.contains(&one) {
                seen.push(one);
            }
        }
    }
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("http1", 6, "http/1.1"), ("http2", 1, "h2")];
    let expected = expected.map(|(name, count, alpn)| (name.into(), count.into(), alpn.into()));
    assert_eq!(seen, expected, "{journal:.2000}");
}
