//! Two runs beside each other.

use std::path::Path;
use testing::Text as _;

use history::store::load;
use history::{Pair, pair, pair_html, pair_json, pair_terminal};

use crate::made::{Folder, header, rows, write_run};

fn two(place: &Folder) -> Pair {
    let run = |name: &str| load(Path::new(&place.0.join(name))).unwrap();
    pair(("a", &run("a")), ("b", &run("b")))
}

fn write(place: &Folder, name: &str, shares: &[f64], kernel: &str, connections: u32) {
    let rows = rows(header(1_700_000_000), shares, 1e4);
    write_run(&place.0.join(name), &rows, kernel, connections);
}

#[test]
fn the_ratio_of_two_runs_has_the_errors_of_both() {
    let place = Folder::new("pair");
    write(&place, "a", &[0.50, 0.51, 0.49, 0.50, 0.505], "6.1", 64);
    write(&place, "b", &[0.45, 0.46, 0.44, 0.45, 0.455], "6.1", 64);
    let pair = two(&place);
    assert_eq!(pair.refused, None);
    let relation = pair.rows[0].second_over_first.unwrap();
    assert!((relation.ratio - 0.9).abs() < 0.003, "{relation:?}");
    assert!(relation.low < 0.9 && 0.9 < relation.high && relation.differs());
    let [a, b] = pair.rows[0].figures.each_ref().map(|f| f.as_ref().unwrap());
    let both = a.standard_error.hypot(b.standard_error);
    let half = (relation.high / relation.low).ln() / 2.0;
    // Between the quantiles of the normal and of Student's distribution with 4 degrees.
    assert!(half > 1.96 * both && half < 2.78 * both, "{half} {both}");
    let text = pair_terminal(&pair);
    text.has("nothing that is recorded");
    text.has("they differ");
    text.has("proxy: 5,0");
}

#[test]
fn absolute_figures_are_given_for_one_machine_only() {
    let place = Folder::new("machines");
    write(&place, "a", &[0.5, 0.51, 0.49], "6.1", 64);
    write(&place, "b", &[0.5, 0.51, 0.49], "6.18", 64);
    let pair = two(&place);
    assert!(!pair.same_machine && pair.refused.is_none());
    let text = pair_terminal(&pair);
    text.has("machine: kernel 6.1 -> 6.18");
    text.has("proxy: not comparable: the machines differ");
    text.has("no difference shown");
    let document = pair_json(&pair);
    assert_eq!(
        document["rows"][0]["first"]["subject_value"],
        serde_json::Value::Null
    );
    assert_eq!(document["absolute_comparable"], false);
    assert_eq!(document["differs"]["machine"][0]["name"], "kernel");
    let page = pair_html(&pair);
    page.has("<td>kernel</td><td>6.1</td><td>6.18</td>");
}

#[test]
fn runs_that_asked_for_different_things_are_refused_with_the_reason() {
    let place = Folder::new("refused");
    write(&place, "a", &[0.5, 0.51, 0.49], "6.1", 64);
    write(&place, "b", &[0.5, 0.51, 0.49], "6.1", 128);
    let pair = two(&place);
    let why = pair.refused.clone().unwrap();
    assert_eq!(why, "their experiments differ: load.connections 64 -> 128");
    assert!(pair.rows.iter().all(|row| row.second_over_first.is_none()));
    let text = pair_terminal(&pair);
    text.ends(&format!("A and B cannot be compared: {why}.\n"));
    assert!(pair_html(&pair).contains("not comparable"));
    assert_eq!(pair_json(&pair)["refused"], why);
}

#[test]
fn runs_with_too_few_blocks_are_refused_with_that_reason() {
    let place = Folder::new("few");
    write(&place, "a", &[0.5, 0.51, 0.49], "6.1", 64);
    write(&place, "b", &[0.5, 0.51], "6.1", 64);
    let why = two(&place).refused.unwrap();
    assert_eq!(
        why,
        "too few usable blocks: a figure needs 3 in both runs, and the first run has at most 3, the \
         second 2"
    );
    write(&place, "a", &[], "6.1", 64);
    let why = two(&place).refused.unwrap();
    assert_eq!(why, "no condition and subject was measured in both");
}
