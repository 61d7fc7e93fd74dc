//! Journals and a search that version 0.1 made, and its documents on them: today they give the
//! same verdicts and figures. The documents have the sentences as they are worded today.
//!
//! Service time, first byte, transfer and receive lag, of which no document tells, were emptied in
//! the journals, and most rows of a second left out.

#![allow(clippy::unwrap_used)]

use readings::Journal;
use serde_json::Value;
use verdict::capacity::{Outcome, Search, SearchOptions, Step};

const NEW_KEYS: [&str; 3] = ["bottleneck", "bottlenecks", "baseline_copy"];

fn journal(name: &str) -> Journal {
    let path = format!("{}/tests/journals/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    Journal::parse(&std::fs::read(path).unwrap()).unwrap()
}

fn document(name: &str) -> Value {
    let path = format!("{}/tests/journals/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Collects where two documents differ.
fn compare(at: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let new = b.get(key).unwrap_or(&Value::Null);
                compare(&format!("{at}.{key}"), value, new, found);
            }
            let added = b.keys().filter(|key| !a.contains_key(*key));
            let unknown = added.filter(|key| !NEW_KEYS.contains(&key.as_str()));
            found.extend(unknown.map(|key| format!("{at}.{key}: not there before")));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (number, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{at}[{number}]"), a, b, found);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            if (a - b).abs() > 1e-9 * a.abs() {
                found.push(format!("{at}: {a} before, {b} now"));
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{at}: {a} before, {b} now")),
    }
}

#[test]
fn an_old_journal_has_the_document_that_it_had() {
    for name in ["loops", "events", "hosts"] {
        let journal = journal(name);
        let new = report::json(&journal.header, &verdict::analyse(&journal));
        let mut found = Vec::new();
        compare("", &document(name), &new, &mut found);
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
}

#[test]
fn a_run_that_was_killed_in_the_middle_of_a_line_is_read() {
    let path = format!("{}/tests/journals/loops.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(path).unwrap();
    let cut = Journal::parse(&text[..text.len() - 10]).unwrap();
    let whole = Journal::parse(&text).unwrap();
    assert_eq!(cut.rows, whole.rows[..whole.rows.len() - 1]);
    assert!(whole.is_complete() && !cut.is_complete());
    let broken = [&text[..200], b"\n"].concat();
    let error = Journal::parse(&broken).unwrap_err().to_string();
    assert!(
        error.starts_with("line 1: expected a journal row"),
        "{error}"
    );
}

/// The steps of a search under a noisy machine, whose bounds fell twice: until the bounds stand the
/// search asks for the same rates. From there on it refines the rate that holds in most trials.
#[test]
fn an_old_search_for_a_capacity_goes_the_same_way() {
    let old = document("capacity");
    let steps = old["steps"].as_array().unwrap().iter().map(|step| {
        let outcome = match step["outcome"].as_str().unwrap() {
            "held" => Outcome::Met,
            "missed" => Outcome::Missed,
            _ => Outcome::Unusable,
        };
        (step["rate_per_s"].as_f64().unwrap(), outcome)
    });
    let steps: Vec<(f64, Outcome)> = steps.collect();
    let mut search = Search::new(SearchOptions {
        min_per_s: 220.0,
        max_per_s: f64::MAX / 4.0,
        max_trials: 30,
        ..SearchOptions::around(steps[0].0)
    })
    .unwrap();
    // What followed were the rates of the curve.
    for (number, (rate_per_s, outcome)) in steps[..18].iter().enumerate() {
        assert!(!search.bounds_stand());
        let offer = Step::Offer {
            rate_per_s: *rate_per_s,
        };
        assert_eq!(search.next(), offer, "step {}", number + 1);
        search.record(*rate_per_s, *outcome);
    }
    assert!(search.bounds_stand());
    let found = search.so_far();
    let (lower, upper) = (found.lower_per_s.unwrap(), found.upper_per_s.unwrap());
    assert!(lower < upper, "{found:?}");
    assert!(found.holds_per_s.unwrap() <= lower, "{found:?}");
}
