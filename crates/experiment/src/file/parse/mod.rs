//! The text of an experiment file to an [`Experiment`].

mod builder;
mod overrides;
mod parts;
mod references;

pub use builder::ExperimentBuilder;

use std::time::Duration;

use super::error::ExperimentError;
use super::factors::{self, written};
use super::hosts::{self, machine_links};
use super::load::{self, curve, drivers, loads, traffic};
use super::servers::{self, subjects};
use super::{design, events, gates};
use crate::recipes::Recipes;
use crate::spec::Experiment;
use config::open;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Table, Tree};
use config::units::shown;

const KEYS: [&str; 16] = [
    "name",
    "title",
    "question",
    "hosts",
    "servers",
    "subjects",
    "factors",
    "load",
    "loads",
    "events",
    "expect",
    "design",
    "gates",
    "quick",
    "sysctls",
    "published",
];

const SMALLEST: &str = "a minimal experiment has title = \"…\" and a table [subjects] with a line such as direct = \"http://127.0.0.1:8080/\"";

pub(super) fn parse(
    source_name: &str,
    text: &str,
    sets: &[(String, String)],
    quick: bool,
    recipes: &Recipes,
) -> Result<Experiment, ExperimentError> {
    let mut reader = Reader::new(source_name, text);
    let table = open::parse(&mut reader, text).unwrap_or_default();
    if reader.is_clean() && table.entries.is_empty() {
        let empty = Problem::of_the_file("the file is empty: expected an experiment");
        reader.report(empty.help(SMALLEST));
    }
    if reader.is_clean() {
        let experiment = whole(&mut reader, source_name, table, sets, quick, recipes);
        if reader.is_clean() {
            return Ok(experiment);
        }
    }
    Err(reader.into_mistakes().into())
}

/// Turns the tree of a file into an experiment. What has a mistake has a stand-in afterwards.
pub(super) fn whole(
    reader: &mut Reader,
    source_name: &str,
    mut table: Table,
    sets: &[(String, String)],
    quick: bool,
    recipes: &Recipes,
) -> Experiment {
    let quick_given = table.get("quick").is_some();
    let quick_says_bottleneck = matches!(
        table.get("quick").map(|entry| &entry.node.tree),
        Some(Tree::Table(quick)) if quick.get("bottleneck").is_some()
    );
    let set_keys = overrides::apply(reader, &mut table, sets, quick);
    let top = Section::whole(&table);
    top.only(reader, &KEYS);
    let title = top.required_text(reader, "title", "\"what is asked, in a line\"");
    let written = written::read(reader, &top);
    let hosts = hosts::hosts(reader, &top);
    let servers = servers::servers(reader, &top, recipes, &written);
    let subjects = subjects::subjects(reader, &top, &written, recipes);
    drivers::check_factor(reader, &top, &written);
    let first = subjects.first().map_or("", |subject| &subject.name);
    let events = events::events(reader, &top, &written, &servers, recipes);
    let mut design = design::design(reader, &top, first);
    design::check_quick(reader, &top, &design);
    if quick && !quick_given {
        let window = design.latency_window;
        design::shorten(&mut design, &set_keys);
        if !events.is_empty() || !design.alternate {
            // Events happen at fixed times in the window; one in one piece is as long as it has to be.
            design.latency_window = window;
        }
    }
    if quick && !quick_says_bottleneck && !set_keys.iter().any(|set| set == "design.bottleneck") {
        design.bottleneck = false;
    }
    if !events.is_empty() || !design.alternate {
        events::fit(&mut design, &top);
    }
    let loads = loads::loads(reader, &top, &written, recipes);
    if !loads.is_empty() {
        loads::fit(reader, &top, &mut design);
    }
    let mut experiment = Experiment {
        name: name(reader, &top, source_name),
        title: title.unwrap_or_default(),
        question: top.text(reader, "question"),
        hosts,
        servers,
        subjects,
        factors: Vec::new(),
        load: load::load(reader, &top, recipes),
        loads,
        events,
        expect: parts::expect(reader, &top),
        design,
        sysctls: parts::sysctls(reader, &top),
        published: parts::published(reader, &top),
        gates: Vec::new(),
        counts_instructions: false,
    };
    if let Some(main) = experiment.main_load() {
        experiment.load = main.load.clone();
    }
    load::replay::fit(reader, &top, &mut experiment);
    experiment.factors = factors::resolve(reader, written, &experiment, recipes);
    experiment.gates = gates::gates(reader, &top, &experiment);
    design::check_reference(reader, &top, &experiment);
    design::check_growth(reader, &top, &experiment);
    design::check_in_one_piece(reader, &top, &experiment);
    references::check(reader, &top, &experiment);
    events::check(reader, &top, &experiment, recipes);
    loads::check(reader, &top, &experiment);
    // Checks across tables need tables without mistakes.
    if reader.is_clean() {
        references::check_conditions(reader, &top, &experiment, recipes);
    }
    if reader.is_clean() {
        machine_links::check_traffic(reader, &top, &experiment);
    }
    if reader.is_clean() {
        curve::check(reader, &top, &experiment);
    }
    if reader.is_clean() && !drivers::any_open_loop(&experiment, recipes) {
        experiment.design.latency_window = Duration::ZERO;
    }
    if reader.is_clean() {
        traffic::fit(&mut experiment);
    }
    if reader.is_clean() {
        design::check_open_only(reader, &top, &mut experiment);
    }
    experiment
}

/// The name that the file gives, or the one that the file has.
fn name(reader: &mut Reader, top: &Section<'_>, source_name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some((entry, _)) = top.entry("name") {
        let name = reader.text(&entry.node, "name").unwrap_or_default();
        if name.is_empty() || name.len() > 64 || !name.chars().all(good) || name.starts_with('.') {
            reader.report(Problem::at(
                entry.node.place,
                format!("`{}` cannot be a name", shown(&name)),
                "expected 1 to 64 letters, digits, `-`, `_` or `.`",
            ));
        }
        return name;
    }
    let file = source_name.rsplit('/').next().unwrap_or_default();
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let name: String = stem
        .trim_start_matches('.')
        .chars()
        .map(|c| if good(c) { c } else { '-' })
        .take(64)
        .collect();
    if name.is_empty() {
        "experiment".to_owned()
    } else {
        name
    }
}
