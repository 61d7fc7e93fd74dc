//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/replay.rs"]
mod replay;
#[path = "../../../fuzz/requests_checks.rs"]
mod requests_checks;

const PLACEHOLDERS: &[&str] = &["fuzz/corpus/placeholders"];
const ACCESS_LOGS: &[&str] = &["fuzz/corpus/access_log"];

#[test]
fn every_placeholder_is_refused_in_its_place_or_written_as_itself() {
    replay::files_hold(PLACEHOLDERS, requests_checks::placeholders);
}

#[test]
fn mutated_placeholders_are_too() {
    replay::mutated_copies_hold(PLACEHOLDERS, requests_checks::placeholders, 40);
}

#[test]
fn every_log_is_refused_or_has_times_in_order() {
    replay::files_hold(ACCESS_LOGS, requests_checks::access_log);
}

#[test]
fn mutated_logs_are_too() {
    replay::mutated_copies_hold(ACCESS_LOGS, requests_checks::access_log, 40);
}
