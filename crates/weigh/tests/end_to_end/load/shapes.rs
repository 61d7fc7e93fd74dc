//! `weigh load`: what is asked, in which order and how fast, and what is told of it over time.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use testing::Text as _;

use crate::common::{
    INT, Origin, Place, array, counts, histogram, load, measured, no_errors, number, serve_tcp,
    sum, texts,
};
use readings::Histogram;

#[test]
fn requests_of_a_file_are_sent_as_often_as_they_weigh() {
    let place = Place::new();
    let origin = Origin::start(&place);
    place.write(
        "urls",
        "# weight, method, path\n\n9 /bytes/100\nHEAD /\n  3 GET /bytes/5\n",
    );
    let (_, document) = load(&place, &origin.url, "--urls urls -n 3900 -c 6 -t 2");
    no_errors(&document);
    assert_eq!(document["requests"], 3900);
    let each = array(&document["per_request"]);
    let names = texts(each, "name");
    assert_eq!(names, ["GET /bytes/100", "HEAD /", "GET /bytes/5"]);
    assert_eq!(sum(&document["per_request"], "requests"), 3900);
    assert_eq!(sum(&document["per_request"], "errors"), 0);
    for (one, share) in each.iter().zip([9.0 / 13.0, 1.0 / 13.0, 3.0 / 13.0]) {
        let got = number(&one["requests"]) / 3900.0;
        // Six standard deviations of so many draws.
        let off = 6.0 * (share * (1.0 - share) / 3900.0_f64).sqrt();
        assert!((got - share).abs() < off, "{one} instead of {share}");
        assert_eq!(one["latency_us"]["count"], one["requests"]);
    }
    // One load of one request has no such list.
    let (_, document) = load(&place, &origin.url, "-n 10");
    assert!(array(&document["per_request"]).is_empty());
}

#[test]
fn requests_in_order_come_one_after_the_other() {
    let place = Place::new();
    let (address, talk) = serve_tcp(|head| (200, head.lines().next().unwrap().to_owned()));
    place.write(
        "urls",
        &format!("http://{address}/a\n5 http://{address}/b\nPOST http://{address}/c\n"),
    );
    let done = place.run("load --urls urls --in-order -n 10 -c 1 --format json");
    let (_, document) = measured(done);
    no_errors(&document);
    let counts = counts(array(&document["per_request"]), "requests");
    assert_eq!(counts, [4, 3, 3]);
    // The first nine asked what a good answer is.
    let asked = talk.lines().split_off(9);
    let round = ["GET /a HTTP/1.1", "GET /b HTTP/1.1", "POST /c HTTP/1.1"];
    let expected: Vec<&str> = round.into_iter().cycle().take(10).collect();
    assert_eq!(asked, expected);
}

#[test]
fn a_mistake_in_a_file_of_requests_is_shown_with_its_line() {
    let place = Place::new();
    for (name, text, says) in [
        (
            "weight",
            "http://127.0.0.1:1/\n\n0 http://127.0.0.1:1/\n",
            ["line 3", "[WEIGHT] [METHOD] URL"],
        ),
        (
            "servers",
            "http://127.0.0.1:1/a\nhttp://127.0.0.1:2/b\n",
            ["line 2", "another server than `127.0.0.1:1`"],
        ),
        ("path", "/a\n", ["line 1", "server as URL before --urls"]),
        ("scheme", "ftp://h/\n", ["line 1", "expected a URL such as"]),
        ("empty", "# nothing\n", ["empty", "found none"]),
    ] {
        place.write(name, text);
        let done = place.run(&format!("load --urls {name}")).expect(2);
        done.says(&[name]).says(&says);
        assert_eq!(done.out, "");
    }
    let done = place.run("load --urls not-there").expect(2);
    done.says(&["not-there", "No such file"]);
}

#[test]
fn stages_ramp_and_say_what_was_due_in_each() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let (_, document) = load(
        &place,
        &origin.url,
        "--stages 300ms@0-1000,300ms@1000 -c 8 -t 2",
    );
    no_errors(&document);
    assert_eq!(document["pacing"]["kind"], "open");
    assert_eq!(number(&document["pacing"]["rate_per_s"]).round(), 750.0);
    let stages = array(&document["stages"]);
    let of = |name: &str| -> Vec<f64> { stages.iter().map(|s| number(&s[name])).collect() };
    assert_eq!(of("duration_s"), [0.3, 0.3]);
    assert_eq!(of("from_per_s"), [0.0, 1000.0]);
    assert_eq!(of("to_per_s"), [1000.0, 1000.0]);
    // The areas below the two lines; each thread's first request is due at its own time.
    for (due, expected) in of("due").into_iter().zip([150.0, 300.0]) {
        assert!((due - expected).abs() <= 2.0, "{due} instead of {expected}");
    }
    assert_eq!(of("due"), of("requests"));
    assert_eq!(sum(&document["stages"], "requests"), document["requests"]);
    // An even ramp's first half has a quarter of its requests. A row has those that the client got
    // to in it: on a busy machine some are late.
    let (_, document) = load(
        &place,
        &origin.url,
        "--stages 400ms@0-1000 --interval 200ms",
    );
    let rows = array(&document["rows"]);
    let due: Vec<f64> = rows.iter().map(|row| number(&row["due"])).collect();
    assert!((due.iter().sum::<f64>() - 200.0).abs() <= 2.0, "{due:?}");
    assert!((due[0] - 50.0).abs() <= 15.0, "{due:?}");
}

#[test]
fn each_connection_makes_as_many_requests_as_was_asked() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let (_, document) = load(&place, &origin.url, "--each-connection 25 -c 7 -t 3");
    no_errors(&document);
    assert_eq!(document["requests"], 175);
    assert_eq!(document["connects"], 7);
    let fairness = &document["fairness"];
    assert_eq!(
        (number(&fairness["min"]), number(&fairness["max"])),
        (25.0, 25.0)
    );
    assert_eq!(
        (number(&fairness["mean"]), number(&fairness["jain"])),
        (25.0, 1.0)
    );
    assert_eq!(origin.counts(), (7 + 3, 175 + 3));
}

#[test]
fn rows_add_up_and_the_log_has_a_line_for_each() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let more = "-d 450ms --interval 100ms -c 5 -t 2 --hlog all.hlog";
    let (done, document) = load(&place, &origin.url, more);
    let rows = array(&document["rows"]);
    assert_eq!(document["rows_left_out"], 0);
    assert_eq!(rows.len(), 5, "{rows:?}");
    assert_eq!(sum(&document["rows"], "requests"), document["requests"]);
    assert_eq!(sum(&document["rows"], "errors"), 0);
    assert_eq!(sum(&document["rows"], "bytes_read"), document["bytes_read"]);
    for (number_of_row, row) in rows.iter().enumerate() {
        assert!(
            (number(&row["start_s"]) - 0.1 * number_of_row as f64).abs() < 1e-6,
            "{row}"
        );
        assert_eq!(row["latency_us"]["count"], row["requests"]);
    }
    let length: f64 = rows.iter().map(|row| number(&row["duration_s"])).sum();
    assert!((length - 0.45).abs() < 1e-6, "{length}");
    // The same rows as lines on standard error while it ran.
    assert_eq!(
        done.err.matches(" requests/s  p50").count(),
        5,
        "{}",
        done.err
    );

    let log = place.read("all.hlog");
    log.begins("#[Histogram log format version 1.3]\n");
    let mut whole = Histogram::new();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| !line.starts_with(['#', '"']))
        .collect();
    assert_eq!(lines.len(), 5);
    for (line, row) in lines.iter().zip(rows) {
        let fields: Vec<&str> = line.split(',').collect();
        let [start, length, max, text] = fields[..] else {
            panic!("expected four fields: {line}");
        };
        let near = |text: &str, value: f64| (text.parse::<f64>().unwrap() - value).abs() < 6e-4;
        assert!(near(start, number(&row["start_s"])), "{line}");
        assert!(near(length, number(&row["duration_s"])), "{line}");
        assert!(near(max, number(&row["latency_us"]["max"]) / 1e3), "{line}");
        assert!(text.starts_with("HISTF"), "{line}");
        let one = Histogram::from_base64(text).unwrap();
        assert_eq!(row["requests"], one.count());
        whole.merge(&one);
    }
    assert_eq!(whole.quantiles(), histogram(&document).quantiles());
}

#[test]
fn a_load_that_is_stopped_keeps_its_rows_and_its_log() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let mut running = place.start(&format!(
        "load {} -d 90s --interval 50ms --hlog cut.hlog --format json",
        origin.url
    ));
    running.until_said(" requests/s  p50");
    running.signal(INT);
    let document = running.end().expect(130).json();
    assert_eq!(sum(&document["rows"], "requests"), document["requests"]);
    let log = place.read("cut.hlog");
    let lines = log.lines().filter(|line| line.contains("HISTF")).count();
    assert_eq!(lines, array(&document["rows"]).len());
}

#[test]
fn a_log_that_cannot_be_written_is_said_before_the_load() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let words = format!("load {} -d 90s --hlog no/such/folder", origin.url);
    place
        .run(&words)
        .expect(2)
        .says(&["--hlog no/such/folder", "No such file"]);
}

/// A listener that answers no further connection: its queue is full. The connections that fill it
/// are kept open.
fn full_listener() -> (std::net::TcpListener, SocketAddr, Vec<TcpStream>) {
    let listener = net::os::listen("127.0.0.1:0".parse().unwrap(), 0, false).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "the queue never fills");
    }
    (listener, address, waiting)
}

#[test]
fn a_connection_that_never_opens_has_a_time_limit_of_its_own() {
    let place = Place::new();
    let (_listener, address, _waiting) = full_listener();
    let url = format!("http://{address}/");
    let more = "-d 700ms -c 3 --body-varies --connect-timeout 100ms --timeout 80s";
    let (done, document) = load(&place, &url, more);
    assert_eq!(done.status, 4);
    assert_eq!(document["requests"], 0);
    let timeouts = number(&document["errors"]["timeout"]);
    // Three connections, each given up at most seven times in the window.
    assert!((3.0..=21.0).contains(&timeouts), "{}", document["errors"]);
    let wrong = &document["wrong"][0];
    assert_eq!(wrong["kind"], "connection");
    assert_eq!(wrong["expected"], "a connection within 100ms");
}

#[test]
fn very_many_connections_succeed_or_the_setting_to_change_is_named() {
    // More than the kernel has local ports for, by default, within the minute that it keeps each.
    const MANY: u64 = 30_000;
    let place = Place::new();
    let origin = Origin::start(&place);
    let count = MANY.to_string();
    let more = format!("-n {count} -c 50 --no-keepalive");
    let (done, document) = load(&place, &origin.url, &more);
    let failed = document["errors"]["connect"].as_u64().unwrap();
    if failed == 0 {
        no_errors(&document);
        assert_eq!(document["requests"], MANY);
        assert_eq!(document["connects"], MANY);
        return;
    }
    let first = document["wrong"][0]["found"].as_str().unwrap();
    for text in [
        "no local port is free",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_tw_reuse=1",
        "source addresses",
    ] {
        assert!(first.contains(text), "no {text}: {first}");
    }
    if failed as f64 > 0.01 * MANY as f64 {
        assert_eq!(done.status, 4);
    }
}
