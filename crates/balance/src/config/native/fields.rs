//! Values that several tables have.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ::config::reader::{Problem, Reader};
use ::config::section::Section;
use ::config::tree::{Node, Place, Tree};
use ::config::units::shown;

use crate::config::template::Template;
use crate::config::validate::is_printable;

/// Longest interval or time limit.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Limit of services, and of back ends of a service.
pub(super) const NAMES_MAX: usize = 1024;

/// Reports keys other than these, which are divided by spaces.
pub(super) fn only(reader: &mut Reader, section: &Section<'_>, keys: &str) {
    let keys: Vec<&str> = keys.split(' ').collect();
    section.only(reader, &keys);
}

pub(super) fn tables<'t>(
    reader: &mut Reader,
    section: &Section<'t>,
    key: &str,
) -> Vec<Section<'t>> {
    let Some((entry, path)) = section.entry(key) else {
        return Vec::new();
    };
    let Tree::Array(items) = &entry.node.tree else {
        reader.expected(&entry.node, &path, "a list of tables");
        return Vec::new();
    };
    let path = format!("{path}[]");
    let mut tables = Vec::new();
    for item in items {
        let Tree::Table(table) = &item.tree else {
            reader.expected(item, &path, "a table");
            continue;
        };
        tables.push(Section {
            path: path.clone(),
            place: item.place,
            table,
        });
    }
    tables
}

/// Reports a missing key.
pub(super) fn required(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<()> {
    if section.entry(key).is_some() {
        return Some(());
    }
    reader.report(Problem::at(
        section.place,
        format!("`{}` is missing", section.name_of(key)),
        format!("`{key}` is expected here"),
    ));
    None
}

/// An integer; a missing key leaves `value`.
pub(super) fn count<T: TryFrom<i64>>(
    reader: &mut Reader,
    section: &Section<'_>,
    key: &str,
    range: RangeInclusive<i64>,
    value: &mut T,
) {
    let given = section.integer(reader, key, range);
    if let Some(given) = given.and_then(|given| T::try_from(given).ok()) {
        *value = given;
    }
}

pub(super) fn limit(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<u32> {
    section
        .integer(reader, key, 1..=i64::from(u32::MAX))
        .and_then(|given| u32::try_from(given).ok())
}

/// A duration; a missing key leaves `value`.
pub(super) fn duration(
    reader: &mut Reader,
    section: &Section<'_>,
    key: &str,
    least: Duration,
    value: &mut Duration,
) {
    if let Some(given) = section.duration(reader, key, least..=DURATION_MAX) {
        *value = given;
    }
}

/// A boolean; a missing key leaves `value`.
pub(super) fn boolean(reader: &mut Reader, section: &Section<'_>, key: &str, value: &mut bool) {
    if let Some(given) = section.boolean(reader, key) {
        *value = given;
    }
}

/// Text that is not empty and has no control characters.
pub(super) fn text(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<String> {
    let text = section.text(reader, key)?;
    let (entry, path) = section.entry(key)?;
    if !is_printable(&text) {
        reader.report(Problem::at(
            entry.node.place,
            format!(
                "`{path}` is empty or has control characters: `{}`",
                shown(&text)
            ),
            "expected a text",
        ));
        return None;
    }
    Some(text)
}

pub(super) fn path(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<PathBuf> {
    text(reader, section, key).map(PathBuf::from)
}

/// Text with placeholders.
pub(super) fn template(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<Template> {
    let text = text(reader, section, key)?;
    let (entry, path) = section.entry(key)?;
    match Template::parse(&text) {
        Ok(template) => Some(template),
        Err(error) => {
            reader.report(
                Problem::at(
                    entry.node.place,
                    format!("`{path}`: {error}"),
                    "a percent sign that is to stay one is doubled",
                )
                .help("%r is the client's address, %b the back end's name, %s the service's"),
            );
            None
        }
    }
}

/// An IP address and port.
pub(super) fn socket(reader: &mut Reader, section: &Section<'_>, key: &str) -> Option<SocketAddr> {
    let (entry, path) = section.entry(key)?;
    socket_of(reader, &entry.node, &path)
}

/// An IP address and port.
pub(super) fn socket_of(reader: &mut Reader, node: &Node, path: &str) -> Option<SocketAddr> {
    let text = reader.text(node, path)?;
    let address = text.parse().ok();
    if address.is_none() {
        let fault = no_address(node.place, &text, "not an IP address and a port");
        reader.report(fault.help("an IPv6 address stands in brackets: [::1]:8080"));
    }
    address
}

/// The error for a malformed address.
pub(super) fn no_address(place: Place, text: &str, label: &str) -> Problem {
    let found = shown(text);
    let message = format!("expected an address such as 127.0.0.1:8080, found `{found}`");
    Problem::at(place, message, label)
}

/// A string, or a list of strings.
pub(super) fn one_or_more<'t>(
    reader: &mut Reader,
    section: &Section<'t>,
    key: &str,
) -> Option<Vec<&'t Node>> {
    let (entry, path) = section.entry(key)?;
    match &entry.node.tree {
        Tree::Text(_) => Some(vec![&entry.node]),
        Tree::Array(items) if !items.is_empty() => Some(items.iter().collect()),
        _ => {
            reader.expected(&entry.node, &path, "a string or a list of strings");
            None
        }
    }
}

/// Names appear in tables, on command lines and in cookies.
pub(in crate::config) fn check_name(reader: &mut Reader, what: &str, name: &str, place: Place) {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        reader.report(Problem::at(
            place,
            format!("{what} cannot be called `{}`", shown(name)),
            "expected 1 to 64 letters, digits, `-`, `_` or `.`",
        ));
    }
}
