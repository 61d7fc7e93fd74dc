//! How large a page is.

use readings::Journal;
use report::RunFacts;

use testing::made_up::MadeUp;

fn page(trials: u32) -> String {
    let journal = Journal::parse(&MadeUp::of(trials).text()).unwrap();
    report::html(&journal, &verdict::analyse(&journal), &RunFacts::default())
}

#[test]
fn a_page_of_300_trials_holds_its_trials_below_a_megabyte() {
    let page = page(300);
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.contains("id=\"data-csv\""));
    assert!(page.contains("id=\"data-json\"") || page.contains("Left out, since this page"));
    // 6,000 slices are one mark for each trial.
    assert!(page.contains("Over time</h2>") && page.contains("slowest and fastest slice"));
}

#[test]
fn a_longer_run_leaves_data_out_and_grows_slower_than_its_trials() {
    let (short, long) = (page(300), page(1_000));
    assert!(
        long.len() < 2 * short.len(),
        "{} {}",
        short.len(),
        long.len()
    );
    assert!(long.contains("Left out, since this page would be longer"));
}
