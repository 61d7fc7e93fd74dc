//! What makes the load: `driver` and `with`, in `[load]`, in a subject, or as a factor's level.

use std::collections::BTreeMap;

use crate::driver::Driver;
use crate::file::factors::written::{WrittenFactor, WrittenLevel, accept};
use crate::manifest::{ReadValue as _, Value};
use crate::recipes::Recipes;
use crate::spec::{Choice, ENGINE, Experiment, LoadSpec, ResolvedCondition, SubjectSpec};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Place};
use config::units::shown;

/// The driver of that name, without `with`.
///
/// Its parameters are at their defaults; one that has to be given is a mistake.
pub(crate) fn named(
    reader: &mut Reader,
    node: &Node,
    path: &str,
    recipes: &Recipes,
) -> Option<Choice> {
    let name = reader.text(node, path)?;
    choice(reader, node.place, &name, None, recipes)
}

/// `driver` and `with` of `[load]` or of a subject; `None` without `driver`.
pub(crate) fn chosen(
    reader: &mut Reader,
    section: &Section<'_>,
    recipes: &Recipes,
) -> Option<Choice> {
    let with = section.section(reader, "with");
    let Some((entry, path)) = section.entry("driver") else {
        if let Some(with) = with {
            reader.advise(
                with.place,
                format!("`{}` has no driver", with.path),
                "expected `driver` beside it",
                format!(
                    "add a line such as: driver = \"NAME\"; the built-in `{ENGINE}` takes no \
                     parameters"
                ),
            );
        }
        return None;
    };
    let name = reader.text(&entry.node, &path)?;
    choice(reader, entry.node.place, &name, with.as_ref(), recipes)
}

fn choice(
    reader: &mut Reader,
    place: Place,
    name: &str,
    with: Option<&Section<'_>>,
    recipes: &Recipes,
) -> Option<Choice> {
    let driver = recipes.driver(name);
    if driver.is_none() && name != ENGINE {
        let names = std::iter::once(ENGINE).chain(recipes.drivers().names());
        reader.advise(
            place,
            format!("no driver is called `{}`", shown(name)),
            "unknown driver",
            suggestion(name, "drivers", names),
        );
        return None;
    }
    let given = with.map(|with| given(reader, with, name, driver));
    let mut params = BTreeMap::new();
    for param in driver.map_or(&[][..], |driver| &driver.params) {
        let value = given.as_ref().and_then(|given| given.get(&param.name));
        match value.or(param.default.as_ref()) {
            Some(value) => {
                params.insert(param.name.clone(), value.clone());
            }
            None if param.optional => {}
            None => reader.advise(
                place,
                format!("the driver `{name}` needs the parameter `{}`", param.name),
                format!("expected `with.{}`, {}", param.name, param.takes()),
                format!("`{}`: {}", param.name, param.doc),
            ),
        }
    }
    let settings = params
        .iter()
        .filter(|(name, value)| {
            let param = driver.and_then(|d| d.params.iter().find(|param| param.name == **name));
            param.and_then(|param| param.default.as_ref()) != Some(value)
        })
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Some(Choice {
        name: name.to_owned(),
        params,
        settings,
    })
}

/// The parameters in `with`.
fn given(
    reader: &mut Reader,
    with: &Section<'_>,
    name: &str,
    driver: Option<&Driver>,
) -> BTreeMap<String, Value> {
    let params = driver.map_or(&[][..], |driver| &driver.params);
    let mut given = BTreeMap::new();
    for entry in &with.table.entries {
        let path = with.name_of(&entry.name);
        let Some(param) = params.iter().find(|param| param.name == entry.name) else {
            let names = params.iter().map(|param| param.name.as_str());
            reader.advise(
                entry.place,
                format!(
                    "the driver `{name}` has no parameter `{}`",
                    shown(&entry.name)
                ),
                "unknown parameter",
                suggestion(&entry.name, "parameters", names),
            );
            continue;
        };
        let Some(value) = reader.value(&entry.node, &path) else {
            continue;
        };
        let level = WrittenLevel {
            node: entry.node.clone(),
            text: value.to_string(),
            value,
        };
        if let Some(value) = accept(reader, param, &level, &path) {
            given.insert(entry.name.clone(), value);
        }
    }
    given
}

/// Refuses `load.with` where a factor varies the driver.
pub(crate) fn check_factor(reader: &mut Reader, top: &Section<'_>, factors: &[WrittenFactor]) {
    let Some(place) = top.place_of(&["load", "with"]) else {
        return;
    };
    if let Some(factor) = factors.iter().find(|factor| factor.name == "driver") {
        reader.report(
            Problem::at(
                place,
                "`load.with` sets one driver's parameters, and the factor `driver` varies the driver",
                "these cannot fit every driver",
            )
            .and(factor.place, "varied here")
            .help("set drivers with parameters per subject: { url = \"…\", driver = \"…\", with = { … } }"),
        );
    }
}

/// Checks that the drivers of a condition support its load.
pub(crate) fn check(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    resolved: &ResolvedCondition,
    recipes: &Recipes,
) {
    mixed(reader, top, resolved);
    for subject in &resolved.subjects {
        if !reader.is_clean() {
            return;
        }
        let name = subject.driver.name.as_str();
        let driver = recipes.driver(name);
        let schemes = driver.map_or(vec!["http", "https"], |driver| {
            driver.schemes.iter().map(String::as_str).collect()
        });
        if !schemes.contains(&subject.scheme.as_str()) {
            reader.advise(
                subject_place(top, subject),
                format!(
                    "the driver `{name}` does not support {}://, which subject `{}` uses",
                    subject.scheme,
                    shown(&subject.name)
                ),
                format!("expected {}://", schemes.join(":// or ")),
                others(recipes, &subject.scheme),
            );
            return;
        }
        let Some(driver) = driver else { continue };
        refuse(reader, top, driver, subject, &resolved.load);
        let status = experiment.expect.status;
        if !(200..400).contains(&status) && !driver.uses("expect_status") {
            let place = top.place_of(&["expect", "status"]);
            reader.advise(
                place.unwrap_or_else(|| subject_place(top, subject)),
                format!("the driver `{name}` cannot accept status {status}"),
                "it counts such responses as failures",
                format!("measure it with driver = \"{ENGINE}\""),
            );
        }
    }
}

/// Whether under any condition all subjects' drivers can make an open loop.
pub(crate) fn any_open_loop(experiment: &Experiment, recipes: &Recipes) -> bool {
    let can = |subject: &SubjectSpec| {
        let driver = recipes.driver(&subject.driver.name);
        driver.is_none_or(Driver::has_open_loop)
    };
    experiment
        .conditions()
        .iter()
        .any(|condition| experiment.under(condition).subjects.iter().all(can))
}

/// The drivers that a scheme can be asked with.
fn others(recipes: &Recipes, scheme: &str) -> String {
    let mut names: Vec<&str> = recipes
        .drivers()
        .iter()
        .filter(|driver| driver.schemes.iter().any(|one| one == scheme))
        .map(|driver| driver.name.as_str())
        .collect();
    if matches!(scheme, "http" | "https") {
        names.push(ENGINE);
    }
    format!("drivers that support it: {}", names.join(", "))
}

/// The engine alternates between subjects many times a second, other drivers run for seconds: the
/// two cannot alternate in one block.
fn mixed(reader: &mut Reader, top: &Section<'_>, resolved: &ResolvedCondition) {
    let engine = resolved.subjects.iter().find(|s| s.driver.is_engine());
    let other = resolved.subjects.iter().find(|s| !s.driver.is_engine());
    if let Some((engine, other)) = engine.zip(other) {
        reader.advise(
            subject_place(top, other),
            format!(
                "subject `{}` uses the driver `{}`, and `{}` the built-in \
                     `{ENGINE}`",
                shown(&other.name),
                other.driver.name,
                shown(&engine.name)
            ),
            "an outside driver and the engine cannot alternate within a block",
            "give all subjects a driver that runs as a process of its own; for the engine \
                 that is driver = \"weigh\"",
        );
    }
}

fn refuse(
    reader: &mut Reader,
    top: &Section<'_>,
    driver: &Driver,
    subject: &SubjectSpec,
    load: &LoadSpec,
) {
    for refusal in driver.refusals(load) {
        let key = refusal.key;
        let place = top
            .place_of(&["factors", key])
            .or_else(|| top.place_of(&["load", key]))
            .unwrap_or_else(|| subject_place(top, subject));
        let mut problem = Problem::at(
            place,
            format!(
                "the driver `{}` does not support this: {}",
                driver.name, refusal.what
            ),
            format!("`{key}` is set for subject `{}`", shown(&subject.name)),
        );
        if let Some(why) = refusal.why {
            problem = problem.help(why);
        }
        reader.report(problem);
    }
}

/// Where a subject's driver is set, or else the subject.
fn subject_place(top: &Section<'_>, subject: &SubjectSpec) -> Place {
    let paths: [&[&str]; 4] = [
        &["subjects", &subject.name, "driver"],
        &["factors", "driver"],
        &["load", "driver"],
        &["subjects", &subject.name],
    ];
    paths
        .into_iter()
        .find_map(|path| top.place_of(path))
        .unwrap_or_default()
}
