//! What studies other than the ranking say in the answer.

use verdict::{Analysis, Comparison, GateOutcome, GateResult, Verdict, words};

use super::sentence;
use crate::section::run::by_metric;
use crate::study::gates::colour_code;
use crate::text::grid::wrapped;
use crate::text::run::Paint;
use crate::text::visible::one_line;
use readings::at_condition as at;
use readings::text::compact::shortened;
use readings::text::counted;

/// The most sentences of a study.
const SENTENCES_MAX: usize = 4;

/// A line for each gate: its outcome, and its figure or why it has none.
pub(super) fn gates(all: &[GateResult], width: usize, paint: &Paint) -> String {
    let lines = all.iter().map(|gate| {
        let word = format!("{:<10}", gate.outcome.words());
        let name = match gate.name.contains(&gate.gate) {
            true => gate.name.clone(),
            false => format!("{}: {}", gate.name, gate.gate),
        };
        let mut text = format!("{name}{}", at(&gate.condition));
        if let Some(measured) = words::gate_measured(gate) {
            text.push_str(&format!(": {measured}"));
        }
        if gate.outcome != GateOutcome::Passed
            && let Some(why) = words::gate_why(gate)
        {
            text.push_str(&format!("; {why}"));
        }
        let text = shortened(&one_line(&text), width.saturating_sub(11));
        format!("{} {text}\n", paint.with(colour_code(gate.outcome), &word))
    });
    lines.collect()
}

/// What events did, and latency against the offered rate.
pub(super) fn sentences(analysis: &Analysis, width: usize, paint: &Paint) -> String {
    let mut out = events(analysis, width, paint);
    for curves in &analysis.curves {
        for text in words::curves(curves).iter().take(SENTENCES_MAX) {
            out.push_str(&wrapped("", text, 2, width));
        }
    }
    out
}

/// The differences around events, and how many comparisons found none.
fn events(analysis: &Analysis, width: usize, paint: &Paint) -> String {
    let all: Vec<&Comparison> = by_metric(analysis)
        .into_iter()
        .filter(|c| c.metric.is_of_events())
        .collect();
    let differs = |c: &&&Comparison| matches!(c.verdict, Verdict::Faster | Verdict::Slower);
    let shown: Vec<&&Comparison> = match all.iter().filter(differs).count() {
        0 => all.iter().take(SENTENCES_MAX).collect(),
        _ => all.iter().filter(differs).take(SENTENCES_MAX).collect(),
    };
    let mut out: String = shown.iter().map(|c| sentence(c, width, paint)).collect();
    let others = all.len() - shown.len();
    if others > 0 {
        let differing = all
            .iter()
            .filter(differs)
            .count()
            .saturating_sub(shown.len());
        let text = match differing {
            0 => format!(
                "{} found no difference.",
                counted(others, "other comparison")
            ),
            some => format!(
                "Of {}, {some} found a difference.",
                counted(others, "other comparison")
            ),
        };
        out.push_str(&wrapped("  ", &text, 2, width));
    }
    out
}
