//! `weigh load` and `weigh capacity` from several hosts together.

use std::time::Duration;

use crate::common::{
    DELAYED_PAGE, Done, INT, Origin, Place, array, counts, has, load, measured, no_errors, number,
    serve_tcp, signal, sum,
};
use serde_json::Value;

/// Writes a file of hosts that are agents on this machine, each behind a pipe of its own.
fn write_hosts(place: &Place, names: &[&str]) {
    let weigh = env!("CARGO_BIN_EXE_weigh");
    let host = |name: &&str| format!("[hosts.{name}]\nexec = [{weigh:?}, \"agent\"]\n");
    let text: String = names.iter().map(host).collect();
    place.write("hosts.toml", &text);
}

fn of_hosts(document: &Value, field: &str) -> Vec<Value> {
    let hosts = array(&document["hosts"]).iter();
    hosts.map(|one| one[field].clone()).collect()
}

/// Calls `weigh load` with the three hosts of `hosts.toml`. Each makes its exact share.
#[track_caller]
pub fn three_hosts_share_a_load(url: &str, run: impl FnOnce(&str) -> Done) {
    let line = "--hosts hosts.toml -c 6 --rate 300 -d 1s -q --format json";
    let done = run(&format!("load {url} {line}"));
    let requests = of_hosts(&done.json(), "requests");
    assert_eq!(requests, [100, 100, 100], "{}", done.err);
}

/// The process numbers of a command's agents.
fn agents_of(pid: u32) -> Vec<u32> {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let agent = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("\0agent")
    };
    let pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
    pids.filter(agent).collect()
}

#[test]
fn the_stages_of_three_hosts_are_the_stages_of_one_load() {
    let place = Place::new();
    let origin = Origin::start(&place);
    write_hosts(&place, &["a", "b", "c"]);
    let url = format!("{}{DELAYED_PAGE}", origin.url);
    let more = "--hosts hosts.toml -c 30 --stages 1s@0-300,1s@300 --interval 500ms";
    let (done, document) = load(&place, &url, more);
    no_errors(&document);
    assert_eq!(of_hosts(&document, "host"), ["a", "b", "c"]);
    assert_eq!(of_hosts(&document, "connections"), [10, 10, 10]);
    // The shares are exact, and so is the whole.
    assert_eq!(of_hosts(&document, "requests"), [150, 150, 150]);
    let stages = array(&document["stages"]);
    let due: Vec<&Value> = stages.iter().map(|stage| &stage["due"]).collect();
    assert_eq!(due, [150, 300]);
    for stage in stages {
        assert_eq!(stage["requests"], stage["due"]);
        assert_eq!(stage["latency_us"]["count"], stage["due"]);
        assert!(number(&stage["latency_us"]["p50"]) > 2_000.0, "{stage}");
    }
    assert_eq!(sum(&document["rows"], "due"), 450);
    assert_eq!(document["offered"]["due"], 450);
    let mut rows = array(&document["rows"]).clone();
    rows.retain(|row| row["duration_s"] == 0.5);
    assert_eq!(rows.len(), 4);
    // The integral of the rate. A request that a busy client sends late falls into the next row.
    for (due, expected) in counts(&rows, "due").iter().zip([38, 113, 150, 150]) {
        assert!(due.abs_diff(expected) <= 10, "{due} instead of {expected}");
    }
    done.says(&["0.5s", "2.0s"]);
    let text = place.run(&format!("load {url} --hosts hosts.toml -c 7 -d 1s -q"));
    let text = text.expect(0).out;
    has(&text, "7 connections on 3 hosts");
    has(&text, "  Host connections   answers");
    drop(origin);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_host_that_is_lost_makes_the_load_invalid_and_the_others_figures_are_kept() {
    let place = Place::new();
    let origin = Origin::start(&place);
    write_hosts(&place, &["a", "b", "c"]);
    let url = format!("{}{DELAYED_PAGE}", origin.url);
    let line = "--hosts hosts.toml -c 6 --rate 300 -d 2s --interval 200ms --format json";
    let mut running = place.start(&format!("load {url} {line}"));
    running.until_said("0.2s");
    let agents = agents_of(running.pid());
    assert_eq!(agents.len(), 3);
    signal(agents[1], 9);
    let done = running.end();
    assert_eq!(done.status, 4, "{}", done.err);
    let document = done.json();
    let problems = array(&document["problems"]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let told = "host `b` was lost, and its part of the load is missing: it ended";
    assert!(
        problems[0].as_str().unwrap().starts_with(told),
        "{problems:?}"
    );
    assert_eq!(of_hosts(&document, "host"), ["a", "b", "c"]);
    assert_eq!(of_hosts(&document, "requests"), [200, 0, 200]);
}

#[test]
fn a_load_of_hosts_that_is_stopped_shows_what_was_measured() {
    let place = Place::new();
    let origin = Origin::start(&place);
    write_hosts(&place, &["a", "b"]);
    let url = format!("{}{DELAYED_PAGE}", origin.url);
    let line = "--hosts hosts.toml -c 4 -d 1m --interval 200ms --format json";
    let mut running = place.start(&format!("load {url} {line}"));
    running.until_said("0.4s");
    running.signal(INT);
    let done = running.end_within(Duration::from_secs(20));
    assert_eq!(done.status, 130, "{}", done.err);
    let document = done.json();
    assert_eq!(document["stopped"], true);
    no_errors(&document);
    assert!(sum(&document["hosts"], "requests") > 0);
    assert_eq!(
        sum(&document["hosts"], "requests"),
        document["requests"].as_u64().unwrap()
    );
}

mod quiet {
    use super::*;

    /// On a busy machine the client is late, and the step cannot be judged.
    #[test]
    fn a_capacity_of_two_hosts_goes_on_after_one_was_lost() {
        let place = Place::quiet();
        let origin = Origin::start(&place);
        write_hosts(&place, &["a", "b"]);
        // Four connections carry at most 200 a second.
        let url = format!("{}/delay/constant/20ms", origin.url);
        let line = "--hosts hosts.toml -c 4 --slo mean<25ms --start 100 --min 100 --max 400 \
                    --step 1s --warmup 0ms --rounds 0 --precision 30% --max-steps 6 --format json";
        let mut running = place.start(&format!("capacity {url} {line}"));
        running.until_said("   1 ");
        // The second step begins after 0.7 s.
        running.go_on(Duration::from_millis(1_200));
        let agents = agents_of(running.pid());
        assert_eq!(agents.len(), 2);
        signal(agents[0], 9);
        let done = running.end();
        assert_eq!(done.status, 0, "{}", done.err);
        let document = done.json();
        let steps = array(&document["steps"]);
        assert!(steps.iter().all(|step| step["outcome"] != "unusable"));
        done.says(&["host `a` was lost", "the step is repeated"]);
        assert_eq!(document["hosts"], serde_json::json!(["a", "b"]));
        let lower = number(&document["lower_per_s"]);
        assert!((100.0..=200.0).contains(&lower), "{lower}");
        for step in steps {
            let rate = number(&step["rate_per_s"]);
            match rate > 210.0 {
                true => assert_eq!(step["outcome"], "missed", "{step}"),
                false => assert!(number(&step["requests_per_s"]) < 210.0, "{step}"),
            }
        }
    }
}

#[test]
fn throughput_over_concurrency_comes_from_all_hosts() {
    let place = Place::new();
    let origin = Origin::start(&place);
    write_hosts(&place, &["a", "b"]);
    let url = format!("{}/delay/constant/10ms", origin.url);
    let line = "--hosts hosts.toml --concurrency 2,4 --rounds 1 --step 300ms --warmup 0ms -q";
    let call = |more: &str| place.run(&format!("capacity {url} {line} {more}"));
    let document = call("--format json").expect(0).json();
    for step in array(&document["steps"]) {
        // Each connection carries a request in 10 ms.
        let most = number(&step["connections"]) * 100.0;
        let per_s = number(&step["requests_per_s"]);
        assert!(per_s > most * 0.3 && per_s < most * 1.02, "{step}");
    }
    let text = call("").expect(0).out;
    has(&text, "2 hosts made the load: a, b.");
    let few = place.run(&format!("capacity {url} {}", line.replace("2,4", "1,4")));
    few.expect(2)
        .says(&["--concurrency 1: 2 hosts make the load; expected at least 2"]);
}

#[test]
fn a_file_of_hosts_and_an_address_that_do_not_fit_are_refused() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let load = |text: &str| {
        place.write("hosts.toml", text);
        place.run(&format!("load {} --hosts hosts.toml", origin.url))
    };
    load("[hosts.a]\n")
        .expect(2)
        .says(&["every host of this file is this machine"]);
    load("[host.a]\nssh = \"b\"\n")
        .expect(2)
        .says(&["hosts.toml", "host"]);
    load("[hosts.a]\nexec = [\"false\"]\n")
        .expect(1)
        .says(&["host `a`", "status 1"]);
    let missing = place.run(&format!("load {} --hosts none.toml", origin.url));
    missing.expect(2).says(&["none.toml cannot be read"]);
    let counted = place.run(&format!("load {} --hosts hosts.toml -n 5", origin.url));
    counted.expect(2).says(&["--count", "--hosts"]);
    // A network namespace of its own has another loopback device.
    let weigh = env!("CARGO_BIN_EXE_weigh");
    let apart = format!(
        "[hosts.here]\n[hosts.apart]\nexec = [\"unshare\", \"-rn\", {weigh:?}, \"agent\"]\n"
    );
    let done = load(&apart);
    match done.status {
        2 => done.says(&["on host `apart` the address"]),
        // Without user namespaces it cannot be opened.
        _ => done.expect(1).says(&["unshare"]),
    };
}

#[test]
fn requests_of_a_file_are_counted_over_all_hosts() {
    let place = Place::new();
    let origin = Origin::start(&place);
    write_hosts(&place, &["a", "b"]);
    place.write("urls", "3 /delay/constant/2ms\nHEAD /\n");
    let line =
        "--hosts hosts.toml --urls urls -c 4 --rate 200 -d 1s --arrivals poisson --format json";
    let (_, document) = measured(place.run(&format!("load {} {line}", origin.url)));
    no_errors(&document);
    let requests = document["requests"].as_u64().unwrap();
    assert_eq!(sum(&document["per_request"], "requests"), requests);
    assert!(requests > 100, "{requests}");
    for one in array(&document["per_request"]) {
        assert_eq!(one["latency_us"]["count"], one["requests"]);
        assert!(number(&one["requests"]) > 0.0, "{one}");
    }
}

#[test]
fn three_hosts_of_four_threads_send_each_row_of_a_feed_once() {
    let place = Place::new();
    write_hosts(&place, &["a", "b", "c"]);
    let rows: String = (0..1_000).map(|at| format!("{at}\n")).collect();
    place.write("user.csv", &format!("id\n{rows}"));
    for pacing in ["--rate 2000", ""] {
        let (address, talk) = serve_tcp(|_| (200, "hello".to_owned()));
        let url = format!("http://{address}/u/{{{{user.id}}}}/{{{{seq}}}}");
        let hosts = "--hosts hosts.toml -t 4 -c 24 -d 20s";
        let more = format!("--feed user.csv --feed-order once {hosts} {pacing}");
        let (_, document) = load(&place, &url, more.trim());
        no_errors(&document);
        assert_eq!(document["requests"], 1_000);
        // Each host has a third, and says which row has which number.
        for requests in of_hosts(&document, "requests") {
            assert!(requests.as_u64().unwrap().abs_diff(333) <= 8, "{requests}");
        }
        let lines = talk.lines();
        let mut got: Vec<(u64, u64)> = lines.iter().filter_map(|line| row_of(line)).collect();
        // Each host checks the first one beforehand.
        got.sort_unstable();
        got.dedup();
        let expected: Vec<(u64, u64)> = (0..1_000).map(|row| (row, row + 1)).collect();
        assert_eq!(got, expected, "{pacing}");
        assert!(lines.len() <= 1_000 + 2 * 3, "{}", lines.len());
    }
}

/// `GET /u/ROW/NUMBER HTTP/1.1`.
fn row_of(line: &str) -> Option<(u64, u64)> {
    let mut parts = line.strip_prefix("GET /u/")?.split([' ', '/']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
