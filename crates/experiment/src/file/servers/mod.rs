//! `[servers.NAME]`: recipes, commands and images, upstreams and parameters.

pub(super) mod measured_params;
mod own_server;
pub(super) mod subjects;

pub use measured_params::{RATE_LIMIT, WEIGHTS};
pub use own_server::COMMAND;

use std::collections::BTreeMap;

use super::factors::placeholders::{only_placeholder, placeholders};
use super::factors::written::{WrittenFactor, accept, factor_names};
use super::names::{MOST_NAMES, check_name};
use crate::manifest::{Kind, Param, ReadValue as _, Value};
use crate::recipe::Recipe;
use crate::recipes::Recipes;
use crate::spec::{ParamValue, Server, Upstream};
use config::nearest::{suggestion, suggestion_or};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Tree};
use config::units::shown;
use own_server::own_server;

pub(super) fn servers(
    reader: &mut Reader,
    top: &Section<'_>,
    recipes: &Recipes,
    factors: &[WrittenFactor],
) -> Vec<Server> {
    let Some(section) = top.section(reader, "servers") else {
        return Vec::new();
    };
    let entries = &section.table.entries;
    if entries.len() > MOST_NAMES {
        reader.report(Problem::at(
            entries[MOST_NAMES].place,
            format!("{} servers are too many", entries.len()),
            format!("expected at most {MOST_NAMES}"),
        ));
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut servers = Vec::new();
    for entry in entries.iter().take(MOST_NAMES) {
        if let Some(inner) = reader.section(entry, section.name_of(&entry.name)) {
            check_name(reader, "a server", &entry.name, entry.place);
            servers.push(server(reader, entry, &inner, &names, recipes, factors));
        }
    }
    servers
}

fn server(
    reader: &mut Reader,
    entry: &Entry,
    section: &Section<'_>,
    names: &[&str],
    recipes: &Recipes,
    factors: &[WrittenFactor],
) -> Server {
    let usual = ["recipe", "host", "upstreams", "with", "port"];
    let own = own_server(reader, section, factors);
    match &own {
        Some(_) => {
            let keys: Vec<&str> = own_server::KEYS
                .into_iter()
                .chain(["host", "upstreams", "port"])
                .collect();
            section.only(reader, &keys);
        }
        None => section.only(reader, &[&usual[..], &own_server::KEYS].concat()),
    }
    let recipe_name = match &own {
        Some((recipe, _)) => Some((*recipe).to_owned()),
        None => section.required_text(reader, "recipe", "\"lighttpd\""),
    };
    let recipe = recipe_name
        .as_deref()
        .and_then(|name| find_recipe(reader, section, name, recipes));
    let upstreams = upstreams(reader, section, names);
    if let Some(recipe) = recipe {
        check_upstream_count(reader, section, recipe, upstreams.len());
    }
    let port = section.integer(reader, "port", 1..=65_535);
    Server {
        name: entry.name.clone(),
        with: recipe
            .map(|recipe| {
                let given = match &own {
                    // Its parameters are keys of the server itself.
                    Some((_, params)) => Some(Section {
                        table: params,
                        ..section.clone()
                    }),
                    None => section.section(reader, "with"),
                };
                with(reader, section, given.as_ref(), recipe, factors)
            })
            .unwrap_or_default(),
        recipe: recipe_name.unwrap_or_default(),
        host: section.text(reader, "host"),
        upstreams,
        port: port.and_then(|port| u16::try_from(port).ok()),
    }
}

fn find_recipe<'r>(
    reader: &mut Reader,
    section: &Section<'_>,
    name: &str,
    recipes: &'r Recipes,
) -> Option<&'r Recipe> {
    let recipe = recipes.get(name);
    if recipe.is_none() {
        let place = section.value_place("recipe");
        reader.advise(
            place,
            format!("no recipe is called `{}`", shown(name)),
            "unknown recipe",
            suggestion(name, "recipes", recipes.names()),
        );
    }
    recipe
}

fn upstreams(reader: &mut Reader, section: &Section<'_>, names: &[&str]) -> Vec<Upstream> {
    let mut upstreams = Vec::new();
    for (text, place) in section.texts(reader, "upstreams").unwrap_or_default() {
        if names.contains(&text.as_str()) {
            upstreams.push(Upstream::Server(text));
        } else if let Ok(addr) = text.parse() {
            upstreams.push(Upstream::Address(addr));
        } else {
            reader.advise(place,
                    format!(
                        "`{}`: no server is called `{}`",
                        section.name_of("upstreams"),
                        shown(&text)
                    ),
                    "not in [servers]", suggestion_or(
                    &text,
                    "servers",
                    names.iter().copied(),
                    "for something that already runs write its IP address and port, such as \"127.0.0.1:8080\"",
                ));
            // Kept, so that its absence is not a second mistake.
            upstreams.push(Upstream::Server(text));
        }
    }
    upstreams
}

fn check_upstream_count(reader: &mut Reader, section: &Section<'_>, recipe: &Recipe, count: usize) {
    if recipe.upstreams.takes(count) {
        return;
    }
    let place = section.value_place("upstreams");
    reader.report(Problem::at(
        place,
        format!(
            "`{}`: the recipe `{}` takes {}, found {count}",
            section.path,
            recipe.name,
            recipe.upstreams.words()
        ),
        format!("expected {}", recipe.upstreams.words()),
    ));
}

/// All parameters of the recipe: those that are given, and the defaults of the others.
fn with(
    reader: &mut Reader,
    section: &Section<'_>,
    given: Option<&Section<'_>>,
    recipe: &Recipe,
    factors: &[WrittenFactor],
) -> BTreeMap<String, ParamValue> {
    let mut all = given.map_or_else(BTreeMap::new, |given| {
        given_params(reader, given, recipe, factors)
    });
    for param in &recipe.params {
        if given.is_some_and(|given| given.table.get(&param.name).is_some()) {
            continue;
        }
        match &param.default {
            Some(default) => {
                all.insert(param.name.clone(), ParamValue::Value(default.clone()));
            }
            None if param.optional => {}
            None if has_factor(section, param, factors) => {}
            None => reader.advise(
                section.place,
                format!(
                    "`{}` needs the parameter `{}` of the recipe `{}`",
                    section.path, param.name, recipe.name
                ),
                format!("expected `with.{}`, {}", param.name, param.takes()),
                format!("`{}`: {}", param.name, param.doc),
            ),
        }
    }
    all
}

/// Reads a table of a recipe's parameters.
pub(super) fn given_params(
    reader: &mut Reader,
    given: &Section<'_>,
    recipe: &Recipe,
    factors: &[WrittenFactor],
) -> BTreeMap<String, ParamValue> {
    let mut all = BTreeMap::new();
    for entry in &given.table.entries {
        let path = given.name_of(&entry.name);
        match recipe.param(&entry.name) {
            None => {
                let names = recipe.params.iter().map(|param| param.name.as_str());
                reader.advise(
                    entry.place,
                    format!(
                        "the recipe `{}` has no parameter `{}`",
                        recipe.name,
                        shown(&entry.name)
                    ),
                    "unknown parameter",
                    suggestion(&entry.name, "parameters", names),
                );
            }
            Some(param) => {
                if let Some(value) = parameter(reader, entry, &path, param, factors) {
                    all.insert(entry.name.clone(), value);
                }
            }
        }
    }
    all
}

/// Whether a factor named SERVER.PARAM gives the parameter.
fn has_factor(section: &Section<'_>, param: &Param, factors: &[WrittenFactor]) -> bool {
    let server = section.path.trim_start_matches("servers.");
    let name = format!("{server}.{}", param.name);
    factors.iter().any(|factor| factor.name == name)
}

fn parameter(
    reader: &mut Reader,
    entry: &Entry,
    path: &str,
    param: &Param,
    factors: &[WrittenFactor],
) -> Option<ParamValue> {
    let value = reader.value(&entry.node, path)?;
    let factor_of = |name: &str| factors.iter().find(|factor| factor.name == name);
    if let (Value::Text(text), false) = (&value, param.kind.holds_text())
        && let Some(name) = only_placeholder(text)
    {
        let Some(factor) = factor_of(name) else {
            reader.advise(
                entry.node.place,
                format!("`{path}`: no factor is called `{name}`"),
                "`{…}` does not name a factor",
                suggestion(name, "factors", factor_names(factors)),
            );
            return None;
        };
        let by_level = factor
            .levels
            .iter()
            .filter_map(|level| {
                let path = format!("factors.{name}[]");
                accept(reader, param, level, &path).map(|value| (level.text.clone(), value))
            })
            .collect();
        return Some(ParamValue::Factor {
            factor: name.to_owned(),
            by_level,
        });
    }
    if param.kind.holds_text() && has_placeholder(&value, factors) {
        // The text is checked per condition; its type is known now.
        let fits = matches!(
            (param.kind, &value),
            (Kind::Text, Value::Text(_)) | (Kind::List, Value::List(_))
        );
        if fits {
            return Some(ParamValue::Value(value));
        }
    }
    match param.accept(&value) {
        Ok(value) => Some(ParamValue::Value(value)),
        Err(refusal) => {
            let found = match &entry.node.tree {
                Tree::Text(text) => format!("\"{}\"", shown(text)),
                Tree::Array(_) => "a list".to_owned(),
                _ => value.to_string(),
            };
            let mut problem = Problem::at(
                entry.node.place,
                format!("`{path}` cannot be {found}"),
                refusal.expected,
            );
            if let Some(help) = refusal.help {
                problem = problem.help(help);
            }
            reader.report(problem);
            None
        }
    }
}

fn has_placeholder(value: &Value, factors: &[WrittenFactor]) -> bool {
    let stands_in = |text: &String| {
        placeholders(text)
            .iter()
            .any(|name| factors.iter().any(|factor| factor.name == *name))
    };
    match value {
        Value::Text(text) => stands_in(text),
        Value::List(items) => items.iter().any(stands_in),
        _ => false,
    }
}
