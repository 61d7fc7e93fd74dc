//! Journals and a search that version 0.1 made, and its documents on them: today they give the
//! same verdicts and figures, but for those of events, which are judged as absolute differences
//! since; their document is today's. The documents have the sentences as they are worded today.
//!
//! Service time, first byte, transfer and receive lag, of which no document tells, were emptied in
//! the journals, and most rows of a second left out.

#![allow(clippy::unwrap_used)]

use readings::Journal;
use serde_json::Value;
use verdict::capacity::{Outcome, Search, SearchOptions, Step};

const NEW_KEYS: [&str; 10] = [
    "bottleneck",
    "bottlenecks",
    "baseline_copy",
    "matters_failures",
    "difference",
    "difference_low",
    "difference_high",
    "difference_matters",
    "longest_silence_s",
    "longest_response_s",
];

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

/// The steps of a search under a noisy machine, whose bounds fell twice: the search asks for the
/// same rates, and comes to the same bounds.
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
    // Between two parts of the search: the rates of the curve and the bounds, in random order.
    let round = 18..25;
    for (number, (rate_per_s, outcome)) in steps.iter().enumerate() {
        if number == round.start {
            assert!(matches!(search.next(), Step::Done(_)));
            search.allow_more(round.len() as u32);
        }
        if !round.contains(&number) {
            let offer = Step::Offer {
                rate_per_s: *rate_per_s,
            };
            assert_eq!(search.next(), offer, "step {}", number + 1);
        }
        search.record(*rate_per_s, *outcome);
    }
    let mut new = serde_json::to_value(search.so_far()).unwrap();
    new.as_object_mut().unwrap().remove("trials");
    for (key, value) in new.as_object().unwrap() {
        let mut found = Vec::new();
        compare(key, &old[key], value, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
