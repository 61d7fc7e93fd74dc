//! CSV for Apache Otava.

use readings::{RunHeader, Utc};
use verdict::Analysis;

use super::figures;
use crate::data::csv::field;
use crate::text::visible::one_line;

/// A run as a head and one line of CSV, as Apache Otava's importer reads them, to be appended to those
/// of earlier runs: `time` (UTC), the attributes `commit`, `label` and `version`, then for each figure
/// `SUBJECT/FACTOR=LEVEL/METRIC`, and with `/ratio` behind it the ratio to the baseline. Otava takes no
/// empty number, so a figure that the run does not have is no column.
///
/// Source: <https://github.com/apache/otava>, `docs/CSV.md` and `CsvImporter` in `otava/importer.py`.
pub fn otava(header: &RunHeader, analysis: &Analysis) -> String {
    let Utc {
        year,
        month,
        day,
        hour,
        minute,
        second,
    } = Utc::of(header.started_unix_s);
    let mut head = String::from("time,commit,label,version");
    let mut line = format!(
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} +0000,{},{},{}",
        cell(header.revision.as_deref().unwrap_or_default()),
        cell(header.label.as_deref().unwrap_or_default()),
        cell(&header.weigh_version),
    );
    for figure in figures(header, analysis) {
        let name = format!("{}/{}", figure.place(), figure.metric.name());
        let mut put = |name: &str, value: f64| {
            head.push_str(&format!(",{}", cell(name)));
            line.push_str(&format!(",{value}"));
        };
        put(&name, figure.value);
        let ratio = figure.comparison.and_then(|c| c.ratio);
        if let Some(ratio) = ratio.filter(|ratio| ratio.is_finite()) {
            put(&format!("{name}/ratio"), ratio);
        }
    }
    format!("{head}\n{line}\n")
}

fn cell(text: &str) -> String {
    field(&one_line(text))
}
