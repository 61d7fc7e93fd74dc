//! The page of a run: its sections in order.

use readings::text::{counted, fraction, once};
use readings::{Journal, RunHeader};
use verdict::Analysis;

use crate::RunFacts;
use crate::html::data::data;
use crate::html::first_screen::first_screen;
use crate::html::picture::curves::curves;
use crate::html::picture::event_rows::event_rows;
use crate::html::picture::forest::forests;
use crate::html::picture::latency::latency;
use crate::html::picture::over_time::over_time;
use crate::html::picture::panels::blocks::panels;
use crate::html::picture::panels::shift::shifts;
use crate::html::picture::svg::escaped;
use crate::html::picture::topology::topology;
use crate::html::section as generic;
use crate::html::table::bottlenecks::bottlenecks;
use crate::html::table::profiles::profiles;
use crate::html::table::proof::proofs;
use crate::html::table::settings_table::side_by_side;
use crate::html::table::verdicts::verdicts;
use crate::html::table::{folded, list, section};
use crate::section::columns::Figures;
use crate::section::{curve_table, run, settings};

/// Colours and the parts of pictures.
pub(crate) const PICTURE_STYLE: &str = include_str!("style/picture.css");
const PAGE_STYLE: &str = include_str!("style/page.css");
const SCRIPT: &str = include_str!("style/page.js");

/// How many trials are named one by one; the others are in the data.
const TRIALS_NAMED_MAX: usize = 200;

/// A run's result as one HTML page with pictures and its data.
///
/// The page stands alone: no script, font or picture is fetched. Names and reasons come from files
/// and servers, so they are escaped. `analysis` was made from `journal`; `facts` is what else the
/// run's folder says.
pub fn html(journal: &Journal, analysis: &Analysis, facts: &RunFacts) -> String {
    let journal = &*journal.by_load();
    let header = &journal.header;
    let mut main = first_screen(journal, analysis, facts);
    main.push_str(&all_sections(journal, analysis, facts).concat());
    let foot = footer(header, analysis);
    let json = crate::json(header, analysis);
    main.push_str(&data(
        main.len() + foot.len() + 20_000,
        &crate::csv(journal, analysis),
        &json,
    ));
    main.push_str(&foot);
    shell(&header.title, &main)
}

/// Sections of the page of a run, by their anchors, for other pages; those without content are left
/// out. Only those that lead to no other section can stand alone: not `verdicts`, nor `intervals`.
pub fn sections(
    journal: &Journal,
    analysis: &Analysis,
    facts: &RunFacts,
    ids: &[&str],
) -> Vec<String> {
    let all = all_sections(&journal.by_load(), analysis, facts);
    let of = |id: &&str| {
        let begin = format!("<section id=\"{id}\">");
        all.iter().find(|text| text.starts_with(&begin)).cloned()
    };
    ids.iter().filter_map(of).collect()
}

/// The sections below the first screen, in order.
fn all_sections(journal: &Journal, analysis: &Analysis, facts: &RunFacts) -> [String; 26] {
    let header = &journal.header;
    let compared = analysis.comparisons.iter().map(|c| &c.subject);
    let subjects = once(header.subjects.iter().chain(compared).cloned());
    let blocks = wrapped_in("panels", &panels(analysis, &subjects, header.matters));
    let shape = facts.topology.as_ref().map(topology).unwrap_or_default();
    let sections = run::sections(header, analysis, figures(analysis));
    let of = |id: &str| generic::section(run::find(&sections, id));
    [
        crate::study::gates::html(&analysis.gates),
        section("verdicts", "Verdicts", &verdicts(analysis)),
        of("shares"),
        of("lasting"),
        of("tiers"),
        section(
            "intervals",
            "Differences",
            &forests(analysis, header.matters),
        ),
        of("figures"),
        of("servers"),
        section("blocks", "Block by block", &blocks),
        section(
            "curves",
            curve_table::TITLE,
            &against_rate(analysis, &subjects),
        ),
        section("latency", "Latency", &curves(analysis, &subjects)),
        section("quantiles", "Latency by quantile", &shifts(analysis)),
        section(
            "events",
            "Around events",
            &event_rows(journal, analysis, &subjects),
        ),
        section(
            "time",
            "Over time",
            &over_time(journal, analysis, &subjects),
        ),
        of("interactions"),
        of("requests"),
        of("growth"),
        section("bottlenecks", "Bottlenecks", &bottlenecks(analysis)),
        section("topology", "Topology", &shape),
        section("settings", settings::TITLE, &side_by_side(analysis)),
        section("profiles", "Profiles", &profiles(facts)),
        of("noise"),
        of("published"),
        of("warnings"),
        section(
            "trials",
            "Failed and invalid trials",
            &lost_trials(analysis),
        ),
        section("proofs", "Blocks behind each verdict", &proofs(analysis)),
    ]
}

/// A whole page around its content, with links to its sections.
pub fn shell(title: &str, main: &str) -> String {
    shell_with(title, main, "", "")
}

/// The same with rules and a script of its own.
pub fn shell_with(title: &str, main: &str, style: &str, script: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{PICTURE_STYLE}{PAGE_STYLE}{style}</style>\n</head>\n<body>\n\
         <div class=\"bar\"><nav aria-label=\"sections\">{}</nav><div class=\"tools\">\
         <button type=\"button\" id=\"folds\">Open all</button>\
         <button type=\"button\" id=\"theme\">Dark</button></div></div>\n\
         <main>\n{main}</main>\n<script>\n{SCRIPT}{script}</script>\n</body>\n</html>\n",
        escaped(title),
        navigation(main)
    )
}

/// A link to each section.
fn navigation(main: &str) -> String {
    let sections = main.split("<section id=\"").skip(1);
    let links = sections.filter_map(|text| {
        let (id, rest) = text.split_once('"')?;
        let title = match rest.strip_prefix(">\n<h2>") {
            Some(rest) => rest.split_once("</h2>")?.0,
            None => "Result",
        };
        Some(format!("<a href=\"#{id}\">{title}</a>\n"))
    });
    links.collect()
}

/// Latency over the offered rate: conclusions, pictures and figures.
fn against_rate(analysis: &Analysis, subjects: &[String]) -> String {
    let each = analysis.curves.iter().enumerate().map(|(number, one)| {
        let parts = run::against_rate(one).map_or_else(Vec::new, |section| section.parts);
        let (conclusions, tables) = parts.split_at(parts.len().min(1));
        generic::parts(conclusions) + &latency(number, one, subjects) + &generic::parts(tables)
    });
    each.collect()
}

/// The figures, without a condition that is the same in every row.
fn figures(analysis: &Analysis) -> Option<(String, Figures)> {
    let first = &analysis.table.first()?.condition;
    let figures = Figures::of(&analysis.table);
    let is_one = analysis.table.iter().all(|row| row.condition == *first);
    let figures = match is_one {
        true => figures.without_condition(),
        false => figures,
    };
    Some(("Figures".to_owned(), figures))
}

/// The failed and the invalid trials, folded.
fn lost_trials(analysis: &Analysis) -> String {
    let invalid = analysis.invalid.len();
    let more = invalid.saturating_sub(TRIALS_NAMED_MAX);
    let rest = (more > 0).then(|| counted(more, "more trial"));
    let named = analysis.invalid.iter().take(TRIALS_NAMED_MAX);
    let named = named.map(run::invalid_trial).chain(rest);
    folded(
        &counted(analysis.trials_failed, "failed trial"),
        &list(run::failed_trials(analysis).into_iter()),
    ) + &folded(&counted(invalid, "invalid trial"), &list(named))
}

fn wrapped_in(class: &str, body: &str) -> String {
    match body.is_empty() {
        true => String::new(),
        false => format!("<div class=\"{class}\">\n{body}</div>\n"),
    }
}

fn footer(header: &RunHeader, analysis: &Analysis) -> String {
    format!(
        "<footer>{}. {}, against {}. {} done, {} failed, {} invalid. Ratios are subject over baseline, \
         one per block; differences within {} do not matter. Weighstation {}.</footer>\n",
        escaped(&run::stage(analysis)),
        escaped(&header.experiment),
        escaped(&header.baseline),
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
    use testing::Text as _;
    use testing::journals::{header, journal};
    use verdict::analyse;

    fn page() -> String {
        let journal = journal();
        html(&journal, &analyse(&journal), &RunFacts::default())
    }

    #[test]
    fn the_page_stands_alone() {
        let page = page();
        for outside in [
            "http:",
            "https:",
            "<script src",
            "<link rel=\"style",
            "@import",
            "url(",
        ] {
            assert!(!page.contains(outside), "{outside}");
        }
        page.has("prefers-color-scheme: dark");
    }

    #[test]
    fn names_are_escaped() {
        let page = page();
        page.has("<h1>What a &lt;balancer&gt; costs</h1>");
        page.lacks("<balancer>");
    }

    #[test]
    fn the_first_screen_has_question_machine_result_and_what_follows() {
        let journal = journal();
        let facts = RunFacts {
            question: Some("What does <it> cost?".into()),
            machines: vec![crate::MachineFacts {
                name: "vm".into(),
                cpu: Some("A CPU".into()),
                cpus: Some(2),
                kernel: Some("6.18".into()),
                ..crate::MachineFacts::default()
            }],
            versions: vec![("nginx".into(), "1.22".into())],
            ..RunFacts::default()
        };
        let page = html(&journal, &analyse(&journal), &facts);
        let from = page.find("<section id=\"result\">").unwrap();
        let first = &page[from..page.find("<section id=\"verdicts\">").unwrap()];
        // The picture, what follows from it, the tables.
        let at = |text: &str| first.find(text).unwrap();
        assert!(at("<figure class=\"ranking\">") < at("class=\"closing\""));
        assert!(at("class=\"closing\"") < at("<table"));
        first.has_all([
            "What does &lt;it&gt; cost?",
            "14 November 2023, 22:13 UTC, on vm (A CPU, 2 CPUs, Linux 6.18)",
            "nginx 1.22, weigh 0.1.0",
            "<h3>connections=96</h3>",
            "<span class=\"v\">20,000/s</span><span class=\"d\">baseline</span>",
            "href=\"#proof-0\">surely slower</a>",
            "median latency at 2,000/s",
            "balance costs 31.0% of the throughput [",
        ]);
    }

    #[test]
    fn every_sentence_leads_to_its_blocks() {
        let journal = journal();
        let analysis = analyse(&journal);
        let page = html(&journal, &analysis, &RunFacts::default());
        for number in 0..analysis.comparisons.len() {
            assert!(page.contains(&format!("href=\"#proof-{number}\">blocks</a>")));
            assert!(page.contains(&format!("<details id=\"proof-{number}\"")));
        }
        let c = &analysis.comparisons[0];
        let ratio = format!("<td>{:.4}</td>", c.by_block[0].ratio);
        assert!(page.contains(&ratio), "{ratio}");
        // Undecided verdicts are folded.
        let from = page.find("<summary>Not decided: ").unwrap();
        assert!(page.find("<span class=\"word\">invalid</span>").unwrap() > from);
    }

    #[test]
    fn the_data_of_the_page_are_those_of_the_other_forms() {
        let journal = journal();
        let analysis = analyse(&journal);
        let page = html(&journal, &analysis, &RunFacts::default());
        let element = |id: &str| {
            let text = page.split(&format!("id=\"{id}\">")).nth(1).unwrap();
            let text = text.split("</script>").next().unwrap();
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        };
        assert_eq!(element("data-csv"), crate::csv(&journal, &analysis));
        assert_eq!(
            element("data-json"),
            crate::json(&journal.header, &analysis)
        );
    }

    #[test]
    fn every_picture_is_there_and_says_what_it_shows() {
        let page = page();
        let count = |what: &str| page.matches(what).count();
        // The ranking for wide and for narrow windows, blocks of throughput, median and p99, one set
        // of curves, one shift function; the loads of this journal have no slices to draw over time.
        assert_eq!(count("<desc id="), 7);
        assert_eq!(count("<svg "), count("</svg>"));
        page.has("aria-label=\"balance connections=96: -31");
        page.has("balance, block 3: ");
        page.has("direct: median 4");
        let page = page.split("<script>").next().unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains("inf%"));
    }

    #[test]
    fn tags_are_balanced() {
        let page = page();
        for tag in [
            "figure", "section", "div", "ul", "li", "table", "tr", "td", "th", "path", "details",
            "summary", "script",
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
        let page = html(&journal, &analyse(&journal), &RunFacts::default());
        page.has("no block was measured");
        assert!(!page.split("<script>").next().unwrap().contains("NaN"));
    }
}
