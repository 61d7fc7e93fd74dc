//! `weigh compare` with requests that differ.

use crate::common::{Origin, Place, array};

#[test]
fn a_comparison_sends_the_requests_of_a_file_and_tells_each() {
    let place = Place::new();
    let origin = Origin::start(&place);
    place.write(
        "shop.toml",
        "[[request]]\nname = \"small\"\npath = \"/bytes/5\"\nexpect = { length = 5 }\n\
         [[request]]\nname = \"large\"\npath = \"/bytes/100\"\nweight = 3\n",
    );
    let subjects = ["a", "b"].map(|name| format!("{name}={}/", origin.url));
    let options = "--requests shop.toml -c 2 --blocks 1 --warmup 50ms --window 200ms \
                   --bottleneck=false --seed 1 --out r";
    let words = |more: &'static str| {
        let mut words = vec!["compare", &subjects[0], &subjects[1]];
        words.extend(
            options
                .split(' ')
                .chain(more.split(' '))
                .filter(|word| !word.is_empty()),
        );
        place.run(&words)
    };
    let document = words("--format json").result();
    assert_eq!(document["trials"]["failed"], 0, "{document}");
    let rows = array(&document["by_request"]);
    let told: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["subject"].as_str().unwrap(),
            )
        })
        .collect();
    let pairs = [
        ("small", "a"),
        ("small", "b"),
        ("large", "a"),
        ("large", "b"),
    ];
    assert_eq!(told, pairs);
    assert!(
        rows.iter()
            .all(|row| row["errors"] == 0 && row["requests"].as_u64() > Some(0))
    );
    let text = place.run("report r --verbose").expect(0).out.clone();
    assert!(text.contains("By request"), "{text}");
    let short = place.run("report r").expect(0).out.clone();
    assert!(!short.contains("By request"), "{short}");
}

#[test]
fn a_comparison_fills_placeholders_and_replays_a_log() {
    let place = Place::new();
    let origin = Origin::start(&place);
    place.write("sizes.csv", "bytes\n5\n10\n");
    let line = |ms: u32, request: &str| {
        format!(
            "{{\"msec\": 1764237600.{ms:03}, \"request\": \"{request} HTTP/1.1\", \"status\": 200}}\n"
        )
    };
    let mut log: String = (0..40).map(|at| line(at * 10, "GET /bytes/5")).collect();
    log += &line(400, "POST /bytes/5");
    place.write("access.log", &log);
    let compared = |path: &str, more: &str| {
        let subjects = ["a", "b"].map(|name| format!("{name}={}{path}", origin.url));
        let options = "-c 2 --blocks 1 --warmup 50ms --seed 1 --format json";
        let mut words = vec!["compare", &subjects[0], &subjects[1]];
        words.extend(options.split(' ').chain(more.split(' ')));
        place.run(&words).result()
    };
    let path = "/bytes/{{ sizes.bytes }}";
    let more = "--feed sizes.csv --window 200ms --bottleneck=false --out f";
    let document = compared(path, more);
    assert_eq!(document["trials"]["failed"], 0, "{document}");
    let document = compared("/", "--replay access.log --speed 2 --out r");
    assert_eq!(document["trials"]["failed"], 0, "{document}");
    let journal = std::fs::read_to_string(place.path("r").join("journal.jsonl")).unwrap();
    let trials: Vec<serde_json::Value> = journal
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|row: &serde_json::Value| row["row"] == "trial")
        .collect();
    // Two subjects, and the baseline's second copy.
    assert_eq!(trials.len(), 3, "{journal}");
    assert!(
        trials
            .iter()
            .all(|row| row.to_string().contains("\"requests\":40,")),
        "{journal}"
    );
    let told = "1 line of the log, besides 40 that are replayed, is left out";
    assert!(document.to_string().contains(told), "{document}");
}

#[test]
fn a_comparison_encodes_json_by_files_and_by_reflection() {
    let place = Place::new();
    let origin = Origin::start(&place);
    place.write("order.json", r#"{"payload": "aGVsbG8="}"#);
    place.write(
        "echo.proto",
        "syntax = \"proto3\"; package weigh.v1; message Message { bytes payload = 1; }\n\
         service Echo { rpc Unary(Message) returns (Message); }\n",
    );
    let subjects = ["a", "b"].map(|name| format!("{name}={}", origin.url));
    let options = "--grpc weigh.v1.Echo/Unary -c 2 --blocks 1 --warmup 50ms --window 200ms \
                   --bottleneck=false --seed 1";
    let compared = |more: &'static str| {
        let mut words = vec!["compare", &subjects[0], &subjects[1]];
        words.extend(options.split_whitespace().chain(more.split(' ')));
        place.run(&words)
    };
    for more in [
        "--body @order.json --proto echo.proto --format json",
        "--body {\"payload\":\"aGVsbG8=\"} --format json",
    ] {
        let document = compared(more).result();
        assert_eq!(document["trials"]["failed"], 0, "{more}: {document}");
    }
    // Only the server knows.
    let failed = compared("--body {\"paylod\":\"aGVsbG8=\"} --out wrong");
    let said = format!("{}{}", failed.out, failed.err);
    assert!(said.contains("did you mean `payload`?"), "{said}");
}
