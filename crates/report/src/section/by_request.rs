//! Each of several requests as a table.

use readings::text::compact::time;
use readings::text::{condition, grouped};
use verdict::RequestRow;

use crate::section::columns::Columns;

pub(crate) const TITLE: &str = "By request";

pub(crate) fn table(rows: &[RequestRow]) -> Columns {
    let has_conditions = rows.iter().any(|row| !row.at.condition.is_empty());
    let has_errors = rows.iter().any(|row| row.errors > 0);
    let columns: [(&str, bool, bool); 7] = [
        ("condition", false, has_conditions),
        ("request", false, true),
        ("subject", false, true),
        ("answers", true, true),
        ("p50", true, true),
        ("p99", true, true),
        ("errors", true, has_errors),
    ];
    let none = || "-".to_owned();
    let row = |row: &RequestRow| {
        [
            condition(&row.at.condition),
            row.name.clone(),
            row.at.subject.clone(),
            grouped(row.requests),
            row.latency_us_p50.map_or_else(none, time),
            row.latency_us_p99.map_or_else(none, time),
            grouped(row.errors),
        ]
    };
    let shown = |cells: [String; 7]| {
        let cells = cells.into_iter().zip(&columns);
        cells
            .filter(|(_, column)| column.2)
            .map(|(cell, _)| cell)
            .collect()
    };
    let kept = || columns.iter().filter(|column| column.2);
    Columns {
        head: kept().map(|column| column.0.to_owned()).collect(),
        numeric: kept().map(|column| column.1).collect(),
        rows: rows.iter().map(row).map(shown).collect(),
    }
}

#[cfg(test)]
mod tests {
    use readings::Condition;
    use verdict::Place;

    use super::*;

    #[test]
    fn columns_without_content_are_left_out() {
        let row = |errors, p50| RequestRow {
            at: Place {
                subject: "a".into(),
                condition: Condition::new(),
            },
            name: "login".into(),
            in_open_loop: true,
            trials: 3,
            requests: 1_000,
            errors,
            latency_us_p50: p50,
            latency_us_p99: p50,
        };
        let plain = table(&[row(0, Some(1_500.0))]);
        assert_eq!(plain.head, ["request", "subject", "answers", "p50", "p99"]);
        assert_eq!(plain.rows, [["login", "a", "1,000", "1.50ms", "1.50ms"]]);
        let failed = table(&[row(0, Some(1.0)), row(2, None)]);
        assert_eq!(failed.head.last().map(String::as_str), Some("errors"));
        assert_eq!(failed.rows[1][3..], ["-", "-", "2"]);
        assert_eq!(failed.numeric.len(), 6);
    }
}
