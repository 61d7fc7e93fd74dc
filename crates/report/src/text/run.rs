//! All of a run's result as terminal text.

use readings::RunHeader;
use readings::text::{condition, counted, fraction};
use verdict::{Analysis, Verdict, words};

use crate::section::columns::Figures;
use crate::section::run::{by_metric, sections, stage};
use crate::text::grid::wrapped;
use crate::text::section::{self, Lists};
use crate::text::visible::one_line;

/// All of a run's result for a terminal of `width` columns: the sentences first, then the figures.
///
/// `colour` adds ANSI colours to the marks before the sentences and to the headings; every mark is
/// a character of its own, so nothing is lost without them. `folder` is named as the place where
/// everything is kept. The answer alone is [`terminal`](crate::terminal)'s.
pub fn verbose(
    header: &RunHeader,
    analysis: &Analysis,
    width: usize,
    colour: bool,
    folder: Option<&str>,
) -> String {
    let width = width.max(40);
    let paint = Paint { colour };
    let mut out = String::new();
    out.push_str(&crate::study::gates::terminal(
        &analysis.gates,
        width,
        &paint,
    ));
    for c in by_metric(analysis) {
        let (mark, code) = mark(c.verdict);
        let lead = format!("{} ", paint.with(code, mark));
        out.push_str(&wrapped(&lead, &words::comparison(c), 2, width));
    }
    if analysis.all_comparisons().next().is_none() {
        for text in words::uncompared(analysis) {
            out.push_str(&wrapped("", &text, 2, width));
        }
    }
    if let Some(text) = words::placement(&analysis.placements) {
        out.push_str(&wrapped("  ", &text, 4, width));
    }
    for section in sections(header, analysis, figures(analysis)) {
        let parts = section::parts(&section.parts, width, Lists::Indented);
        if parts.is_empty() {
            continue;
        }
        let title = match section.id {
            "invalid" => format!("Invalid: {}", counted(analysis.invalid.len(), "trial")),
            "failed" => format!("Failed: {}", counted(analysis.trials_failed, "trial")),
            _ => section.title,
        };
        out.push_str(&paint.heading(&title));
        out.push_str(&parts);
    }
    out.push('\n');
    out.push_str(&wrapped("", &closing(header, analysis, folder), 0, width));
    out
}

/// The heading of the figures, with a condition that is the same in every row, and their rows.
fn figures(analysis: &Analysis) -> Option<(String, Figures)> {
    let place = &analysis.table.first()?.condition;
    let mut figures = Figures::of(&analysis.table);
    let mut title = "Figures".to_owned();
    if !place.is_empty() && analysis.table.iter().all(|row| row.condition == *place) {
        title.push_str(&format!(" at {}", condition(place)));
        figures = figures.without_condition();
    }
    Some((title, figures))
}

/// What a figure is worth, in one line.
fn closing(header: &RunHeader, analysis: &Analysis, folder: Option<&str>) -> String {
    let confidence = analysis
        .all_comparisons()
        .next()
        .map_or(0.95, |c| c.confidence);
    let mut text = format!(
        "{}. {}, seed {}; {} intervals; differences within {} do not matter.",
        stage(analysis),
        counted(analysis.trials_done, "trial"),
        header.seed,
        fraction(confidence),
        fraction(header.matters)
    );
    if let Some(folder) = folder {
        text.push_str(&format!(" Everything is in {folder}"));
    }
    text
}

pub(crate) fn mark(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Faster => ("+", "32;1"),
        Verdict::Slower => ("-", "31;1"),
        Verdict::Same => ("=", "36;1"),
        Verdict::Inconclusive => ("?", "33;1"),
        Verdict::Invalid => ("!", "35;1"),
    }
}

pub(crate) struct Paint {
    pub colour: bool,
}

impl Paint {
    #[cfg(test)]
    pub fn plain() -> Self {
        Self { colour: false }
    }

    /// The text in a colour, with control characters made visible.
    pub fn with(&self, code: &str, text: &str) -> String {
        let text = one_line(text);
        match self.colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.into_owned(),
        }
    }

    fn heading(&self, text: &str) -> String {
        format!("\n{}\n", self.with("1", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Text as _;
    use testing::journals::journal;
    use verdict::analyse;

    fn shown(width: usize, colour: bool) -> String {
        let journal = journal();
        verbose(
            &journal.header,
            &analyse(&journal),
            width,
            colour,
            Some("runs/7"),
        )
    }

    #[test]
    fn the_sentences_come_first_and_throughput_before_latency() {
        let text = shown(200, false);
        let lines: Vec<&str> = text.lines().collect();
        lines[0].begins("- balance costs 31");
        lines[0].has("of the throughput");
        lines[1].begins("! invalid: lighttpd against direct, throughput");
        lines[2].has("balance raises the median latency from 0.4");
    }

    #[test]
    fn everything_the_reader_needs_is_there() {
        let text = shown(200, false);
        text.has_all([
            "Figures at connections=96\n  subject   requests/s  offered/s",
            "\n  balance       13,8",
            "Noise floor\n  throughput at connections=96: direct against itself shows",
            "Invalid: 5 trials\n  trial 13 (lighttpd, block 1, connections=96): throughput: \
             31,204 of 31,204 answers were wrong: expected status 200, found 502",
            "Failed: 1 trial\n  1 of lighttpd: did not become ready within 10 s",
            "\nFixed design: one look, after all 6 blocks, with the whole error budget of 5%. 23 trials",
            "differences within 3% do not matter. Everything is in runs/7\n",
        ]);
    }

    #[test]
    fn what_servers_did_stands_in_a_row_for_each() {
        let text = shown(100, false);
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let is_head = |line: &str| words(line).get(1).is_some_and(|word| word == "server");
        let mut rows = text.lines().skip_while(|line| !is_head(line));
        let head = words(rows.next().unwrap());
        assert!(
            head.ends_with(&["peak".to_owned(), "memory".to_owned()]),
            "{text}"
        );
        let rows: Vec<Vec<String>> = rows.take(3).map(words).collect();
        let names: Vec<&[String]> = rows.iter().map(|row| &row[..2]).collect();
        assert_eq!(
            names,
            [
                ["direct", "origin"],
                ["balance", "origin"],
                ["balance", "balance"]
            ]
        );
        assert!(rows[1].contains(&"0.25".to_owned()), "{text}");
        assert!(rows[2].contains(&"1.50".to_owned()), "{text}");
        text.has("sampled 7.0 times a second of measured time, which took 0.50% of");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line:?}");
        }
    }

    #[test]
    fn a_narrow_terminal_is_respected() {
        let text = shown(60, false);
        for line in text.lines() {
            assert!(line.chars().count() <= 60, "{line:?}");
        }
        text.has("  balance       13,8");
    }

    #[test]
    fn names_of_others_neither_colour_nor_make_lines() {
        let mut journal = journal();
        let bad = "b\x1b[30;40m\x1b[31m\n+ faster";
        let is_it = |name: &str| name == "balance";
        for name in &mut journal.header.subjects {
            if is_it(name) {
                *name = bad.to_owned();
            }
        }
        for row in &mut journal.rows {
            if let readings::JournalRow::Trial(trial) = row {
                if is_it(&trial.subject) {
                    trial.subject = bad.to_owned();
                }
                trial.condition = [("c".to_owned(), bad.to_owned())].into();
            }
        }
        journal.header.conditions = vec![[("c".to_owned(), bad.to_owned())].into()];
        let analysis = analyse(&journal);
        let plain = verbose(&journal.header, &analysis, 200, false, None);
        assert!(!plain.contains('\x1b'), "{plain:?}");
        plain.has("b\u{241b}[30;40m");
        plain.lacks("\n+ faster");
        let coloured = verbose(&journal.header, &analysis, 200, true, None);
        let foreign = ["\x1b[30", "\x1b[31m", "\n+ faster"];
        assert!(
            !foreign.iter().any(|it| coloured.contains(it)),
            "{coloured:?}"
        );
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        assert!(!shown(100, false).contains('\x1b'));
        let coloured = shown(100, true);
        coloured.begins("\x1b[31;1m-\x1b[0m balance costs");
    }
}
