//! The blocks behind the figures of a row, folded.

use readings::text::compact::time;
use readings::text::{change, condition, once, rate};
use report::drawing::escaped;
use verdict::{Analysis, words};

use crate::table::{Block, Cell, Column, Row, Table, What};

/// The anchor of a figure, by the places of its row and its column.
pub(crate) fn anchor(row: usize, column: usize) -> String {
    format!("b{row}-{column}")
}

/// Whether a figure leads to its blocks.
pub(crate) fn has_blocks(cell: &Cell, column: &Column) -> bool {
    let is_bound = matches!(column.what, What::Bound { .. }) && cell.value.is_some();
    is_bound || !cell.blocks.is_empty()
}

/// `nginx, size=100`.
pub(crate) fn name(row: &Row) -> String {
    match condition(&row.condition) {
        text if text.is_empty() => row.subject.clone(),
        text => format!("{}, {text}", row.subject),
    }
}

/// The blocks of every row, each folded; empty for a row without any.
pub(crate) fn all(table: &Table, analysis: &Analysis, baseline: &str, repeat: &str) -> Vec<String> {
    let each = table.rows.iter().enumerate();
    each.map(|(number, row)| {
        let body = blocks(table, number, row, baseline) + &points(table, analysis, number, row);
        match body.is_empty() {
            true => body,
            false => format!(
                "<details class=\"proof\">\n<summary>{}</summary>\n<p class=\"sub\">To measure it again: \
                 <code>{}</code></p>\n{body}</details>\n",
                escaped(&name(row)),
                escaped(repeat)
            ),
        }
    })
    .collect()
}

/// A line of values for each figure, and one of ratios to the baseline; a column for each block.
fn blocks(table: &Table, number: usize, row: &Row, baseline: &str) -> String {
    let columns = table.columns.iter().enumerate();
    let figures: Vec<(usize, &Column, &Cell)> = columns
        .filter_map(|(at, column)| Some((at, column, row.figures.get(&column.name)?)))
        .filter(|(_, _, cell)| !cell.blocks.is_empty())
        .collect();
    let all = || figures.iter().flat_map(|(_, _, cell)| &cell.blocks);
    let mut numbers: Vec<u32> = all().map(|block| block.block).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return String::new();
    }
    let line = |cell: &Cell, text: &dyn Fn(&Block) -> Option<String>| -> String {
        let of = |number: &u32| cell.blocks.iter().find(|block| block.block == *number);
        let cells = numbers.iter().map(|number| of(number).and_then(text));
        let cells = cells.map(|text| text.unwrap_or_else(|| "\u{2013}".to_owned()));
        cells.map(|text| format!("<td>{text}</td>")).collect()
    };
    let mut body = String::new();
    for (at, column, cell) in &figures {
        let value = |block: &Block| {
            let sign = if block.is_unresolved { "~" } else { "" };
            let What::Metric(metric) = column.what else {
                return None;
            };
            Some(format!("{sign}{}", words::value(metric, block.value?)))
        };
        body.push_str(&format!(
            "<tr id=\"{}\"><th scope=\"row\">{}</th>{}</tr>\n",
            anchor(number, *at),
            escaped(&column.head),
            line(cell, &value)
        ));
        if cell.blocks.iter().any(|block| block.ratio.is_some()) {
            let ratio = |block: &Block| Some(change(block.ratio?, None));
            body.push_str(&format!(
                "<tr><th scope=\"row\">\u{2026} over {}</th>{}</tr>\n",
                escaped(baseline),
                line(cell, &ratio)
            ));
        }
    }
    let heads: String = numbers
        .iter()
        .map(|number| format!("<th scope=\"col\" class=\"n\">{number}</th>"))
        .collect();
    let table = format!(
        "<table class=\"figures\">\n<thead>\n<tr><th scope=\"col\">block</th>{heads}</tr>\n</thead>\n<tbody>\n\
         {body}</tbody>\n</table>\n"
    );
    let label = format!("blocks of {}", name(row));
    let mut out = report::drawing::boxed(&table, &label, "scroll");
    let why = |block: &Block| Some(format!("block {}: {}", block.block, block.reason.as_ref()?));
    out.push_str(&report::drawing::list(
        once(all().filter_map(why)).into_iter(),
    ));
    if all().any(|block| block.is_unresolved) {
        out.push_str(
            "<p class=\"sub\">~: too few answers of the block alone stand behind it; the figure is that \
             of all blocks together.</p>\n",
        );
    }
    out
}

/// The points of a curve, block by block: what rates within bounds rest on.
fn points(table: &Table, analysis: &Analysis, number: usize, row: &Row) -> String {
    let columns = table.columns.iter().enumerate();
    let bounds = columns.filter(|(_, column)| {
        let is_bound = matches!(column.what, What::Bound { .. });
        is_bound && row.figures.contains_key(&column.name)
    });
    let anchors: String = bounds
        .map(|(at, _)| format!("<span id=\"{}\"></span>", anchor(number, at)))
        .collect();
    if anchors.is_empty() {
        return anchors;
    }
    let curves = analysis.curves.iter();
    let curves = curves.filter(|one| {
        row.condition
            .iter()
            .all(|level| one.condition.get(level.0).is_none_or(|own| own == level.1))
    });
    let mut subjects = curves.flat_map(|one| &one.subjects);
    let Some(subject) = subjects.find(|one| one.subject == row.subject) else {
        return String::new();
    };
    let blocks = subject.p99_by_block().enumerate().map(|(at, points)| {
        let points = points.iter().map(|(per_s, us)| match us {
            Some(us) => format!("{}/s {}", rate(*per_s), time(*us)),
            None => format!("{}/s overloaded", rate(*per_s)),
        });
        format!(
            "p99 by rate, block {} of the curve: {}",
            at + 1,
            points.collect::<Vec<_>>().join(", ")
        )
    });
    anchors + &report::drawing::list(blocks)
}
