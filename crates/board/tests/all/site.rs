//! The files of a site.

use std::collections::{BTreeMap, BTreeSet};
use testing::Text as _;

use board::File;
use serde_json::Value;
use testing::journals;

use crate::made::{bare, run, site, text};

/// A million bytes, as promised.
const PAGE_BYTES_MAX: usize = 1_000_000;

fn small() -> Vec<File> {
    let curves = bare(journals::curve_journal());
    site(vec![run(5, 4, 4, 1), bare(journals::journal()), curves])
}

/// What stands between `begin` and `end`, wherever `begin` is.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let parts = text.split(begin).skip(1);
    parts
        .filter_map(|part| Some(part.split_once(end)?.0))
        .collect()
}

/// A page without its script.
fn body(page: &str) -> &str {
    page.split("<script>\n").next().unwrap()
}

#[test]
fn the_same_runs_in_another_order_give_the_same_bytes() {
    let first = site(vec![
        run(5, 4, 4, 1),
        run(5, 4, 4, 2),
        bare(journals::journal()),
    ]);
    let again = site(vec![
        bare(journals::journal()),
        run(5, 4, 4, 2),
        run(5, 4, 4, 1),
        // A copy of a run is no other run.
        run(5, 4, 4, 2),
    ]);
    assert_eq!(first, again);
    let other = site(vec![
        run(5, 4, 4, 1),
        run(5, 4, 4, 3),
        bare(journals::journal()),
    ]);
    assert_ne!(first, other);
}

#[test]
fn every_link_leads_somewhere_and_nothing_is_fetched() {
    let files = small();
    let ids: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .map(|file| {
            let ids = between(&file.text, " id=\"", "\"");
            let count = ids.len();
            let ids: BTreeSet<&str> = ids.into_iter().collect();
            assert!(
                ids.len() == count || !file.name.ends_with("html"),
                "{}",
                file.name
            );
            (file.name.as_str(), ids)
        })
        .collect();
    let mut followed = 0;
    for file in files.iter().filter(|file| file.name.ends_with("html")) {
        let page = body(&file.text);
        for to in between(page, "<a href=\"", "\"") {
            let (name, id) = to.split_once('#').unwrap_or((to, ""));
            let name = if name.is_empty() { &file.name } else { name };
            let there = ids
                .get(name)
                .unwrap_or_else(|| panic!("{}: {to}", file.name));
            assert!(id.is_empty() || there.contains(id), "{}: {to}", file.name);
            followed += 1;
        }
        for outside in ["http:", "https:", "<script src", "@import", "url(", "/tmp/"] {
            assert!(!file.text.contains(outside), "{}: {outside}", file.name);
        }
        page.lacks("NaN");
        page.lacks(">inf");
        assert!(!page.contains("<i>markup"), "{}", file.name);
    }
    assert!(followed > 100, "{followed}");
}

#[test]
fn thirty_subjects_with_their_blocks_take_less_than_a_megabyte() {
    let files = site(vec![run(30, 2, 3, 1)]);
    for file in files.iter().filter(|file| file.name.ends_with("html")) {
        let bytes = file.text.len();
        assert!(bytes < PAGE_BYTES_MAX, "{}: {bytes}", file.name);
    }
    let page = text(&files, "experiment-proxies.html");
    assert_eq!(page.matches("<details class=\"proof\">").count(), 60);
}

#[test]
fn the_documents_fit_their_schema_and_have_the_figures_of_the_pages() {
    let schema = include_str!("../../../../docs/src/reference/schemas/board.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let files = [
        small(),
        site((1..=8).map(|number| run(4, 1, 4, number)).collect()),
    ]
    .concat();
    let mut kinds = BTreeSet::new();
    for file in files.iter().filter(|file| file.name.ends_with("json")) {
        let document: Value = serde_json::from_str(&file.text).unwrap();
        let errors: Vec<String> = schema
            .iter_errors(&document)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {}", file.name, errors.join("\n"));
        kinds.insert(document["kind"].as_str().unwrap().to_owned());
        assert_eq!(
            document["page"]
                .as_str()
                .unwrap_or("index.html")
                .replace("html", "json"),
            file.name
        );
    }
    assert_eq!(kinds.len(), 3);
    let mut wrong: Value = serde_json::from_str(text(&files, "experiment-proxies.json")).unwrap();
    let row = wrong["rows"][0].clone();
    let figure = &row["figures"]["requests_per_s"];
    let page = text(&files, "experiment-proxies.html");
    assert!(page.contains(figure["text"].as_str().unwrap()));
    assert_eq!(figure["blocks"].as_array().unwrap().len(), 4);
    wrong["rows"][0]["figures"]["requests_per_s"]["places"] = "first".into();
    assert!(!schema.is_valid(&wrong));
}

#[test]
fn places_and_intervals_are_those_of_the_analysis() {
    let journal = journals::journal();
    let analysis = verdict::analyse(&journal);
    let files = site(vec![bare(journal)]);
    let document: Value = serde_json::from_str(text(&files, "experiment-proxy-cost.json")).unwrap();
    let ranking = &analysis.rankings[0];
    for ranked in &ranking.rows {
        let rows = document["rows"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["subject"] == ranked.subject)
            .unwrap();
        let figure = &row["figures"]["requests_per_s"];
        let is_close = |shown: &Value, known: f64| {
            let shown = shown.as_f64().unwrap();
            (shown / known - 1.0).abs() < 1e-12
        };
        assert!(is_close(&figure["value"], ranked.value), "{figure}");
        assert!(
            ranked.low.is_none_or(|low| is_close(&figure["low"], low)),
            "{figure}"
        );
        assert_eq!(
            row["places"],
            serde_json::json!([ranked.places.0, ranked.places.1])
        );
    }
    // What is missing has its reason, in the table and among the absences.
    let lost = &document["rows"][2];
    assert_eq!(lost["subject"], "lighttpd");
    let reason = lost["figures"]["requests_per_s"]["reason"]
        .as_str()
        .unwrap();
    reason.has("6 of 6 blocks cannot be used");
    let page = text(&files, "experiment-proxy-cost.html");
    let absences = between(page, "<section id=\"absences\">", "</section>")[0];
    absences.has("lighttpd, connections=96 (throughput");
}

#[test]
fn rates_within_bounds_of_latency_have_columns() {
    let files = site(vec![bare(journals::curve_journal())]);
    let name = files
        .iter()
        .find(|file| file.name.starts_with("experiment-"))
        .unwrap();
    let name = &name.name.replace("html", "json");
    let document: Value = serde_json::from_str(text(&files, name)).unwrap();
    let columns = document["columns"].as_array().unwrap();
    let is_bound = |column: &&Value| column["name"] == "per_s_with_p99_within_1000_us";
    assert!(
        columns.iter().any(|column| is_bound(&column)),
        "{columns:?}"
    );
    let rows = document["rows"].as_array().unwrap();
    let value = |row: &Value| row["figures"]["per_s_with_p99_within_1000_us"]["value"].as_f64();
    assert!(rows.iter().any(|row| value(row).is_some()), "{rows:?}");
    let page = text(&files, &name.replace("json", "html"));
    page.has("p99 by rate, block 1 of the curve: 1,000/s ");
}

#[test]
fn the_newest_run_is_shown_and_older_ones_are_its_history() {
    let runs = (1..=9).map(|number| run(4, 1, 4, number));
    // One that was begun and says nothing yet.
    let mut begun = run(4, 1, 4, 10);
    begun.journal.rows.clear();
    let files = site(runs.chain([begun]).collect());
    let page = text(&files, "experiment-proxies.html");
    let runs = between(page, "<section id=\"runs\">", "</section>")[0];
    assert_eq!(runs.matches("<tr>").count(), 11);
    runs.has("proxies-20260310-101500 (shown)");
    runs.has("the ratio is ");
    runs.has("worse; confirmed");
    let page = text(&files, "server-proxy.html");
    page.has("versions measured, the newest first: 2.0, 1.9");
    let over_time = between(page, "<section id=\"history\">", "</section>")[0];
    over_time.has("<svg ");
    over_time.has("; confirmed");
    // Its configuration and its recipe.
    page.has("proxy_3 in The &lt;proxies&gt; of today");
    assert!(page.contains("# &lt;xxx") && page.contains("A &lt;server&gt;."));
    // What runs whatever it is told has nothing in common with others.
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert!(!names.contains(&"server-command.html"), "{names:?}");
    // The experiment can be run again.
    assert!(page_of(&files).contains("<code>weigh run experiment-proxies.toml --seed 9</code>"));
    assert!(text(&files, "experiment-proxies.toml").contains("The <proxies> of today"));
}

fn page_of(files: &[File]) -> &str {
    text(files, "experiment-proxies.html")
}

#[test]
fn experiments_of_one_name_and_other_titles_have_pages_of_their_own() {
    let mut other = run(4, 1, 4, 2);
    other.journal.header.title = "Another".into();
    let mut odd = run(4, 1, 4, 3);
    odd.journal.header.experiment = "../Odd name/\u{202e}<b>".into();
    odd.experiment = None;
    let files = site(vec![run(4, 1, 4, 1), other, odd]);
    for name in ["experiment-proxies.html", "experiment-proxies-2.html"] {
        text(&files, name);
    }
    let is_safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    for file in &files {
        assert!(
            file.name.chars().all(is_safe) && !file.name.starts_with('.'),
            "{}",
            file.name
        );
    }
    let odd = files
        .iter()
        .find(|file| file.name.starts_with("experiment----odd"))
        .unwrap();
    assert!(odd.text.contains("--seed 3"), "{}", odd.name);
}
