//! The parts of an experiment file that stand on their own.

use std::time::Duration;

use super::drivers;
use super::hosts::VANTAGE;
use super::overrides::QUICK_KEYS;
use super::types::{
    Apart, BodyCheck, Design, Expect, LoadChange, LoadSpec, Published, Rate, SliceLength,
};
use crate::recipes::Recipes;
use config::reader::{Fault, Reader};
use config::section::Section;
use config::tree::{Node, Place, Tree};
use config::units::{self, shown};

/// The keys of `[load]` that a factor can vary.
pub(super) const VARIED_LOAD_KEYS: [&str; 9] = [
    "connections",
    "threads",
    "keepalive",
    "requests_per_connection",
    "method",
    "body",
    "timeout",
    "rate",
    "driver",
];

/// More of one kind than this is a mistake, or noise.
pub(super) const MOST_NAMES: usize = 64;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Names of servers and hosts are also names of folders and parts of URLs.
pub(super) fn check_name(reader: &mut Reader, what: &str, name: &str, place: Place) {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        reader.fault(Fault::at(
            place,
            format!("{what} cannot be called `{}`", shown(name)),
            "expected 1 to 64 letters, digits, `-` or `_`",
        ));
    }
}

/// `[load]`
pub(super) fn load(reader: &mut Reader, top: &Section<'_>, recipes: &Recipes) -> LoadSpec {
    let mut load = LoadSpec::default();
    let Some(section) = top.section(reader, "load") else {
        return load;
    };
    let mut known = VARIED_LOAD_KEYS.to_vec();
    known.extend(["headers", "host", "with"]);
    section.only(reader, &known);
    for key in VARIED_LOAD_KEYS.into_iter().filter(|key| *key != "driver") {
        if let Some((entry, path)) = section.entry(key)
            && let Some(change) = load_change(reader, key, &entry.node, &path, recipes)
        {
            change.apply(&mut load);
        }
    }
    if let Some(driver) = drivers::chosen(reader, &section, recipes) {
        load.driver = driver;
    }
    load.host = section.text(reader, "host");
    load.headers = headers(reader, &section);
    if !load.keepalive && load.requests_per_connection.is_some_and(|count| count > 1) {
        let place = |key| section.table.get(key).map_or(section.place, |e| e.place);
        reader.fault(
            Fault::at(
                place("requests_per_connection"),
                "`load.requests_per_connection` and `load.keepalive = false` exclude each other",
                "more than one request per connection",
            )
            .and(place("keepalive"), "one request per connection")
            .help("keep one of the two"),
        );
    }
    load
}

/// One key of `[load]`, from the file or from a factor's level.
pub(super) fn load_change(
    reader: &mut Reader,
    key: &str,
    node: &Node,
    path: &str,
    recipes: &Recipes,
) -> Option<LoadChange> {
    // The ranges fit their types.
    let small = |number: i64| u32::try_from(number).unwrap_or_default();
    Some(match key {
        "connections" => LoadChange::Connections(small(reader.integer(node, path, 1..=100_000)?)),
        "threads" => LoadChange::Threads(small(reader.integer(node, path, 1..=1024)?)),
        "keepalive" => LoadChange::Keepalive(reader.boolean(node, path)?),
        "requests_per_connection" => {
            let count = reader.integer(node, path, 1..=1_000_000_000)?;
            LoadChange::RequestsPerConnection(count.unsigned_abs())
        }
        "method" => LoadChange::Method(method(reader, node, path)?),
        "body" => LoadChange::Body(reader.text(node, path)?),
        "timeout" => {
            LoadChange::Timeout(reader.duration(node, path, Duration::from_millis(1)..=HOUR)?)
        }
        "rate" => LoadChange::Rate(rate(reader, node, path)?),
        "driver" => LoadChange::Driver(drivers::named(reader, node, path, recipes)?),
        VANTAGE => LoadChange::Host(reader.text(node, path)?),
        _ => return None,
    })
}

fn method(reader: &mut Reader, node: &Node, path: &str) -> Option<String> {
    let method = reader.text(node, path)?;
    if !method.is_empty() && method.len() <= 32 && method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Some(method);
    }
    reader.fault(Fault::at(
        node.place,
        format!("`{path}` is no HTTP method: `{}`", shown(&method)),
        "expected capital letters, such as \"GET\" or \"POST\"",
    ));
    None
}

fn rate(reader: &mut Reader, node: &Node, path: &str) -> Option<Rate> {
    let per_s = match &node.tree {
        Tree::Text(text) if text == "auto" => return Some(Rate::Auto),
        Tree::Integer(number) => *number as f64,
        Tree::Float(number) => *number,
        _ => reader.quantity(node, path, "rate", units::RATE_FORM, units::rate)?,
    };
    if per_s > 0.0 && per_s <= 1e9 {
        return Some(Rate::PerSecond(per_s));
    }
    reader.fault(Fault::at(
        node.place,
        format!("`{path}` is out of range"),
        "expected more than 0 and at most 1000000000 requests per second",
    ));
    None
}

fn headers(reader: &mut Reader, load: &Section<'_>) -> Vec<(String, String)> {
    let Some(section) = load.section(reader, "headers") else {
        return Vec::new();
    };
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let mut headers = Vec::new();
    for entry in &section.table.entries {
        let Some(value) = reader.text(&entry.node, &section.name_of(&entry.name)) else {
            continue;
        };
        if entry.name.is_empty() || !entry.name.chars().all(token) {
            reader.fault(Fault::at(
                entry.place,
                format!("`{}` is no name of a header", shown(&entry.name)),
                "expected letters, digits and `-`",
            ));
        }
        if value.chars().any(char::is_control) {
            reader.fault(Fault::at(
                entry.node.place,
                format!(
                    "the header `{}` holds a control character",
                    shown(&entry.name)
                ),
                "expected one line of text",
            ));
        }
        headers.push((entry.name.clone(), value));
    }
    headers
}

/// `[expect]`
pub(super) fn expect(reader: &mut Reader, top: &Section<'_>) -> Expect {
    let mut expect = Expect::default();
    let Some(section) = top.section(reader, "expect") else {
        return expect;
    };
    section.only(reader, &["status", "contains", "body"]);
    if let Some(status) = section.integer(reader, "status", 100..=599) {
        // The range fits.
        expect.status = u16::try_from(status).unwrap_or_default();
    }
    expect.contains = section.text(reader, "contains");
    expect.body = match section
        .word(reader, "body", &["same", "varies", "auto"])
        .as_deref()
    {
        Some("same") => BodyCheck::Same,
        Some("varies") => BodyCheck::Varies,
        _ => BodyCheck::Auto,
    };
    expect
}

/// `[design]`; without a baseline the first subject is it.
pub(super) fn design(reader: &mut Reader, top: &Section<'_>, first_subject: &str) -> Design {
    let mut design = Design::with_baseline(first_subject);
    let Some(section) = top.section(reader, "design") else {
        return design;
    };
    let mut known = QUICK_KEYS.to_vec();
    known.push("baseline");
    section.only(reader, &known);
    if let Some(baseline) = section.text(reader, "baseline") {
        design.baseline = baseline;
    }
    let events = top.table.get("events").is_some();
    design_values(reader, &section, &mut design, events);
    design
}

/// The keys that `[design]` and `[quick]` share. With `events` there is no closed loop, whose
/// window then is zero.
pub(super) fn design_values(
    reader: &mut Reader,
    section: &Section<'_>,
    design: &mut Design,
    events: bool,
) {
    if let Some(blocks) = section.integer(reader, "blocks", 1..=1000) {
        // The range fits.
        design.blocks = u32::try_from(blocks).unwrap_or_default();
    }
    if let Some(warmup) = section.duration(reader, "warmup", Duration::ZERO..=HOUR) {
        design.warmup = warmup;
    }
    let shortest = match events {
        true => Duration::ZERO,
        false => Duration::from_millis(100),
    };
    if let Some(window) = section.duration(reader, "window", shortest..=DAY) {
        design.window = window;
    }
    if let Some(window) = section.duration(reader, "latency_window", Duration::ZERO..=DAY) {
        design.latency_window = window;
    }
    if let Some((entry, path)) = section.entry("slice") {
        design.slice = match &entry.node.tree {
            Tree::Text(text) if text == "auto" => SliceLength::Auto,
            _ => reader
                .duration(&entry.node, &path, Duration::from_millis(10)..=DAY)
                .map_or(design.slice, SliceLength::Fixed),
        };
    }
    if let Some(matters) = section.share(reader, "matters") {
        design.matters = matters;
        if matters <= 0.0 {
            let place = section
                .table
                .get("matters")
                .map_or(section.place, |e| e.node.place);
            reader.fault(
                Fault::at(
                    place,
                    format!("`{}` is zero", section.name_of("matters")),
                    "expected more than 0%",
                )
                .help("with no smallest difference that matters, nothing can ever be the same"),
            );
        }
    }
    if let Some(share) = section.share(reader, "max_error") {
        design.max_error = share;
    }
    if let Some(retries) = section.integer(reader, "retries", 0..=20) {
        // The range fits.
        design.retries = u32::try_from(retries).unwrap_or_default();
    }
    match section
        .word(reader, "apart", &["auto", "never", "always"])
        .as_deref()
    {
        Some("auto") => design.apart = Apart::Auto,
        Some("never") => design.apart = Apart::Never,
        Some("always") => design.apart = Apart::Always,
        _ => {}
    }
    if let Some(bottleneck) = section.boolean(reader, "bottleneck") {
        design.bottleneck = bottleneck;
    }
    let slice_place = section.table.get("slice").or(section.table.get("window"));
    if let (SliceLength::Fixed(slice), Some(entry)) = (design.slice, slice_place)
        && slice > design.window
    {
        reader.fault(
            Fault::at(
                entry.node.place,
                "a slice is longer than the window that it is a part of",
                format!(
                    "slice {}, window {}",
                    units::duration_text(slice),
                    units::duration_text(design.window)
                ),
            )
            .help("shorten the slice, lengthen the window, or write slice = \"auto\""),
        );
    }
}

/// `[sysctls]`, whose nested keys were made dotted ones before.
pub(super) fn sysctls(reader: &mut Reader, top: &Section<'_>) -> Vec<(String, String)> {
    let Some(section) = top.section(reader, "sysctls") else {
        return Vec::new();
    };
    let mut sysctls = Vec::new();
    for entry in &section.table.entries {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !entry.name.chars().all(good) || !entry.name.contains('.') || entry.name.contains("..") {
            reader.fault(Fault::at(
                entry.place,
                format!("`{}` is no kernel setting", shown(&entry.name)),
                "expected a dotted name, such as \"net.core.somaxconn\"",
            ));
        }
        let value = match &entry.node.tree {
            Tree::Text(text) => text.clone(),
            Tree::Integer(number) => number.to_string(),
            _ => {
                reader.expected(
                    &entry.node,
                    &section.name_of(&entry.name),
                    "a whole number or a string",
                );
                continue;
            }
        };
        sysctls.push((entry.name.clone(), value));
    }
    sysctls
}

/// `[[published]]`
pub(super) fn published(reader: &mut Reader, top: &Section<'_>) -> Vec<Published> {
    let Some((entry, path)) = top.entry("published") else {
        return Vec::new();
    };
    let Tree::Array(items) = &entry.node.tree else {
        reader.expected(
            &entry.node,
            &path,
            "a list of tables, such as [[published]]",
        );
        return Vec::new();
    };
    let mut published = Vec::new();
    for item in items {
        let Tree::Table(table) = &item.tree else {
            reader.expected(item, "published[]", "a table, such as { what = … }");
            continue;
        };
        let section = Section {
            path: "published[]".to_owned(),
            place: item.place,
            table,
        };
        section.only(reader, &["what", "value", "unit", "source"]);
        let figure = Published {
            what: section
                .required_text(reader, "what", "\"what was measured\"")
                .unwrap_or_default(),
            value: figure(reader, &section).unwrap_or_default(),
            unit: section
                .required_text(reader, "unit", "\"requests/s\"")
                .unwrap_or_default(),
            source: section
                .required_text(reader, "source", "\"who published it\"")
                .unwrap_or_default(),
        };
        published.push(figure);
    }
    published
}

fn figure(reader: &mut Reader, section: &Section<'_>) -> Option<f64> {
    let Some((entry, path)) = section.entry("value") else {
        reader.fault(Fault::at(
            section.place,
            format!("`{}` is missing", section.name_of("value")),
            "`value` is expected here",
        ));
        return None;
    };
    match entry.node.tree {
        Tree::Integer(number) => Some(number as f64),
        Tree::Float(number) if number.is_finite() => Some(number),
        _ => {
            reader.expected(&entry.node, &path, "a number");
            None
        }
    }
}
