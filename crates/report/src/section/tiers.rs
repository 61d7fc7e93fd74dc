//! Tiers as a table.

use readings::text::condition;
use verdict::Tiers;

use crate::section::columns::Columns;

pub(crate) const TITLE: &str = "Tiers";
pub(crate) const LEGEND: &str = "no two subjects of a tier are told apart, all pairs of the run \
                                 considered; a subject in two tiers is told apart from nobody in \
                                 either; the order inside of a tier means nothing";

/// A row for each subject of each condition and metric, the best tier first.
pub(crate) fn table(all: &[Tiers]) -> Columns {
    let mut rows = Vec::new();
    for one in all {
        for member in &one.subjects {
            let numbers: Vec<String> = member.tiers.iter().map(usize::to_string).collect();
            rows.push(vec![
                condition(&one.condition),
                one.metric.words().to_owned(),
                numbers.join(", "),
                member.subject.clone(),
            ]);
        }
    }
    let columns = Columns {
        head: ["condition", "metric", "tier", "subject"]
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
    use crate::{html, json, markdown, terminal};
    use readings::{Condition, Journal, JournalRow, Outcome, Trial};
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
        let rows = rows.into_iter().map(|row| JournalRow::Trial(Box::new(row)));
        Journal::new(header, rows.collect())
    }

    #[test]
    fn tiers_and_interactions_stand_in_every_form() {
        let journal = journal();
        let analysis = analyse(&journal);
        let tiers = [
            "throughput at connections=16, in tiers: 1. lighttpd, direct (not told apart); 2. balance",
            "throughput at connections=96, in tiers: 1. direct; 2. ",
        ];
        let interactions = [
            "lighttpd costs 31",
            "of 6 interactions (a subject's ratio at a level of a factor over that at the first level",
            "1 with a difference, 5 the same within 3%.",
        ];
        let text = terminal(&journal.header, &analysis, 400, false, None);
        for part in tiers.iter().chain(&interactions) {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(text.contains("\nTiers\n  throughput") && text.contains("\nInteractions\n  lig"));
        let text = markdown(&journal.header, &analysis);
        for part in [
            "## Tiers\n\n- throughput",
            "| connections=96 | throughput | 1 | direct |",
            "## Interactions",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        let page = html(&journal, &analysis, &crate::RunFacts::default());
        for part in [
            "<h2>Tiers</h2>",
            "<td>throughput</td><td>1</td><td>direct</td>",
            "<h2>Interactions</h2>",
        ] {
            assert!(page.contains(part), "no {part:?}");
        }
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
