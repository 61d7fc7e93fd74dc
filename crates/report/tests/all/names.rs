//! The names of subjects stand as they were given.
use readings::{JournalRow, Outcome};
use report::RunFacts;
use testing::Text as _;
use testing::journals::journal;
use verdict::analyse;

#[test]
fn no_sentence_or_table_capitalises_the_name_of_a_subject() {
    let mut journal = journal();
    // No word of English begins so.
    let renamed = |name: &str| format!("q{name}");
    journal.header.baseline = renamed(&journal.header.baseline);
    for name in &mut journal.header.subjects {
        *name = renamed(name);
    }
    for row in &mut journal.rows {
        let JournalRow::Trial(trial) = row else {
            continue;
        };
        trial.subject = renamed(&trial.subject);
        // The baseline differs from itself: a caveat that begins with its name.
        if let (true, Outcome::Done(reading)) = (trial.baseline_copy, &mut trial.outcome)
            && let Some(load) = &mut reading.throughput
        {
            load.requests = load.requests * 6 / 5;
            load.requests_all = load.requests;
        }
    }
    let analysis = analyse(&journal);
    let header = &journal.header;
    let facts = RunFacts::default();
    let shown = [
        report::terminal(&journal, &analysis, 100, false, None),
        report::verbose(header, &analysis, 100, false, None),
        report::markdown(header, &analysis),
        report::html(&journal, &analysis, &facts),
        report::json(header, &analysis).to_string(),
    ];
    for text in &shown {
        for name in ["Qdirect", "Qbalance", "Qlighttpd"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
    }
    shown[3].has("qdirect differs from itself");
}
