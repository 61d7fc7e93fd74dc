//! The settings of the compared servers side by side, with differences marked.

use verdict::{Analysis, SideBySide};

use crate::html::picture::svg::escaped;
use crate::html::table::boxed;
use crate::section::settings;

/// A table for each set of conditions: a row for each setting, a column for each server.
pub(crate) fn side_by_side(analysis: &Analysis) -> String {
    let tables = analysis.settings.iter().map(|one| {
        let place = settings::place(&analysis.settings, one);
        let place = place.map(|text| format!("<p class=\"sub\">{}</p>\n", escaped(&text)));
        place.unwrap_or_default() + &table(one)
    });
    tables.collect()
}

fn table(one: &SideBySide) -> String {
    let columns = settings::table(one);
    let [subject, rest @ ..] = columns.head.as_slice() else {
        return String::new();
    };
    let cells = |at: usize| columns.rows.iter().map(move |row| row[at].as_str());
    let heads: String = cells(0)
        .map(|name| format!("<th scope=\"col\">{}</th>", escaped(name)))
        .collect();
    let mut marked = 0;
    let body: String =
        rest.iter()
            .enumerate()
            .map(|(at, head)| {
                let at = at + 1;
                let differs = one.differences.iter().any(|difference| {
                    verdict::words::settings::setting(&difference.setting) == head
                });
                marked += usize::from(differs);
                let class = if differs { " class=\"differs\"" } else { "" };
                let sign = if differs { " \u{2260}" } else { "" };
                let each: String = cells(at)
                    .map(|value| format!("<td{class}>{}</td>", escaped(value)))
                    .collect();
                format!(
                    "<tr><th scope=\"row\"{class}>{}{sign}</th>{each}</tr>\n",
                    escaped(head)
                )
            })
            .collect();
    let table = format!(
        "<table>\n<thead>\n<tr><th scope=\"col\">{}</th>{heads}</tr>\n</thead>\n<tbody>\n{body}\
         </tbody>\n</table>\n",
        escaped(subject)
    );
    let note = match marked {
        0 => "The compared servers do not differ in what is declared here.",
        _ => "Marked \u{2260}: the compared servers differ, and that changes results.",
    };
    boxed(&table, "settings side by side", "scroll") + &format!("<p class=\"sub\">{note}</p>\n")
}
