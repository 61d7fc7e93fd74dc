//! What each factor changes, and what each of its levels does.

pub(super) mod placeholders;
pub(super) mod written;

use super::load::background::{self, BACKGROUND};
use super::load::{load_change, loads};
use super::names::{LOAD_FACTOR, LOAD_HOST_FACTOR, VARIED_LOAD_KEYS};
use crate::manifest::{ReadValue as _, Value};
use crate::recipes::Recipes;
use crate::spec::{
    Effect, EventWhat, Experiment, Factor, Level, LoadPart, NamedLoad, ParamValue, Role,
};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::tree::{Node, Tree};
use config::units::shown;
use placeholders::{placeholders, placeholders_of_path};
use written::{WrittenFactor, WrittenLevel, accept};

/// Finds out what each factor changes, and turns its levels into the type of that.
pub(super) fn resolve(
    reader: &mut Reader,
    written: Vec<WrittenFactor>,
    experiment: &Experiment,
    recipes: &Recipes,
) -> Vec<Factor> {
    let names: Vec<String> = written.iter().map(|factor| factor.name.clone()).collect();
    written
        .into_iter()
        .filter_map(|factor| {
            let role = role(reader, &factor, experiment, recipes)?;
            let varies_loads = factor.name == LOAD_FACTOR && role == Role::Load;
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
                            let others = names.as_slice();
                            Effect::Loads(load_parts(reader, &level.node, &path, others, recipes)?)
                        }
                        Role::Load => {
                            let node = &level.node;
                            Effect::Load(load_change(reader, &factor.name, node, &path, recipes)?)
                        }
                        Role::OneLoad { load } => {
                            // The name of the load and a dot come first.
                            let key = &factor.name[load.len() + 1..];
                            Effect::Load(load_change(reader, key, &level.node, &path, recipes)?)
                        }
                        Role::Background => Effect::Background(background::level(
                            reader, &level, &path, experiment,
                        )?),
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

fn refuse_kind(reader: &mut Reader, factor: &str, level: &WrittenLevel, wants_table: bool) {
    let path = format!("factors.{factor}[]");
    if wants_table {
        let form = "a table of keys of [load], such as { threads = 8, connections = 96 }";
        reader.expected(&level.node, &path, form);
        return;
    }
    reader.advise(
        level.node.place,
        format!("`{}` is a table", shown(&path)),
        "expected a string, a number, a boolean or a list of strings",
        format!("keys of [load] that vary together are levels of a factor `{LOAD_FACTOR}`"),
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
        reader.report(Problem::at(
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
            reader.advise(
                entry.place,
                format!("`{}` is not a key of [load] that can vary", shown(key)),
                "cannot vary",
                suggestion(key, "keys", VARIED_LOAD_KEYS),
            );
            continue;
        }
        if factors.iter().any(|factor| factor == key) {
            reader.advise(
                entry.place,
                format!("`{path}` and the factor `{key}` set the same value"),
                "set here",
                "keep one of the two",
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

fn role(
    reader: &mut Reader,
    factor: &WrittenFactor,
    experiment: &Experiment,
    recipes: &Recipes,
) -> Option<Role> {
    let name = factor.name.as_str();
    let special =
        [LOAD_HOST_FACTOR, LOAD_FACTOR].contains(&name) && !is_filled_in(name, experiment);
    if VARIED_LOAD_KEYS.contains(&name) || special {
        if !experiment.loads.is_empty() {
            loads::refuse_factor(reader, factor, &experiment.loads);
            return None;
        }
        return Some(Role::Load);
    }
    if name == BACKGROUND && !experiment.loads.is_empty() && !is_filled_in(name, experiment) {
        return Some(Role::Background);
    }
    if let Some((load, key)) = name.split_once('.')
        && experiment.loads.iter().any(|one| one.name == load)
        && experiment.server(load).is_none()
    {
        let load = load.to_owned();
        return loads::check_varied(reader, factor, &load, key).then_some(Role::OneLoad { load });
    }
    if let Some((server_name, param_name)) = name.split_once('.') {
        return param_role(reader, factor, server_name, param_name, experiment, recipes);
    }
    if is_filled_in(name, experiment) {
        return Some(Role::Text);
    }
    let mut candidates: Vec<String> = VARIED_LOAD_KEYS.iter().map(|k| (*k).to_owned()).collect();
    candidates.extend([LOAD_HOST_FACTOR.to_owned(), LOAD_FACTOR.to_owned()]);
    if !experiment.loads.is_empty() {
        let of_load = |load: &NamedLoad| {
            let keys = VARIED_LOAD_KEYS.iter();
            let names = keys.map(|key| format!("{}.{key}", load.name));
            names.collect::<Vec<String>>()
        };
        candidates = experiment.loads.iter().flat_map(of_load).collect();
        candidates.push(BACKGROUND.to_owned());
    }
    for server in &experiment.servers {
        let params = server.with.keys();
        candidates.extend(params.map(|param| format!("{}.{param}", server.name)));
    }
    let near = config::nearest::nearest(name, candidates.iter().map(String::as_str));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "a factor is a key of [load] ({}), `from` with host names, `load` with tables of such keys, a server's parameter (SERVER.PARAM), or a name used as `{{{}}}` in a subject's URL, a server's `with` or an event's `what`",
            VARIED_LOAD_KEYS.join(", "),
            shown(name)
        ),
    };
    reader.advise(
        factor.place,
        format!("the factor `{}` changes nothing", shown(name)),
        "nothing uses it",
        help,
    );
    None
}

fn param_role(
    reader: &mut Reader,
    factor: &WrittenFactor,
    server_name: &str,
    param_name: &str,
    experiment: &Experiment,
    recipes: &Recipes,
) -> Option<Role> {
    let Some(server) = experiment.server(server_name) else {
        let servers = experiment.servers.iter().map(|s| s.name.as_str());
        let loads = experiment.loads.iter().map(|load| load.name.as_str());
        let (what, form, all) = match experiment.loads.is_empty() {
            true => ("server", "SERVER.PARAM", "servers"),
            false => (
                "server or load",
                "SERVER.PARAM or LOAD.KEY",
                "servers and loads",
            ),
        };
        reader.advise(
            factor.place,
            format!(
                "the factor `{}`: no {what} is called `{}`",
                shown(&factor.name),
                shown(server_name)
            ),
            format!("expected {form}"),
            suggestion(server_name, all, servers.chain(loads)),
        );
        return None;
    };
    // An unknown recipe was reported with its server.
    let recipe = recipes.get(&server.recipe)?;
    if recipe.param(param_name).is_none() {
        let names = recipe.params.iter().map(|p| p.name.as_str());
        reader.advise(
            factor.place,
            format!(
                "the factor `{}`: the recipe `{}` has no parameter `{}`",
                shown(&factor.name),
                recipe.name,
                shown(param_name)
            ),
            "expected SERVER.PARAM",
            suggestion(param_name, "parameters", names),
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
    let stands_in_path = |text: &str| placeholders_of_path(text).contains(&name);
    experiment
        .subjects
        .iter()
        .any(|subject| stands_in_path(&subject.path))
        || experiment
            .loads
            .iter()
            .filter_map(|load| load.path.as_deref())
            .any(stands_in_path)
        || experiment
            .servers
            .iter()
            .flat_map(|server| server.with.values())
            .chain(
                experiment
                    .events
                    .iter()
                    .flat_map(|event| event.settings.params.values()),
            )
            .any(|given| match given {
                ParamValue::Factor { factor, .. } => factor == name,
                ParamValue::Value(Value::Text(text)) => stands_in(text),
                ParamValue::Value(Value::List(items)) => items.iter().any(|item| stands_in(item)),
                ParamValue::Value(_) => false,
            })
        || experiment
            .events
            .iter()
            .any(|event| matches!(&event.what, EventWhat::Factor { factor, .. } if factor == name))
}
