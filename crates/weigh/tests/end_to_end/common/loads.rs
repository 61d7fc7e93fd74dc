//! Calls of `weigh load` and what is asked of each.

use readings::Histogram;
use serde_json::Value;

use super::{CommandLine, Done, Place, array};

/// Loads a URL with further arguments; the document. The exit status has to say what the document
/// says.
#[track_caller]
pub fn load(place: &Place, url: &str, arguments: &(impl CommandLine + ?Sized)) -> (Done, Value) {
    let mut all = format!("load {url} --format json").words();
    all.extend(arguments.words());
    measured(place.run(&all))
}

/// The document of a load that has ended.
#[track_caller]
pub fn measured(done: Done) -> (Done, Value) {
    let document = done.json();
    let problems = array(&document["problems"]);
    let status = if problems.is_empty() { 0 } else { 4 };
    assert_eq!(done.status, status, "{problems:?}\n{}", done.err);
    (done, document)
}

pub fn histogram(document: &Value) -> Histogram {
    let text = document["histogram"].as_str().unwrap();
    assert!(!text.is_empty());
    Histogram::from_base64(text).unwrap()
}

/// Fails unless every kind of error has a count of 0.
#[track_caller]
pub fn no_errors(document: &Value) {
    let errors = document["errors"].as_object().unwrap();
    let kinds: Vec<&str> = errors.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        ["connect", "read", "write", "timeout", "status", "verify"]
    );
    let wrong = &document["wrong"];
    assert!(
        errors.values().all(|count| count == 0),
        "{errors:?} {wrong}"
    );
}

/// A number of a document.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("expected a number, found {value}"))
}

/// The sum of a field over an array's objects.
#[track_caller]
pub fn sum(values: &Value, field: &str) -> u64 {
    let one = |value: &Value| value[field].as_u64().unwrap();
    array(values).iter().map(one).sum()
}
