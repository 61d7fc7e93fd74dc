//! What has to hold for any journal, up to the report of it.

use readings::Journal;

/// A journal: it is refused with a line, or it is analysed and reported in every form.
pub fn journal(data: &[u8]) {
    let journal = match Journal::parse(data) {
        Ok(journal) => journal,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let header = &journal.header;
    let analysis = verdict::analyse(&journal);
    let document = report::json(header, &analysis).to_string();
    assert!(serde_json::from_str::<serde_json::Value>(&document).is_ok());
    for width in [20, 100] {
        assert!(!report::terminal(&journal, &analysis, width, true, None).is_empty());
        assert!(!report::verbose(header, &analysis, width, true, None).is_empty());
    }
    assert!(!report::markdown(header, &analysis).is_empty());
    let facts = report::RunFacts::default();
    assert!(!report::html(&journal, &analysis, &facts).is_empty());
    assert!(!report::csv(&journal, &analysis).is_empty());
}
