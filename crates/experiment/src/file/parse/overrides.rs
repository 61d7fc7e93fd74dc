//! `[quick]` and `--set`: values that replace others before a file is interpreted.

use toml::de::{DeTable, DeValue};

use crate::file::factors::written::level_text;
use crate::file::names::{LOAD_FACTOR, LOAD_HOST_FACTOR, QUICK_KEYS};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::tree::{self, Entry, Node, Place, Table, Tree};
use config::units::shown;

/// Duplicates are found by comparing each key with all before it, which this keeps cheap.
const MOST_KEYS: usize = 1000;

/// A value from the command line and the key that it sets.
#[derive(Debug)]
struct Set {
    path: Vec<String>,
    key: Place,
    node: Node,
}

/// Applies `[quick]` when asked to, and then each `--set`. Returns the dotted keys that were set.
pub(crate) fn apply(
    reader: &mut Reader,
    top: &mut Table,
    sets: &[(String, String)],
    quick: bool,
) -> Vec<String> {
    flatten_dotted(reader, top);
    let sets: Vec<Set> = sets
        .iter()
        .filter_map(|(key, value)| set(reader, key, value))
        .collect();
    let of_quick = |set: &&Set| set.path.first().is_some_and(|first| first == "quick");
    for set in sets.iter().filter(of_quick) {
        put(reader, top, set);
    }
    check_quick_factors(reader, top);
    check_quick_subjects(reader, top);
    if quick {
        merge_quick(top);
    }
    for set in sets.iter().filter(|set| !of_quick(set)) {
        put(reader, top, set);
    }
    for set in &sets {
        refuse_what_a_factor_hides(reader, top, set);
    }
    sets.iter().map(|set| set.path.join(".")).collect()
}

/// Makes `factors.proxy.workers` and `sysctls.net.core.somaxconn` single keys with dots in them,
/// whether they were written in quotes or as nested tables.
fn flatten_dotted(reader: &mut Reader, top: &mut Table) {
    for name in ["factors", "sysctls"] {
        if let Some(entry) = top.get_mut(name) {
            flatten(reader, entry);
        }
    }
    for (outer, name) in [("quick", "factors"), ("design", "reference")] {
        if let Some(entry) = top.get_mut(outer)
            && let Tree::Table(table) = &mut entry.node.tree
            && let Some(inner) = table.get_mut(name)
        {
            flatten(reader, inner);
        }
    }
}

fn flatten(reader: &mut Reader, entry: &mut Entry) {
    let Tree::Table(table) = &mut entry.node.tree else {
        return;
    };
    let mut flat = Table::default();
    for inner in std::mem::take(&mut table.entries) {
        flatten_into(reader, &mut flat, inner);
    }
    *table = flat;
}

fn flatten_into(reader: &mut Reader, flat: &mut Table, entry: Entry) {
    if let Tree::Table(table) = entry.node.tree {
        for mut inner in table.entries {
            inner.name = format!("{}.{}", entry.name, inner.name);
            flatten_into(reader, flat, inner);
        }
    } else if flat.entries.len() >= MOST_KEYS {
        reader.report(Problem::at(
            entry.place,
            format!("more than {MOST_KEYS} keys"),
            "too many",
        ));
    } else if let Some(first) = flat.get(&entry.name) {
        reader.report(
            Problem::at(
                entry.place,
                format!("duplicate key `{}`", shown(&entry.name)),
                "the second",
            )
            .and(first.place, "the first"),
        );
    } else {
        flat.entries.push(entry);
    }
}

fn set(reader: &mut Reader, key: &str, value: &str) -> Option<Set> {
    let text = format!("{key}={value}");
    let source = reader.add_source(&format!("--set {}", shown(&text)), text);
    let key_place = Place {
        source,
        start: 0,
        end: key.len(),
    };
    let Some(path) = key_path(key) else {
        reader.advise(
            key_place,
            format!("--set: `{}` is not a key", shown(key)),
            "expected a key of the experiment file",
            "write --set TABLE.KEY=VALUE, such as --set design.blocks=3",
        );
        return None;
    };
    let from = key.len() + 1;
    let node = match DeValue::parse(value) {
        Ok(parsed) => moved(tree::node(source, &parsed), from),
        // Anything but a TOML value is a string: `--set load.timeout=5s`.
        Err(_) => Node {
            place: Place {
                source,
                start: from,
                end: from + value.len(),
            },
            tree: Tree::Text(value.to_owned()),
        },
    };
    Some(Set {
        path,
        key: key_place,
        node,
    })
}

/// The parts of a dotted key; those of factors and sysctls are one part with dots in it.
fn key_path(key: &str) -> Option<Vec<String>> {
    if key.contains(['=', '#']) || key.chars().any(char::is_control) {
        return None;
    }
    let text = format!("{key} = 0");
    let parsed = DeTable::parse(&text).ok()?;
    let mut table = parsed.get_ref();
    let mut path = Vec::new();
    loop {
        let (name, value) = table.iter().next()?;
        path.push(name.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    let fixed = match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["factors" | "sysctls", _, ..] => 1,
        ["quick", "factors", _, ..] => 2,
        _ => return Some(path),
    };
    let last = path.split_off(fixed).join(".");
    path.push(last);
    Some(path)
}

fn moved(mut node: Node, by: usize) -> Node {
    node.place.start += by;
    node.place.end += by;
    node.tree = match node.tree {
        Tree::Array(items) => Tree::Array(items.into_iter().map(|item| moved(item, by)).collect()),
        Tree::Table(table) => Tree::Table(Table {
            entries: table
                .entries
                .into_iter()
                .map(|mut entry| {
                    entry.place.start += by;
                    entry.place.end += by;
                    entry.node = moved(entry.node, by);
                    entry
                })
                .collect(),
        }),
        other => other,
    };
    node
}

fn put(reader: &mut Reader, top: &mut Table, set: &Set) {
    let [path @ .., last] = set.path.as_slice() else {
        return;
    };
    if !names_something(reader, top, set) {
        return;
    }
    let mut table = top;
    let mut walked = String::new();
    for part in path {
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(part);
        match table.table_mut(part, set.key) {
            Some(inner) => table = inner,
            None => {
                reader.report(Problem::at(
                    set.key,
                    format!("--set {}: `{walked}` is not a table", set.path.join(".")),
                    "it has no keys to set",
                ));
                return;
            }
        }
    }
    table.put(Entry {
        name: last.clone(),
        place: set.key,
        node: set.node.clone(),
    });
}

/// `--set` changes servers and hosts, and adds none.
fn names_something(reader: &mut Reader, top: &Table, set: &Set) -> bool {
    let [kind @ ("servers" | "hosts"), name, ..] =
        set.path.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return true;
    };
    let known: Vec<&str> = match top.get(kind).map(|entry| &entry.node.tree) {
        Some(Tree::Table(table)) => table.entries.iter().map(|e| e.name.as_str()).collect(),
        _ => Vec::new(),
    };
    if known.contains(&name) {
        return true;
    }
    reader.advise(
        set.key,
        format!(
            "--set {}: nothing in `{kind}` is called `{name}`",
            set.path.join(".")
        ),
        "no such name",
        suggestion(name, kind, known),
    );
    false
}

fn refuse_what_a_factor_hides(reader: &mut Reader, top: &Table, set: &Set) {
    let factor = match set.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", "host"] => LOAD_HOST_FACTOR.to_owned(),
        ["load", key] => key.to_owned(),
        ["servers", server, "with", param] => format!("{server}.{param}"),
        _ => return,
    };
    let Some(Tree::Table(factors)) = top.get("factors").map(|entry| &entry.node.tree) else {
        return;
    };
    let hidden = factors.get(&factor).or_else(|| {
        let loads = factors.get(LOAD_FACTOR)?;
        let Tree::Array(levels) = &loads.node.tree else {
            return None;
        };
        let names = |level: &Node| match &level.tree {
            Tree::Table(table) => table.get(&factor).is_some(),
            _ => false,
        };
        (set.path[0] == "load" && levels.iter().any(names)).then_some(loads)
    });
    if let Some(entry) = hidden {
        let factor = &entry.name;
        reader.report(
            Problem::at(
                set.key,
                format!("--set {} would change nothing", set.path.join(".")),
                format!("the factor `{factor}` gives this value"),
            )
            .and(entry.place, "the factor")
            .help(format!("use --set 'factors.{factor}=[…]'")),
        );
    }
}

/// `[quick]` may name only factors and levels of the file.
fn check_quick_factors(reader: &mut Reader, top: &Table) {
    let Some(Tree::Table(quick)) = top.get("quick").map(|entry| &entry.node.tree) else {
        return;
    };
    let Some(Tree::Table(chosen)) = quick.get("factors").map(|entry| &entry.node.tree) else {
        return;
    };
    let empty = Table::default();
    let factors = match top.get("factors").map(|entry| &entry.node.tree) {
        Some(Tree::Table(table)) => table,
        _ => &empty,
    };
    for entry in &chosen.entries {
        let Some(factor) = factors.get(&entry.name) else {
            let names = factors.entries.iter().map(|e| e.name.as_str());
            reader.advise(
                entry.place,
                format!(
                    "`quick.factors` names an unknown factor: `{}`",
                    shown(&entry.name)
                ),
                "not in [factors]",
                suggestion(&entry.name, "factors", names),
            );
            continue;
        };
        let (Tree::Array(all), Tree::Array(some)) = (&factor.node.tree, &entry.node.tree) else {
            // Reading the factor reports a value of another type.
            continue;
        };
        // Longer lists make too many conditions, which is another check.
        let all: Vec<String> = all.iter().take(1000).map(level_text).collect();
        for level in some.iter().take(1000) {
            if !all.contains(&level_text(level)) {
                reader.advise(
                    level.place,
                    format!("`{}` does not have this level", shown(&entry.name)),
                    "not among the levels in [factors]",
                    format!("its levels: {}", all.join(", ")),
                );
            }
        }
    }
}

/// The subjects that `[quick]` keeps, with their places; none where it keeps all.
fn quick_subjects(top: &Table) -> Vec<(String, Place)> {
    let Some(Tree::Table(quick)) = top.get("quick").map(|entry| &entry.node.tree) else {
        return Vec::new();
    };
    let Some(Tree::Array(items)) = quick.get("subjects").map(|entry| &entry.node.tree) else {
        return Vec::new();
    };
    let name = |item: &Node| match &item.tree {
        Tree::Text(name) => Some((name.clone(), item.place)),
        _ => None,
    };
    items.iter().take(MOST_KEYS).filter_map(name).collect()
}

/// `[quick]` may name only subjects of the file.
fn check_quick_subjects(reader: &mut Reader, top: &Table) {
    let Some(Tree::Table(subjects)) = top.get("subjects").map(|entry| &entry.node.tree) else {
        return;
    };
    for (name, place) in quick_subjects(top) {
        if subjects.get(&name).is_none() {
            let names = subjects.entries.iter().map(|e| e.name.as_str());
            reader.advise(
                place,
                format!(
                    "`quick.subjects` names an unknown subject: `{}`",
                    shown(&name)
                ),
                "not in [subjects]",
                suggestion(&name, "subjects", names),
            );
        }
    }
}

/// Moves the values of `[quick]` to their tables; unknown keys remain, to be reported later.
fn merge_quick(top: &mut Table) {
    let kept = quick_subjects(top);
    if !kept.is_empty()
        && let Some(Tree::Table(subjects)) = top.get_mut("subjects").map(|e| &mut e.node.tree)
    {
        let is_kept = |entry: &Entry| kept.iter().any(|(name, _)| *name == entry.name);
        subjects.entries.retain(is_kept);
    }
    let Some(Tree::Table(quick)) = top.get_mut("quick").map(|entry| &mut entry.node.tree) else {
        return;
    };
    if !kept.is_empty() {
        quick.remove("subjects");
    }
    let mut design = Vec::new();
    for key in QUICK_KEYS {
        design.extend(quick.remove(key));
    }
    let factors = match quick.get("factors").map(|entry| &entry.node.tree) {
        Some(Tree::Table(table)) => {
            let entries = table.entries.clone();
            quick.remove("factors");
            entries
        }
        _ => Vec::new(),
    };
    for (table, entries) in [("design", design), ("factors", factors)] {
        let Some(first) = entries.first() else {
            continue;
        };
        if let Some(target) = top.table_mut(table, first.place) {
            entries.into_iter().for_each(|entry| target.put(entry));
        }
    }
}
