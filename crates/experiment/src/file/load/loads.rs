//! `[loads.NAME]`: several loads that are made at the same time.

use super::background::{self, BACKGROUND, NONE};
use crate::file::factors::placeholders::placeholders_of_path;
use crate::file::factors::written::{WrittenFactor, factor_names};
use crate::file::load;
use crate::file::names::{LOAD_FACTOR, LOAD_HOST_FACTOR, MOST_NAMES, VARIED_LOAD_KEYS, check_name};
use crate::file::servers::subjects::{OWN_LOAD_KEYS, path_problem};
use crate::recipes::Recipes;
use crate::spec::{Design, Experiment, LoadRole, NamedLoad, Rate, Subject};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Table, Tree};
use config::units::shown;

/// Keys of `[load]` that a table of `[loads]` cannot have, and why.
const ALONE: [(&str, &str); 5] = [
    (
        "driver",
        "several loads at the same time are made by the built-in engine",
    ),
    ("with", "these are the parameters of an outside driver"),
    ("curve", "a curve needs a single load"),
    ("bounds", "a curve needs a single load"),
    ("replay", "a log needs a single load"),
];

/// Reads `[loads]`.
pub(crate) fn loads(
    reader: &mut Reader,
    top: &Section<'_>,
    factors: &[WrittenFactor],
    recipes: &Recipes,
) -> Vec<NamedLoad> {
    let Some(section) = top.section(reader, "loads") else {
        return Vec::new();
    };
    if let Some(load) = top.table.get("load") {
        let problem = Problem::at(
            load.place,
            "`[load]` and `[loads]` exclude each other",
            "one load",
        );
        let problem = problem.and(section.place, "several loads");
        reader.report(problem.help("make it one of them: [loads.NAME]"));
    }
    let entries = &section.table.entries;
    if entries.is_empty() || entries.len() > MOST_NAMES {
        let message = format!("`loads` has {} loads", entries.len());
        let problem = Problem::at(
            section.place,
            message,
            format!("expected 1 to {MOST_NAMES}"),
        );
        reader.report(problem.help("write a table such as [loads.quick] for each"));
    }
    let mut loads = Vec::new();
    for entry in entries.iter().take(MOST_NAMES) {
        check_name(reader, "a load", &entry.name, entry.place);
        if entry.name == NONE {
            let label = format!("`{NONE}` stands for no background load");
            reader.report(Problem::at(
                entry.place,
                format!("a load cannot be called `{NONE}`"),
                label,
            ));
        }
        if let Some(one) = reader.section(entry, section.name_of(&entry.name)) {
            loads.push(named(reader, &entry.name, &one, factors, recipes));
        }
    }
    if !loads.is_empty() && loads.iter().all(|one| one.role == LoadRole::Background) {
        let problem = Problem::at(
            section.place,
            "every load is in the background",
            "nothing is compared",
        );
        reader.report(problem.help("leave `role` out of the load that subjects are compared by"));
    }
    loads
}

fn named(
    reader: &mut Reader,
    name: &str,
    section: &Section<'_>,
    factors: &[WrittenFactor],
    recipes: &Recipes,
) -> NamedLoad {
    for (key, why) in ALONE {
        if let Some((entry, path)) = section.entry(key) {
            let message = format!("`{path}` is not possible with several loads");
            let problem = Problem::at(entry.place, message, why);
            reader.report(problem.help("remove it, or measure with one [load]"));
        }
    }
    // Already reported.
    let is_possible = |entry: &&Entry| ALONE.iter().all(|(key, _)| *key != entry.name);
    let table = Table {
        entries: section
            .table
            .entries
            .iter()
            .filter(is_possible)
            .cloned()
            .collect(),
    };
    let section = &Section {
        table: &table,
        ..section.clone()
    };
    let role = section.word(reader, "role", &LoadRole::ALL.map(LoadRole::word));
    NamedLoad {
        name: name.to_owned(),
        role: match (role.as_deref(), section.entry("role")) {
            (Some("compared"), _) | (_, None) => LoadRole::Compared,
            // Also for an unknown word, since the default is seldom written.
            _ => LoadRole::Background,
        },
        path: path(reader, section, factors),
        load: load::read(reader, section, &["role", "path"], recipes),
    }
}

fn path(reader: &mut Reader, section: &Section<'_>, factors: &[WrittenFactor]) -> Option<String> {
    let path = section.text(reader, "path")?;
    let (place, key) = (section.value_place("path"), section.name_of("path"));
    if !path.starts_with(['/', '{']) || path.starts_with("{{") {
        let message = format!("`{key}` is not a path: `{}`", shown(&path));
        reader.report(Problem::at(
            place,
            message,
            "expected one that begins with `/`",
        ));
    }
    if let Some(problem) = path_problem(&path, true) {
        let message = format!("`{key}`: {problem}");
        reader.report(Problem::at(place, message, "not allowed in a request"));
    }
    for unknown in placeholders_of_path(&path) {
        if !factors.iter().any(|factor| factor.name == unknown) {
            let problem = Problem::at(
                place,
                format!("`{key}`: no factor is called `{unknown}`"),
                "`{…}` does not name a factor",
            );
            reader.report(problem.help(suggestion(unknown, "factors", factor_names(factors))));
        }
    }
    Some(path)
}

/// Adapts a design to several loads, with which bottlenecks are not looked for.
pub(crate) fn fit(reader: &mut Reader, top: &Section<'_>, design: &mut Design) {
    for table in ["design", "quick"] {
        let Some(Tree::Table(keys)) = top.table.get(table).map(|entry| &entry.node.tree) else {
            continue;
        };
        let given = keys.get("bottleneck");
        if let Some(entry) = given.filter(|it| matches!(it.node.tree, Tree::Boolean(true))) {
            let problem = Problem::at(
                entry.node.place,
                format!("`{table}.bottleneck` is not possible with several loads"),
                "a bottleneck cannot be attributed to one of them",
            );
            reader.report(problem.help("remove it, or measure with one [load]"));
        }
    }
    design.bottleneck = false;
}

/// Reports a factor that varies `[load]`, which does not exist with several loads, and says what to
/// write instead.
pub(crate) fn refuse_factor(reader: &mut Reader, factor: &WrittenFactor, loads: &[NamedLoad]) {
    let name = factor.name.as_str();
    let first = loads.first().map_or("NAME", |one| one.name.as_str());
    let help = match name == LOAD_FACTOR {
        true => format!("vary the keys of one load, such as \"{first}.connections\" = [16, 64]"),
        false => format!("name the load: \"{first}.{name}\" = […]"),
    };
    let problem = Problem::at(
        factor.place,
        format!("the factor `{name}` does not say which of the loads it varies"),
        "there are several loads",
    );
    reader.report(problem.help(help));
}

/// Whether a key of one of several loads can be varied; reports it otherwise.
pub(crate) fn check_varied(
    reader: &mut Reader,
    factor: &WrittenFactor,
    load: &str,
    key: &str,
) -> bool {
    let varied = VARIED_LOAD_KEYS
        .iter()
        .copied()
        .filter(|one| *one != "driver");
    let known: Vec<&str> = varied.chain([LOAD_HOST_FACTOR]).collect();
    if known.contains(&key) {
        return true;
    }
    let problem = Problem::at(
        factor.place,
        format!(
            "the factor `{}`: `{}` is not a key of a load that can vary",
            shown(&factor.name),
            shown(key)
        ),
        format!("expected {load}.KEY"),
    );
    reader.report(problem.help(suggestion(key, "keys", known)));
    false
}

/// The loads without a host, for an experiment whose hosts are apart: the path of each load's
/// table, a message and a label.
pub(crate) fn without_host<'e>(
    top: &Section<'_>,
    experiment: &'e Experiment,
) -> Vec<(Vec<&'e str>, (String, String))> {
    let is_varied = |factor: &str| experiment.factors.iter().any(|one| one.name == factor);
    let without = experiment
        .all_loads()
        .into_iter()
        .filter_map(|(name, load)| {
            let from = match name {
                Some(name) => format!("{name}.{LOAD_HOST_FACTOR}"),
                None => LOAD_HOST_FACTOR.to_owned(),
            };
            if load.host.is_some() || is_varied(&from) {
                return None;
            }
            let (table, what, place) = match name {
                Some(name) => (
                    vec!["loads", name],
                    format!("the load `{name}`"),
                    format!("[loads.{name}]"),
                ),
                None if top.table.get("load").is_some() => {
                    (vec!["load"], "the load".to_owned(), "[load]".to_owned())
                }
                None => (vec!["hosts"], "the load".to_owned(), "[load]".to_owned()),
            };
            let label = format!("expected host = \"…\" in {place}, or the factor `{from}`");
            Some((table, (format!("{what} has no host"), label)))
        });
    without.collect()
}

/// Checks that several loads are not combined with what excludes them.
pub(crate) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let at = |path: &[&str]| top.place_of(path).unwrap_or_default();
    for subject in &experiment.subjects {
        if let Some(names) = &subject.background {
            let key = ["subjects", subject.name.as_str(), BACKGROUND];
            let path = format!("subjects.{}.{BACKGROUND}", subject.name);
            background::check(reader, at(&key), &path, names, experiment);
        }
    }
    if experiment.loads.is_empty() {
        return;
    }
    if !experiment.events.is_empty() {
        let problem = Problem::at(
            at(&["events"]),
            "events cannot be combined with several loads",
            "failures are counted in the rows of one load",
        );
        reader.report(problem.help("remove the events, or measure with one [load]"));
    }
    for server in &experiment.servers {
        if experiment.loads.iter().any(|one| one.name == server.name) {
            let name = server.name.as_str();
            let problem = Problem::at(
                at(&["loads", name]),
                format!("a load and a server are both called `{name}`"),
                "the load",
            );
            let help = format!("rename one: the factor `{name}.KEY` could mean either");
            reader.report(problem.and(at(&["servers", name]), "the server").help(help));
        }
    }
    for subject in &experiment.subjects {
        check_subject(reader, top, experiment, subject);
    }
    check_rates(reader, top, experiment);
}

fn check_subject(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    subject: &Subject,
) {
    let name = subject.name.as_str();
    for key in ["driver"].into_iter().chain(OWN_LOAD_KEYS) {
        let Some(place) = top.place_of(&["subjects", name, key]) else {
            continue;
        };
        let problem = Problem::at(
            place,
            format!("`subjects.{name}.{key}` is not possible with several loads"),
            "each load has its own",
        );
        reader.report(problem.help(match key {
            "driver" => "remove it: several loads are made by the built-in engine".to_owned(),
            _ => format!("set it in [loads.NAME], or vary it with the factor NAME.{key}"),
        }));
    }
    let factor = experiment.factors.iter().find(|one| one.name == BACKGROUND);
    if let (Some(_), Some(_)) = (&subject.background, factor) {
        let problem = Problem::at(
            top.place_of(&["subjects", name, BACKGROUND])
                .unwrap_or_default(),
            format!(
                "`subjects.{name}.{BACKGROUND}` and the factor `{BACKGROUND}` exclude each other"
            ),
            "set here",
        );
        let factor = top.place_of(&["factors", BACKGROUND]).unwrap_or_default();
        reader.report(
            problem
                .and(factor, "varied here")
                .help("keep one of the two"),
        );
    }
}

/// Checks that the other compared loads have rates: only the first load's rate can be derived from
/// the throughput of the subjects.
fn check_rates(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    if experiment.design.latency_window.is_zero() {
        return;
    }
    let main = experiment.main_load().map(|one| one.name.as_str());
    let compared = experiment.loads.iter();
    let mut others = compared
        .filter(|one| one.role == LoadRole::Compared && Some(one.name.as_str()) != main)
        .filter(|one| one.load.rate == Rate::Auto && one.load.traffic.message_rate.is_none())
        .filter(|one| {
            let factor = format!("{}.rate", one.name);
            !experiment.factors.iter().any(|it| it.name == factor)
        });
    if let Some(one) = others.next() {
        let name = one.name.as_str();
        let place = top.place_of(&["loads", name, "rate"]);
        let problem = Problem::at(
            place.or(top.place_of(&["loads", name])).unwrap_or_default(),
            format!("the load `{name}` needs a rate for its open loop"),
            format!(
                "a rate is only chosen for the first compared load, `{}`",
                main.unwrap_or_default()
            ),
        );
        reader.report(problem.help(format!(
            "add rate = \"100/s\" to [loads.{name}], make it role = \"background\", or leave the \
             open loops out: [design] latency_window = \"0s\""
        )));
    }
}
