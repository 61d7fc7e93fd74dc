//! `[load]`, and each of its keys as a factor's level.

use std::time::Duration;

use super::names::{LOAD_HOST_FACTOR, VARIED_LOAD_KEYS};
use super::{curve, drivers};
use crate::recipes::Recipes;
use crate::spec::{LoadChange, LoadSpec, Rate};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Tree};
use config::units::{self, shown};

const HOUR: Duration = Duration::from_secs(3600);

/// `[load]`
pub(super) fn load(reader: &mut Reader, top: &Section<'_>, recipes: &Recipes) -> LoadSpec {
    let mut load = LoadSpec::default();
    let Some(section) = top.section(reader, "load") else {
        return load;
    };
    let mut known = VARIED_LOAD_KEYS.to_vec();
    known.extend(["headers", "host", "with", "curve", "bounds"]);
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
    load.curve = curve::curve(reader, &section);
    load.host = section.text(reader, "host");
    load.headers = headers(reader, &section);
    if !load.keepalive && load.requests_per_connection.is_some_and(|count| count > 1) {
        let place = |key| section.table.get(key).map_or(section.place, |e| e.place);
        reader.report(
            Problem::at(
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
        "http" => LoadChange::Http2(http_version(reader, node, path)?),
        "streams" => LoadChange::Streams(small(reader.integer(node, path, 1..=10_000)?)),
        "tls_version" => LoadChange::TlsVersion(tls_version(reader, node, path)?),
        "tls_suites" => LoadChange::TlsSuites(tls_names(reader, node, path, &tls::suite_names())?),
        "tls_groups" => LoadChange::TlsGroups(tls_names(reader, node, path, &tls::group_names())?),
        "tls_resumption" => LoadChange::TlsResumption(reader.boolean(node, path)?),
        "tls_ca" => LoadChange::TlsCa(reader.text(node, path)?),
        "tls_insecure" => LoadChange::TlsInsecure(reader.boolean(node, path)?),
        LOAD_HOST_FACTOR => LoadChange::Host(reader.text(node, path)?),
        _ => return None,
    })
}

fn method(reader: &mut Reader, node: &Node, path: &str) -> Option<String> {
    let method = reader.text(node, path)?;
    if !method.is_empty() && method.len() <= 32 && method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Some(method);
    }
    reader.report(Problem::at(
        node.place,
        format!("`{path}` is not an HTTP method: `{}`", shown(&method)),
        "expected capital letters, such as \"GET\" or \"POST\"",
    ));
    None
}

/// Whether it is HTTP/2.
fn http_version(reader: &mut Reader, node: &Node, path: &str) -> Option<bool> {
    let text = reader.text(node, path)?;
    match text.as_str() {
        "1.1" => Some(false),
        "2" => Some(true),
        _ => {
            reader.report(Problem::at(
                node.place,
                format!("`{path}` is not a version of HTTP: `{}`", shown(&text)),
                "expected \"1.1\" or \"2\"",
            ));
            None
        }
    }
}

fn tls_version(reader: &mut Reader, node: &Node, path: &str) -> Option<Option<tls::Version>> {
    let text = reader.text(node, path)?;
    if text == "any" {
        return Some(None);
    }
    match text.parse() {
        Ok(version) => Some(Some(version)),
        Err(_) => {
            reader.report(Problem::at(
                node.place,
                format!("`{path}` is not a version of TLS: `{}`", shown(&text)),
                "expected \"1.2\", \"1.3\" or \"any\"",
            ));
            None
        }
    }
}

/// One name or a list of names, each of which is known.
fn tls_names(
    reader: &mut Reader,
    node: &Node,
    path: &str,
    known: &[&'static str],
) -> Option<Vec<String>> {
    let names = match &node.tree {
        Tree::Text(name) => vec![(name.clone(), node.place)],
        _ => reader.texts(node, path)?,
    };
    for (name, place) in &names {
        if !known.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            reader.report(
                Problem::at(
                    *place,
                    format!("`{path}` has an unknown name: `{}`", shown(name)),
                    "unknown",
                )
                .help(suggestion(name, "names", known.iter().copied())),
            );
        }
    }
    Some(names.into_iter().map(|(name, _)| name).collect())
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
    reader.report(Problem::at(
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
            reader.report(Problem::at(
                entry.place,
                format!("`{}` is not a header name", shown(&entry.name)),
                "expected letters, digits and `-`",
            ));
        }
        // The length follows from `body`. With a second length, or another framing, servers on the
        // path could each see a different request.
        let frames = ["Content-Length", "Transfer-Encoding"];
        if frames
            .iter()
            .any(|own| entry.name.eq_ignore_ascii_case(own))
        {
            reader.report(
                Problem::at(
                    entry.place,
                    format!("`{}` cannot be given as a header", shown(&entry.name)),
                    "the length of the body follows from `body`",
                )
                .help("give the body as [load] body = \"...\"; body = \"\" sends a length of 0"),
            );
        }
        if value.chars().any(char::is_control) {
            reader.report(Problem::at(
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
