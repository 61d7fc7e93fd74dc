//! What an experiment does to servers while they are measured, and what its result says of it.

use std::time::Duration;

use serde_json::Value;

use crate::common::{
    KILL, Place, alive, array, descendants, hosts_or_skip, number, replaced, spec, trials,
    wait_until,
};

/// Two back ends, asked by themselves and through a balancer. `HOSTS` and `HOST` are filled in.
const EXPERIMENT: &str = include_str!("events/experiment.toml");

/// The experiment with these faults, its hosts apart or not.
fn experiment(apart: bool, faults: &str) -> String {
    let text = EXPERIMENT.replace("[\"kill\"]", faults);
    let mut out = String::new();
    for line in text.lines() {
        let host = line.strip_prefix("HOST(").and_then(|h| h.strip_suffix(')'));
        match (host, line) {
            (Some(host), _) if apart => out.push_str(&format!("host = \"{host}\"\n")),
            (None, "HOSTS") if apart => out.push_str(
                "[hosts.client]\nlink = { rtt = \"0ms\" }\n[hosts.vm]\n[hosts.one]\n[hosts.two]\n",
            ),
            (Some(_), _) | (None, "HOSTS") => {}
            (None, line) => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

fn of<'t>(trials: &'t [Value], fault: &str, subject: &str) -> &'t Value {
    // The last, where a busy machine has spoiled one that was made again.
    let found = trials.iter().rev().find(|one| {
        one["condition"]["fault"] == fault
            && one["subject"] == subject
            && one["baseline_copy"] == false
    });
    let trial = found.unwrap_or_else(|| panic!("no {fault} of {subject}"));
    assert!(trial["outcome"]["done"].is_object(), "{trial}");
    &trial["outcome"]["done"]
}

/// Looks at what the trials of one kind of event say.
#[track_caller]
fn noticed(trials: &[Value], fault: &str) {
    let direct = &of(trials, fault, "direct")["events"];
    let failed = number(&direct["failed"]);
    // It is gone for a second and a half, at 200 requests a second.
    assert!(failed > 100.0, "{direct}");
    assert!(number(&direct["requests"]) > failed, "{direct}");
    let event = &direct["events"][0];
    assert_eq!(event["what"], fault);
    let (at_s, back_s) = (number(&event["at_s"]), number(&event["back_s"]));
    assert!(at_s >= 0.5 && back_s >= 2.0, "{event}");
    // Neither came before it was due.
    let late_s = number(&event["late_s"]);
    let most = (at_s - 0.5).max(back_s - 2.0);
    assert!((0.0..=most).contains(&late_s), "{event}");
    // What waits at one that is stopped for less than the timeout is answered late.
    assert!(number(&direct["full_rate_after_s"]) > 0.5, "{direct}");
    // Once it is back all is well again, to the end.
    let load = &of(trials, fault, "direct")["latency"];
    let rows = array(&load["rows"]);
    let late = |row: &&Value| number(&row["start_s"]) > 3.2;
    let good: f64 = rows
        .iter()
        .filter(late)
        .map(|row| number(&row["requests"]))
        .sum();
    assert!(good > 100.0, "{rows:?}");
    // What was noticed is known finer than by rows.
    let silence_s = number(&direct["longest_silence_s"]);
    assert!(silence_s > 1.3 && silence_s < back_s + 0.5, "{direct}");
    assert!(number(&direct["longest_silence_at_s"]) < 1.0, "{direct}");
    assert!(
        number(&direct["full_rate_after_s"]) >= silence_s - 0.5,
        "{direct}"
    );
    assert!(direct["longest_response_s"].is_number(), "{direct}");
    // The balancer has another one: of what is under way some may fail.
    let lb = &of(trials, fault, "lb")["events"];
    assert!(number(&lb["failed"]) < failed / 4.0, "{lb}");
    assert!(lb["events"][0]["in_rotation_after_s"].is_number(), "{lb}");
}

#[test]
fn a_server_that_is_killed_or_stopped_is_missed_and_comes_back() {
    let place = Place::quiet();
    place.write("x.toml", &experiment(false, "[\"kill\", \"stop\"]"));
    let document = place.run("run x.toml --out r --format json").none_failed();
    let all = trials(&place.path("r"));
    noticed(&all, "kill");
    noticed(&all, "stop");
    // What was sent to it waited there.
    let stopped = &of(&all, "stop", "direct")["events"]["events"][0];
    // A hundred requests wait for their answer at any time. A busy machine takes few samples of it.
    assert!(number(&stopped["connections_max"]) > 5.0, "{stopped}");
    let metrics: Vec<&Value> = array(&document["comparisons"])
        .iter()
        .map(|one| &one["metric"])
        .collect();
    assert!(metrics.iter().any(|metric| **metric == "failed_share"));
    assert!(metrics.iter().any(|metric| **metric == "full_rate_after_s"));
    for (name, column) in [
        ("summary.md", "full rate after"),
        ("report.html", "full rate after"),
        ("summary.json", "not_full_at_end"),
    ] {
        let text = std::fs::read_to_string(place.path("r").join(name)).unwrap();
        // If other work takes the CPUs, all of them may be spoilt.
        let is_spoilt = document["trials"]["invalid"] != 0;
        assert!(is_spoilt || text.contains(column), "{name}");
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_server_that_is_cut_off_is_missed_and_comes_back() {
    let Some(topology) = hosts_or_skip(&[spec("small")], None) else {
        return;
    };
    drop(topology);
    let place = Place::quiet();
    place.write("x.toml", &experiment(true, "[\"cut\"]"));
    place.run("run x.toml --out r --format json").none_failed();
    noticed(&trials(&place.path("r")), "cut");
    assert!(place.left().is_empty(), "{:?}", place.left());
}

#[test]
fn a_stop_of_a_second_that_fails_nothing_is_told_of_one_subject_alone() {
    let place = Place::quiet();
    let text = experiment(false, "[\"stop\"]")
        .replace("lb = \"http://lb/\"\n", "")
        .replace("until = \"2s\"", "until = \"1500ms\"")
        .replace("rate = \"200/s\"", "rate = \"500/s\"")
        .replace("connections = 400\nkeepalive = false", "connections = 100")
        .replace("timeout = \"500ms\"", "timeout = \"5s\"");
    place.write("x.toml", &text);
    place.run("run x.toml --out r");
    let trials = trials(&place.path("r"));
    let events = &of(&trials, "stop", "direct")["events"];
    assert_eq!(events["failed"], 0, "{events}");
    // It was stopped for a second: nobody had an answer, and one waited as long.
    for key in [
        "longest_silence_s",
        "longest_response_s",
        "full_rate_after_s",
    ] {
        let seconds = number(&events[key]);
        assert!((0.85..2.5).contains(&seconds), "{key}: {events}");
    }
    let summary = place.read("r/summary.md");
    // The machine may have spoilt the trial.
    let said = "requests failed; the longest silence was ";
    let spoilt = summary.contains("was stolen");
    assert!(spoilt || summary.contains(said), "{summary}");
    assert!(
        spoilt || !summary.contains("nothing to compare"),
        "{summary}"
    );
}

/// Whether a process is stopped.
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.starts_with(" T"))
}

#[test]
fn nothing_stays_stopped_when_the_program_is_killed() {
    let place = Place::quiet();
    // Until the window's end, which nobody waits for.
    let text = experiment(false, "[\"stop\"]");
    let text = replaced(&text, "until = \"2s\"\n", "");
    let text = replaced(
        &text,
        "latency_window = \"4200ms\"",
        "latency_window = \"100s\"",
    );
    place.write("x.toml", &text);
    let mut running = place.start("run x.toml --out r");
    let pid = running.pid();
    running.until("a server is stopped", || {
        descendants(pid).iter().any(|one| is_stopped(one.pid))
    });
    let family = descendants(pid);
    running.signal(KILL);
    running.end().expect(-KILL);
    wait_until("all is gone", Duration::from_secs(5), || {
        alive(&family).is_empty() && place.left().is_empty()
    });
}
