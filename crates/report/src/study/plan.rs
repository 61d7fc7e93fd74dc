//! What a pilot says of a longer run: terminal, Markdown and JSON.

use readings::RunHeader;
use readings::text::fraction;
use serde_json::{Value, json};
use verdict::plan::PlanAdvice;

use crate::text::grid::wrapped;
use verdict::words::plan as words;

const HELPS: &str = "What would help most";

/// For a terminal of `width` columns.
pub fn plan_terminal(header: &RunHeader, advice: &PlanAdvice, width: usize) -> String {
    let width = width.max(40);
    let mut out = wrapped("", &header.title, 0, width);
    out.push('\n');
    out.push_str(&wrapped("", &words::pilot(advice), 0, width));
    if advice.rows.is_empty() {
        out.push_str(&wrapped("", "There is nothing to compare.", 0, width));
    }
    for row in &advice.rows {
        out.push('\n');
        let Some(spread) = &row.spread else {
            out.push_str(&wrapped("- ", &words::row(row), 2, width));
            continue;
        };
        out.push_str(&wrapped("- ", &words::which(row), 2, width));
        for target in &row.targets {
            let mark = if target.is_matters {
                ", the margin"
            } else {
                ""
            };
            let lead = format!("{}{mark}: ", fraction(target.difference));
            let text = format!("{lead}{}", words::needed(target));
            out.push_str(&wrapped("    ", &text, 6, width));
        }
        out.push_str(&wrapped("    ", &words::spread(spread), 6, width));
    }
    if !advice.remedies.is_empty() {
        out.push_str(&format!("\n{HELPS}\n"));
    }
    for (at, remedy) in advice.remedies.iter().enumerate() {
        let lead = format!("  {}. ", at + 1);
        out.push_str(&wrapped(&lead, &words::remedy(remedy), 5, width));
    }
    out
}

/// As Markdown.
pub fn plan_markdown(header: &RunHeader, advice: &PlanAdvice) -> String {
    let mut out = format!("# {}\n\n{}\n", header.title, words::pilot(advice));
    if let Some(first) = advice.rows.iter().find(|row| !row.targets.is_empty()) {
        let heads = first.targets.iter().map(|one| fraction(one.difference));
        let heads: Vec<String> = heads.collect();
        out.push_str(&format!("\n| comparison | {} |\n", heads.join(" | ")));
        out.push_str(&format!("|---|{}\n", "---|".repeat(heads.len())));
        for row in &advice.rows {
            let cells = match row.targets.is_empty() {
                true => vec!["too few blocks".to_owned(); heads.len()],
                false => row.targets.iter().map(words::needed).collect(),
            };
            let cells = cells.join(" | ");
            out.push_str(&format!("| {} | {cells} |\n", words::which(row)));
        }
        out.push('\n');
    }
    for row in &advice.rows {
        if let Some(spread) = &row.spread {
            let text = words::spread(spread);
            out.push_str(&format!("- {}: {text}\n", words::which(row)));
        }
    }
    if !advice.remedies.is_empty() {
        out.push_str(&format!("\n## {HELPS}\n\n"));
    }
    for remedy in &advice.remedies {
        out.push_str(&format!("1. {}\n", words::remedy(remedy)));
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
    document["sentence"] = json!(words::pilot(advice));
    for (at, row) in advice.rows.iter().enumerate() {
        document["rows"][at]["sentence"] = json!(words::row(row));
    }
    for (at, remedy) in advice.remedies.iter().enumerate() {
        document["remedies"][at]["sentence"] = json!(words::remedy(remedy));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Text as _;
    use testing::journals::journal;

    #[test]
    fn the_blocks_their_range_and_their_time_are_told_in_every_form() {
        let journal = journal();
        let advice = verdict::plan::plan(&journal, Some(60.0));
        let header = &journal.header;
        let row = advice.rows.iter().find(|row| row.spread.is_some()).unwrap();
        let needed = words::needed(&row.targets[0]);
        needed.has("range");
        let text = plan_terminal(header, &advice, 400);
        let (md, json) = (plan_markdown(header, &advice), plan_json(header, &advice));
        text.has_all([
            &needed,
            &words::which(row),
            "the margin",
            "standard deviation",
        ]);
        assert!(md.contains(&needed) && md.contains("| 1% | 3% |"), "{md}");
        assert!(json["rows"][0]["sentence"].is_string(), "{json}");
        assert_eq!(json["block_s"], 60.0);
    }
}
