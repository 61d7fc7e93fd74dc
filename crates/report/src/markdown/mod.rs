//! A run's result as Markdown.

pub(crate) mod pull_request;

use readings::RunHeader;
use readings::text::{counted, fraction};
use verdict::Analysis;

use crate::section::columns::{Columns, legend};
use crate::section::curve_table;
use crate::section::settings;
use crate::section::tiers;
use crate::text::run::{after_word, by_metric, invalid_trial, stage};
use crate::text::visible::visible;
use verdict::words;

/// What others published, beside which the figures stand.
fn published(header: &RunHeader) -> String {
    let mut out = String::new();
    if !header.published.is_empty() {
        out.push_str(
            "\n## Published by others\n\n| what | value | unit | source |\n|---|---:|---|---|\n",
        );
    }
    for figure in &header.published {
        out.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            escaped(&figure.what),
            figure.value,
            escaped(&figure.unit),
            escaped(&figure.source)
        ));
    }
    out
}

/// How the compared servers were set.
fn side_by_side(analysis: &Analysis) -> String {
    let mut out = String::new();
    if !analysis.settings.is_empty() {
        out.push_str(&format!("\n## {}\n\n", settings::TITLE));
    }
    let tables = analysis.settings.iter().map(|one| {
        let place = settings::place(&analysis.settings, one);
        let place = place.map(|text| format!("{}\n\n", escaped(&text)));
        place.unwrap_or_default() + &table(&settings::table(one))
    });
    out.push_str(&tables.collect::<Vec<_>>().join("\n"));
    out
}

/// Latency over the offered rate.
fn against_rate(analysis: &Analysis) -> String {
    let mut out = String::new();
    for one in &analysis.curves {
        list(&mut out, curve_table::TITLE, words::curves(one).into_iter());
        if let Some(bounds) = curve_table::bounds(one) {
            out.push_str(&format!("\n{}", table(&bounds)));
        }
        out.push_str(&format!(
            "\n{}\n({})\n",
            table(&curve_table::table(one)),
            escaped(&words::curve_legend(one))
        ));
    }
    out
}

/// A run's result as Markdown: the text of `summary.md`.
pub fn markdown(header: &RunHeader, analysis: &Analysis) -> String {
    let mut out = format!("# {}\n\n", escaped(&header.title));
    out.push_str(&crate::study::gates::markdown(&analysis.gates));
    for c in by_metric(analysis) {
        out.push_str(&format!(
            "- **{}**: {}\n",
            c.verdict.word(),
            escaped(&after_word(c))
        ));
    }
    if analysis.comparisons.is_empty() {
        for text in words::uncompared(analysis) {
            out.push_str(&format!("{}\n", escaped(&text)));
        }
    }
    if let Some(text) = words::placement(&analysis.placements) {
        out.push_str(&format!("\n{}\n", escaped(&text)));
    }
    let in_tiers = analysis.tiers.iter().map(words::tiers);
    list(&mut out, tiers::TITLE, in_tiers);
    if !analysis.tiers.is_empty() {
        let columns = tiers::table(&analysis.tiers);
        out.push_str(&format!("\n{}\n({})\n", table(&columns), tiers::LEGEND));
    }
    if !analysis.table.is_empty() {
        out.push_str("\n## Figures\n\n");
        let columns = Columns::of(&analysis.table);
        out.push_str(&table(&columns));
        out.push_str(&format!("\n({})\n", escaped(&legend(&columns))));
    }
    let rates = analysis.rates.iter().map(words::rate_choice);
    let texts: Vec<String> = rates
        .chain(analysis.tls.iter().map(words::tls))
        .chain(words::congestion(&analysis.congestion))
        .chain(analysis.probes.iter().map(words::probes))
        .collect();
    if !texts.is_empty() {
        out.push('\n');
    }
    for text in texts {
        out.push_str(&format!("- {}\n", escaped(&text)));
    }
    out.push_str(&against_rate(analysis));
    list(
        &mut out,
        "Interactions",
        words::interactions(&analysis.interactions).into_iter(),
    );
    list(
        &mut out,
        "Bottlenecks",
        analysis.bottlenecks.iter().map(words::finding),
    );
    list(
        &mut out,
        "Noise floor",
        analysis.noise_floor.iter().map(words::noise_floor),
    );
    out.push_str(&side_by_side(analysis));
    out.push_str(&published(header));
    list(
        &mut out,
        "Warnings",
        analysis.warnings.iter().map(words::warning),
    );
    list(
        &mut out,
        "Invalid trials",
        analysis.invalid.iter().map(invalid_trial),
    );
    list(
        &mut out,
        "Failed trials",
        analysis
            .failures
            .iter()
            .map(|f| format!("{} of {}: {}", f.count, f.subjects.join(", "), f.reason)),
    );
    out.push_str(&format!(
        "\n---\n\n{}. Experiment `{}`, seed {}, {} planned, {} done, {} failed, {} invalid. \
         Differences within {} do not matter. Weighstation {}.\n",
        escaped(&stage(analysis)),
        visible(&header.experiment).replace(['`', '\n'], "'"),
        header.seed,
        counted(header.blocks as usize, "block"),
        counted(analysis.trials_done, "trial"),
        analysis.trials_failed,
        analysis.invalid.len(),
        fraction(header.matters),
        escaped(&header.weigh_version)
    ));
    out
}

pub(crate) fn list(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|i| format!("- {}\n", escaped(&i))).collect();
    if !items.is_empty() {
        out.push_str(&format!("\n## {title}\n\n{}", items.concat()));
    }
}

pub(crate) fn table(columns: &Columns) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|c| escaped(c)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = line(&columns.head);
    let rules: Vec<&str> = columns
        .numeric
        .iter()
        .map(|n| if *n { "---:" } else { "---" })
        .collect();
    out.push_str(&format!("| {} |\n", rules.join(" | ")));
    for row in &columns.rows {
        out.push_str(&line(row));
    }
    out
}

/// Text that Markdown takes literally, on one line, with control characters made visible.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = visible(&text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '|' | '<' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::journals::journal;
    use verdict::analyse;

    #[test]
    fn the_summary_says_the_same_as_the_terminal() {
        let journal = journal();
        let text = markdown(&journal.header, &analyse(&journal));
        for part in [
            "# What a \\<balancer> costs\n\n- **slower**: balance costs 31",
            "- **invalid**: lighttpd against direct, throughput at connections=96: 6 of 6 blocks",
            "## Figures\n\n| condition | subject | requests/s |",
            "| --- | --- | ---: |",
            "## Noise floor\n\n- noise floor, throughput at connections=96",
            "## Invalid trials\n\n- trial 13",
            "---\n\nFixed design: one look, after all 6 blocks",
            "## Failed trials\n\n- 1 of lighttpd: did not become ready within 10 s",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn names_cannot_break_a_table() {
        assert_eq!(escaped("a|b *c*\n[d]"), "a\\|b \\*c\\* \\[d\\]");
        assert_eq!(escaped("a\r\nb\rc\x1b"), "a b\u{240d}c\u{241b}");
    }
}
