//! The site as a reader has it: in a real browser.

use serde_json::json;

use crate::chromium::{Browser, Folder, MISFITS, is_here};
use crate::made::{run, site};

/// The site of thirty subjects over three runs.
fn thirty(name: &str) -> Option<(Folder, Browser)> {
    if !is_here() {
        return None;
    }
    let folder = Folder::new(name);
    for file in site((4..=6).map(|number| run(30, 2, 3, number)).collect()) {
        folder.page(&file.name, &file.text);
    }
    let browser = Browser::start(&folder.0);
    Some((folder, browser))
}

#[test]
fn thirty_subjects_fit_wide_and_narrow_windows() {
    let Some((folder, mut browser)) = thirty("board-fits") else {
        return;
    };
    for page in [
        "index",
        "experiment-proxies",
        "server-proxy",
        "subject-proxy_4",
    ] {
        for width in [1_280, 390] {
            browser.open(&folder.url(&format!("{page}.html")), width, 900);
            browser.value("document.getElementById('folds').click()");
            assert_eq!(browser.value(MISFITS), json!([]), "{page} at {width}");
        }
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_reader_sorts_filters_and_follows_a_figure_to_its_blocks() {
    let Some((folder, mut browser)) = thirty("board-reader") else {
        return;
    };
    browser.open(&folder.url("experiment-proxies.html"), 1_280, 900);
    // Sorted by a column that has intervals and places in its cells, and by keyboard.
    let sorted = browser.value(
        "(() => { const head = [...document.querySelectorAll('table.board thead th')]
            .find(th => th.textContent === 'throughput');
          const button = head.querySelector('button'); button.focus(); button.click();
          if (document.activeElement !== button || head.getAttribute('aria-sort') !== 'ascending') return 'not sorted';
          const values = [...head.closest('table').tBodies[0].rows]
            .map(row => row.cells[head.cellIndex].dataset.v).filter(v => v !== undefined).map(Number);
          return values.length > 50 && values.every((v, at) => !at || values[at - 1] <= v); })()",
    );
    assert_eq!(sorted, true);
    // Filtered by a factor and by a name.
    let shown =
        "[...document.querySelectorAll('table.board tbody tr')].filter(row => !row.hidden).length";
    assert_eq!(browser.value(shown), 60);
    let choose =
        "(() => { const one = document.querySelector('form.filters select'); one.value = '1';
        one.dispatchEvent(new Event('input', { bubbles: true })); })()";
    browser.value(choose);
    assert_eq!(browser.value(shown), 30);
    let search =
        "(() => { const one = document.querySelector('form.filters input'); one.value = 'PROXY_1';
        one.dispatchEvent(new Event('input', { bubbles: true })); })()";
    browser.value(search);
    assert_eq!(browser.value(shown), 10);
    assert_eq!(
        browser.value("document.querySelector('form.filters output').textContent"),
        "10 of 60 rows"
    );
    // From a figure to its blocks.
    let followed = browser.value(
        "new Promise(done => { const link = document.querySelector('table.board tbody tr:not([hidden]) td[data-v] a');
           link.click(); const at = document.querySelector(link.getAttribute('href'));
           setTimeout(() => { const top = at.getBoundingClientRect().top;
             done(at.closest('details').open && top >= 0 && top < innerHeight && at.cells.length); }, 300); })",
    );
    assert!(followed.as_u64() > Some(2), "{followed}");
    // Dark and light.
    let paper = "getComputedStyle(document.body).backgroundColor";
    let before = browser.value(paper);
    browser.value("document.getElementById('theme').click()");
    assert_ne!(browser.value(paper), before);
    let unreachable =
        "[...document.querySelectorAll('a[href], button, summary, select, input, .scroll')]
        .filter(e => e.tabIndex < 0).length";
    assert_eq!(browser.value(unreachable), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}
