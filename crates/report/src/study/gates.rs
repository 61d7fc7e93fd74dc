//! The gates of a run: lines for the terminal, a list for Markdown, a table for the page.

use readings::text::{condition, counted, listed, once};
use serde_json::{Value, json as object};
use verdict::{GateOutcome, GateResult};

use crate::html::escaped as html_escaped;
use crate::markdown::escaped as markdown_escaped;
use crate::section::columns::Columns;
use crate::text::grid::wrapped;
use crate::text::run::Paint;
use verdict::words;

pub(crate) const TITLE: &str = "Gates";

/// Whether unsettled gates fail the run.
pub(crate) fn fails(result: &GateResult, unsettled_fails: bool) -> bool {
    match result.outcome {
        GateOutcome::Breached => true,
        GateOutcome::Unsettled => unsettled_fails,
        GateOutcome::Passed | GateOutcome::NotJudged => false,
    }
}

pub(crate) fn colour_code(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Passed => "32;1",
        GateOutcome::Breached => "31;1",
        GateOutcome::Unsettled => "33;1",
        GateOutcome::NotJudged => "35;1",
    }
}

/// The gates of a capacity search for a terminal of `width` columns; empty without gates.
pub fn gates_terminal(gates: &[GateResult], width: usize, colour: bool) -> String {
    terminal(gates, width, &Paint { colour })
}

/// The gates as an array of JSON documents, each with its `sentence`.
pub fn gates_json(gates: &[GateResult]) -> Value {
    let each = gates.iter().map(|gate| {
        let mut object = object!(gate);
        object["sentence"] = object!(words::gate(gate));
        object
    });
    each.collect()
}

/// A line for each gate; empty without gates.
pub(crate) fn terminal(gates: &[GateResult], width: usize, paint: &Paint) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", paint.with("1", TITLE));
    for gate in gates {
        let word = format!("{:<10}", gate.outcome.words());
        let lead = format!("  {} ", paint.with(colour_code(gate.outcome), &word));
        let text = words::after_gate_outcome(gate);
        out.push_str(&wrapped(&lead, &text, 4, width));
    }
    out.push('\n');
    out
}

/// The gates as a list in Markdown; empty without gates.
pub fn gates_markdown(gates: &[GateResult]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let items = gates.iter().map(|gate| {
        let text = markdown_escaped(&words::after_gate_outcome(gate));
        format!("- **{}**: {text}\n", gate.outcome.words())
    });
    format!("## {TITLE}\n\n{}\n", items.collect::<String>())
}

/// A small section of a page; empty without gates.
pub(crate) fn html(gates: &[GateResult]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let class = |outcome: GateOutcome| match outcome {
        GateOutcome::Passed => "faster",
        GateOutcome::Breached => "slower",
        GateOutcome::Unsettled => "inconclusive",
        GateOutcome::NotJudged => "invalid",
    };
    let columns = table(gates);
    let head = columns.head.iter();
    let head: String = head
        .map(|cell| format!("<th>{}</th>", html_escaped(cell)))
        .collect();
    let rows = gates.iter().zip(&columns.rows).map(|(gate, row)| {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let style = match columns.head[at].as_str() {
                "why" => " style=\"white-space: normal\"",
                "outcome" => " style=\"color: var(--tone); font-weight: 600\"",
                _ => "",
            };
            format!("<td{style}>{}</td>", html_escaped(cell))
        });
        let cells: String = cells.collect();
        format!("<tr class=\"{}\">{cells}</tr>\n", class(gate.outcome))
    });
    format!(
        "<section id=\"gates\">\n<h2>{TITLE}</h2>\n<p class=\"sub\">{}</p>\n<div class=\"scroll\">\n\
         <table>\n<tr>{head}</tr>\n{}</table>\n</div>\n</section>\n",
        html_escaped(&summary(gates, false)),
        rows.collect::<String>()
    )
}

/// The gates as a table; empty columns are left out.
pub(crate) fn table(gates: &[GateResult]) -> Columns {
    type Cell = fn(&GateResult) -> String;
    let all: [(&str, Cell); 6] = [
        ("gate", |gate| match gate.name == gate.gate {
            true => gate.gate.clone(),
            false => format!("{}: {}", gate.name, gate.gate),
        }),
        ("outcome", |gate| gate.outcome.words().to_owned()),
        ("condition", |gate| condition(&gate.condition)),
        ("subject", |gate| gate.subject.clone()),
        ("measured", |gate| {
            words::gate_measured(gate).unwrap_or_default()
        }),
        ("why", |gate| words::gate_why(gate).unwrap_or_default()),
    ];
    let is_used = |(_, cell): &(&str, Cell)| gates.iter().any(|gate| !cell(gate).is_empty());
    let used: Vec<(&str, Cell)> = all.into_iter().filter(is_used).collect();
    let row = |gate: &GateResult| used.iter().map(|(_, cell)| cell(gate)).collect();
    Columns {
        head: used.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: gates.iter().map(row).collect(),
        numeric: vec![false; used.len()],
    }
}

/// The outcome of all gates in a sentence; `unsettled_fails` is the caller's decision.
pub(crate) fn summary(gates: &[GateResult], unsettled_fails: bool) -> String {
    let count = |outcome| gates.iter().filter(|gate| gate.outcome == outcome).count();
    let names = |outcome| {
        let its = gates.iter().filter(|gate| gate.outcome == outcome);
        listed(&once(its.map(|gate| gate.name.clone())))
    };
    let passed = count(GateOutcome::Passed);
    if passed == gates.len() {
        return match passed {
            1 => "The gate passed.".to_owned(),
            _ => format!("All {passed} gates passed."),
        };
    }
    let mut parts = Vec::new();
    for (outcome, note) in [
        (GateOutcome::Breached, ""),
        (GateOutcome::NotJudged, ""),
        (
            GateOutcome::Unsettled,
            match unsettled_fails {
                true => ", which fails",
                false => ", which does not fail",
            },
        ),
    ] {
        if count(outcome) > 0 {
            let words = outcome.words();
            parts.push(format!("{words}{note}: {}", names(outcome)));
        }
    }
    format!(
        "{} of {} passed; {}.",
        passed,
        counted(gates.len(), "gate"),
        parts.join("; ")
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use readings::{Gate, GateBound, GateMetric, Journal};
    use testing::Text as _;
    use testing::journals::journal;
    use verdict::{Analysis, analyse};

    /// A run with gates of every outcome.
    pub(crate) fn gated() -> (Journal, Analysis) {
        let mut journal = journal();
        let gate = |name: &str, text: &str, subject: Option<&str>, metric, bound| Gate {
            name: name.into(),
            text: text.into(),
            subject: subject.map(str::to_owned),
            metric,
            bound,
        };
        let relative = GateBound::Relative;
        journal.header.gates = vec![
            gate(
                "speed",
                "throughput > -3%",
                Some("balance"),
                GateMetric::Throughput,
                relative(-0.03),
            ),
            gate(
                "balance: throughput > -60%",
                "throughput > -60%",
                Some("balance"),
                GateMetric::Throughput,
                relative(-0.6),
            ),
            gate(
                "lighttpd: throughput > -3%",
                "throughput > -3%",
                Some("lighttpd"),
                GateMetric::Throughput,
                relative(-0.03),
            ),
            gate(
                "balance: p50 < 10s",
                "p50 < 10s",
                Some("balance"),
                GateMetric::P50,
                GateBound::Absolute(1e7),
            ),
        ];
        let first = analyse(&journal);
        let open = first.gates[0].value.unwrap();
        // At its bound: unsettled.
        journal.header.gates.push(gate(
            "tie | <b>",
            "throughput > at",
            Some("balance"),
            GateMetric::Throughput,
            relative(open - 1e-6),
        ));
        let analysis = analyse(&journal);
        (journal, analysis)
    }

    #[test]
    fn every_outcome_is_told_with_its_figure_and_what_would_settle_it() {
        let (_, analysis) = gated();
        let outcomes: Vec<&str> = analysis.gates.iter().map(|g| g.outcome.words()).collect();
        assert_eq!(
            outcomes,
            ["breached", "passed", "not judged", "passed", "unsettled"]
        );
        let text = terminal(&analysis.gates, 300, &Paint::plain());
        text.has_all([
            "Gates\n  breached   speed (balance: throughput > -3%): balance -31.0% [",
            "\n  passed     balance: throughput > -60%: balance -31.0% [",
            "\n  not judged lighttpd: throughput > -3%: lighttpd at connections=96; 6 of 6 blocks cannot be used: ",
            "\n  passed     balance: p50 < 10s: balance 4",
            "\n  unsettled  tie | <b> (balance: throughput > at): balance -31.0% [",
            "more than 1000 blocks would be needed: the figure is too near the bound",
        ]);
        let page = html(&analysis.gates);
        page.has("tie | &lt;b&gt;");
        gates_markdown(&analysis.gates).has("- **unsettled**: tie \\| \\<b>");
        assert_eq!(
            summary(&analysis.gates, true),
            "2 of 5 gates passed; breached: speed; not judged: lighttpd: throughput > -3%; \
             unsettled, which fails: tie | <b>."
        );
        assert_eq!(summary(&analysis.gates[1..2], false), "The gate passed.");
        assert!(html(&[]).is_empty() && gates_markdown(&[]).is_empty());
    }
}
