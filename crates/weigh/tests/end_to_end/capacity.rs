//! `weigh capacity`: what is found is what the back end can do, whatever the machine does.

use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;
use testing::Text as _;

use crate::common::{Answering, INT, Origin, Place, array, counts, has};
use serde_json::Value;

/// A back end with one worker, which takes 5 ms for an answer: never more than 200 a second.
fn one_worker() -> Answering {
    let worker = Mutex::new(());
    Answering::start(move |_| {
        let busy = worker.lock();
        sleep(Duration::from_millis(5));
        drop(busy);
        200
    })
}

/// Every step names its rate and how it ended.
fn steps(document: &Value) -> Vec<(f64, &str)> {
    array(&document["steps"])
        .iter()
        .map(|step| {
            let rate = step["rate_per_s"].as_f64().unwrap();
            (rate, step["outcome"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn a_rate_that_holds_at_the_end_of_the_range_is_at_least() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/delay/constant/5ms", origin.url);
    let call = |more: &str| {
        let steps = "--start 40 --min 40 --max 40 --step 200ms --step-max 200ms --rounds 0";
        let limits = "--slo mean<4s --errors 50% --min-achieved 10% --warmup 0ms";
        let line = format!("capacity {url} {limits} {steps} -c 4 -q {more}");
        place.run(&line).expect(0)
    };
    let document = call("--format json").json();
    assert_eq!(document["at_least"], true);
    assert_eq!(document["upper_is"], "range");
    assert_eq!(document["lower_per_s"], 40.0);
    assert_eq!(document["complete"], true);
    assert_eq!(document["objective"], "mean < 4 s");
    assert_eq!(document["conditions"], "errors <= 50% and achieved >= 10%");
    // In so short a step no queue becomes 4 s long.
    assert!(document["undetected_overload"].as_f64().unwrap() > 30.0);
    let text = call("");
    assert!(text.out.starts_with("Capacity of http://"), "{}", text.out);
    has(&text.out, "Steps of 200 ms");
    has(&text.out, "At least 40.0 requests/s keep mean < 4 s");
    has(&text.out, "p99 against offered requests/s");
    has(&text.out, "3 of 3");
    assert_eq!(text.err, "");
    let page = call("--format md");
    has(&page.out, "| offered/s | answered/s |");
    let page = call("--format html -o page.html");
    assert_eq!(page.out, "");
    let html = place.read("page.html");
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg"));
}

#[test]
fn no_rate_that_keeps_the_objective_is_a_result_too() {
    let place = Place::new();
    let origin = Origin::start(&place);
    // Answers take 30 ms: none comes within 10.
    let url = format!("{}/delay/constant/30ms", origin.url);
    let document = place
        .run(&format!(
        "capacity {url} --objective mean<10ms --start 40 --min 20 --step 300ms --step-max 300ms \
         --warmup 0ms --rounds 1 -c 8 -q --format json"
    ))
        .expect(0)
        .json();
    assert!(document["lower_per_s"].is_null(), "{}", document["steps"]);
    let first = document["sentences"][0].as_str().unwrap();
    assert!(first.starts_with("No rate kept mean < 10 ms"), "{first}");
}

#[test]
fn throughput_over_connections_is_what_the_delay_allows() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let url = format!("{}/delay/constant/20ms", origin.url);
    let call = |format: &str, rounds: &str| {
        let words = format!(
            "capacity {url} --concurrency 8,1,2,4,2 --rounds {rounds} --step 300ms --warmup 50ms \
             --seed 3 --format {format}"
        );
        place.run(&words).expect(0)
    };
    let done = call("json", "4");
    let document = done.json();
    let levels = array(&document["levels"]);
    let connections = counts(levels, "connections");
    assert_eq!(connections, [1, 2, 4, 8]);
    for level in levels {
        assert_eq!(level["rounds"], 4, "{level}");
        // An answer takes 20 ms at least; one that was begun before the window may count.
        let most = level["connections"].as_f64().unwrap() * (50.0 + 1.0 / 0.3);
        let high = level["requests_per_s"]["high"].as_f64().unwrap();
        assert!(0.0 < high && high <= most, "{level}");
    }
    assert_eq!(array(&document["steps"]).len(), 16);
    // In random order: not each round alike.
    let order = counts(array(&document["steps"]), "connections");
    assert!(
        order.chunks(4).any(|round| round != &order[..4]),
        "{order:?}"
    );
    // A busy machine may fit none.
    assert_eq!(document["fit"].is_null(), !document["no_fit"].is_null());
    let expected = array(&document["expected"]);
    if let Some(last) = expected.last() {
        assert_eq!(last["concurrency"], 8.0);
    }
    assert!(expected.iter().all(|p| p["beyond_measured"] == false));
    has(&done.err, "round 4");
    let text = call("text", "1").out;
    text.begins("Throughput over concurrency of ");
    has(&text, "universal scalability law");
    has(&text, "  connections  requests/s");
    let page = call("md", "1").out;
    has(&page, "| connections | requests/s |");
    assert!(call("html", "1").out.contains("<svg"));
}

#[test]
fn a_signal_ends_it_and_shows_what_was_measured() {
    let place = Place::new();
    let server = one_worker();
    let url = server.url();
    let words = format!(
        "capacity {url} --objective mean<3s --start 20 --step 400ms --step-max 400ms --warmup 0ms \
         --format json"
    );
    let mut running = place.start(&words);
    running.until_said("   2  ");
    running.signal(INT);
    let document = running.end().expect(130).json();
    assert_eq!(document["stopped"], true);
    assert!(array(&document["steps"]).len() >= 2);
    assert_eq!(document["complete"], false);

    let words = format!("capacity {url} --concurrency 1,2 --rounds 1000 --step 100ms");
    let mut running = place.start(&words);
    running.until_said("round 2");
    running.signal(INT);
    let done = running.end().expect(130);
    has(&done.out, "It was stopped");
    has(&done.out, "No law was fitted");
}

#[test]
fn a_server_that_nobody_is_at_has_no_capacity() {
    let place = Place::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    place
        .run(&format!("capacity {nobody} --objective p99<10ms"))
        .expect(1)
        .says(&["refused"]);
}

#[test]
fn a_back_end_whose_answers_turn_wrong_has_no_capacity() {
    let place = Place::new();
    let server = Answering::start(|number| if number < 3 { 200 } else { 503 });
    let done = place.run(&format!(
        "capacity {} --objective p50<1s --step 200ms",
        server.url()
    ));
    done.expect(1)
        .says(&["no good answer came in a closed loop", "503"]);
}

mod quiet {
    use super::*;

    #[test]
    fn a_back_end_with_one_worker_has_the_capacity_of_its_worker() {
        let place = Place::quiet();
        let server = one_worker();
        let done = place
            .run(&format!(
            "capacity {} --objective p50<60ms -c 16 --step 500ms --warmup 100ms --precision 30% \
             --max-steps 14 --rounds 1 --seed 5 --format json",
            server.url()
        ))
            .expect(0);
        let document = done.json();
        assert_eq!(document["objective"], "p50 < 60 ms");
        assert_eq!(document["conditions"], "errors < 0.1% and achieved >= 99%");
        let steps = steps(&document);
        assert!(steps.len() > 5, "{steps:?}");
        // Above 200/s a queue grows. The median request is due 350 ms after the start (100 ms of warm-up
        // and half of the step of 500 ms). Its response time is below 60 ms if at most 12 requests, of
        // 5 ms each, are ahead of it.
        let most = 200.0 + (0.060 / 0.005) / (0.1 + 0.5 / 2.0);
        let held: Vec<f64> = steps
            .iter()
            .filter(|(_, outcome)| *outcome == "held")
            .map(|(rate, _)| *rate)
            .collect();
        assert!(!held.is_empty(), "{steps:?}");
        assert!(held.iter().all(|rate| *rate <= most), "{steps:?}");
        let lower = document["lower_per_s"].as_f64().unwrap();
        let upper = document["upper_per_s"].as_f64().unwrap();
        assert!(lower < upper && lower <= most, "{lower} {upper}");
        assert!(held.contains(&lower), "{lower} {steps:?}");
        // The curve has every rate once, ascending, with all its trials.
        let curve = array(&document["curve"]);
        let rates: Vec<f64> = curve
            .iter()
            .map(|point| point["rate_per_s"].as_f64().unwrap())
            .collect();
        assert!(rates.is_sorted_by(|a, b| a < b), "{rates:?}");
        let trials: u64 = curve
            .iter()
            .flat_map(|point| ["held", "missed", "unusable"].map(|n| point[n].as_u64().unwrap()))
            .sum();
        assert_eq!(trials as usize, steps.len());
        // Far below the bounds it was measured too.
        assert!(rates[0] < 0.5 * lower, "{rates:?} {lower}");
        let first = document["sentences"][0].as_str().unwrap();
        has(first, "p50 < 60 ms");
        // Each step was told while it ran, on standard error.
        has(&done.err, "closed loop with 16 connections");
        assert!(done.err.lines().count() > steps.len(), "{}", done.err);
    }
}
