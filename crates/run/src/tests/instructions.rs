//! Instructions of servers, counted after all else of a group was measured.

use std::collections::BTreeMap;

use super::*;
use readings::{InstructionScope, InstructionsReading};

/// A machine that counts, on which a request takes `a` 2,000 instructions and `b` 3,000: the load
/// in which they are counted has 3,000 requests.
fn counting() -> SharedScript {
    let script = script();
    script.borrow_mut().instruction_scope = |_| Some(InstructionScope::UserAndKernel);
    let per_load = [("a", 6_000_000), ("a.copy", 6_030_000), ("b", 9_000_000)];
    let per_load = per_load.map(|(server, count)| (server.to_owned(), count));
    script.borrow_mut().instructions = per_load.into();
    script
}

fn counted(ran: &Finished) -> Vec<(String, Option<InstructionsReading>)> {
    let done = ran.trials().into_iter().map(|trial| match trial.outcome {
        Outcome::Done(reading) => {
            let copy = if trial.baseline_copy { ".copy" } else { "" };
            (format!("{}{copy}", trial.subject), reading.instructions)
        }
        Outcome::Failed { reason, .. } => panic!("{reason}"),
    });
    done.collect()
}

fn lines<'l>(log: &'l [String], words: &str) -> Vec<&'l String> {
    log.iter().filter(|line| line.contains(words)).collect()
}

#[test]
fn each_trial_has_the_instructions_of_its_own_servers() {
    let script = counting();
    let ran = run(TWO, &script);
    let counted = counted(&ran);
    assert_eq!(counted.len(), 6);
    for (subject, reading) in &counted {
        let reading = reading.as_ref().unwrap();
        assert_eq!(reading.scope, InstructionScope::UserAndKernel);
        assert_eq!(reading.requests, 3_000);
        // The copy's servers have the names of the experiment.
        let (server, count) = match subject.as_str() {
            "a" => ("a", 6_000_000),
            "a.copy" => ("a", 6_030_000),
            _ => ("b", 9_000_000),
        };
        let expected = BTreeMap::from([(server.to_owned(), count)]);
        assert_eq!(reading.servers, expected);
        assert_eq!(reading.per_request(), Some(count as f64 / 3_000.0));
    }
}

#[test]
fn counters_are_open_only_in_a_load_of_their_own_after_all_others() {
    let script = counting();
    let text = TWO
        .replace("[design]", "[load]\nrate = \"1000/s\"\n[design]")
        .replace("latency_window = \"0s\"", "latency_window = \"200ms\"");
    let ran = run(&text, &script);
    assert_eq!(ran.failures(), [""; 0]);
    let script = script.borrow();
    let block: Vec<&str> = script
        .log
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("load") || line.starts_with("count"))
        .take(6)
        .collect();
    let load = "load on a+a.copy+b";
    let count = "count a+a.copy+b on : UserAndKernel";
    // A warm-up, a closed loop, an open loop; then the counters.
    assert_eq!(block, [load, load, load, count, load, "counted on "]);
    assert!(script.orders[2].watch.len() == 3 && script.orders[3].watch.is_empty());
}

#[test]
fn where_instructions_are_not_counted_no_load_is_made_for_them() {
    let script = counting();
    script.borrow_mut().instruction_scope = |_| None;
    let ran = run(TWO, &script);
    assert!(counted(&ran).iter().all(|(_, reading)| reading.is_none()));
    let log = &script.borrow().log;
    assert_eq!(lines(log, "load on").len(), 4);
    assert!(lines(log, "count").is_empty());
    let text = ran.journal.rows.iter().map(|row| row.to_line().unwrap());
    let text: Vec<u8> = text.flatten().collect();
    assert!(!String::from_utf8(text).unwrap().contains("instructions"));
}

#[test]
fn counters_that_cannot_be_opened_are_a_warning_and_not_tried_again() {
    let script = counting();
    script.borrow_mut().counting_fails = true;
    let ran = run(TWO, &script);
    assert!(counted(&ran).iter().all(|(_, reading)| reading.is_none()));
    assert_eq!(ran.warnings("not counted: no counter is free"), 1);
    assert_eq!(lines(&script.borrow().log, "load on").len(), 4);
}

#[test]
fn a_load_for_counting_that_fails_leaves_what_was_measured_and_closes_the_counters() {
    let script = counting();
    script.borrow_mut().fails_in_load = Some(3);
    let ran = run(TWO, &script);
    let counted = counted(&ran);
    assert!(counted[..3].iter().all(|(_, reading)| reading.is_none()));
    assert!(counted[3..].iter().all(|(_, reading)| reading.is_some()));
    assert_eq!(ran.warnings("not counted: the load broke off"), 1);
    assert_eq!(lines(&script.borrow().log, "counted on").len(), 2);
}

#[test]
fn a_server_that_was_not_counted_leaves_its_paths_without_a_figure() {
    let script = counting();
    script.borrow_mut().instructions.remove("a");
    let text = TWO.replace(
        "[servers.b]\nrecipe = \"origin\"",
        "[servers.b]\nrecipe = \"balance\"\nupstreams = [\"a\"]",
    );
    let ran = run(&text, &script);
    for (subject, reading) in counted(&ran) {
        assert_eq!(reading.is_some(), subject == "a.copy", "{subject}");
    }
}

#[test]
fn subjects_that_are_measured_one_after_the_other_are_counted_too() {
    let script = counting();
    let apart = TWO.replace("retries = 1", "retries = 1\napart = \"always\"");
    let ran = run(&apart, &script);
    assert!(counted(&ran).iter().all(|(_, reading)| reading.is_some()));
    assert_eq!(lines(&script.borrow().log, "count b on").len(), 2);
}

const MACHINES: &str = include_str!("instructions/machines.toml");

#[test]
fn machines_count_their_own_servers_and_all_the_same_instructions() {
    let script = counting();
    script.borrow_mut().instruction_scope = |host| match host {
        "one" => Some(InstructionScope::UserAndKernel),
        "two" => Some(InstructionScope::User),
        // The load's machine has no servers.
        _ => None,
    };
    let ran = run(MACHINES, &script);
    let counted = counted(&ran);
    let (_, of_b) = counted.iter().find(|(subject, _)| subject == "b").unwrap();
    let of_b = of_b.as_ref().unwrap();
    assert_eq!(of_b.scope, InstructionScope::User);
    let servers: Vec<&String> = of_b.servers.keys().collect();
    assert_eq!(servers, ["a", "b"]);
    let log = &script.borrow().log;
    let started = lines(log, "count a");
    assert!(started[0].ends_with(" on one: User"), "{started:?}");
    assert_eq!(lines(log, "count b on two: User").len(), 1);
}

#[test]
fn a_path_over_a_machine_that_counts_nothing_is_not_counted() {
    let script = counting();
    script.borrow_mut().instruction_scope =
        |host| (host == "one").then_some(InstructionScope::UserAndKernel);
    let ran = run(MACHINES, &script);
    assert!(counted(&ran).iter().all(|(_, reading)| reading.is_none()));
}
