//! Tables in which a writer has put figures of several subjects side by side.

use readings::FigureTable;

use super::lines::Line;
use super::units;

/// Words for one measure each; all columns of a table have to have the same.
const MEASURES: [&[&str]; 3] = [
    &["time", "timing", "timings", "seconds", "duration"],
    &["latency", "response", "ms"],
    &["requests/s", "requests/sec", "req/s", "rps", "throughput"],
];
/// So many lines without cells may stand between two rows.
const GAP_LINES: usize = 2;

/// The tables of a text, in its order.
pub(crate) fn tables(lines: &[Line]) -> Vec<FigureTable> {
    let mut tables = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let table = cells(&lines[at].text)
            .filter(|head| is_head(head))
            .and_then(|head| table(lines, at, head));
        match table {
            Some((table, end)) => {
                tables.push(table);
                at = end;
            }
            None => at += 1,
        }
    }
    tables
}

fn table(lines: &[Line], first: usize, head: Vec<String>) -> Option<(FigureTable, usize)> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut last = first;
    for (at, line) in lines.iter().enumerate().skip(first + 1) {
        match cells(&line.text) {
            Some(cells) if is_rule(&cells) => {}
            Some(cells) => match figures(&cells).filter(|row| row.len() == head.len()) {
                Some(row) => {
                    rows.push(row);
                    last = at;
                }
                None => break,
            },
            None if at > last + GAP_LINES => break,
            None => {}
        }
    }
    let table = FigureTable {
        lines: (lines[first].number, lines[last].number),
        head,
        rows,
    };
    (table.rows.len() >= 2).then_some((table, last + 1))
}

/// The cells of a row: between bars, between tabs, or in `cell(...)`.
fn cells(text: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = if text.contains("cell(") {
        text.split("cell(").skip(1).collect()
    } else if text.matches('|').count() >= 2 {
        text.trim_matches('|').split('|').collect()
    } else if text.contains('\t') {
        text.split('\t')
            .filter(|cell| !cell.trim().is_empty())
            .collect()
    } else {
        return None;
    };
    let cells: Vec<String> = parts.into_iter().map(plain).collect();
    (cells.len() >= 3).then_some(cells)
}

/// A cell without the marks of type: `bf(A timing))` and `**A timing**` are `A timing`.
fn plain(cell: &str) -> String {
    let cell = cell.trim().trim_end_matches(')');
    let cell = match cell.split_once('(') {
        Some((mark, inner)) if mark.chars().all(char::is_alphanumeric) => inner,
        _ => cell,
    };
    cell.trim_matches(['*', '_', ' ', '`']).to_owned()
}

/// The line below a Markdown table's head.
fn is_rule(cells: &[String]) -> bool {
    let rule = |cell: &String| cell.chars().all(|c| matches!(c, '-' | ':' | ' '));
    cells.iter().all(rule)
}

fn measure(cell: &str) -> Option<usize> {
    let cell = cell.to_lowercase();
    let splits = |c: char| !(c.is_alphanumeric() || c == '/');
    let has = |words: &[&str]| cell.split(splits).any(|word| words.contains(&word));
    MEASURES.iter().position(|words| has(words))
}

fn is_head(cells: &[String]) -> bool {
    let measures: Vec<Option<usize>> = cells[1..].iter().map(|c| measure(c)).collect();
    measures[0].is_some()
        && measures.iter().all(|m| *m == measures[0])
        && !cells[0].is_empty()
        && (1..cells.len()).all(|i| !cells[..i].contains(&cells[i]))
}

fn figures(cells: &[String]) -> Option<Vec<f64>> {
    let figure = |cell: &String| units::number(&cell.replace(',', ""));
    let figures: Vec<f64> = cells.iter().map(figure).collect::<Option<_>>()?;
    figures[1..].iter().all(|f| *f > 0.0).then_some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::lines::lines;

    fn only(text: &str) -> FigureTable {
        let mut found = tables(&lines(text));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found.remove(0)
    }

    #[test]
    fn tables_are_read_however_they_are_set() {
        for text in [
            "x\n\n| Bytes | A timing | B timing |\n|---|---:|---:|\n| 2,000 | 0.13 | 0.12 |\n| 20,000 | 0.49 | 0.50 |\n",
            "x\n\nBytes\tA timing\tB timing\n\n2000\t0.13\t0.12\n20000\t0.49\t0.50\n",
            "x\n\nrow(cell(bf(Bytes)) cell(bf(A timing)) cell(bf(B timing)))\nrow(\ncell(2000) cell(0.13) cell(0.12))\nrow(\n  cell(20000)\tcell(0.49)\tcell(0.50))\nrowline()\n",
        ] {
            let table = only(text);
            assert_eq!(table.head, ["Bytes", "A timing", "B timing"], "{text}");
            assert_eq!(table.rows, [[2000.0, 0.13, 0.12], [20_000.0, 0.49, 0.5]]);
            assert_eq!(table.lines.0, 3);
        }
    }

    #[test]
    fn other_tables_are_left_alone() {
        for text in [
            "r\tb\tswpd\tfree\n1\t0\t180\t7470\n0\t0\t180\t7469\n",
            "| n | A time | B rps |\n|---|---|---|\n| 1 | 2 | 3 |\n| 2 | 3 | 4 |\n",
            "| n | A time | B time |\n|---|---|---|\n| 1 | 2 | 3 |\n",
            "| n | A time | B time |\n|---|---|---|\n| 1 | fast | 3 |\n| 2 | 3 | 4 |\n",
            "| n | time | time |\n|---|---|---|\n| 1 | 1 | 3 |\n| 2 | 3 | 4 |\n",
            "cell(a\t|||\n\t\t\t\ncell(cell(cell(time cell(time\n",
        ] {
            assert_eq!(tables(&lines(text)), [], "{text}");
        }
    }
}
