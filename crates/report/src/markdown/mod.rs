//! A run's result as Markdown.

pub(crate) mod pull_request;
pub(crate) mod section;

use readings::RunHeader;
use readings::text::{counted, fraction};
use verdict::Analysis;

use crate::section::columns::{Columns, Figures};
use crate::section::run::{after_word, by_metric, sections, stage};
use crate::text::visible::visible;
use section::section;
use verdict::words;

/// A run's result as Markdown: the text of `summary.md`.
pub fn markdown(header: &RunHeader, analysis: &Analysis) -> String {
    let mut out = format!("# {}\n\n", escaped(&header.title));
    out.push_str(&crate::study::gates::gates_markdown(&analysis.gates));
    for c in by_metric(analysis) {
        out.push_str(&format!(
            "- **{}**: {}\n",
            c.verdict.word(),
            escaped(&after_word(c))
        ));
    }
    if analysis.all_comparisons().next().is_none() {
        for text in words::uncompared(analysis) {
            out.push_str(&format!("{}\n", escaped(&text)));
        }
    }
    if let Some(text) = words::placement(&analysis.placements) {
        out.push_str(&format!("\n{}\n", escaped(&text)));
    }
    let figures = (!analysis.table.is_empty()).then(|| Figures::of(&analysis.table));
    let figures = figures.map(|figures| ("Figures".to_owned(), figures));
    for one in sections(header, analysis, figures) {
        out.push_str(&section(&one));
    }
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
    use testing::Text as _;
    use testing::journals::journal;
    use verdict::analyse;

    #[test]
    fn the_summary_says_the_same_as_the_terminal() {
        let journal = journal();
        let text = markdown(&journal.header, &analyse(&journal));
        text.has_all([
            "# What a \\<balancer> costs\n\n- **slower**: balance costs 31",
            "- **invalid**: lighttpd against direct, throughput at connections=96: 6 of 6 blocks",
            "## Figures\n\n| condition | subject | requests/s |",
            "| --- | --- | ---: |",
            "## Noise floor\n\n- throughput at connections=96",
            "## Invalid trials\n\n- trial 13",
            "---\n\nFixed design: one look, after all 6 blocks",
            "## Failed trials\n\n- 1 of lighttpd: did not become ready within 10 s",
        ]);
    }

    #[test]
    fn names_cannot_break_a_table() {
        assert_eq!(escaped("a|b *c*\n[d]"), "a\\|b \\*c\\* \\[d\\]");
        assert_eq!(escaped("a\r\nb\rc\x1b"), "a b\u{240d}c\u{241b}");
    }
}
