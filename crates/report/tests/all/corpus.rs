//! The corpora of the fuzz targets hold without a fuzzer too, and so do spoilt copies of them.

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
fn spoilt_journals_are_too() {
    replay::spoilt_copies_hold(JOURNAL, journal_checks::journal, 20);
}
