//! `weigh read`: what other tools printed, and what follows from it.

use std::fs::File;
use testing::Text as _;

use crate::common::{Done, Origin, Place, array, words};
use serde_json::Value;

/// A report of wrk runs: from far away and from next door, two rounds each.
const NEAR_AND_FAR: &str = include_str!("../../../../tools/tests/reports/wrk.txt");

/// A page of a source browser, which numbers the lines.
const TIMED: &str = include_str!("read/timed.txt");

/// A post about one server and three, first without keep-alive and then with it.
const POST: &str = include_str!("../../../../tools/tests/reports/ab.txt");

/// Reads a text from a file.
fn read(place: &Place, text: &str) -> Value {
    let path = place.write("text.txt", text);
    let path = path.display().to_string();
    place
        .run(&format!("read {path} --format json"))
        .expect(0)
        .json()
}

fn sentences<'a>(document: &'a Value, kind: &str) -> Vec<&'a str> {
    array(&document["findings"])
        .iter()
        .filter(|finding| finding["kind"] == kind)
        .map(|finding| finding["sentence"].as_str().unwrap())
        .collect()
}

#[track_caller]
fn says(sentence: &str, parts: &[&str]) {
    for part in parts {
        assert!(sentence.contains(part), "no {part:?} in {sentence}");
    }
}

#[test]
fn a_report_of_near_and_far_runs_is_seen_through() {
    let place = Place::new();
    let document = read(&place, NEAR_AND_FAR);
    let readings = array(&document["readings"]);
    assert_eq!(readings.len(), 4);
    assert_eq!(readings[1]["requests_per_s"], 561.58);
    assert_eq!(readings[1]["lines"][0], 22);
    let far = sentences(&document, "round_trip_bound");
    assert_eq!(far.len(), 1, "{far:?}");
    says(far[0], &["96 connections / 168.58 ms = 569 requests/s"]);
    for kind in [
        "stood_still",
        "timeouts",
        "errors_left_out",
        "saturated",
        "impossible_mean",
        "corrected_afterwards",
    ] {
        assert!(!sentences(&document, kind).is_empty(), "no {kind}");
    }
    assert_eq!(array(&document["problems"]).len(), 0);
    // Tables of single figures are no outputs, and are read as well.
    let table = "| Size | kernel, timing | relay, timing |\n|---:|---:|---:|\n\
                 | 2000 | 0.130741688 | 0.12739582 |\n| 20000 | 0.490916224 | 0.50376901 |\n\
                 | 200000 | 3.799440328 | 4.33125273 |\n| 2000000 | 45.25090855 | 45.9600728 |\n";
    let document = read(&place, table);
    assert_eq!(array(&document["readings"]).len(), 0);
    let single = sentences(&document, "single_measurement");
    says(
        single[0],
        &["relay, timing against kernel, timing", "one figure each"],
    );
    // And a list of processes beside an output.
    let listed = format!(
        "{}\nCPU: 100% wrk 57% store\n",
        NEAR_AND_FAR.replace("//", "//127.0.0.1/")
    );
    let same = read(&place, &listed);
    assert!(!sentences(&same, "same_machine").is_empty(), "{same}");
}

#[test]
fn the_table_and_the_sentences_are_for_people_too() {
    let place = Place::new();
    place.write("report.txt", NEAR_AND_FAR);
    let text = place.run("read report.txt").expect(0);
    let lines: Vec<&str> = text.out.lines().collect();
    assert_eq!(lines[0], "4 readings");
    for word in words("tool conns threads requests/s mean max errors") {
        assert!(text.out.contains(word), "no {word} in\n{}", text.out);
    }
    assert!(
        text.out
            .contains("Possibly: bound by round trip and connections\n- wrk with 96")
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{}",
        text.out
    );
    for format in ["md", "markdown"] {
        let page = place
            .run(&format!("read report.txt --format {format}"))
            .expect(0);
        page.out.begins("# 4 readings\n\n| \\# | lines | tool |");
        assert!(
            page.out
                .contains("\n## Possibly: saturated\n\n- 96 to 400 connections")
        );
    }
}

/// Runs the program with a text on its standard input.
fn piped(place: &Place, arguments: &[&str], text: &str) -> Done {
    let path = place.write("input.txt", text);
    let mut command = place.weigh(arguments);
    command.stdin(File::open(path).unwrap());
    place.start_command(command).end()
}

#[test]
fn standard_input_is_read_alone_and_between_files() {
    let place = Place::new();
    for arguments in [&["read"][..], &["read", "-"]] {
        let done = piped(&place, arguments, TIMED).expect(0);
        assert!(done.out.starts_with("2 readings"), "{}", done.out);
    }
    place.write("one.txt", &POST.replace("Three:", "One more:"));
    let done = piped(&place, &["read", "one.txt", "-"], TIMED).expect(0);
    assert!(done.out.starts_with("5 readings"), "{}", done.out);
    // CpuPlacement are named with their file.
    for part in [
        "one.txt:20-29",
        "standard input:6-8",
        "one.txt lines 3 to 12",
        "- one.txt, lines 3",
    ] {
        assert!(done.out.contains(part), "no {part} in\n{}", done.out);
    }
}

#[test]
fn a_comparison_may_stand_in_two_files() {
    let place = Place::new();
    let run = |host: &str, rate: f64| {
        format!(
            "Running 5s test @ http://{host}/\n  2 threads and 10 connections\n  500 requests in 5.01s, 1.00MB read\nRequests/sec:  {rate:.2}\n"
        )
    };
    place.write("a.txt", &run("a:81", 1000.0));
    place.write("b.txt", &run("b:82", 1160.0));
    let document = place.run("read a.txt b.txt --format json").expect(0).json();
    let single = sentences(&document, "single_measurement");
    says(
        single[0],
        &[
            "b:82 against a:81",
            "a.txt lines 1 to 4",
            "b.txt lines 1 to 4",
            "+16%",
        ],
    );
    assert_eq!(document["readings"][1]["source"], "b.txt");
}

#[test]
fn a_text_without_outputs_is_told_what_was_looked_for() {
    let place = Place::new();
    place.write("prose.txt", "It felt faster than before.\n");
    let done = place.run("read prose.txt").expect(2);
    done.says(&["prose.txt", "no output of a known tool"]);
    for tool in words(
        "wrk ab httperf h2load hey oha k6 redis-benchmark siege autocannon vegeta bombardier locust \
         gatling jmeter artillery ghz time",
    ) {
        done.says(&[&format!("{tool}: `")]);
    }
    assert_eq!(done.out, "");
    // Nothing on standard input is such a text too.
    place.run("read").expect(2).says(&["standard input"]);
    place
        .run("read nowhere.txt")
        .expect(2)
        .says(&["nowhere.txt", "No such file"]);
    place.run("read .").expect(2).says(&["directory"]);
}

#[test]
fn the_document_of_weigh_load_is_read_and_its_text_is_named() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/", origin.url);
    let load = |more: &[&str]| {
        let call = [&["load", url.as_str(), "-n", "50", "-c", "2"], more].concat();
        place.run(&call).expect(0).out
    };
    let document = read(&place, &load(&["--format", "json"]));
    let reading = &document["readings"][0];
    assert_eq!(reading["tool"], "weigh");
    assert_eq!(reading["requests"], 50);
    place.write("own.txt", &load(&[]));
    let done = place.run("read own.txt").expect(2);
    done.says(&[
        "own.txt",
        "lines 1 to ",
        "the text of `weigh load`",
        "--format json",
    ]);
}

#[test]
fn a_damaged_output_says_what_is_missing() {
    let place = Place::new();
    let cut = NEAR_AND_FAR.split("Requests/sec").next().unwrap();
    let cut = cut.replace("20211 requests in 30.04s, 24.25MB read", "");
    let document = read(&place, &cut);
    let problem = document["problems"][0].as_str().unwrap();
    says(
        problem,
        &["lines 10 to 16", "wrk", "`Requests/sec:", "missing"],
    );
    // A figure that is none is shown in its line; the others stand.
    let broken = POST.replace("1387.38 [#/sec]", "13??.38 [#/sec]");
    let document = read(&place, &broken);
    let problems = array(&document["problems"]);
    says(problems[1].as_str().unwrap(), &["line 26", "13??.38"]);
    assert_eq!(document["readings"][1]["duration_s"], 7.208);
    // One that has no figure at all is no reading.
    place.write("start.txt", "Running 5s test @ http://a/\n  2 threads and 10 connections\nunable to connect to a:http Connection refused\n");
    let done = place.run("read start.txt").expect(2);
    done.says(&["start.txt", "line 3", "wrk gave up: unable to connect"]);
    // Bytes that are no text are no reason to give up.
    let mut bytes = b"\xff\xfe\x00\n".to_vec();
    bytes.extend(TIMED.as_bytes());
    std::fs::write(place.path("odd.txt"), bytes).unwrap();
    place.run("read odd.txt").expect(0);
}
