//! `[factors]`: what is varied, and what each level changes.

use super::hosts::VANTAGE;
use super::parts::{VARIED_LOAD_KEYS, load_change};
use super::types::{Effect, Experiment, Factor, Given, GivenFault, Level, LoadPart, Role};
use crate::manifest::ReadValue as _;
use crate::manifest::{Param, Value};
use crate::recipes::Recipes;
use config::nearest::suggestion;
use config::reader::{Fault, Reader};
use config::section::Section;
use config::tree::{Entry, Node, Place, Tree};
use config::units::shown;

/// More conditions than this would run for weeks.
const MOST_CONDITIONS: usize = 1000;
const MOST_FACTORS: usize = 16;

/// The factor whose levels are tables of keys of `[load]`, which then vary together.
pub(super) const LOADS: &str = "load";

/// A factor as it was written, before it is known what it changes.
#[derive(Debug)]
pub(super) struct RawFactor {
    pub name: String,
    pub place: Place,
    pub levels: Vec<RawLevel>,
}

/// A level as it was written.
#[derive(Debug)]
pub(super) struct RawLevel {
    pub node: Node,
    pub value: Value,
    pub text: String,
}

/// Reads names and levels. Nested tables were made dotted names before.
pub(super) fn raw(reader: &mut Reader, top: &Section<'_>) -> Vec<RawFactor> {
    let Some(section) = top.section(reader, "factors") else {
        return Vec::new();
    };
    let entries = &section.table.entries;
    if entries.len() > MOST_FACTORS {
        reader.fault(Fault::at(
            entries[MOST_FACTORS].place,
            format!("{} factors are too many", entries.len()),
            format!("expected at most {MOST_FACTORS}"),
        ));
    }
    let mut factors = Vec::new();
    let mut conditions = 1usize;
    for entry in entries.iter().take(MOST_FACTORS) {
        let path = section.name_of(&entry.name);
        let Tree::Array(items) = &entry.node.tree else {
            reader.expected(&entry.node, &path, "a list of levels, such as [96, 400]");
            continue;
        };
        if items.is_empty() {
            reader.fault(
                Fault::at(
                    entry.node.place,
                    format!("the factor `{}` is empty", shown(&entry.name)),
                    "expected at least one level",
                )
                .help("remove the factor if nothing is to be varied"),
            );
        }
        conditions = conditions.saturating_mul(items.len().max(1));
        if conditions > MOST_CONDITIONS {
            reader.fault(Fault::at(
                entry.node.place,
                format!("the factors make more than {MOST_CONDITIONS} conditions"),
                "too many levels with those above",
            ));
            break;
        }
        factors.push(RawFactor {
            name: entry.name.clone(),
            place: entry.place,
            levels: levels(reader, &path, items),
        });
    }
    factors
}

/// A level as text; reading it gives the same.
pub(super) fn level_text(node: &Node) -> String {
    match &node.tree {
        Tree::Text(text) | Tree::Huge(text) | Tree::Date(text) => text.clone(),
        Tree::Integer(number) => number.to_string(),
        Tree::Float(number) => format!("{number:?}"),
        Tree::Boolean(value) => value.to_string(),
        Tree::Array(items) => items.iter().map(level_text).collect::<Vec<_>>().join(","),
        Tree::Table(table) => {
            let part = |entry: &Entry| format!("{} {}", entry.name, level_text(&entry.node));
            table
                .entries
                .iter()
                .map(part)
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

fn levels(reader: &mut Reader, path: &str, items: &[Node]) -> Vec<RawLevel> {
    let mut levels: Vec<RawLevel> = Vec::new();
    for item in items {
        let value = match &item.tree {
            Tree::Table(_) => Value::Text(level_text(item)),
            _ => match reader.value(item, &format!("{path}[]")) {
                Some(value) => value,
                None => continue,
            },
        };
        let text = value.to_string();
        if let Some(first) = levels.iter().find(|level| level.text == text) {
            reader.fault(
                Fault::at(
                    item.place,
                    format!("`{path}` has the level `{}` twice", shown(&text)),
                    "this is the second time",
                )
                .and(first.node.place, "this is the first"),
            );
            continue;
        }
        levels.push(RawLevel {
            node: item.clone(),
            value,
            text,
        });
    }
    levels
}

/// Finds out what each factor changes, and turns its levels into the type of that.
pub(super) fn resolve(
    reader: &mut Reader,
    raw: Vec<RawFactor>,
    experiment: &Experiment,
    recipes: &Recipes,
) -> Vec<Factor> {
    let raw_names: Vec<String> = raw.iter().map(|factor| factor.name.clone()).collect();
    raw.into_iter()
        .filter_map(|factor| {
            let role = role(reader, &factor, experiment, recipes)?;
            let varies_loads = factor.name == LOADS && role == Role::Load;
            let param = match &role {
                Role::Param { server, param } => experiment
                    .server(server)
                    .and_then(|server| recipes.get(&server.recipe))
                    .and_then(|recipe| recipe.param(param)),
                _ => None,
            };
            let levels = factor
                .levels
                .into_iter()
                .filter_map(|level| {
                    let path = format!("factors.{}[]", factor.name);
                    let is_table = matches!(level.node.tree, Tree::Table(_));
                    if is_table != varies_loads {
                        refuse_kind(reader, &factor.name, &level, varies_loads);
                        return None;
                    }
                    let effect = match &role {
                        Role::Load if varies_loads => {
                            let others = raw_names.as_slice();
                            Effect::Loads(load_parts(reader, &level.node, &path, others, recipes)?)
                        }
                        Role::Load => {
                            let node = &level.node;
                            Effect::Load(load_change(reader, &factor.name, node, &path, recipes)?)
                        }
                        Role::Param { .. } => Effect::Param(accept(reader, param?, &level, &path)?),
                        Role::Text => Effect::Text,
                    };
                    Some(Level {
                        text: level.text,
                        value: level.value,
                        effect,
                    })
                })
                .collect();
            Some(Factor {
                name: factor.name,
                role,
                levels,
            })
        })
        .collect()
}

fn refuse_kind(reader: &mut Reader, factor: &str, level: &RawLevel, wants_table: bool) {
    let path = format!("factors.{factor}[]");
    if wants_table {
        let form = "a table of keys of [load], such as { threads = 8, connections = 96 }";
        reader.expected(&level.node, &path, form);
        return;
    }
    reader.fault(
        Fault::at(
            level.node.place,
            format!("`{}` is a table", shown(&path)),
            "expected a string, a number, a boolean or a list of strings",
        )
        .help(format!(
            "keys of [load] that vary together are levels of a factor `{LOADS}`"
        )),
    );
}

/// A level of the factor `load`: each of its keys, as in `[load]`.
fn load_parts(
    reader: &mut Reader,
    node: &Node,
    path: &str,
    factors: &[String],
    recipes: &Recipes,
) -> Option<Vec<LoadPart>> {
    let Tree::Table(table) = &node.tree else {
        return None;
    };
    if table.entries.is_empty() {
        reader.fault(Fault::at(
            node.place,
            format!("`{path}` is empty"),
            "expected keys of [load]",
        ));
    }
    let mut parts = Vec::new();
    for entry in &table.entries {
        let key = entry.name.as_str();
        let path = format!("{path}.{key}");
        if !VARIED_LOAD_KEYS.contains(&key) {
            reader.fault(
                Fault::at(
                    entry.place,
                    format!("`{}` is no key of [load] that can vary", shown(key)),
                    "not possible here",
                )
                .help(suggestion(key, "keys", VARIED_LOAD_KEYS)),
            );
            continue;
        }
        if factors.iter().any(|factor| factor == key) {
            reader.fault(
                Fault::at(
                    entry.place,
                    format!("`{path}` and the factor `{key}` give the same value"),
                    "given here",
                )
                .help("keep one of the two"),
            );
            continue;
        }
        let value = reader.value(&entry.node, &path)?;
        let change = load_change(reader, key, &entry.node, &path, recipes)?;
        parts.push(LoadPart {
            key: key.to_owned(),
            value,
            change,
        });
    }
    Some(parts)
}

/// A level as the value of a parameter.
pub(super) fn accept(
    reader: &mut Reader,
    param: &Param,
    level: &RawLevel,
    path: &str,
) -> Option<Value> {
    match param.accept(&level.value) {
        Ok(value) => Some(value),
        Err(refusal) => {
            let mut fault = Fault::at(
                level.node.place,
                format!(
                    "`{path}` does not fit the parameter `{}`: {}",
                    param.name,
                    shown(&level.text)
                ),
                refusal.expected,
            );
            if let Some(help) = refusal.help {
                fault = fault.help(help);
            }
            reader.fault(fault);
            None
        }
    }
}

fn role(
    reader: &mut Reader,
    factor: &RawFactor,
    experiment: &Experiment,
    recipes: &Recipes,
) -> Option<Role> {
    let name = factor.name.as_str();
    let special = [VANTAGE, LOADS].contains(&name) && !is_filled_in(name, experiment);
    if VARIED_LOAD_KEYS.contains(&name) || special {
        return Some(Role::Load);
    }
    if let Some((server_name, param_name)) = name.split_once('.') {
        return param_role(reader, factor, server_name, param_name, experiment, recipes);
    }
    if is_filled_in(name, experiment) {
        return Some(Role::Text);
    }
    let mut candidates: Vec<String> = VARIED_LOAD_KEYS.iter().map(|k| (*k).to_owned()).collect();
    candidates.extend([VANTAGE.to_owned(), LOADS.to_owned()]);
    for server in &experiment.servers {
        let params = server.with.keys();
        candidates.extend(params.map(|param| format!("{}.{param}", server.name)));
    }
    let near = config::nearest::nearest(name, candidates.iter().map(String::as_str));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "a factor is a key of [load] ({}), `from` with names of hosts, `load` with tables of such keys, a server's parameter (SERVER.PARAM), or a name that stands as `{{{}}}` in a subject's URL, a server's `with` or an event's `what`",
            VARIED_LOAD_KEYS.join(", "),
            shown(name)
        ),
    };
    reader.fault(
        Fault::at(
            factor.place,
            format!("the factor `{}` changes nothing", shown(name)),
            "it stands nowhere else",
        )
        .help(help),
    );
    None
}

fn param_role(
    reader: &mut Reader,
    factor: &RawFactor,
    server_name: &str,
    param_name: &str,
    experiment: &Experiment,
    recipes: &Recipes,
) -> Option<Role> {
    let Some(server) = experiment.server(server_name) else {
        let names = experiment.servers.iter().map(|s| s.name.as_str());
        reader.fault(
            Fault::at(
                factor.place,
                format!(
                    "the factor `{}`: no server is called `{}`",
                    shown(&factor.name),
                    shown(server_name)
                ),
                "expected SERVER.PARAM",
            )
            .help(suggestion(server_name, "servers", names)),
        );
        return None;
    };
    // An unknown recipe was noted where it is named.
    let recipe = recipes.get(&server.recipe)?;
    if recipe.param(param_name).is_none() {
        let names = recipe.params.iter().map(|p| p.name.as_str());
        reader.fault(
            Fault::at(
                factor.place,
                format!(
                    "the factor `{}`: the recipe `{}` has no parameter `{}`",
                    shown(&factor.name),
                    recipe.name,
                    shown(param_name)
                ),
                "expected SERVER.PARAM",
            )
            .help(suggestion(param_name, "parameters", names)),
        );
        return None;
    }
    Some(Role::Param {
        server: server_name.to_owned(),
        param: param_name.to_owned(),
    })
}

fn is_filled_in(name: &str, experiment: &Experiment) -> bool {
    let stands_in = |text: &str| placeholders(text).contains(&name);
    experiment
        .subjects
        .iter()
        .any(|subject| stands_in(&subject.path))
        || experiment
            .servers
            .iter()
            .flat_map(|server| server.with.values())
            .any(|given| match given {
                Given::Factor { factor, .. } => factor == name,
                Given::Value(Value::Text(text)) => stands_in(text),
                Given::Value(Value::List(items)) => items.iter().any(|item| stands_in(item)),
                Given::Value(_) => false,
            })
        || experiment
            .events
            .iter()
            .any(|event| matches!(&event.what, GivenFault::Factor { factor, .. } if factor == name))
}

/// The names that stand in braces in a text, in the way that filling in finds them.
pub(super) fn placeholders(text: &str) -> Vec<&str> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let inner = &rest[start + 1..];
        match inner.find('}') {
            Some(end) if end > 0 && inner[..end].chars().all(good) => {
                names.push(&inner[..end]);
                rest = &inner[end + 1..];
            }
            _ => rest = inner,
        }
    }
    names
}

/// The name, when all of a text is one `{name}`.
pub(super) fn only_placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    (placeholders(text) == [name]).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_found_and_other_braces_are_not() {
        assert_eq!(placeholders("/bytes/{size}?x={n.m}"), ["size", "n.m"]);
        assert_eq!(placeholders("{ \"json\": {} }{{size}}"), ["size"]);
        assert_eq!(only_placeholder("{size}"), Some("size"));
        assert_eq!(only_placeholder("{a}{b}"), None);
        assert_eq!(only_placeholder("x{a}"), None);
    }
}
