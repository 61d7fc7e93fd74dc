//! The keys that `recipe.toml` and `driver.toml` share.

use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Place};
use config::units;

use super::template::{complaint, environment};
use super::{Kind, Param, ReadValue as _, Version};
use crate::recipe::SETTINGS;

pub(crate) fn programs(reader: &mut Reader, top: &Section<'_>) -> Vec<(String, Vec<String>)> {
    let Some(section) = top.section(reader, "programs") else {
        return Vec::new();
    };
    let mut programs = Vec::new();
    for entry in &section.table.entries {
        let names = reader.texts(&entry.node, &section.name_of(&entry.name));
        let names: Vec<String> = names
            .unwrap_or_default()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        programs.push((entry.name.clone(), names));
    }
    programs
}

pub(crate) fn params(reader: &mut Reader, top: &Section<'_>) -> Vec<Param> {
    let Some(section) = top.section(reader, "params") else {
        return Vec::new();
    };
    section
        .table
        .entries
        .iter()
        .filter_map(|entry| {
            let inner = reader.section(entry, section.name_of(&entry.name))?;
            param(reader, entry, &inner)
        })
        .collect()
}

fn param(reader: &mut Reader, entry: &Entry, section: &Section<'_>) -> Option<Param> {
    section.only(
        reader,
        &[
            "type",
            "default",
            "optional",
            "min",
            "max",
            "one_of",
            "overrides",
            "doc",
        ],
    );
    section.required_text(reader, "type", "\"integer\"")?;
    let kind = Kind::of_word(&section.word(reader, "type", &Kind::WORDS)?)?;
    let mut param = Param {
        name: entry.name.clone(),
        kind,
        default: None,
        optional: section.boolean(reader, "optional").unwrap_or(false),
        min: limit(reader, section, "min", kind),
        max: limit(reader, section, "max", kind),
        one_of: section
            .texts(reader, "one_of")
            .unwrap_or_default()
            .into_iter()
            .map(|(word, _)| word)
            .collect(),
        overrides: overrides(reader, section),
        doc: section.text(reader, "doc").unwrap_or_default(),
    };
    if let Some((entry, path)) = section.entry("default") {
        let value = reader.value(&entry.node, &path)?;
        match param.accept(&value) {
            Ok(value) => param.default = Some(value),
            Err(refusal) => reader.report(Problem::at(
                entry.node.place,
                format!("`{path}` is not a valid value of the parameter"),
                refusal.expected,
            )),
        }
    }
    Some(param)
}

fn overrides(reader: &mut Reader, section: &Section<'_>) -> Vec<String> {
    let words = section.texts(reader, "overrides").unwrap_or_default();
    for (word, place) in &words {
        if !SETTINGS.contains(&word.as_str()) {
            reader.report(Problem::at(
                *place,
                format!("`{word}` is no setting"),
                format!("expected one of {}", SETTINGS.join(", ")),
            ));
        }
    }
    words.into_iter().map(|(word, _)| word).collect()
}

fn limit(reader: &mut Reader, section: &Section<'_>, key: &str, kind: Kind) -> Option<i64> {
    let (entry, path) = section.entry(key)?;
    match kind {
        Kind::Integer => reader.integer(&entry.node, &path, i64::MIN..=i64::MAX),
        Kind::Size => reader
            .quantity(&entry.node, &path, "size", units::SIZE_FORM, units::size)
            .and_then(|bytes| i64::try_from(bytes).ok()),
        _ => {
            reader.report(Problem::at(
                entry.place,
                format!("`{path}`: only integers and sizes have limits"),
                "no limit is possible here",
            ));
            None
        }
    }
}

pub(crate) fn command(reader: &mut Reader, section: &Section<'_>) -> Vec<String> {
    if section.table.get("command").is_none() {
        reader.report(Problem::at(
            section.place,
            format!("`{}` is missing", section.name_of("command")),
            "expected a list of strings: the program and its arguments",
        ));
    }
    let words = section.texts(reader, "command").unwrap_or_default();
    for (word, place) in &words {
        template(reader, *place, "the argument", word);
    }
    if words.is_empty()
        && let Some(entry) = section.table.get("command")
    {
        reader.report(Problem::at(
            entry.node.place,
            format!("`{}` is empty", section.name_of("command")),
            "expected the program and its arguments",
        ));
    }
    words.into_iter().map(|(word, _)| word).collect()
}

/// How a program reports its version; `example` is a text that may precede it.
pub(crate) fn version(reader: &mut Reader, top: &Section<'_>, example: &str) -> Option<Version> {
    let section = top.section(reader, "version")?;
    section.only(reader, &["command", "after"]);
    Some(Version {
        command: command(reader, &section),
        after: section
            .required_text(reader, "after", example)
            .unwrap_or_default(),
    })
}

/// A table of strings: name, value and the value's place.
pub(crate) fn pairs(
    reader: &mut Reader,
    section: &Section<'_>,
    key: &str,
) -> Vec<(String, String, Place)> {
    let Some(inner) = section.section(reader, key) else {
        return Vec::new();
    };
    inner
        .table
        .entries
        .iter()
        .filter_map(|entry| {
            let value = reader.text(&entry.node, &inner.name_of(&entry.name))?;
            Some((entry.name.clone(), value, entry.node.place))
        })
        .collect()
}

pub(crate) fn template(reader: &mut Reader, place: Place, what: &str, text: &str) {
    if let Err(error) = environment().template_from_str(text) {
        reader.report(Problem::at(
            place,
            format!("{what} is not a valid template: {}", complaint(&error)),
            "invalid template",
        ));
    }
}
