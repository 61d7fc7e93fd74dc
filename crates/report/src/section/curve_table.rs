//! Latency against offered rate as a table.

use readings::text::{fraction, rate};
use verdict::{CurveRow, Estimate, LatencyCurves, Passes};

use crate::section::columns::Columns;
use readings::text::compact::time;
use verdict::words::is_measurable;

/// Shown in place of an interval that is too wide to say anything.
pub(crate) const WIDE: &str = "[?]";

pub(crate) const TITLE: &str = "Latency against offered rate";

/// A row for each rate, subject and share.
pub(crate) fn table(curves: &LatencyCurves) -> Columns {
    let rows = || {
        let subjects = curves.subjects.iter();
        subjects.flat_map(|one| {
            let rows = one.rates.iter().chain(&one.shares);
            rows.map(move |row| (one.subject.as_str(), row))
        })
    };
    let has = |quantile: f64| rows().any(|(_, row)| row.latency(quantile).is_some());
    let quantiles: Vec<(f64, &str)> = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")]
        .into_iter()
        .filter(|(quantile, _)| has(*quantile))
        .collect();
    let ratios = rows().any(|(_, row)| !row.ratio.is_empty());
    let mut head = vec!["subject".to_owned(), "offered/s".to_owned()];
    let shares = rows().any(|(_, row)| row.share.is_some());
    if shares {
        head.push("share".to_owned());
    }
    head.extend(quantiles.iter().map(|(_, name)| (*name).to_owned()));
    if ratios {
        head.push("p50 ratio".to_owned());
        head.push("p99 ratio".to_owned());
    }
    let body = rows().map(|(subject, row)| {
        let mut cells = vec![subject.to_owned(), rate(row.rate_per_s)];
        if shares {
            cells.push(row.share.map_or("-".to_owned(), fraction));
        }
        let state = state(row);
        for (number, (quantile, _)) in quantiles.iter().enumerate() {
            let shown = row.latency(*quantile).map(|one| match row.settled {
                true => latency(one),
                false => format!("{} +", latency(one)),
            });
            let instead = state.clone().filter(|_| number == 0);
            cells.push(shown.or(instead).unwrap_or_else(|| "-".to_owned()));
        }
        if ratios {
            for quantile in [0.5, 0.99] {
                let own = row.ratio.iter().find(|one| one.quantile == quantile);
                cells.push(own.map_or("-".to_owned(), ratio));
            }
        }
        cells
    });
    let rows: Vec<Vec<String>> = body.collect();
    Columns {
        numeric: (0..head.len()).map(|at| at > 0).collect(),
        head,
        rows,
    }
}

fn state(row: &CurveRow) -> Option<String> {
    match (row.overloaded, row.blocks) {
        (0, 0) => Some("unusable".to_owned()),
        (0, _) => None,
        (some, all) if some < all => Some(format!("overloaded {some} of {all}")),
        _ => Some("overloaded".to_owned()),
    }
}

fn latency(one: &Estimate) -> String {
    match one.low.zip(one.high) {
        Some(wide) if !is_measurable(wide) => format!("{} {WIDE}", time(one.value)),
        Some((low, high)) => format!("{} [{}, {}]", time(one.value), time(low), time(high)),
        None => time(one.value),
    }
}

fn ratio(one: &Estimate) -> String {
    match one.low.zip(one.high) {
        Some(wide) if !is_measurable(wide) => format!("{:.2} {WIDE}", one.value),
        Some((low, high)) => format!("{:.2} [{low:.2}, {high:.2}]", one.value),
        None => format!("{:.2}", one.value),
    }
}

/// The rates at which the 99th percentile passes its bounds, a row for each subject.
pub(crate) fn bounds(curves: &LatencyCurves) -> Option<Columns> {
    // A subject without a usable point has no bounds.
    let first = curves.subjects.iter().max_by_key(|one| one.bounds.len())?;
    if first.bounds.is_empty() {
        return None;
    }
    let mut head = vec!["p99 passes".to_owned()];
    let names = first.bounds.iter();
    head.extend(names.map(|one| verdict::words::tidy(one.bound_us)));
    let rows = curves.subjects.iter().map(|one| {
        let mut cells = vec![one.subject.clone()];
        let own = |us: f64| one.bounds.iter().find(|bound| bound.bound_us == us);
        let bounds = first.bounds.iter().map(|bound| own(bound.bound_us));
        cells.extend(
            bounds.map(|bound| match bound.map(|bound| (bound, bound.passes)) {
                None => "-".to_owned(),
                Some((bound, Passes::Within)) => verdict::words::rate_with_interval(bound),
                Some((bound, Passes::AtMost)) => format!("<= {}/s", rate(bound.rate_per_s)),
                Some((bound, Passes::AtLeast)) => format!(">= {}/s", rate(bound.rate_per_s)),
            }),
        );
        cells
    });
    let rows: Vec<Vec<String>> = rows.collect();
    Some(Columns {
        numeric: (0..head.len()).map(|at| at > 0).collect(),
        head,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Text as _;

    #[test]
    fn an_interval_of_more_than_a_factor_of_ten_is_not_shown() {
        let of = |low: f64, high: f64| Estimate {
            quantile: 0.5,
            value: 600.0,
            low: Some(low),
            high: Some(high),
            blocks: 3,
        };
        assert_eq!(latency(&of(300.0, 1200.0)), "600us [300us, 1.20ms]");
        assert_eq!(latency(&of(20.0, 18_000.0)), "600us [?]");
    }

    #[test]
    fn every_form_of_the_report_has_the_curves() {
        let journal = testing::journals::curve_journal();
        let analysis = verdict::analyse(&journal);
        let page = crate::html(&journal, &analysis, &crate::RunFacts::default());
        // Median and p99, over rates and over shares.
        assert_eq!(page.matches("against offered rate</title>").count(), 2);
        assert_eq!(page.matches("own capacity</title>").count(), 2);
        assert_eq!(page.matches("class=\"spread").count(), 8);
        assert_eq!(
            page.matches("mark open").count(),
            2,
            "12,000/s, for both quantiles"
        );
        let drawn = page.split("<script").next().unwrap();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf%") && !drawn.contains("inf\""));
        let svg = crate::curve_svg(&journal.header, &analysis).unwrap();
        svg.begins("<svg xmlns=");
        svg.has("--s0:");
        let text = crate::verbose(&journal.header, &analysis, 120, false, None);
        text.has("Latency against offered rate\n");
        text.has("overloaded");
        let summary = crate::markdown(&journal.header, &analysis);
        summary.has("## Latency against offered rate");
        let document = crate::json(&journal.header, &analysis);
        let first = &document["curves"][0];
        assert_eq!(first["subjects"][0]["rates"][5]["overloaded"], 4);
        first["sentences"][0].as_str().unwrap().has("passes 1 ms");
    }
}
