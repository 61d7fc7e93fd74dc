//! The page of a run: its sections in order.

use readings::{Journal, RunHeader};
use verdict::Analysis;
use verdict::text::{counted, fraction};

use super::blocks::panels;
use super::curves::curves;
use super::forest::forests;
use super::latency::latency;
use super::shift::shifts;
use super::svg::escaped;
use crate::columns::{Columns, legend};
use crate::terminal::{after_word, by_metric, invalid_trial, stage};
use crate::{curve_table, sentence, settings, tiers};

pub(super) const STYLE: &str = include_str!("page.css");

/// A run's result as one HTML page with pictures.
///
/// The page stands alone: no script, no font, no picture is fetched. Names and reasons come from
/// files and servers, and are escaped. `journal` is what `analysis` was made from.
pub fn html(journal: &Journal, analysis: &Analysis) -> String {
    let header = &journal.header;
    let mut subjects = header.subjects.clone();
    for c in &analysis.comparisons {
        if !subjects.contains(&c.subject) {
            subjects.push(c.subject.clone());
        }
    }
    let mut main = format!(
        "<h1>{}</h1>\n<p class=\"sub\">{} · against {} · {} planned · seed {}</p>\n",
        escaped(&header.title),
        escaped(&header.experiment),
        escaped(&header.baseline),
        counted(header.blocks as usize, "block"),
        header.seed
    );
    main.push_str(&verdicts(analysis));
    main.push_str(&format!(
        "<p class=\"sub\">{}.</p>\n",
        escaped(&stage(analysis))
    ));
    if let Some(text) = sentence::placement(&analysis.placements) {
        main.push_str(&format!("<p class=\"sub\">{}</p>\n", escaped(&text)));
    }
    main.push_str(&in_tiers(analysis));
    main.push_str(&section("Differences", &forests(analysis, header.matters)));
    main.push_str(&figures(analysis));
    let blocks = panels(analysis, &subjects, header.matters);
    let blocks = wrapped_in("panels", &blocks);
    main.push_str(&section("Block by block", &blocks));
    main.push_str(&section(
        curve_table::TITLE,
        &against_rate(analysis, &subjects),
    ));
    main.push_str(&section("Latency", &curves(journal, &subjects)));
    main.push_str(&section("Latency by quantile", &shifts(analysis)));
    main.push_str(&list(
        "Interactions",
        sentence::interactions(&analysis.interactions).into_iter(),
    ));
    main.push_str(&list(
        "Bottlenecks",
        analysis.bottlenecks.iter().map(sentence::finding),
    ));
    main.push_str(&list(
        "Noise floor",
        analysis.noise_floor.iter().map(sentence::noise_floor),
    ));
    main.push_str(&side_by_side(analysis));
    main.push_str(&published(header));
    main.push_str(&list(
        "Warnings",
        analysis.warnings.iter().map(sentence::warning),
    ));
    main.push_str(&list(
        "Invalid trials",
        analysis.invalid.iter().map(invalid_trial),
    ));
    main.push_str(&list(
        "Failed trials",
        analysis
            .failures
            .iter()
            .map(|f| format!("{} of {}: {}", f.count, f.subjects.join(", "), f.reason)),
    ));
    main.push_str(&footer(header, analysis));
    shell(&header.title, &main)
}

/// A whole page around its content.
pub(super) fn shell(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{main}</main>\n\
         </body>\n</html>\n",
        escaped(title)
    )
}

/// Latency over the offered rate: what follows, the pictures, and the figures.
fn against_rate(analysis: &Analysis, subjects: &[String]) -> String {
    let each = analysis.curves.iter().enumerate().map(|(number, one)| {
        let said = sentence::curves(one);
        let said = said
            .iter()
            .map(|text| format!("<li>{}</li>\n", escaped(text)));
        let said: String = said.collect();
        let mut out = match said.is_empty() {
            true => String::new(),
            false => format!("<ul>\n{said}</ul>\n"),
        };
        out.push_str(&latency(number, one, subjects));
        if let Some(bounds) = curve_table::bounds(one) {
            out.push_str(&wrapped_in("scroll", &table(&bounds)));
        }
        let points = wrapped_in("scroll", &table(&curve_table::table(one)));
        out.push_str(&format!(
            "<details>\n<summary>All points</summary>\n{points}</details>\n"
        ));
        out
    });
    each.collect()
}

/// What others published, beside which the figures stand.
fn published(header: &RunHeader) -> String {
    if header.published.is_empty() {
        return String::new();
    }
    let rows: String = header
        .published
        .iter()
        .map(|figure| {
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(&figure.what),
                figure.value,
                escaped(&figure.unit),
                escaped(&figure.source)
            )
        })
        .collect();
    let table = format!(
        "<table>\n<tr><th>what</th><th>value</th><th>unit</th><th>source</th></tr>\n{rows}</table>\n"
    );
    section("Published by others", &table)
}

fn verdicts(analysis: &Analysis) -> String {
    let items: Vec<String> = by_metric(analysis)
        .into_iter()
        .map(|c| {
            let word = c.verdict.word();
            format!(
                "<li class=\"{word}\"><b>{word}</b>{}</li>\n",
                escaped(&after_word(c))
            )
        })
        .collect();
    if items.is_empty() {
        let texts = sentence::uncompared(analysis).into_iter();
        return texts
            .map(|text| format!("<p>{}</p>\n", escaped(&text)))
            .collect();
    }
    format!("<ul class=\"verdicts\">\n{}</ul>\n", items.concat())
}

/// The tiers in sentences and as a table.
fn in_tiers(analysis: &Analysis) -> String {
    if analysis.tiers.is_empty() {
        return String::new();
    }
    let sentences = analysis.tiers.iter().map(sentence::tiers);
    let sentences = sentences.map(|text| format!("<p>{}</p>\n", escaped(&text)));
    let table = wrapped_in("scroll", &table(&tiers::table(&analysis.tiers)));
    section(
        tiers::TITLE,
        &format!(
            "{}{table}<p class=\"sub\">({})</p>\n",
            sentences.collect::<String>(),
            escaped(tiers::LEGEND)
        ),
    )
}

/// How the compared servers were set.
fn side_by_side(analysis: &Analysis) -> String {
    let tables = analysis.settings.iter().map(|one| {
        let place = settings::place(&analysis.settings, one);
        let place = place.map(|text| format!("<p class=\"sub\">{}</p>\n", escaped(&text)));
        place.unwrap_or_default() + &wrapped_in("scroll", &table(&settings::table(one)))
    });
    section(settings::TITLE, &tables.collect::<String>())
}

fn figures(analysis: &Analysis) -> String {
    if analysis.table.is_empty() {
        return String::new();
    }
    let columns = Columns::of(&analysis.table);
    let table = table(&columns);
    let note = escaped(&legend(&columns));
    let body = wrapped_in("scroll", &table);
    let probes = analysis.probes.iter().map(sentence::probes);
    let rates: String = analysis
        .rates
        .iter()
        .map(sentence::rate_choice)
        .chain(analysis.tls.iter().map(sentence::tls))
        .chain(probes)
        .map(|text| format!("<p class=\"sub\">{}</p>\n", escaped(&text)))
        .collect();
    section(
        "Figures",
        &format!("{body}<p class=\"sub\">({note})</p>\n{rates}"),
    )
}

/// Columns as a table.
pub(super) fn table(columns: &Columns) -> String {
    let row = |cells: &[String], tag: &str, scope: &str| {
        let cells: Vec<String> = cells
            .iter()
            .zip(&columns.numeric)
            .map(|(cell, numeric)| {
                let class = if *numeric { " class=\"n\"" } else { "" };
                format!("<{tag}{scope}{class}>{}</{tag}>", escaped(cell))
            })
            .collect();
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let mut table = format!(
        "<thead>\n{}</thead>\n<tbody>\n",
        row(&columns.head, "th", " scope=\"col\"")
    );
    for cells in &columns.rows {
        table.push_str(&row(cells, "td", ""));
    }
    format!("<table>\n{table}</tbody>\n</table>\n")
}

fn section(title: &str, body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("<section>\n<h2>{title}</h2>\n{body}</section>\n")
    }
}

fn wrapped_in(class: &str, body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("<div class=\"{class}\">\n{body}</div>\n")
    }
}

fn list(title: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items
        .map(|i| format!("<li>{}</li>\n", escaped(&i)))
        .collect();
    if items.is_empty() {
        return String::new();
    }
    section(title, &format!("<ul>\n{}</ul>\n", items.concat()))
}

fn footer(header: &RunHeader, analysis: &Analysis) -> String {
    format!(
        "<footer>{} done, {} failed, {} invalid. Ratios are subject over baseline, one per block; \
         differences within {} do not matter. Weighstation {}.</footer>\n",
        counted(analysis.trials_done, "trial"),
        analysis.trials_failed,
        analysis.invalid.len(),
        fraction(header.matters),
        escaped(&header.weigh_version)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{header, journal};
    use verdict::analyse;

    fn page() -> String {
        let journal = journal();
        html(&journal, &analyse(&journal))
    }

    #[test]
    fn the_page_stands_alone() {
        let page = page();
        for outside in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn names_are_escaped() {
        let page = page();
        assert!(page.contains("<p class=\"sub\">Fixed design: one look, after all 6 blocks"));
        assert!(page.contains("<h1>What a &lt;balancer&gt; costs</h1>"));
        assert!(!page.contains("<balancer>"));
    }

    #[test]
    fn every_picture_is_there_and_has_a_title_and_a_description() {
        let page = page();
        let count = |what: &str| page.matches(what).count();
        // Throughput, median and p99 of intervals and of blocks; intervals of what servers cost;
        // one set of curves, and one shift function.
        assert_eq!(count("<svg "), 10);
        assert_eq!(count("<desc id="), 10);
        assert_eq!(count("</svg>"), 10);
        assert!(
            page.contains("id=\"forest-requests_per_s\"")
                || page.contains("forest-requests_per_s-t")
        );
        assert!(page.contains("balance connections=96: -31"));
        assert!(page.contains("balance, block 3: "));
        assert!(page.contains("direct: median 4"));
        assert!(!page.contains("NaN") && !page.contains("inf\""));
    }

    #[test]
    fn tags_are_balanced() {
        let page = page();
        for tag in [
            "figure", "section", "div", "ul", "li", "table", "tr", "td", "th", "path",
        ] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            let closed = page.matches(&format!("</{tag}>")).count();
            assert_eq!(opened, closed, "{tag}");
        }
    }

    #[test]
    fn an_empty_run_still_makes_a_page() {
        let journal = Journal::new(header(), Vec::new());
        let page = html(&journal, &analyse(&journal));
        assert!(page.contains("no block was measured"));
        assert!(!page.contains("NaN"));
    }
}
