//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.

#[path = "../../../../fuzz/crawl_checks.rs"]
mod crawl_checks;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

const CRAWL_PAGE: &[&str] = &["fuzz/corpus/crawl_page"];

#[test]
fn links_of_every_page_can_be_asked_for() {
    replay::files_hold(CRAWL_PAGE, crawl_checks::crawl_page);
}

#[test]
fn links_of_mutated_pages_can_too() {
    replay::mutated_copies_hold(CRAWL_PAGE, crawl_checks::crawl_page, 200);
}
