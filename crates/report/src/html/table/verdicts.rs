//! The verdicts in sentences, each with a link to its blocks.

use verdict::{Analysis, Comparison, Verdict};

use crate::html::picture::svg::{escaped, prose};
use crate::html::table::{folded, proof};
use readings::text::counted;
use verdict::words;

/// The sentences on what is decided, and, folded, on what is not.
pub(crate) fn verdicts(analysis: &Analysis) -> String {
    let mut sorted: Vec<(usize, &Comparison)> = analysis.all_comparisons().enumerate().collect();
    sorted.sort_by_key(|(_, c)| c.metric);
    let is_open = |c: &Comparison| matches!(c.verdict, Verdict::Inconclusive | Verdict::Invalid);
    let (open, decided): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|(_, c)| is_open(c));
    if open.is_empty() && decided.is_empty() {
        return String::new();
    }
    let mut out = match decided.is_empty() {
        true => "<p>Nothing is decided.</p>\n".to_owned(),
        false => items(&decided),
    };
    let count = |verdict: Verdict| open.iter().filter(|(_, c)| c.verdict == verdict).count();
    let parts = [
        (count(Verdict::Inconclusive), "inconclusive"),
        (count(Verdict::Invalid), "invalid"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(n, word)| format!("{n} {word}")).collect();
    let summary = format!(
        "Not decided: {} ({})",
        counted(open.len(), "comparison"),
        parts.join(" and ")
    );
    if !open.is_empty() {
        out.push_str(&folded(&summary, &items(&open)));
    }
    if let Some(text) = words::questions(analysis) {
        out.push_str(&format!("<p class=\"sub\">{}</p>\n", escaped(&text)));
    }
    out
}

fn items(comparisons: &[(usize, &Comparison)]) -> String {
    let each = comparisons.iter().map(|(number, c)| {
        format!(
            "<li class=\"{}\"><span class=\"word\">{}</span>: {} <span class=\"proofs\">\
             <a href=\"#{}\">blocks</a></span></li>\n",
            c.verdict.word(),
            escaped(words::direction(c)),
            prose(&crate::section::run::after_word(c)),
            proof::id(*number)
        )
    });
    format!(
        "<ul class=\"verdicts\">\n{}</ul>\n",
        each.collect::<String>()
    )
}
