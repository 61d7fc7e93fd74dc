//! The page of a server across experiments: all subjects whose first server has one recipe, or one
//! subject of which no recipe is known.

use std::collections::BTreeMap;

use history::{History, Series, series_picture, series_sentences};
use readings::text::{condition, once};
use report::drawing::{boxed, escaped, folded, list, section};
use serde_json::{Value, json};
use verdict::words;

use crate::experiment::ExperimentPage;
use crate::group::{Analysed, Group};
use crate::html::{
    Content, PAGE_BYTES_MAX, Slugs, above, day, document, frame_bytes, link, page, table,
};
use crate::table::{Row, What};
use crate::{File, Recipes};

/// A server, or a subject without a recipe.
pub(crate) struct Name {
    /// The name of its page, without the end.
    pub page: String,
    pub name: String,
    pub recipe: Option<String>,
    /// Its subjects: the page of their experiment, and their name.
    pub subjects: Vec<(String, String)>,
}

/// The pages of all subjects.
pub(crate) struct Names(Vec<Name>);

impl Names {
    pub fn of(groups: &[Group], recipes: &dyn Recipes) -> Self {
        let mut by_name: BTreeMap<(bool, String), Vec<(String, String)>> = BTreeMap::new();
        for group in groups {
            for subject in subjects(group) {
                let recipe = recipe(group.shown(), &subject);
                let recipe = recipe.filter(|name| !recipes.is_generic(name));
                let key = (recipe.is_none(), recipe.unwrap_or_else(|| subject.clone()));
                let at = (group.page.clone(), subject);
                by_name.entry(key).or_default().push(at);
            }
        }
        let mut slugs = Slugs::default();
        let each = by_name
            .into_iter()
            .map(|((is_alone, name), subjects)| Name {
                page: slugs.of(if is_alone { "subject" } else { "server" }, &name),
                recipe: (!is_alone).then(|| name.clone()),
                name,
                subjects,
            });
        Self(each.collect())
    }

    pub fn all(&self) -> &[Name] {
        &self.0
    }

    /// The page of a subject of an experiment.
    pub fn page_of(&self, experiment: &str, subject: &str) -> &str {
        let mut all = self.0.iter();
        let found = all.find(|name| name.has(experiment, subject));
        found.map_or("index", |name| &name.page)
    }
}

impl Name {
    fn has(&self, experiment: &str, subject: &str) -> bool {
        let mut all = self.subjects.iter();
        all.any(|(page, name)| page == experiment && name == subject)
    }
}

fn subjects(group: &Group) -> Vec<String> {
    let shown = group.shown();
    let rows = shown.analysis.table.iter().map(|row| &row.subject);
    once(group.header().subjects.iter().chain(rows).cloned())
}

/// The server that is asked first, of a subject: its name and what is known of its recipe.
fn first_server(one: &Analysed, subject: &str) -> Option<(String, String, Option<String>)> {
    let settings = one.run.journal.settings();
    let mut settings = settings.iter().flat_map(|row| &row.subjects);
    let known = settings.find(|row| row.subject == subject);
    if let Some(server) = known.and_then(|row| row.servers.first()) {
        return Some((
            server.server.clone(),
            server.recipe.clone(),
            server.version.clone(),
        ));
    }
    let facts = &one.run.facts;
    let topology = facts.topology.as_ref()?;
    let target = &topology
        .subjects
        .iter()
        .find(|one| one.name == subject)?
        .target;
    let server = topology.servers.iter().find(|one| one.name == *target)?;
    let mut versions = facts.versions.iter();
    let version = versions.find(|(recipe, _)| *recipe == server.recipe);
    let version = version.map(|(_, version)| version.clone());
    Some((server.name.clone(), server.recipe.clone(), version))
}

fn recipe(one: &Analysed, subject: &str) -> Option<String> {
    first_server(one, subject).map(|(_, recipe, _)| recipe)
}

/// A run in which the server was measured.
struct Seen<'a> {
    page: &'a str,
    run: &'a Analysed,
    version: Option<String>,
    machine: &'a str,
    is_shown: bool,
}

struct Configuration {
    experiment: String,
    server: String,
    /// The conditions that it is of; empty for all.
    conditions: Vec<String>,
    files: Vec<(String, String)>,
}

/// The page and its data.
pub(crate) fn files(
    name: &Name,
    experiments: &[ExperimentPage<'_>],
    recipes: &dyn Recipes,
) -> Vec<File> {
    let is_its = |one: &&ExperimentPage<'_>| {
        let page = &one.group.page;
        name.subjects
            .iter()
            .any(|(experiment, _)| experiment == page)
    };
    let own: Vec<&ExperimentPage<'_>> = experiments.iter().filter(is_its).collect();
    let seen = seen(name, &own);
    let series: Vec<&Series> = own.iter().flat_map(|one| series(name, one)).collect();
    let configurations = configurations(name, &own);
    let text = name.recipe.as_ref().and_then(|recipe| recipes.text(recipe));
    let main = main(name, &own, &seen, &series, &configurations, text.as_deref());
    let title = name.name.clone();
    let document_of = json(name, &own, &seen, &series, &configurations);
    vec![
        document(&name.page, &document_of),
        page(&name.page, &Content { title, main }),
    ]
}

fn seen<'a>(name: &Name, own: &[&ExperimentPage<'a>]) -> Vec<Seen<'a>> {
    let mut found = Vec::new();
    for one in own {
        let group = one.group;
        for (run, numbered) in group.runs.iter().zip(&group.history.runs) {
            let mut subjects = name.subjects.iter();
            let first = subjects.find_map(|(experiment, subject)| {
                let is_its = *experiment == group.page;
                let is_here = run.run.journal.header.subjects.contains(subject);
                (is_its && is_here).then(|| first_server(run, subject))
            });
            if let Some(first) = first {
                found.push(Seen {
                    page: &group.page,
                    version: first.and_then(|(_, _, version)| version),
                    machine: &numbered.entry.machine,
                    is_shown: run.id == group.shown().id,
                    run,
                });
            }
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.run.run.journal.header.started_unix_s));
    found
}

/// The series of several runs.
fn series<'a>(name: &Name, one: &ExperimentPage<'a>) -> Vec<&'a Series> {
    let all = one.group.history.series.iter();
    let is_its =
        |series: &&Series| series.runs.len() > 1 && name.has(&one.group.page, &series.key.subject);
    all.filter(is_its).collect()
}

fn configurations(name: &Name, own: &[&ExperimentPage<'_>]) -> Vec<Configuration> {
    let mut found: Vec<Configuration> = Vec::new();
    for (page, subject) in &name.subjects {
        let Some(one) = own.iter().find(|one| one.group.page == *page) else {
            continue;
        };
        let shown = one.group.shown();
        let (Some((server, ..)), Some(hosts)) = (first_server(shown, subject), &shown.run.hosts)
        else {
            continue;
        };
        let is_known = |known: &Configuration| known.server == server && known.experiment == *page;
        if found.iter().any(is_known) {
            continue;
        }
        let described = &hosts["local"]["servers"][&server];
        let others = described["otherwise"].as_array();
        for one in std::iter::once(described).chain(others.into_iter().flatten()) {
            let files = one["files"].as_object().into_iter().flatten();
            let files =
                files.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
            let conditions = one["conditions"].as_array().into_iter().flatten();
            let conditions = conditions.map(|one| match one {
                Value::String(text) => text.clone(),
                other => condition(&serde_json::from_value(other.clone()).unwrap_or_default()),
            });
            found.push(Configuration {
                experiment: page.clone(),
                server: server.clone(),
                conditions: conditions.collect(),
                files: files.collect(),
            });
        }
    }
    found.retain(|one| !one.files.is_empty());
    found
}

/// The rows of its subjects, each with its experiment and its number there.
fn rows<'p, 'a>(
    name: &'p Name,
    own: &'p [&'p ExperimentPage<'a>],
) -> impl Iterator<Item = (&'p ExperimentPage<'a>, usize, &'p Row)> {
    own.iter().flat_map(move |one| {
        let rows = one.table.rows.iter().enumerate();
        let own = rows.filter(|(_, row)| name.has(&one.group.page, &row.subject));
        own.map(move |(number, row)| (*one, number, row))
    })
}

fn main(
    name: &Name,
    own: &[&ExperimentPage<'_>],
    seen: &[Seen<'_>],
    series: &[&Series],
    configurations: &[Configuration],
    recipe: Option<&str>,
) -> String {
    let what = match &name.recipe {
        Some(recipe) => format!("recipe {recipe}"),
        None => "a subject of which no recipe is known".to_owned(),
    };
    let mut versions: Vec<&str> = seen
        .iter()
        .filter_map(|one| one.version.as_deref())
        .collect();
    versions.dedup();
    let versions = match versions.is_empty() {
        true => String::new(),
        false => format!(
            "; versions measured, the newest first: {}",
            versions.join(", ")
        ),
    };
    let head = format!(
        "{}<h1>{}</h1>\n<p class=\"sub\">{}</p>\n",
        above(&name.page),
        escaped(&name.name),
        escaped(&format!("{what}{versions}"))
    );
    let mut out = head
        + &section("places", "Places", &places(name, own))
        + &section("runs", "Runs", &runs(seen));
    let recipe =
        recipe.map(|text| folded("The recipe", &format!("<pre>{}</pre>\n", escaped(text))));
    let command = name.recipe.as_ref().map(|recipe| {
        format!(
            "<p><code>weigh list {}</code> shows the recipe.</p>\n",
            escaped(recipe)
        )
    });
    let configured = configurations.iter().map(|one| configuration(one, own));
    let pictures = series.iter().enumerate().map(|(number, one)| {
        format!(
            "<div>\n<h3>{}</h3>\n{}{}</div>\n",
            escaped(&format!("{}: {}", one.key.experiment, one.key.words())),
            series_picture(number, one),
            list(series_sentences(one).into_iter())
        )
    });
    let optional = [
        (
            "history",
            "Over time",
            pictures.collect::<Vec<String>>(),
            "series",
        ),
        ("configuration", "Configuration", configured.collect(), ""),
        (
            "recipe",
            "Recipe",
            command.into_iter().chain(recipe).collect(),
            "",
        ),
    ];
    for (id, title, parts, class) in optional {
        let used = frame_bytes() + out.len();
        let (body, left_out) = fitting(parts, PAGE_BYTES_MAX.saturating_sub(used));
        let body = match (body.is_empty(), class) {
            (true, _) | (_, "") => body,
            (_, class) => format!("<div class=\"{class}\">\n{body}</div>\n"),
        };
        let note = match left_out {
            0 => String::new(),
            _ => {
                format!("<p class=\"sub\">{left_out} more are only in the data of this page.</p>\n")
            }
        };
        out.push_str(&section(id, title, &(body + &note)));
    }
    out
}

/// As many parts as fit into so many bytes, and how many do not.
fn fitting(parts: Vec<String>, bytes: usize) -> (String, usize) {
    let mut body = String::new();
    let mut left_out = 0;
    for part in parts {
        match body.len() + part.len() + 1_000 <= bytes {
            true => body.push_str(&part),
            false => left_out += 1,
        }
    }
    (body, left_out)
}

fn places(name: &Name, own: &[&ExperimentPage<'_>]) -> String {
    const ROWS_MAX: usize = 1_500;
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (one, number, row) in rows(name, own) {
        let experiment = format!("{}.html", one.group.page);
        for (at, column) in one.table.columns.iter().enumerate() {
            let cell = row.figures.get(&column.name);
            let Some(cell) = cell.filter(|cell| cell.value.is_some()) else {
                continue;
            };
            // What has no places is in the table of the experiment.
            if !matches!(column.what, What::Metric(_)) {
                continue;
            }
            lines.push(vec![
                link(&experiment, crate::title(one.group)),
                escaped(&row.subject),
                escaped(&condition(&row.condition)),
                escaped(&column.head),
                cell.places.map(words::place).unwrap_or_default(),
                match one.blocks_of(number, at) {
                    Some(to) => link(&to, &cell.text),
                    None => escaped(&cell.text),
                },
                escaped(cell.interval.as_deref().unwrap_or_default()),
            ]);
        }
    }
    lines.truncate(ROWS_MAX);
    let head = [
        "experiment",
        "subject",
        "condition",
        "figure",
        "place",
        "value",
        "95% interval",
    ];
    match lines.is_empty() {
        true => "<p>Nothing was measured.</p>\n".to_owned(),
        false => boxed(&table(&head, &lines, &[4, 5, 6]), "places", "scroll"),
    }
}

fn runs(seen: &[Seen<'_>]) -> String {
    let line = |one: &Seen<'_>| {
        let header = &one.run.run.journal.header;
        let mark = if one.is_shown { " (shown)" } else { "" };
        vec![
            link(&format!("{}.html", one.page), &header.title),
            escaped(&format!("{}{mark}", one.run.id)),
            day(header.started_unix_s),
            escaped(one.version.as_deref().unwrap_or_default()),
            escaped(&header.weigh_version),
            escaped(one.machine),
        ]
    };
    let lines: Vec<Vec<String>> = seen.iter().map(line).collect();
    let head = ["experiment", "run", "date", "version", "weigh", "machine"];
    boxed(&table(&head, &lines, &[]), "runs", "scroll")
}

fn configuration(one: &Configuration, own: &[&ExperimentPage<'_>]) -> String {
    let mut pages = own.iter();
    let experiment = pages.find(|page| page.group.page == one.experiment);
    let experiment = experiment.map_or("", |page| crate::title(page.group));
    let under = match one.conditions.is_empty() {
        true => String::new(),
        false => format!(" under {}", one.conditions.join("; ")),
    };
    let files = one.files.iter().map(|(name, text)| {
        format!(
            "<p><code>{}</code></p>\n<pre>{}</pre>\n",
            escaped(name),
            escaped(text)
        )
    });
    let summary = format!("{} in {experiment}{under}", one.server);
    folded(&summary, &files.collect::<String>())
}

fn json(
    name: &Name,
    own: &[&ExperimentPage<'_>],
    seen: &[Seen<'_>],
    series: &[&Series],
    configurations: &[Configuration],
) -> Value {
    let places = rows(name, own).map(|(one, _, row)| {
        let mut row = json!(row);
        row["experiment"] = json!(one.group.header().experiment);
        row["page"] = json!(format!("{}.html", one.group.page));
        row
    });
    let runs = seen.iter().map(|one| {
        let header = &one.run.run.journal.header;
        json!({
            "experiment": header.experiment,
            "page": format!("{}.html", one.page),
            "id": one.run.id,
            "started_unix_s": header.started_unix_s,
            "is_shown": one.is_shown,
            "version": one.version,
            "weigh_version": header.weigh_version,
            "machine": one.machine,
        })
    });
    let configurations = configurations.iter().map(|one| {
        let files: BTreeMap<&String, &String> = one.files.iter().map(|(a, b)| (a, b)).collect();
        json!({
            "page": format!("{}.html", one.experiment),
            "server": one.server,
            "conditions": one.conditions,
            "files": files,
        })
    });
    let series = History {
        runs: Vec::new(),
        series: series.iter().map(|one| (*one).clone()).collect(),
    };
    json!({
        "kind": "server",
        "page": format!("{}.html", name.page),
        "name": name.name,
        "recipe": name.recipe,
        "rows": places.collect::<Value>(),
        "runs": runs.collect::<Value>(),
        "series": history::json(&series, &[])["series"],
        "configurations": configurations.collect::<Value>(),
    })
}
