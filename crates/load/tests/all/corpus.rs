//! The corpora of the fuzz targets hold without a fuzzer too, and so do spoilt copies of them.

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
fn links_of_spoilt_pages_can_too() {
    replay::spoilt_copies_hold(CRAWL_PAGE, crawl_checks::crawl_page, 200);
}
