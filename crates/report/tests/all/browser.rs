//! The report as a reader has it: in a real browser.

use readings::{HostSpec, Journal, LinkSpec};
use report::{MachineFacts, RunFacts, TopologyFacts, TopologyServer, TopologySubject};
use serde_json::{Value, json};

use super::chromium::{Browser, Folder, MISFITS, is_here};
use testing::made_up::MadeUp;

/// Twelve subjects with long names and markup in them, failed and invalid trials.
fn hostile() -> (Journal, RunFacts) {
    let subjects = (0..12).map(|number| match number {
        0 => "direct".to_owned(),
        1 => "<script>alert('a name runs')</script>".to_owned(),
        2 => "\"><img src=x onerror=alert(1)>".to_owned(),
        // They differ only at their end.
        number => {
            let long = "a-subject-with-a-name-of-eighty-characters-".repeat(2);
            format!("{}{number:02}", &long[..78])
        }
    });
    let subjects: Vec<String> = subjects.collect();
    let made_up = MadeUp {
        trials: 130,
        subjects: subjects.clone(),
        conditions: 2,
        lost_every: 31,
    };
    let journal = Journal::parse(&made_up.text()).unwrap();
    let server = |name: &str, host: &str, upstreams: &[&str]| TopologyServer {
        name: name.to_owned(),
        recipe: "<b>recipe</b>".to_owned(),
        host: Some(host.to_owned()),
        upstreams: upstreams.iter().map(|one| (*one).to_owned()).collect(),
    };
    let servers = subjects.iter().skip(1);
    let servers = servers.map(|name| server(name, "a-host-with-quite-a-long-name", &["origin"]));
    let link = LinkSpec {
        rtt_ns: 50_000_000,
        loss: 0.001,
        ..LinkSpec::default()
    };
    let facts = RunFacts {
        question: Some("Does <script>alert(2)</script> matter?".to_owned()),
        machines: vec![MachineFacts {
            name: "<i>vm</i>".to_owned(),
            cpu: Some("A CPU".to_owned()),
            ..MachineFacts::default()
        }],
        topology: Some(TopologyFacts {
            load_host: Some("far".to_owned()),
            loads: Vec::new(),
            hosts: vec![HostSpec {
                name: "far".to_owned(),
                link: Some(link),
                ..HostSpec::default()
            }],
            servers: servers.chain([server("origin", "back", &[])]).collect(),
            subjects: subjects
                .iter()
                .map(|name| TopologySubject {
                    name: name.clone(),
                    target: match name.as_str() {
                        "direct" => "origin".to_owned(),
                        other => other.to_owned(),
                    },
                    url: format!("http://{name}/"),
                })
                .collect(),
        }),
        ..RunFacts::default()
    };
    (journal, facts)
}

fn recorded(name: &str) -> Journal {
    let path = format!("{}/tests/journals/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    Journal::parse(&std::fs::read(path).unwrap()).unwrap()
}

fn fits(browser: &mut Browser, what: &str) {
    let misfits = browser.value(MISFITS);
    assert_eq!(misfits, json!([]), "{what}: {misfits:#}");
}

#[test]
fn nothing_is_cut_off_overlaps_or_is_empty_at_any_width() {
    if !is_here() {
        return;
    }
    let folder = Folder::new("report-widths");
    let mut browser = Browser::start(&folder.0);
    let (journal, facts) = hostile();
    let mut pages = vec![(
        "hostile",
        report::html(&journal, &verdict::analyse(&journal), &facts),
    )];
    for name in ["loops", "events", "hosts"] {
        let journal = recorded(name);
        let analysis = verdict::analyse(&journal);
        pages.push((
            name,
            report::html(&journal, &analysis, &RunFacts::default()),
        ));
    }
    for (name, page) in pages {
        assert_eq!(page.contains("Around events</h2>"), name == "events");
        assert_eq!(page.contains("Topology</h2>"), name == "hostile");
        let url = folder.page(&format!("{name}.html"), &page);
        for width in [1_920, 1_200, 390] {
            browser.open(&url, width, 900);
            fits(&mut browser, &format!("{name} at {width} px"));
            browser.value("document.getElementById('folds').click()");
            fits(&mut browser, &format!("{name} at {width} px, all open"));
        }
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn the_picture_of_a_ranking_fits_its_file() {
    if !is_here() {
        return;
    }
    let folder = Folder::new("report-picture");
    let mut browser = Browser::start(&folder.0);
    let (journal, _) = hostile();
    let one = Journal::parse(&MadeUp::of(60).text()).unwrap();
    for (name, journal) in [("hostile", journal), ("one", one)] {
        let analysis = verdict::analyse(&journal);
        let svg = report::ranking_svg(&journal.header, &analysis).unwrap();
        let page = format!("<!doctype html><body style=\"margin: 0\"><figure>{svg}</figure>");
        let url = folder.page(&format!("{name}.html"), &page);
        browser.open(&url, 1_500, 900);
        fits(&mut browser, name);
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_reader_sorts_folds_follows_a_proof_and_downloads_the_data() {
    if !is_here() {
        return;
    }
    let folder = Folder::new("report-reader");
    let mut browser = Browser::start(&folder.0);
    let (journal, facts) = hostile();
    let analysis = verdict::analyse(&journal);
    let url = folder.page("report.html", &report::html(&journal, &analysis, &facts));
    browser.open(&url, 1_200, 900);

    // Sorted by throughput, up and down.
    let column = "(() => { const head = [...document.querySelectorAll('#figures thead th')]
        .find(th => th.textContent.startsWith('requests/s'));
      head.querySelector('button').click();
      return [...head.closest('table').querySelectorAll('tbody tr')]
        .map(row => parseFloat(row.cells[head.cellIndex].textContent.replace(/[^0-9.]/g, ''))); })()";
    let sorted = |value: Value, is_up: bool| {
        let figures: Vec<f64> = serde_json::from_value(value).unwrap();
        let in_order = |pair: &[f64]| (pair[0] <= pair[1]) == is_up || pair[0] == pair[1];
        assert!(
            figures.len() > 10 && figures.windows(2).all(in_order),
            "{figures:?}"
        );
    };
    sorted(browser.value(column), true);
    sorted(browser.value(column), false);

    // Dark and light, by the button and by the system.
    let paper = "getComputedStyle(document.body).backgroundColor";
    let before = browser.value(paper);
    browser.value("document.getElementById('theme').click()");
    assert_ne!(browser.value(paper), before);
    browser.value("document.getElementById('theme').click()");
    assert_eq!(browser.value(paper), before);

    // Folds.
    let closed = "document.querySelectorAll('details:not([open])').length";
    assert!(browser.value(closed).as_u64() > Some(0));
    browser.value("document.getElementById('folds').click()");
    assert_eq!(browser.value(closed), 0);
    browser.value("document.getElementById('folds').click()");
    let open = "document.querySelectorAll('details[open]').length";
    assert_eq!(browser.value(open), 0);

    // From a sentence to its blocks.
    let followed = browser.value(
        "new Promise(done => { const link = document.querySelector('.proofs a'); link.click();
           const at = document.querySelector(link.getAttribute('href'));
           setTimeout(() => { const top = at.getBoundingClientRect().top;
             done(at.open && top >= 0 && top < innerHeight && at.querySelectorAll('tbody tr').length); }, 300); })",
    );
    assert!(followed.as_u64() > Some(0), "{followed}");

    // The data of a page that has room for all of them are those of the journal.
    let journal = Journal::parse(&MadeUp::of(60).text()).unwrap();
    let analysis = verdict::analyse(&journal);
    let page = report::html(&journal, &analysis, &RunFacts::default());
    let url = folder.page("data.html", &page);
    browser.open(&url, 1_200, 900);
    for (kind, name) in [("csv", "trials.csv"), ("json", "summary.json")] {
        let button = format!("document.querySelector('[data-from=data-{kind}]').click()");
        browser.value(&button);
        let begins = browser.wait_for("Browser.downloadWillBegin", |at| {
            at["suggestedFilename"] == name
        });
        browser.wait_for("Browser.downloadProgress", |at| {
            at["guid"] == begins["guid"] && at["state"] == "completed"
        });
        let text = std::fs::read_to_string(folder.0.join(name)).unwrap();
        match kind {
            "csv" => assert_eq!(text, report::csv(&journal, &analysis)),
            _ => {
                let expected = report::json(&journal.header, &analysis).to_string();
                assert_eq!(text.trim_end().replace("\\u003c", "<"), expected);
            }
        }
    }

    // Every control and every scrolling box is reached by the keyboard.
    let unreachable = browser.value(
        "[...document.querySelectorAll('a[href], button, summary, .scroll')].filter(e => e.tabIndex < 0).length",
    );
    assert_eq!(unreachable, 0);
    assert_eq!(browser.complaints(), [""; 0]);
}
