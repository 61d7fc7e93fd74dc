//! Journals and a search that version 0.1 made, and its documents on them: today they give the
//! same figures. The verdicts follow today's rules. One block of `hosts` was repeated; its ratio in the
//! document is that of one attempt, as today's rules have it. Events are judged as absolute
//! differences since; their document is today's. Answers at the edges of slices count by their part in
//! CPU time per request since; these figures, up to 0.06% off, are today's. Peak memory is the geometric
//! mean over valid trials since, as in its comparison; these figures are today's too.
//!
//! Service time, first byte, transfer and receive lag, of which no document tells, were emptied in
//! the journals, and most rows of a second left out.

#![allow(clippy::unwrap_used)]

use readings::Journal;
use serde_json::Value;
use testing::Text as _;
use verdict::capacity::{Outcome, Search, SearchOptions, Step};

fn journal(name: &str) -> Journal {
    let path = format!("{}/tests/journals/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    Journal::parse(&std::fs::read(path).unwrap()).unwrap()
}

fn document(name: &str) -> Value {
    let path = format!("{}/tests/journals/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Collects where figures differ that both documents have.
fn compare(at: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let new = b.get(key).unwrap_or(&Value::Null);
                compare(&format!("{at}.{key}"), value, new, found);
            }
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

/// The figures of a comparison, which do not depend on the rules of decision.
const FIGURES: [&str; 5] = [
    "blocks",
    "by_block",
    "baseline_value",
    "subject_value",
    "rate_per_s",
];
const NAMES: [&str; 3] = ["condition", "metric", "subject"];

#[test]
fn an_old_journal_has_the_figures_that_it_had() {
    for name in ["loops", "events", "hosts"] {
        let journal = journal(name);
        let new = report::json(&journal.header, &verdict::analyse(&journal));
        let old = document(name);
        let mut found = Vec::new();
        for before in old["comparisons"].as_array().unwrap() {
            // Without a single usable block there were none.
            if before["ratio"].is_null() {
                continue;
            }
            let is_same = |one: &&Value| NAMES.iter().all(|key| one[*key] == before[*key]);
            let now = new["comparisons"].as_array().unwrap().iter().find(is_same);
            let now = now.unwrap_or_else(|| panic!("{name}: {before:#} is missing"));
            if now["ratio"].is_null() {
                continue;
            }
            for key in FIGURES {
                compare(
                    &format!("{name}.{key}"),
                    &before[key],
                    &now[key],
                    &mut found,
                );
            }
        }
        let rows = new["table"].as_array().unwrap();
        for (before, now) in old["table"].as_array().unwrap().iter().zip(rows) {
            // Its attempts were repeated, and the table took each subject's last usable one.
            if name != "hosts" {
                compare(&format!("{name}.table"), before, now, &mut found);
            }
        }
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
}

/// Its comparisons always took both figures from one attempt, and its table did not: 1,561
/// requests/s of `proxied` from near, where the comparison had 1,540.
#[test]
fn the_table_of_an_old_journal_with_repeated_attempts_agrees_with_its_comparisons() {
    let journal = journal("hosts");
    let new = report::json(&journal.header, &verdict::analyse(&journal));
    let old = document("hosts");
    let mut compared = 0;
    for before in old["comparisons"].as_array().unwrap() {
        if before["metric"] != "requests_per_s" {
            continue;
        }
        for (key, subject) in [
            ("subject_value", &before["subject"]),
            ("baseline_value", &old["baseline"]),
        ] {
            let rows = new["table"].as_array().unwrap();
            let is_its = |row: &&Value| {
                row["condition"] == before["condition"] && row["subject"] == *subject
            };
            let row = rows.iter().find(is_its).unwrap();
            let mut found = Vec::new();
            compare(key, &before[key], &row["requests_per_s"], &mut found);
            assert!(found.is_empty(), "{found:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, 4);
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
    error.begins("line 1: expected a journal row");
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
