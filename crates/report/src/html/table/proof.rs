//! The figures behind each sentence: the blocks of a comparison.

use readings::text::{change, condition, counted, fraction, number};
use verdict::{Analysis, Comparison};

use crate::html::picture::svg::{escaped, prose};
use crate::html::table::boxed;
use verdict::words;

/// The most rows of blocks in a page; those of a longer run are only in the data.
const ROWS_MAX: usize = 4_000;

/// The anchor of a comparison, by its place among all of the analysis.
pub(crate) fn id(number: usize) -> String {
    format!("proof-{number}")
}

/// Every comparison with its blocks, folded.
pub(crate) fn proofs(analysis: &Analysis) -> String {
    let rows: usize = analysis.all_comparisons().map(|c| c.by_block.len()).sum();
    let all = analysis.all_comparisons().enumerate();
    all.map(|(number, c)| proof(number, c, rows <= ROWS_MAX))
        .collect()
}

fn proof(number: usize, c: &Comparison, is_whole: bool) -> String {
    let place = match condition(&c.condition) {
        text if text.is_empty() => text,
        text => format!(" at {text}"),
    };
    let summary = format!(
        "{} against {}, {}{place}",
        c.subject,
        c.baseline,
        words::metric_words(c.metric, &c.condition, None)
    );
    let blocks = match (c.by_block.is_empty(), is_whole) {
        (true, _) => "<p class=\"sub\">No block can be used.</p>\n".to_owned(),
        (_, true) => blocks(c, &summary),
        (_, false) => format!(
            "<p class=\"sub\">{}: <code>by_block</code> of the JSON document has the ratios.</p>\n",
            counted(c.by_block.len(), "block")
        ),
    };
    format!(
        "<details id=\"{}\" class=\"proof\">\n<summary>{}</summary>\n<p>{}</p>\n<p class=\"sub\">{}</p>\n\
         {blocks}</details>\n",
        id(number),
        escaped(&summary),
        prose(&words::comparison(c)),
        prose(&how(c))
    )
}

/// The figures that decided.
fn how(c: &Comparison) -> String {
    let mut parts = vec![format!(
        "ratios are {} over {}; {} interval over {}; differences within {} do not matter",
        c.subject,
        c.baseline,
        fraction(c.confidence),
        counted(c.blocks, "block"),
        fraction(c.matters)
    )];
    if let Some(robust) = c.robust {
        let figure = change(robust.ratio, robust.interval());
        parts.push(format!("Hodges-Lehmann estimate {figure}"));
    }
    if let Some(p) = c.p_adjusted.or(c.p_value) {
        let p = match p {
            p if p < 0.0005 => "below 0.0005".to_owned(),
            p => number(p, 3, false),
        };
        parts.push(format!(
            "p of no difference, corrected within the question: {p}"
        ));
    }
    parts.join("; ")
}

fn blocks(c: &Comparison, label: &str) -> String {
    let rows: String = c
        .by_block
        .iter()
        .map(|block| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                block.block,
                number(block.ratio, 4, false),
                change(block.ratio, None)
            )
        })
        .collect();
    let head = ["block", "ratio", "change"];
    let head: String = head
        .map(|name| format!("<th scope=\"col\" class=\"n\">{name}</th>"))
        .concat();
    let table = format!(
        "<table class=\"sorts figures\">\n<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    );
    boxed(&table, &format!("blocks of {label}"), "scroll")
}
