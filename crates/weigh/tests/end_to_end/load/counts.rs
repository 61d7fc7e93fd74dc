//! `weigh load`: what it counts is what was sent and answered.

use crate::common::{Answering, INT, Origin, Place, array, has, histogram, load, no_errors};
use testing::Text as _;

#[test]
fn a_count_of_requests_over_some_connections_is_exactly_that() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let (done, document) = load(&place, &origin.url, "-n 1001 -c 7 -t 3");
    assert_eq!(done.status, 0, "{}", document["problems"]);
    assert_eq!(document["requests"], 1001);
    assert_eq!(document["connects"], 7);
    assert_eq!(document["connections"], 7);
    assert_eq!(document["statuses"][0]["status"], 200);
    assert_eq!(document["statuses"][0]["count"], 1001);
    no_errors(&document);
    assert!(document["duration_s"].as_f64().unwrap() > 0.0);
    assert!(document["requests_per_s"].as_f64().unwrap() > 0.0);
    assert!(document["bytes_read"].as_u64().unwrap() > 1001 * 13);
    for name in [
        "latency_us",
        "service_us",
        "connect_us",
        "first_byte_us",
        "schedule_lag_us",
        "receive_lag_us",
    ] {
        for key in [
            "min", "mean", "stdev", "p50", "p75", "p90", "p99", "p99_9", "p99_99", "max",
        ] {
            assert!(document[name][key].is_number(), "no {name}.{key}");
        }
    }
    let client = &document["client"];
    assert!(client["cpu_s"].is_number() && client["saturated"].is_boolean());
    let threads = array(&client["threads"]);
    assert_eq!(threads.len(), 3);
    assert!(threads.iter().all(|thread| thread["cpu"].is_number()));
    let sum: u64 = threads
        .iter()
        .map(|thread| thread["requests"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, 1001);
    assert_eq!(histogram(&document).count(), 1001);
    // The back end agrees. It was asked three times before, to learn what a good answer is.
    assert_eq!(origin.counts(), (7 + 3, 1001 + 3));
}

#[test]
fn a_rate_makes_an_open_loop() {
    let place = Place::new();
    let origin = Origin::start(&place);
    for arrivals in ["even", "poisson"] {
        let more = format!("-n 200 -c 4 --rate 1000/s --arrivals {arrivals}");
        let (_, document) = load(&place, &origin.url, &more);
        assert_eq!(document["pacing"]["kind"], "open");
        assert_eq!(document["pacing"]["rate_per_s"], 1000.0);
        assert_eq!(document["requests"], 200, "{arrivals}");
        assert_eq!(document["schedule_lag_us"]["count"], 200, "{arrivals}");
        assert_eq!(histogram(&document).count(), 200);
        no_errors(&document);
        // A busy machine may have sent late, and then it is said; nothing else may be wrong.
        for problem in array(&document["problems"]) {
            assert!(problem.as_str().unwrap().contains("client"), "{problem}");
        }
        // 200 requests that are due in a fifth of a second cannot be through much before.
        let duration_s = document["duration_s"].as_f64().unwrap();
        assert!(arrivals != "even" || duration_s > 0.19, "{duration_s}");
    }
}

#[test]
fn connections_are_opened_as_often_as_was_asked() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let (_, document) = load(&place, &origin.url, "-n 60 -c 5 --no-keepalive");
    assert_eq!(document["requests"], 60);
    assert_eq!(document["connects"], 60);
    no_errors(&document);
    let (_, document) = load(
        &place,
        &origin.url,
        "-n 95 -c 2 --requests-per-connection 10",
    );
    assert_eq!(document["requests"], 95);
    // Ten of them are full, or nine and the last ones of both connections are not.
    let connects = document["connects"].as_u64().unwrap();
    assert!((10..=11).contains(&connects), "{connects}");
    no_errors(&document);
    assert_eq!(origin.counts(), (60 + 3 + connects + 3, 60 + 3 + 95 + 3));
}

#[test]
fn the_event_loop_can_be_chosen() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let (_, document) = load(&place, &origin.url, "-n 50 -c 2 --io epoll -H 'X-A: b'");
    assert_eq!(document["client"]["io"], "epoll");
    assert_eq!(document["requests"], 50);
}

#[test]
fn answers_that_turn_wrong_are_errors_and_status_4() {
    let place = Place::new();
    let server = Answering::start(|number| if number < 103 { 200 } else { 502 });
    let (done, document) = load(&place, &server.url(), "-n 1000 -c 1");
    assert_eq!(done.status, 4);
    // Three answers went into learning what a good one is.
    assert_eq!(document["requests"], 100);
    assert_eq!(document["errors"]["status"], 900);
    assert_eq!(histogram(&document).count(), 100);
    let problem = document["problems"][0].as_str().unwrap();
    problem.has("900 of 1,000 answers were wrong");
    problem.has("expected status 200, found 502");
    let text = place.run(&format!("load {} -n 5 --expect-status 200", server.url()));
    assert_eq!(text.status, 4, "{}", text.out);
    has(&text.out, "502");
}

#[test]
fn a_target_that_answers_with_an_error_is_measured_only_when_that_is_meant() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/status/404", origin.url);
    let done = place.run(&format!("load {url} -n 10")).expect(1);
    done.says(&["404", "--expect-status 404"]);
    assert_eq!(done.out, "");
    let (done, document) = load(&place, &url, "-n 10 --expect-status 404");
    assert_eq!(done.status, 0);
    assert_eq!(document["statuses"][0]["status"], 404);
    assert_eq!(document["requests"], 10);
}

#[test]
fn nobody_there_is_status_1() {
    let place = Place::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let url = format!("http://{address}/");
    let done = place.run(&format!("load {url} --format json")).expect(1);
    done.says(&[&address, "refused"]);
    assert_eq!(done.out, "");
}

#[test]
fn a_signal_ends_a_load_and_what_was_measured_is_shown() {
    let place = Place::new();
    let server = Answering::start(|_| 200);
    let mut running = place.start(&format!("load {} -d 80s -c 2 --format json", server.url()));
    running.until("answers have come", || server.answers() > 100);
    running.signal(INT);
    let done = running.end().expect(130);
    let document = done.json();
    assert!(document["requests"].as_u64().unwrap() > 0);
    assert!(document["duration_s"].as_f64().unwrap() < 79.0);
    assert_eq!(document["stopped"], true);
}

#[test]
fn the_text_for_people_has_the_figures_that_wrk_users_look_for() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let done = place
        .run(&format!("load {} -n 100 -c 2", origin.url))
        .expect(0);
    for text in ["Latency", "100 requests in", "Requests/sec:", &origin.url] {
        assert!(done.out.contains(text), "no {text}:\n{}", done.out);
    }
}
