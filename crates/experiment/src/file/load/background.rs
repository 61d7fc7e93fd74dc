//! `background`, as a factor and as a subject's key: which background loads are made.

use crate::file::factors::written::WrittenLevel;
use crate::spec::{Experiment, LoadRole};
use config::nearest::suggestion_or;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Place, Tree};
use config::units::shown;

/// The factor whose levels are the background loads that are made.
pub(crate) const BACKGROUND: &str = "background";
/// The level for no background load.
pub(crate) const NONE: &str = "none";

/// The background loads that a subject's table names.
pub(crate) fn named(reader: &mut Reader, section: &Section<'_>) -> Option<Vec<String>> {
    let (entry, path) = section.entry(BACKGROUND)?;
    names(reader, &entry.node, &path)
}

/// `"download"`, `["download", "upload"]`, or `"none"`.
fn names(reader: &mut Reader, node: &Node, path: &str) -> Option<Vec<String>> {
    let names = match &node.tree {
        Tree::Text(name) => vec![name.clone()],
        _ => {
            let names = reader.texts(node, path)?.into_iter();
            names.map(|(name, _)| name).collect()
        }
    };
    match names.as_slice() {
        [only] if only == NONE => Some(Vec::new()),
        _ => Some(names),
    }
}

/// Reads a level of the factor `background`.
pub(crate) fn level(
    reader: &mut Reader,
    level: &WrittenLevel,
    path: &str,
    experiment: &Experiment,
) -> Option<Vec<String>> {
    let names = names(reader, &level.node, path)?;
    check(reader, level.node.place, path, &names, experiment);
    Some(names)
}

/// Checks that these are names of background loads.
pub(crate) fn check(
    reader: &mut Reader,
    place: Place,
    path: &str,
    names: &[String],
    experiment: &Experiment,
) {
    let background = experiment.loads.iter();
    let background = background.filter(|one| one.role == LoadRole::Background);
    let known: Vec<&str> = background.map(|one| one.name.as_str()).collect();
    for name in names {
        if known.contains(&name.as_str()) {
            continue;
        }
        let is_compared = experiment.loads.iter().any(|one| one.name == *name);
        let message = format!("`{path}`: no background load is called `{}`", shown(name));
        let problem = match is_compared {
            true => Problem::at(place, message, "this load is compared")
                .help(format!("add role = \"background\" to [loads.{name}]")),
            false => {
                let form = "expected \"none\", or the name of a load with role = \"background\"";
                let help = suggestion_or(name, "background loads", known.iter().copied(), form);
                Problem::at(place, message, "not in [loads]").help(help)
            }
        };
        reader.report(problem);
    }
}
