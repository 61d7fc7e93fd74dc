//! `driver.toml` to [`Driver`], with every mistake shown in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readings::HttpVersion;
use tools::Tool;

use super::render::{HEADERS, NAMES};
use super::{Driver, DriverError, ENGINE, limits};
use crate::manifest::{command, environment, packages, pairs, params, programs, template, version};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units::shown;

const KEYS: [&str; 17] = [
    "title",
    "homepage",
    "reader",
    "schemes",
    "http",
    "notes",
    "clock",
    "latency_step",
    "polls",
    "connections_max",
    "threads_divide",
    "packages",
    "programs",
    "params",
    "run",
    "cannot",
    "version",
];

/// Reads a driver from the text of its `driver.toml`.
///
/// # Errors
/// [`DriverError::Mistakes`] with every mistake that was found.
pub(super) fn driver(name: &str, source: &str, text: &str) -> Result<Driver, DriverError> {
    let driver = config::open::read(source, text, |reader, table| {
        whole(reader, name, &Section::whole(&table))
    })?;
    Ok(driver)
}

fn whole(reader: &mut Reader, name: &str, top: &Section<'_>) -> Driver {
    top.only(reader, &KEYS);
    if name == ENGINE {
        reader.report(
            Problem::of_the_file(format!("a driver cannot be called `{ENGINE}`"))
                .help("that is the built-in engine: give the folder another name"),
        );
    }
    let run = run(reader, top);
    let mut driver = Driver {
        name: name.to_owned(),
        title: top
            .required_text(reader, "title", "\"what it is, in a line\"")
            .unwrap_or_default(),
        homepage: top.text(reader, "homepage"),
        packages: packages(reader, top, name, &BTreeMap::new()),
        programs: programs(reader, top),
        // The fallback is never used: a missing reader is a mistake.
        reader: tool(reader, top).unwrap_or(Tool::ALL[0]),
        schemes: schemes(reader, top),
        http: http(reader, top),
        params: params(reader, top),
        notes: texts(reader, top, "notes"),
        clock: top.text(reader, "clock"),
        latency_step: top.duration(
            reader,
            "latency_step",
            Duration::from_nanos(1)..=Duration::from_secs(60),
        ),
        polls: top.boolean(reader, "polls").unwrap_or(false),
        connections_max: top
            .integer(reader, "connections_max", 1..=100_000)
            .and_then(|most| u32::try_from(most).ok()),
        threads_divide: top.boolean(reader, "threads_divide").unwrap_or(false),
        statuses: run.statuses,
        cannot: BTreeMap::new(),
        uses: run.uses,
        command: run.command,
        header: run.header,
        env: run.env,
        version: version(reader, top, "\"tool \""),
    };
    driver.cannot = cannot(reader, top, &driver);
    driver
}

fn tool(reader: &mut Reader, top: &Section<'_>) -> Option<Tool> {
    let text = top.required_text(reader, "reader", "\"the tool that its output is like\"")?;
    let tool: Option<Tool> = text.parse().ok();
    if tool.is_none() {
        let place = top.value_place("reader");
        let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
        reader.advise(
            place,
            format!("no reader is called `{}`", shown(&text)),
            "unknown reader",
            suggestion(&text, "readers", names),
        );
    }
    tool
}

fn schemes(reader: &mut Reader, top: &Section<'_>) -> Vec<String> {
    let mut schemes = Vec::new();
    for (scheme, place) in top.texts(reader, "schemes").unwrap_or_default() {
        if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_lowercase()) {
            reader.report(Problem::at(
                place,
                format!("`{}` is not a URL scheme", shown(&scheme)),
                "expected lower-case letters, such as \"http\"",
            ));
        }
        schemes.push(scheme);
    }
    if schemes.is_empty() {
        schemes.push("http".to_owned());
    }
    schemes
}

fn http(reader: &mut Reader, top: &Section<'_>) -> Vec<HttpVersion> {
    let mut versions = Vec::new();
    for (name, place) in top.texts(reader, "http").unwrap_or_default() {
        match HttpVersion::of(&name) {
            Some(version) => versions.push(version),
            None => reader.report(Problem::at(
                place,
                format!("`{}` is not a version of HTTP", shown(&name)),
                "expected \"1.1\", \"2\" or \"3\"",
            )),
        }
    }
    if versions.is_empty() {
        versions.push(HttpVersion::default());
    }
    versions
}

fn texts(reader: &mut Reader, section: &Section<'_>, key: &str) -> Vec<String> {
    let texts = section.texts(reader, key).unwrap_or_default();
    texts.into_iter().map(|(text, _)| text).collect()
}

#[derive(Default)]
struct Run {
    command: Vec<String>,
    header: Vec<String>,
    env: Vec<(String, String)>,
    statuses: Vec<i32>,
    uses: BTreeSet<String>,
}

fn run(reader: &mut Reader, top: &Section<'_>) -> Run {
    let mut run = Run {
        statuses: vec![0],
        ..Run::default()
    };
    let Some(section) = top.section(reader, "run") else {
        if top.table.get("run").is_none() {
            reader.advise(
                top.place,
                "`run` is missing",
                "no command makes the load",
                "add a table such as: [run] command = [\"{{ programs.x }}\", \"{{ url }}\"]",
            );
        }
        return run;
    };
    section.only(reader, &["command", "header", "env", "statuses"]);
    run.command = command(reader, &section);
    for (word, place) in section.texts(reader, "header").unwrap_or_default() {
        template(reader, place, "the argument", &word);
        names(reader, place, &word, &["header"], &mut BTreeSet::new());
        run.header.push(word);
    }
    for (name, value, place) in pairs(reader, &section, "env") {
        template(reader, place, "the value", &value);
        names(reader, place, &value, &[], &mut run.uses);
        run.env.push((name, value));
    }
    for (word, place) in section.texts(reader, "command").unwrap_or_default() {
        names(reader, place, &word, &[], &mut run.uses);
    }
    let wants = run.command.iter().any(|word| word.trim() == HEADERS);
    if wants == run.header.is_empty() {
        reader.advise(
            section.place,
            format!("`run.header` and the word `{HEADERS}` need each other"),
            "only one of them is given",
            format!(
                "`header` has the words for one header, such as [\"-H\", \"{{{{ header.name }}}}: \
                 {{{{ header.value }}}}\"], and `{HEADERS}` in `command` is the place where they go"
            ),
        );
    }
    if let Some((entry, path)) = section.entry("statuses") {
        match &entry.node.tree {
            Tree::Array(items) => {
                run.statuses = items
                    .iter()
                    .filter_map(|item| reader.integer(item, &format!("{path}[]"), 0..=255))
                    .filter_map(|status| i32::try_from(status).ok())
                    .collect();
            }
            _ => reader.expected(
                &entry.node,
                &path,
                "a list of exit statuses, such as [0, 4]",
            ),
        }
    }
    run
}

/// Collects the names that a template uses, and reports unknown ones.
fn names(
    reader: &mut Reader,
    place: Place,
    text: &str,
    more: &[&'static str],
    uses: &mut BTreeSet<String>,
) {
    let environment = environment();
    // A template that does not parse was reported before.
    let Ok(template) = environment.template_from_str(text) else {
        return;
    };
    for name in template.undeclared_variables(false) {
        let mut known: Vec<&str> = NAMES.to_vec();
        known.extend(["params", "programs", "weigh"]);
        known.extend(more);
        if known.contains(&name.as_str()) {
            uses.insert(name);
        } else {
            reader.advise(
                place,
                format!("unknown name `{}` in a template", shown(&name)),
                "unknown name",
                suggestion(&name, "names", known),
            );
        }
    }
}

fn cannot(reader: &mut Reader, top: &Section<'_>, driver: &Driver) -> BTreeMap<String, String> {
    let Some(section) = top.section(reader, "cannot") else {
        return BTreeMap::new();
    };
    section.only(reader, &limits::WORDS);
    let mut cannot = BTreeMap::new();
    for (name, why, place) in pairs(reader, top, "cannot") {
        // These may be named in the command of a driver that supports them only in part: one that
        // cannot keep connections may need an option for that, and one may speak some versions of
        // HTTP.
        if !["keepalive", "http"].contains(&name.as_str()) && driver.can(&name) {
            reader.advise(
                place,
                format!("`cannot.{name}`: the command uses it"),
                "contradicts the command",
                "remove it from the command, or remove this line",
            );
        }
        cannot.insert(name, why);
    }
    cannot
}
