//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.

#[path = "../../../../fuzz/journal_checks.rs"]
mod journal_checks;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

const JOURNAL: &[&str] = &["fuzz/corpus/journal"];

#[test]
fn every_journal_is_refused_or_reported() {
    replay::files_hold(JOURNAL, journal_checks::journal);
}

#[test]
fn mutated_journals_are_too() {
    replay::mutated_copies_hold(JOURNAL, journal_checks::journal, 20);
}
