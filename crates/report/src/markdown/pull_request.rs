//! A run's result as a comment for a pull request: short, with the rest folded.

use readings::RunHeader;
use readings::text::{condition, counted, rate, time};
use verdict::{Analysis, Comparison, Metric};

use crate::markdown::{escaped, table};
use crate::section::columns::{Columns, Figures, legend};
use crate::section::run::{by_metric, capitalised, failed_trials, stage};
use crate::study::gates;
use readings::text::compact::bytes;
use verdict::words;

/// The most caveats outside the fold.
const MOST_CAVEATS: usize = 3;

/// What a comment is made from.
pub struct PullRequest<'a> {
    pub header: &'a RunHeader,
    pub analysis: &'a Analysis,
    /// Whether unsettled gates fail the run.
    pub unsettled_fails: bool,
    /// The machine in one line, if it is known.
    pub machine: Option<&'a str>,
    pub folder: &'a str,
}

/// The comment. Its first line is a marker, by which a later run finds and replaces the comment.
pub fn pull_request(view: &PullRequest<'_>) -> String {
    let (header, analysis) = (view.header, view.analysis);
    let mut out = format!("<!-- weigh {} -->\n", marker(&header.experiment));
    out.push_str(&format!("### {}\n\n", escaped(&header.title)));
    out.push_str(&format!("{}\n", escaped(&headline(view))));
    if !analysis.gates.is_empty() {
        out.push_str(&format!("\n{}", table(&gates::table(&analysis.gates))));
    }
    let comparisons = by_metric(analysis);
    if !comparisons.is_empty() {
        out.push_str(&format!("\n{}", table(&figures(view, &comparisons))));
        let confidence = comparisons[0].confidence;
        out.push_str(&format!(
            "\n(Against {}; {} intervals over {}.)\n",
            baselines(&comparisons),
            readings::text::fraction(confidence),
            counted(analysis.stage.blocks_done as usize, "block")
        ));
    }
    out.push_str(&caveats(analysis));
    let sentences = comparisons.iter().map(|c| words::comparison(c));
    let sentences: Vec<String> = match comparisons.is_empty() {
        true => words::uncompared(analysis),
        false => sentences.collect(),
    };
    out.push_str(&folded("In sentences", &listed(sentences.into_iter())));
    if !analysis.table.is_empty() {
        let figures = Figures::of(&analysis.table);
        let mut text = table(&figures.subjects);
        if !figures.servers.rows.is_empty() {
            text.push_str(&format!("\n{}", table(&figures.servers)));
        }
        text.push_str(&format!("\n({})\n", escaped(&legend(&figures))));
        out.push_str(&folded("All figures", &text));
    }
    out.push_str(&folded(
        "Noise floor, warnings and failures",
        &doubts(analysis),
    ));
    let machine = view.machine.map(|text| format!("{}. ", escaped(text)));
    out.push_str(&format!(
        "\n<sub>{}{}. Seed {}, Weighstation {}. Everything measured is in `{}`.</sub>\n",
        machine.unwrap_or_default(),
        escaped(&stage(analysis)),
        header.seed,
        escaped(&header.weigh_version),
        code(view.folder)
    ));
    out
}

/// An experiment's name without what an HTML comment may not contain: `--`, and what ends one.
fn marker(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = name
        .chars()
        .map(|c| if good(c) { c } else { '_' })
        .collect();
    name.replace("--", "-_")
}

/// What was compared with: the baseline, the reference levels of factors.
fn baselines(comparisons: &[&Comparison]) -> String {
    let names = comparisons
        .iter()
        .map(|c| format!("`{}`", code(&c.baseline)));
    readings::text::listed(&readings::text::once(names))
}

fn code(text: &str) -> String {
    crate::visible(text).replace(['`', '\n', '<', '>'], "'")
}

/// The result in one sentence.
fn headline(view: &PullRequest<'_>) -> String {
    let analysis = view.analysis;
    if !analysis.gates.is_empty() {
        return gates::summary(&analysis.gates, view.unsettled_fails);
    }
    match by_metric(analysis).first() {
        Some(first) => {
            let text = words::comparison(first);
            // A subject is named as it is written.
            match text.starts_with(&first.subject) {
                true => text,
                false => capitalised(&text),
            }
        }
        None => words::uncompared(analysis).join(" "),
    }
}

/// A row for each comparison: the ratio with its interval, and the absolute figures.
fn figures(view: &PullRequest<'_>, comparisons: &[&Comparison]) -> Columns {
    let (header, analysis) = (view.header, view.analysis);
    let with_condition = comparisons.iter().any(|c| !c.condition.is_empty());
    let with_subject = header.subjects.len() != 2 || !analysis.levels.is_empty();
    let mut head = vec!["", "verdict", "change", "baseline", "subject"];
    let mut numeric = vec![false, false, true, true, true];
    if with_subject {
        head.insert(1, "compared");
        numeric.insert(1, false);
    }
    if with_condition {
        head.insert(1, "condition");
        numeric.insert(1, false);
    }
    let row = |c: &&Comparison| {
        let value = |value: Option<f64>| value.map_or(String::new(), |v| shown(c.metric, v));
        let change = match (c.ratio, c.difference) {
            (None, None) => String::new(),
            (_, Some(_)) => words::difference(c).unwrap_or_default(),
            (Some(_), None) => words::change_of(c),
        };
        let mut cells = vec![
            c.metric.words().to_owned(),
            c.verdict.word().to_owned(),
            change,
            value(c.baseline_value),
            value(c.subject_value),
        ];
        if with_subject {
            cells.insert(1, c.subject.clone());
        }
        if with_condition {
            cells.insert(1, condition(&c.condition));
        }
        cells
    };
    Columns {
        head: head.into_iter().map(str::to_owned).collect(),
        rows: comparisons.iter().map(row).collect(),
        numeric,
    }
}

fn shown(metric: Metric, value: f64) -> String {
    let name = metric.name();
    if metric == Metric::RequestsPerS {
        format!("{}/s", rate(value))
    } else if name.contains("_us_") || name.ends_with("_us") {
        time(value)
    } else if name.contains("bytes") {
        bytes(value)
    } else if name.ends_with("_s") {
        time(value * 1e6)
    } else {
        readings::text::fraction(value)
    }
}

/// What changes the answer, and what widens intervals; the sentences are below.
fn caveats(analysis: &Analysis) -> String {
    let mut all = words::caveats(&analysis.warnings, &analysis.table);
    all.truncate(MOST_CAVEATS);
    all.extend(words::widening(&analysis.warnings));
    match all.is_empty() {
        true => String::new(),
        false => format!("\n**Caveats**\n\n{}", listed(all.into_iter())),
    }
}

fn doubts(analysis: &Analysis) -> String {
    let floors = analysis.noise_floor.iter().map(words::noise_floor);
    let limits = analysis.bottlenecks.iter().map(words::finding);
    let all = floors.chain(words::warnings(&analysis.warnings));
    listed(all.chain(limits).chain(failed_trials(analysis)))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items
        .map(|text| format!("- {}\n", escaped(&text)))
        .collect()
}

fn folded(title: &str, text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("\n<details>\n<summary>{title}</summary>\n\n{text}\n</details>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::gates::tests::gated;
    use testing::Text as _;
    use testing::journals::journal;
    use verdict::analyse;

    fn comment(header: &RunHeader, analysis: &Analysis) -> String {
        pull_request(&PullRequest {
            header,
            analysis,
            unsettled_fails: false,
            machine: Some("2 CPUs, AMD <EPYC>, Linux 6.18"),
            folder: "weigh-runs/a`b",
        })
    }

    #[test]
    fn a_comment_has_the_gates_the_figures_and_the_rest_folded() {
        let (journal, analysis) = gated();
        let text = comment(&journal.header, &analysis);
        text.has_all([
            "<!-- weigh proxy-cost -->\n### What a \\<balancer> costs\n\n2 of 5 gates passed; breached: speed;",
            "unsettled, which does not fail: tie \\| \\<b>.\n\n| gate | outcome | condition | subject | measured | why |",
            "| speed: balance: throughput > -3% | breached | connections=96 | balance | -31.0% \\[",
            "|  | condition | compared | verdict | change | baseline | subject |",
            "| throughput | connections=96 | balance | slower | -31.0% \\[",
            "<details>\n<summary>In sentences</summary>\n\n- ",
            "<summary>All figures</summary>\n\n| condition | subject | requests/s |",
            "- noise floor, throughput at connections=96",
            "1 of lighttpd: did not become ready within 10 s",
            "<sub>2 CPUs, AMD \\<EPYC>, Linux 6.18. Fixed design",
            "Everything measured is in `weigh-runs/a'b`.</sub>",
        ]);
        assert_eq!(
            text.matches("<details>").count(),
            text.matches("</details>").count()
        );
    }

    #[test]
    fn a_marker_is_the_name_unless_that_would_end_the_comment() {
        assert_eq!(marker("proxy-cost"), "proxy-cost");
        assert_eq!(marker("a--b---c->d"), "a-_b-_-c-_d");
        assert!(!marker("-----").contains("--"));
    }

    #[test]
    fn without_gates_the_first_verdict_leads() {
        let journal = journal();
        let text = comment(&journal.header, &analyse(&journal));
        assert!(
            text.contains("costs\n\nbalance costs 31"),
            "the first verdict in\n{text}"
        );
        let headline = text.lines().nth(3).unwrap();
        assert!(
            headline.ends_with('.') && !headline.ends_with(".."),
            "{headline}"
        );
        text.lacks("| gate |");
    }
}
