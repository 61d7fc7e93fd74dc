//! What a pilot says of a longer run: terminal, Markdown and JSON.

use readings::RunHeader;
use serde_json::{Value, json};
use verdict::plan::PlanAdvice;
use verdict::text::fraction;

use crate::grid::wrapped;
use crate::sentence::plan as sentence;

const HELPS: &str = "What would help most";

/// For a terminal of `width` columns.
pub fn plan_terminal(header: &RunHeader, advice: &PlanAdvice, width: usize) -> String {
    let width = width.max(40);
    let mut out = wrapped("", &header.title, 0, width);
    out.push('\n');
    out.push_str(&wrapped("", &sentence::pilot(advice), 0, width));
    if advice.rows.is_empty() {
        out.push_str(&wrapped("", "There is nothing to compare.", 0, width));
    }
    for row in &advice.rows {
        out.push('\n');
        let Some(spread) = &row.spread else {
            out.push_str(&wrapped("- ", &sentence::row(row), 2, width));
            continue;
        };
        out.push_str(&wrapped("- ", &sentence::which(row), 2, width));
        for target in &row.targets {
            let mark = if target.is_matters {
                ", what matters"
            } else {
                ""
            };
            let lead = format!("{}{mark}: ", fraction(target.difference));
            let text = format!("{lead}{}", sentence::needed(target));
            out.push_str(&wrapped("    ", &text, 6, width));
        }
        out.push_str(&wrapped("    ", &sentence::spread(spread), 6, width));
    }
    if !advice.remedies.is_empty() {
        out.push_str(&format!("\n{HELPS}\n"));
    }
    for (at, remedy) in advice.remedies.iter().enumerate() {
        let lead = format!("  {}. ", at + 1);
        out.push_str(&wrapped(&lead, &sentence::remedy(remedy), 5, width));
    }
    out
}

/// As Markdown.
pub fn plan_markdown(header: &RunHeader, advice: &PlanAdvice) -> String {
    let mut out = format!("# {}\n\n{}\n", header.title, sentence::pilot(advice));
    if let Some(first) = advice.rows.iter().find(|row| !row.targets.is_empty()) {
        let heads = first.targets.iter().map(|one| fraction(one.difference));
        let heads: Vec<String> = heads.collect();
        out.push_str(&format!("\n| comparison | {} |\n", heads.join(" | ")));
        out.push_str(&format!("|---|{}\n", "---|".repeat(heads.len())));
        for row in &advice.rows {
            let cells = match row.targets.is_empty() {
                true => vec!["too few blocks".to_owned(); heads.len()],
                false => row.targets.iter().map(sentence::needed).collect(),
            };
            let cells = cells.join(" | ");
            out.push_str(&format!("| {} | {cells} |\n", sentence::which(row)));
        }
        out.push('\n');
    }
    for row in &advice.rows {
        if let Some(spread) = &row.spread {
            let text = sentence::spread(spread);
            out.push_str(&format!("- {}: {text}\n", sentence::which(row)));
        }
    }
    if !advice.remedies.is_empty() {
        out.push_str(&format!("\n## {HELPS}\n\n"));
    }
    for remedy in &advice.remedies {
        out.push_str(&format!("1. {}\n", sentence::remedy(remedy)));
    }
    out
}

/// As one JSON document: `pilot_blocks`, `block_s`, `rows` (by comparison, variances of log ratios
/// in `components`) and `remedies`, each with its `sentence`.
pub fn plan_json(header: &RunHeader, advice: &PlanAdvice) -> Value {
    let mut document = json!(advice);
    document["title"] = json!(header.title);
    document["experiment"] = json!(header.experiment);
    document["seed"] = json!(header.seed);
    document["sentence"] = json!(sentence::pilot(advice));
    for (at, row) in advice.rows.iter().enumerate() {
        document["rows"][at]["sentence"] = json!(sentence::row(row));
    }
    for (at, remedy) in advice.remedies.iter().enumerate() {
        document["remedies"][at]["sentence"] = json!(sentence::remedy(remedy));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::journal;

    #[test]
    fn the_blocks_their_range_and_their_time_are_told_in_every_form() {
        let journal = journal();
        let advice = verdict::plan::plan(&journal, Some(60.0));
        let header = &journal.header;
        let row = advice.rows.iter().find(|row| row.spread.is_some()).unwrap();
        let needed = sentence::needed(&row.targets[0]);
        assert!(needed.contains("range"), "{needed}");
        let text = plan_terminal(header, &advice, 400);
        let (md, json) = (plan_markdown(header, &advice), plan_json(header, &advice));
        for words in [
            &needed,
            &sentence::which(row),
            "matters",
            "standard deviation",
        ] {
            assert!(text.contains(words), "no {words} in {text}");
        }
        assert!(md.contains(&needed) && md.contains("| 1% | 3% |"), "{md}");
        assert!(json["rows"][0]["sentence"].is_string(), "{json}");
        assert_eq!(json["block_s"], 60.0);
    }
}
