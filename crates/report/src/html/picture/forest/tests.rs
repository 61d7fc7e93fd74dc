//! What interval plots show, from runs whose figures are known.

use readings::{
    Condition, EventReading, EventsReading, Journal, JournalRow, Outcome, Reading, RunHeader, Trial,
};
use testing::Text as _;

use super::{Scale, axis, forests};
use testing::journals as fixtures;

/// What a subject did in a block: requests that failed of 100,000, and seconds until the rate was
/// full again, if it was within 10 s.
type Did = (u64, Option<f64>);

fn page(blocks: &[[Did; 3]]) -> String {
    let mut rows = Vec::new();
    for (block, did) in (1..).zip(blocks) {
        let subjects = [("direct", false), ("direct", true), ("balance", false)];
        for ((subject, baseline_copy), (failed, full)) in subjects.into_iter().zip(did) {
            let events = EventsReading {
                requests: 100_000,
                failed: *failed,
                full_rate_after_s: *full,
                observed_s: 10.0,
                events: vec![EventReading {
                    what: "kill".into(),
                    ..EventReading::default()
                }],
                ..EventsReading::default()
            };
            let reading = Reading {
                latency: Some(fixtures::load(2_000.0, 400.0, Some(2_000.0))),
                events: Some(events),
                ..Reading::default()
            };
            rows.push(JournalRow::Trial(Box::new(Trial {
                trial: rows.len() as u32 + 1,
                block,
                condition: Condition::new(),
                subject: subject.into(),
                baseline_copy,
                attempt: 1,
                outcome: Outcome::Done(Box::new(reading)),
            })));
        }
    }
    let header = RunHeader {
        subjects: vec!["direct".into(), "balance".into()],
        conditions: vec![Condition::new()],
        blocks: blocks.len() as u32,
        ..fixtures::header()
    };
    let journal = Journal::new(header, rows);
    forests(&verdict::analyse(&journal), 0.03)
}

fn plot<'p>(page: &'p str, metric: &str) -> &'p str {
    let from = page.find(&format!("id=\"forest-{metric}\"")).unwrap();
    let plot = &page[from..];
    &plot[..plot.find("</figure>").unwrap()]
}

fn row<'p>(plot: &'p str, name: &str) -> &'p str {
    let mut rows = plot.split("<div class=\"who\">").skip(1);
    rows.find(|row| row.contains(name)).unwrap()
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

const ARROW_LEFT: &str = "d=\"M6 -5L0 0L6 5\"";
const ARROW_RIGHT: &str = "d=\"M-6 -5L0 0L-6 5\"";

#[test]
fn figures_of_events_are_differences_in_their_own_unit() {
    let page = page(&[
        [(20, Some(0.2)), (24, Some(0.4)), (380, Some(1.1))],
        [(18, Some(0.2)), (24, Some(0.4)), (340, Some(1.4))],
        [(25, Some(0.3)), (14, Some(0.1)), (410, Some(1.2))],
        [(21, Some(0.2)), (20, Some(0.4)), (390, Some(0.9))],
    ]);
    let failed = plot(&page, "failed_share");
    failed.has_all([
        "Difference in share of failed requests, percentage points, less is better",
        "lines: 95% intervals",
        "shaded: differences within 0.1 percentage points do not matter",
        ">+0.2</text>",
    ]);
    let balance = row(failed, "balance");
    balance.has("+0.359 [+0.316, +0.402] percentage points");
    assert!(balance.contains("surely slower") && balance.contains("href=\"#"));
    // A dot for each block, the band, both ends and no arrow.
    assert_eq!(count(balance, "<circle"), 4);
    assert_eq!(count(balance, "class=\"band\""), 1);
    assert_eq!(count(balance, "class=\"whisker v-slower\""), 3);
    assert!(row(failed, "noise floor").contains("baseline against itself"));
    let full = plot(&page, "full_rate_after_s");
    full.has("Difference in time until the rate is full again, s, less is better");
    full.has("within 0.2 s do not matter");
    assert!(row(full, "balance").contains("+0.93 [+0.49, +1.36] s"));
    page.lacks("arrows");
}

#[test]
fn without_failures_a_single_block_gives_an_upper_bound() {
    let one = [(0, Some(0.2)), (0, Some(0.2)), (0, Some(0.3))];
    let page_of_one = page(&[one]);
    let failed = plot(&page_of_one, "failed_share");
    let balance = row(failed, "balance");
    balance.has("0.0000, at most +0.0030 percentage points");
    // A line, an end at the right, and an arrow to the left.
    assert_eq!(count(balance, "<line class=\"whisker"), 2);
    assert_eq!(count(balance, ARROW_LEFT), 1);
    assert_eq!(count(balance, ARROW_RIGHT), 0);
    failed.has("arrows: the interval goes on");
    failed.lacks("shaded");
    // One block says nothing of a time.
    let full = row(plot(&page_of_one, "full_rate_after_s"), "balance");
    assert!(full.contains("<circle") && !full.contains("whisker"));
    // A failure of the subject has no such bound.
    let failed = page(&[[(0, Some(0.2)), (0, Some(0.2)), (7, Some(0.3))]]);
    assert!(!row(plot(&failed, "failed_share"), "balance").contains("whisker"));
    // Several blocks have an interval.
    let page = page(&[one; 4]);
    let failed = plot(&page, "failed_share");
    failed.lacks("arrows");
    assert!(row(failed, "balance").contains("[-"));
}

#[test]
fn a_censored_time_is_drawn_with_an_arrow() {
    let open = page(&[
        [(0, Some(0.2)), (0, Some(0.4)), (0, None)],
        [(0, Some(0.2)), (0, Some(0.4)), (0, Some(7.0))],
        [(0, Some(0.3)), (0, Some(0.1)), (0, None)],
    ]);
    let full = plot(&open, "full_rate_after_s");
    let balance = row(full, "balance");
    assert_eq!(
        (count(balance, ARROW_LEFT), count(balance, ARROW_RIGHT)),
        (0, 1)
    );
    full.has("arrows: the interval goes on");
    // Of the baseline: the difference may be lower.
    let open = page(&[
        [(0, None), (0, None), (0, Some(0.4))],
        [(0, None), (0, None), (0, Some(0.4))],
        [(0, None), (0, None), (0, Some(0.1))],
    ]);
    let balance = row(plot(&open, "full_rate_after_s"), "balance");
    assert_eq!(
        (count(balance, ARROW_LEFT), count(balance, ARROW_RIGHT)),
        (1, 0)
    );
}

#[test]
fn ratios_are_drawn_as_changes_and_a_bound_has_one_end() {
    let journal = fixtures::journal();
    let mut analysis = verdict::analyse(&journal);
    let page = forests(&analysis, 0.03);
    let throughput = plot(&page, "requests_per_s");
    throughput.has("Change of throughput, more is better (dots: blocks; lines: 95%");
    throughput.has("shaded: differences within 3% do not matter");
    throughput.has(">0%</text>");
    let balance = row(throughput, "balance");
    assert_eq!(
        (count(balance, "<circle"), count(balance, ARROW_LEFT)),
        (6, 0)
    );
    let is_it = |c: &&mut verdict::Comparison| {
        c.subject == "balance" && c.metric == verdict::Metric::RequestsPerS
    };
    let found = analysis.comparisons.iter_mut().find(is_it).unwrap();
    (found.low, found.bound) = (None, Some(verdict::Bound::AtMost));
    let page = forests(&analysis, 0.03);
    let balance = row(plot(&page, "requests_per_s"), "balance");
    assert_eq!(
        (count(balance, ARROW_LEFT), count(balance, ARROW_RIGHT)),
        (1, 0)
    );
}

#[test]
fn labels_of_an_axis_do_not_overlap_on_a_telephone() {
    let labels = |low: f64, high: f64| {
        let ticks = crate::html::picture::axis::ratio_ticks(low, high);
        let svg = axis(Scale::new(low, high, 0.0, 100.0), &ticks);
        let mut texts: Vec<String> = svg
            .split("</text>")
            .filter_map(|text| Some(text.rsplit_once('>')?.1.to_owned()))
            .filter(|text| text.contains('%'))
            .collect();
        texts.sort();
        texts
    };
    // Those above 100% come closer and closer.
    assert_eq!(labels(-0.1, 1.2), ["+100%", "+150%", "+50%", "0%"]);
    assert_eq!(labels(-0.4, 0.96), ["+100%", "+50%", "0%"]);
}
