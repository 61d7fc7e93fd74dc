//! A server that is written as a command or an image instead of a recipe: the parameters of the
//! recipes `command` and `image`, without `with`.

use crate::command_words::{command_words, names_a_port};
use crate::file::factors::written::WrittenFactor;
use crate::recipe::PLACEHOLDERS;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Node, Table, Tree};
use config::units::shown;

/// The recipe of a server that is a command, and the key of that command.
pub const COMMAND: &str = "command";
const IMAGE: &str = "image";
/// The keys of such a server; each is a parameter of its recipe.
pub(crate) const KEYS: [&str; 10] = [
    COMMAND,
    IMAGE,
    "env",
    "ready",
    "ready_http",
    "cwd",
    "revision",
    "build",
    "repository",
    "options",
];

/// Such a server: its recipe's name and the parameters that are given. `None` for a server with a
/// recipe.
pub(crate) fn own_server(
    reader: &mut Reader,
    section: &Section<'_>,
    factors: &[WrittenFactor],
) -> Option<(&'static str, Table)> {
    let given = |key: &&&str| section.table.get(key).is_some();
    let first = KEYS.iter().find(given)?;
    let is_image = section.table.get(IMAGE).is_some() || has_factor(section, IMAGE, factors);
    if let Some(recipe) = section.table.get("recipe") {
        let place = section.table.get(first).map_or(section.place, |e| e.place);
        let problem = Problem::at(
            place,
            format!(
                "`{}` and `recipe` exclude each other",
                section.name_of(first)
            ),
            "for a server without a recipe",
        );
        reader.report(problem.and(recipe.place, "the recipe").help(
            "a recipe's parameters are in a table `with`; a program of your own has no recipe",
        ));
        return None;
    }
    let mut params = Table::default();
    let mut variables = Vec::new();
    for entry in &section.table.entries {
        match entry.name.as_str() {
            COMMAND => params.put(command(reader, section, entry, &mut variables)),
            "env" => env(reader, section, entry, &mut variables),
            name if KEYS.contains(&name) => params.put(entry.clone()),
            _ => {}
        }
    }
    if !variables.is_empty() {
        let place = section.value_place("env");
        params.put(entry_of("env", Tree::Array(variables), place));
    }
    if !is_image {
        check_command(reader, section, factors);
    }
    check_port(reader, section, &params, is_image);
    check_factors(reader, section, factors);
    Some((if is_image { IMAGE } else { COMMAND }, params))
}

fn entry_of(name: &str, tree: Tree, place: config::tree::Place) -> Entry {
    Entry {
        name: name.to_owned(),
        place,
        node: Node { place, tree },
    }
}

/// The command as a list; a string is split as a shell does it. Assignments in front of it are
/// variables.
fn command(
    reader: &mut Reader,
    section: &Section<'_>,
    entry: &Entry,
    variables: &mut Vec<Node>,
) -> Entry {
    let Tree::Text(text) = &entry.node.tree else {
        return entry.clone();
    };
    let place = entry.node.place;
    let node = |text: String| Node {
        place,
        tree: Tree::Text(text),
    };
    match command_words(text) {
        Ok(found) => {
            variables.extend(found.variables.into_iter().map(node));
            let words = found.words.into_iter().map(node).collect();
            entry_of(COMMAND, Tree::Array(words), place)
        }
        Err(why) => {
            reader.report(Problem::at(
                place,
                format!("`{}`: {why}", section.name_of(COMMAND)),
                "expected words as in a shell, such as \"./server --port {port}\"",
            ));
            entry_of(COMMAND, Tree::Array(Vec::new()), place)
        }
    }
}

/// The variables: a table, or a list of `NAME=VALUE`.
fn env(reader: &mut Reader, section: &Section<'_>, entry: &Entry, variables: &mut Vec<Node>) {
    let path = section.name_of("env");
    match &entry.node.tree {
        Tree::Table(table) => {
            for one in &table.entries {
                let Some(value) = reader.text(&one.node, &format!("{path}.{}", one.name)) else {
                    continue;
                };
                variables.push(Node {
                    place: one.node.place,
                    tree: Tree::Text(format!("{}={value}", one.name)),
                });
            }
        }
        Tree::Array(items) => variables.extend(items.iter().cloned()),
        _ => reader.expected(&entry.node, &path, "a table such as { NAME = \"value\" }"),
    }
}

fn check_command(reader: &mut Reader, section: &Section<'_>, factors: &[WrittenFactor]) {
    if section.table.get(COMMAND).is_none() && !has_factor(section, COMMAND, factors) {
        reader.advise(
            section.place,
            format!("`{}` has neither a command nor a recipe", section.path),
            "expected `command`, `image` or `recipe`",
            "add a line such as: command = [\"./server\", \"--port\", \"{port}\"]",
        );
    }
    let has = |key: &str| section.table.get(key).is_some() || has_factor(section, key, factors);
    for key in ["build", "repository"] {
        if let Some(entry) = section.table.get(key).filter(|_| !has("revision")) {
            reader.advise(
                entry.place,
                format!("`{}` needs a revision", section.name_of(key)),
                "nothing is checked out",
                "add revision = \"main\", or \".\" for the working tree",
            );
        }
    }
    if let Some(entry) = section.table.get("options") {
        reader.report(Problem::at(
            entry.place,
            format!("`{}` is for containers", section.name_of("options")),
            "expected with `image`",
        ));
    }
}

/// Checks that the command gets to know its port.
fn check_port(reader: &mut Reader, section: &Section<'_>, params: &Table, is_image: bool) {
    let fixed = section.table.get("port").is_some();
    let Some(command) = params.get(COMMAND).filter(|_| !fixed && !is_image) else {
        return;
    };
    let lists = [Some(command), params.get("env")];
    let texts = lists.into_iter().flatten().flat_map(|entry| {
        let items = match &entry.node.tree {
            Tree::Array(items) => items.as_slice(),
            _ => &[],
        };
        items.iter().filter_map(|item| match &item.tree {
            Tree::Text(text) => Some(text.as_str()),
            _ => None,
        })
    });
    let texts: Vec<&str> = texts.collect();
    if !texts.is_empty() && !texts.into_iter().any(names_a_port) {
        reader.advise(
            command.node.place,
            format!("`{}` does not say which port to listen on", section.path),
            "expected {port} somewhere",
            "write {port} where the command takes its port; for a program that reads the \
                 variable PORT, begin with PORT={port}; for one with a fixed port, add `port`",
        );
    }
}

/// A factor of that name would be filled in instead.
fn check_factors(reader: &mut Reader, section: &Section<'_>, factors: &[WrittenFactor]) {
    for factor in factors {
        if PLACEHOLDERS.contains(&factor.name.as_str()) {
            reader.advise(
                factor.place,
                format!(
                    "a factor cannot be called `{0}` here: {{{0}}} stands for something else in \
                         the command of `{1}`",
                    factor.name,
                    shown(&section.path)
                ),
                "a name of commands",
                "give the factor another name",
            );
        }
    }
}

fn has_factor(section: &Section<'_>, key: &str, factors: &[WrittenFactor]) -> bool {
    let server = section.path.trim_start_matches("servers.");
    let name = format!("{server}.{key}");
    factors.iter().any(|factor| factor.name == name)
}
