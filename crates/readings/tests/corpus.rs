//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/readings_checks.rs"]
mod readings_checks;
#[path = "../../../fuzz/replay.rs"]
mod replay;

const HISTOGRAM: &[&str] = &["fuzz/corpus/histogram"];

#[test]
fn every_histogram_is_refused_or_written_as_itself() {
    replay::files_hold(HISTOGRAM, readings_checks::histogram);
}

#[test]
fn mutated_histograms_are_too() {
    replay::mutated_copies_hold(HISTOGRAM, readings_checks::histogram, 20);
}
