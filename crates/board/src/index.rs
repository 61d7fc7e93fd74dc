//! The index: the experiments, the newest first, and the servers.

use report::drawing::{boxed, escaped, section};
use serde_json::{Value, json};
use verdict::words;

use crate::experiment::ExperimentPage;
use crate::html::{Content, day, link, table};
use crate::server::Names;
use crate::title;

const TITLE: &str = "What was measured";

fn newest_first<'p, 'a>(pages: &'p [ExperimentPage<'a>]) -> Vec<&'p ExperimentPage<'a>> {
    let mut all: Vec<&ExperimentPage<'_>> = pages.iter().collect();
    all.sort_by_key(|page| std::cmp::Reverse(page.group.header().started_unix_s));
    all
}

pub(crate) fn html(pages: &[ExperimentPage<'_>], names: &Names) -> Content {
    let experiments = newest_first(pages).into_iter().map(|page| {
        let group = page.group;
        let question = group
            .shown()
            .run
            .facts
            .question
            .as_deref()
            .unwrap_or_default();
        vec![
            link(&format!("{}.html", group.page), title(group)),
            escaped(question.trim()),
            page.first()
                .iter()
                .map(|text| escaped(text))
                .collect::<Vec<_>>()
                .join("<br>"),
            day(group.header().started_unix_s),
            group.header().subjects.len().to_string(),
            group.runs.len().to_string(),
        ]
    });
    let experiments: Vec<Vec<String>> = experiments.collect();
    let servers = names.all().iter().map(|name| {
        let mut experiments: Vec<&str> = name
            .subjects
            .iter()
            .filter_map(|(page, _)| pages.iter().find(|one| one.group.page == *page))
            .map(|page| title(page.group))
            .collect();
        experiments.dedup();
        vec![
            link(&format!("{}.html", name.page), &name.name),
            escaped(&experiments.join("; ")),
        ]
    });
    let servers: Vec<Vec<String>> = servers.collect();
    let head = [
        "experiment",
        "question",
        "first place",
        "date",
        "subjects",
        "runs",
    ];
    let experiments = boxed(
        &table(&head, &experiments, &[4, 5]),
        "experiments",
        "scroll stack",
    );
    let servers = boxed(
        &table(&["server", "in"], &servers, &[]),
        "servers",
        "scroll stack",
    );
    let main = format!(
        "<h1>{TITLE}</h1>\n<p class=\"above\"><a href=\"index.json\">Data of this page</a></p>\n{}{}\
         <footer>Subjects that cannot be told apart share a place; <em>or</em> stands between them.</footer>\n",
        section("experiments", "Experiments", &experiments),
        section("servers", "Servers", &servers)
    );
    Content {
        title: TITLE.to_owned(),
        main,
    }
}

pub(crate) fn json(pages: &[ExperimentPage<'_>], names: &Names) -> Value {
    let experiments = newest_first(pages).into_iter().map(|page| {
        let header = page.group.header();
        json!({
            "page": format!("{}.html", page.group.page),
            "experiment": header.experiment,
            "title": header.title,
            "question": page.group.shown().run.facts.question,
            "answer": words::closing(&page.group.shown().analysis),
            "first": page.first(),
            "started_unix_s": header.started_unix_s,
            "subjects": header.subjects,
            "runs": page.group.runs.len(),
        })
    });
    let servers = names.all().iter().map(|name| {
        let subjects = name.subjects.iter();
        let subjects = subjects
            .map(|(page, subject)| json!({"page": format!("{page}.html"), "subject": subject}));
        json!({
            "page": format!("{}.html", name.page),
            "name": name.name,
            "recipe": name.recipe,
            "subjects": subjects.collect::<Value>(),
        })
    });
    json!({
        "kind": "index",
        "experiments": experiments.collect::<Value>(),
        "servers": servers.collect::<Value>(),
    })
}
