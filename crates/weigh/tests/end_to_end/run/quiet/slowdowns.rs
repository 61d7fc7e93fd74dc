//! Servers and links that get slower for a time: quota, delay and loss.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{
    KILL, Place, alive, array, descendants, hosts_or_skip, number, skip, spec, trials, wait_until,
};

/// A back end on a host of its own. `EVENT` is filled in; it lasts from 0.5 to 2 s.
const EXPERIMENT: &str = include_str!("slowdowns/experiment.toml");

/// Runs the experiment with an event, and returns its one trial.
fn measured(place: &Place, event: &str) -> Value {
    place.write("x.toml", &EXPERIMENT.replace("EVENT", event));
    place.run("run x.toml --out r --format json").none_failed();
    let mut trials = trials(&place.path("r"));
    trials.retain(|trial| trial["baseline_copy"] == false);
    // The last one: a trial that a busy machine has spoilt is repeated.
    trials.pop().unwrap()["outcome"]["done"].clone()
}

/// Medians of the interval rows between two times, us.
fn medians(reading: &Value, from_s: f64, to_s: f64) -> Vec<f64> {
    let rows = array(&reading["latency"]["rows"]).iter();
    let within = rows.filter(|row| {
        let start_s = number(&row["start_s"]);
        start_s >= from_s && start_s < to_s && number(&row["requests"]) > 0.0
    });
    let mut medians: Vec<f64> = within
        .map(|row| number(&row["latency_us"]["p50"]))
        .collect();
    medians.sort_by(f64::total_cmp);
    medians
}

fn middle(values: &[f64]) -> f64 {
    values[values.len() / 2]
}

/// A place, where this machine can have hosts with a quota.
fn place() -> Option<Place> {
    let root = net::os::is_root();
    if !root {
        skip("hosts with a quota need root");
    }
    let place = Place::quiet();
    (root && hosts_or_skip(&[spec("one")], None).is_some()).then_some(place)
}

#[test]
fn a_slow_link_takes_its_delay_longer_and_no_longer_afterwards() {
    let Some(place) = place() else { return };
    let reading = measured(
        &place,
        "server = \"one\"\nwhat = \"slow\"\ndelay = \"150ms\"",
    );
    let event = &reading["events"]["events"][0];
    assert_eq!(
        (&event["what"], &event["server"]),
        (&"slow".into(), &"one".into())
    );
    assert!(number(&event["at_s"]) >= 0.5 && number(&event["back_s"]) >= 2.0);
    let during = medians(&reading, 0.8, 1.9);
    assert!(middle(&during) >= 150_000.0, "{during:?}");
    let after = medians(&reading, 3.0, 5.0);
    assert!(middle(&after) < 100_000.0, "{after:?}");
    assert!(
        number(&event["during"]["response_us_max"]) >= 150_000.0,
        "{event}"
    );
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_link_that_loses_packets_delays_what_has_to_be_sent_again() {
    let Some(place) = place() else { return };
    let reading = measured(&place, "host = \"client\"\nwhat = \"loss\"\nloss = \"30%\"");
    let event = &reading["events"]["events"][0];
    assert_eq!(
        (&event["what"], &event["host"]),
        (&"loss".into(), &"client".into())
    );
    assert_eq!(event["server"], "");
    assert!(event["in_rotation_after_s"].is_null());
    // A retransmission takes 200 ms at least.
    assert!(
        number(&event["during"]["response_us_max"]) >= 190_000.0,
        "{event}"
    );
    let after = medians(&reading, 4.0, 5.0);
    assert!(middle(&after) < 150_000.0, "{after:?}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// Control groups whose name ends with `suffix` and that have a quota, with the quota.
fn limited(suffix: &str) -> Vec<(PathBuf, f64)> {
    fn search(folder: &Path, suffix: &str, found: &mut Vec<(PathBuf, f64)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if !path.is_dir() || !name.starts_with("weigh-") {
                continue;
            }
            let number = |file: &str| {
                let text = fs::read_to_string(path.join(file)).ok()?;
                let words: Vec<f64> = text
                    .split(' ')
                    .filter_map(|it| it.trim().parse().ok())
                    .collect();
                (!words.is_empty()).then_some(words)
            };
            let quota = match number("cpu.max").as_deref() {
                Some([quota, period]) => Some(quota / period),
                _ => number("cpu.cfs_quota_us")
                    .zip(number("cpu.cfs_period_us"))
                    .map(|(quota, period)| quota[0] / period[0]),
            };
            if let Some(cpus) = quota.filter(|cpus| *cpus > 0.0 && name.ends_with(suffix)) {
                found.push((path.clone(), cpus));
            }
            search(&path, suffix, found);
        }
    }
    let mut found = Vec::new();
    let base = match Path::new("/sys/fs/cgroup/cpu").exists() {
        true => "/sys/fs/cgroup/cpu",
        false => "/sys/fs/cgroup",
    };
    search(Path::new(base), suffix, &mut found);
    found
}

#[test]
fn a_hosts_quota_is_another_one_for_a_time() {
    let Some(place) = place() else { return };
    let event = "host = \"one\"\nwhat = \"quota\"\nquota = 0.5";
    let text = EXPERIMENT.replace("EVENT", event);
    // Groups of other tests' hosts are seen, too: this one has a name of its own.
    place.write("x.toml", &short(&text).replace("one", "bounded"));
    let mut running = place.start("run x.toml --out r --format json");
    let is = |cpus: f64| {
        let groups = limited("-bounded");
        groups.iter().any(|(_, now)| (now - cpus).abs() < 0.01)
    };
    running.until("the host has its own quota", || is(64.0));
    running.until("the quota is lower", || is(0.5));
    running.until("the quota is the declared one", || is(64.0));
    running.end().none_failed();
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// The same with a window that ends soon after the event.
fn short(text: &str) -> String {
    text.replace("latency_window = \"5s\"", "latency_window = \"4s\"")
}

/// The same server without hosts, with a name by which its control group is known.
fn alone(event: &str, name: &str) -> String {
    let text = EXPERIMENT.replace("EVENT", event);
    let hosts = "[hosts.client]\nlink = {}\n[hosts.one]\nlink = {}\nquota = 64\n";
    let text = text.replace(hosts, "").replace("host = \"one\"\n", "");
    text.replace("host = \"client\"\n", "").replace("one", name)
}

const QUOTA: &str = "server = \"one\"\nwhat = \"quota\"\nquota = 0.25";

fn is_limited(server: &str) -> bool {
    let groups = limited(server);
    groups.iter().any(|(_, cpus)| (cpus - 0.25).abs() < 0.01)
}

#[test]
fn a_server_has_a_quota_for_a_time() {
    let place = Place::quiet();
    if !net::os::is_root() {
        return skip("a quota of a server needs root");
    }
    place.write("x.toml", &short(&alone(QUOTA, "limited")));
    let mut running = place.start("run x.toml --out r --format json");
    running.until("the server has a quota", || is_limited("limited"));
    running.until("it has none any more", || !is_limited("limited"));
    running.end().none_failed();
    let trials = trials(&place.path("r"));
    let event = &trials[0]["outcome"]["done"]["events"]["events"][0];
    assert_eq!(event["what"], "quota");
    assert!(event["in_rotation_after_s"].is_number(), "{event}");
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn no_quota_stays_when_the_program_is_killed() {
    let place = Place::quiet();
    if !net::os::is_root() {
        return skip("a quota of a server needs root");
    }
    let text = alone(QUOTA, "killed").replace("until = \"2s\"\n", "");
    place.write(
        "x.toml",
        &text.replace("latency_window = \"5s\"", "latency_window = \"100s\""),
    );
    let mut running = place.start("run x.toml --out r");
    let pid = running.pid();
    running.until("the server has a quota", || is_limited("killed"));
    let family = descendants(pid);
    running.signal(KILL);
    running.end().expect(-KILL);
    wait_until("all is gone", Duration::from_secs(5), || {
        alive(&family).is_empty() && !is_limited("killed") && place.left().is_empty()
    });
}
