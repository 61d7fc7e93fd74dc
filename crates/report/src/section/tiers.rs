//! Subjects by place, as a table.

use readings::text::condition;
use verdict::Tiers;
use verdict::words::place;

use crate::section::columns::Columns;

pub(crate) const TITLE: &str = "Places";
pub(crate) const LEGEND: &str = "the best and the worst place that the evidence leaves to a subject, \
                                 all pairs under the condition considered";

/// A row for each subject of each condition and metric, the best first.
pub(crate) fn table(all: &[Tiers]) -> Columns {
    let mut rows = Vec::new();
    for one in all {
        for (subject, places) in one.places() {
            rows.push(vec![
                condition(&one.condition),
                one.metric.words().to_owned(),
                place(places),
                subject.to_owned(),
            ]);
        }
    }
    let columns = Columns {
        head: ["condition", "metric", "place", "subject"]
            .map(str::to_owned)
            .to_vec(),
        numeric: vec![false; 4],
        rows,
    };
    match all.iter().all(|one| one.condition.is_empty()) {
        true => columns.without("condition"),
        false => columns,
    }
}

#[cfg(test)]
mod tests {
    use crate::{html, json, markdown, verbose};
    use readings::{Condition, Journal, Outcome, Trial};
    use testing::Text as _;
    use testing::journals::{header, load, trials};
    use verdict::analyse;

    /// Six blocks at 96 and at 16 connections, in which lighttpd is as fast as balance at 96 and
    /// loses nothing at 16.
    fn journal() -> Journal {
        let mut header = header();
        let at = |level: &str| Condition::from([("connections".to_owned(), level.to_owned())]);
        header.conditions = vec![at("16"), at("96")];
        let mut rows: Vec<Trial> = Vec::new();
        for trial in trials() {
            for level in ["16", "96"] {
                let mut row = trial.clone();
                row.condition = at(level);
                if row.subject == "lighttpd" {
                    let share = if level == "16" { 1.0 } else { 0.69 };
                    let wobble = 1.0 + 0.01 * f64::from(row.block % 2);
                    let reading = readings::Reading {
                        throughput: Some(load(20_000.0 * share * wobble, 4_800.0, None)),
                        ..readings::Reading::default()
                    };
                    row.outcome = Outcome::Done(Box::new(reading));
                }
                rows.push(row);
            }
        }
        Journal::of_trials(header, rows)
    }

    #[test]
    fn tiers_and_interactions_stand_in_every_form() {
        let journal = journal();
        let analysis = analyse(&journal);
        let tiers = [
            "throughput at connections=16, by place: 1-2 lighttpd, 1-2 direct, 3 balance",
            "throughput at connections=96, by place: 1 direct, 2-3 ",
        ];
        let interactions = [
            "lighttpd costs 31",
            "of 6 interactions (a subject's ratio at a level of a factor over that at the first level",
            "1 with a difference, 5 the same within 3%.",
        ];
        let text = verbose(&journal.header, &analysis, 400, false, None);
        for part in tiers.iter().chain(&interactions) {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(text.contains("\nPlaces\n  throughput") && text.contains("\nInteractions\n  lig"));
        let text = markdown(&journal.header, &analysis);
        text.has_all([
            "## Places\n\n- throughput",
            "| connections=96 | throughput | 1 | direct |",
            "## Interactions",
        ]);
        let page = html(&journal, &analysis, &crate::RunFacts::default());
        page.has_all([
            "<h2>Places</h2>",
            "<td>throughput</td><td>1</td><td>direct</td>",
            "<h2>Interactions</h2>",
        ]);
        let doc = json(&journal.header, &analysis);
        assert_eq!(doc["tiers"][0]["metric"], "requests_per_s");
        assert_eq!(doc["tiers"][1]["tiers"][0], serde_json::json!(["direct"]));
        assert_eq!(doc["tiers"][1]["pairs"].as_array().unwrap().len(), 3);
        let differs = doc["interactions"].as_array().unwrap().iter();
        let differs: Vec<_> = differs.filter(|i| i["dependence"] == "differs").collect();
        assert_eq!(differs.len(), 1);
        assert_eq!(differs[0]["subject"], "lighttpd");
        assert!(!differs[0]["sentence"].is_null());
        assert!(doc["comparisons"][0]["bound"].is_null());
    }
}
