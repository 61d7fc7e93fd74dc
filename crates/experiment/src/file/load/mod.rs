//! `[load]`, and each of its keys as a factor's level.

pub(super) mod background;
mod calls;
pub(super) mod curve;
pub(super) mod drivers;
pub(super) mod loads;
pub(super) mod relays;
pub(super) mod replay;
pub(super) mod requests;
pub(super) mod traffic;

use std::time::Duration;

use super::names::{LOAD_HOST_FACTOR, VARIED_LOAD_KEYS};
use crate::recipes::Recipes;
use crate::spec::{HttpVersion, LoadChange, LoadSpec, Rate};
use readings::{QuicCongestion, RATE_MAX_PER_S};

use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Tree};
use config::units::{self, shown};

const HOUR: Duration = Duration::from_secs(3600);

/// `[load]`
pub(super) fn load(reader: &mut Reader, top: &Section<'_>, recipes: &Recipes) -> LoadSpec {
    let Some(section) = top.section(reader, "load") else {
        return LoadSpec::default();
    };
    let mut load = read(
        reader,
        &section,
        &["driver", "with", "curve", "bounds"],
        recipes,
    );
    if let Some(driver) = drivers::chosen(reader, &section, recipes) {
        load.driver = driver;
    }
    load.curve = curve::curve(reader, &section);
    load
}

/// Reads the keys that every load has; `others` are allowed too, and read elsewhere.
pub(super) fn read(
    reader: &mut Reader,
    section: &Section<'_>,
    others: &[&str],
    recipes: &Recipes,
) -> LoadSpec {
    let mut load = LoadSpec::default();
    let mut known = VARIED_LOAD_KEYS.to_vec();
    known.retain(|key| *key != "driver");
    known.extend(["headers", "host", "hosts", "ages"]);
    known.extend(requests::KEYS);
    known.extend(calls::KEYS);
    known.extend(others);
    section.only(reader, &known);
    for key in VARIED_LOAD_KEYS.into_iter().filter(|key| *key != "driver") {
        if let Some((entry, path)) = section.entry(key)
            && let Some(change) = load_change(reader, key, &entry.node, &path, recipes)
        {
            change.apply(&mut load);
        }
    }
    if load.body.is_some() && load.body_bytes.is_some() {
        let place = |key| section.value_place(key);
        let message = format!(
            "`{0}.body` and `{0}.body_bytes` exclude each other",
            section.path
        );
        let problem = Problem::at(place("body_bytes"), message, "a body of this size");
        reader.report(
            problem
                .and(place("body"), "a body")
                .help("keep one of the two"),
        );
    }
    load.host = section.text(reader, "host");
    load_hosts(reader, section, &mut load);
    load.headers = headers(reader, section);
    load.ages = section.boolean(reader, "ages").unwrap_or_default();
    requests::read(reader, section, &mut load);
    calls::read(reader, section, &mut load);
    if !load.keepalive && load.requests_per_connection.is_some_and(|count| count > 1) {
        let place = |key| section.table.get(key).map_or(section.place, |e| e.place);
        reader.report(
            Problem::at(
                place("requests_per_connection"),
                format!(
                    "`{0}.requests_per_connection` and `{0}.keepalive = false` exclude each other",
                    section.path
                ),
                "more than one request per connection",
            )
            .and(place("keepalive"), "one request per connection")
            .help("keep one of the two"),
        );
    }
    load
}

/// `hosts`: several hosts that make the load together.
fn load_hosts(reader: &mut Reader, section: &Section<'_>, load: &mut LoadSpec) {
    let Some(hosts) = section.texts(reader, "hosts") else {
        return;
    };
    let place = section.value_place("hosts");
    if load.host.is_some() {
        let message = format!(
            "`{0}.host` and `{0}.hosts` exclude each other",
            section.path
        );
        let problem = Problem::at(place, message, "several hosts");
        let other = section.value_place("host");
        return reader.report(problem.and(other, "one host").help("keep one of the two"));
    }
    for (number, (host, place)) in hosts.iter().enumerate() {
        if hosts[..number].iter().any(|(other, _)| other == host) {
            let message = format!("the host `{}` is named twice", shown(host));
            let problem = Problem::at(*place, message, "named before");
            reader.report(problem.help("name each host once: it makes one share of the load"));
        }
    }
    let mut hosts = hosts.into_iter().map(|(host, _)| host);
    load.host = hosts.next();
    load.more_hosts = hosts.collect();
    if load.host.is_none() {
        let message = format!("`{}` names no host", section.name_of("hosts"));
        let problem = Problem::at(place, message, "expected a name");
        reader.report(problem.help("name the hosts that make the load together"));
    }
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
        "idle" => LoadChange::Idle(small(reader.integer(node, path, 0..=50_000)?)),
        "threads" => LoadChange::Threads(small(reader.integer(node, path, 1..=1024)?)),
        "keepalive" => LoadChange::Keepalive(reader.boolean(node, path)?),
        "requests_per_connection" => {
            let count = reader.integer(node, path, 1..=1_000_000_000)?;
            LoadChange::RequestsPerConnection(count.unsigned_abs())
        }
        "method" => LoadChange::Method(method(reader, node, path)?),
        "body" => LoadChange::Body(reader.text(node, path)?),
        "body_bytes" => {
            let bytes = reader.quantity(node, path, "size", units::SIZE_FORM, units::size)?;
            LoadChange::BodyBytes(body_bytes(reader, node, path, bytes)?)
        }
        "timeout" => {
            LoadChange::Timeout(reader.duration(node, path, Duration::from_millis(1)..=HOUR)?)
        }
        "rate" => LoadChange::Rate(rate(reader, node, path)?),
        "driver" => LoadChange::Driver(drivers::named(reader, node, path, recipes)?),
        "http" => LoadChange::Http(http_version(reader, node, path)?),
        "streams" => LoadChange::Streams(small(reader.integer(node, path, 1..=10_000)?)),
        "quic_congestion" => LoadChange::QuicCongestion(congestion(reader, node, path)?),
        "tls_version" => LoadChange::TlsVersion(tls_version(reader, node, path)?),
        "tls_suites" => LoadChange::TlsSuites(tls_names(reader, node, path, &tls::suite_names())?),
        "tls_groups" => LoadChange::TlsGroups(tls_names(reader, node, path, &tls::group_names())?),
        "tls_resumption" => LoadChange::TlsResumption(reader.boolean(node, path)?),
        "tls_ca" => LoadChange::TlsCa(reader.text(node, path)?),
        "tls_insecure" => LoadChange::TlsInsecure(reader.boolean(node, path)?),
        "tls_client_key" => LoadChange::TlsClientKey(client_key(reader, node, path)?),
        LOAD_HOST_FACTOR => LoadChange::Host(reader.text(node, path)?),
        key => LoadChange::Traffic(traffic::change(reader, key, node, path)?),
    })
}

/// A body of that length is sent from memory.
const BODY_BYTES_MAX: u64 = 64 << 20;

fn body_bytes(reader: &mut Reader, node: &Node, path: &str, bytes: u64) -> Option<u64> {
    if bytes <= BODY_BYTES_MAX {
        return Some(bytes);
    }
    reader.report(Problem::at(
        node.place,
        format!("`{path}` is out of range"),
        "expected at most 64MiB",
    ));
    None
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

/// Reads a version of HTTP, also without quotes, as in `--set load.http=2`.
fn version_text(reader: &mut Reader, node: &Node, path: &str) -> Option<String> {
    match &node.tree {
        Tree::Integer(number) => Some(number.to_string()),
        Tree::Float(number) => Some(number.to_string()),
        _ => reader.text(node, path),
    }
}

fn http_version(reader: &mut Reader, node: &Node, path: &str) -> Option<HttpVersion> {
    let text = version_text(reader, node, path)?;
    let version = HttpVersion::of(&text);
    if version.is_none() {
        reader.report(Problem::at(
            node.place,
            format!("`{path}` is not a version of HTTP: `{}`", shown(&text)),
            "expected \"1.1\", \"2\" or \"3\"",
        ));
    }
    version
}

/// `auto` means the one that matches TCP's.
fn congestion(reader: &mut Reader, node: &Node, path: &str) -> Option<Option<QuicCongestion>> {
    const AUTO: &str = "auto";
    let text = reader.text(node, path)?;
    if text == AUTO {
        return Some(None);
    }
    let found = QuicCongestion::of(&text);
    if found.is_none() {
        let names = QuicCongestion::ALL.map(QuicCongestion::name);
        let problem = Problem::at(
            node.place,
            format!(
                "`{path}` is not a congestion control of QUIC: `{}`",
                shown(&text)
            ),
            "expected \"auto\", \"cubic\", \"bbr\" or \"newreno\"",
        );
        let known = [AUTO].into_iter().chain(names);
        reader.report(problem.help(suggestion(&text, "names", known)));
    }
    found.map(Some)
}

fn tls_version(reader: &mut Reader, node: &Node, path: &str) -> Option<Option<tls::Version>> {
    let text = version_text(reader, node, path)?;
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

fn client_key(reader: &mut Reader, node: &Node, path: &str) -> Option<Option<tls::KeyType>> {
    const NONE: &str = "none";
    let text = reader.text(node, path)?;
    if text == NONE {
        return Some(None);
    }
    let key = tls::KeyType::ALL.into_iter().find(|key| key.name() == text);
    if key.is_none() {
        let names = tls::KeyType::ALL.map(tls::KeyType::name);
        let problem = Problem::at(
            node.place,
            format!("`{path}` is not a type of key: `{}`", shown(&text)),
            "expected a type of key, or \"none\"",
        );
        let known = names.into_iter().chain([NONE]);
        reader.report(problem.help(suggestion(&text, "types", known)));
    }
    key.map(Some)
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
            reader.advise(
                *place,
                format!("`{path}` has an unknown name: `{}`", shown(name)),
                "unknown",
                suggestion(name, "names", known.iter().copied()),
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
    if per_s > 0.0 && per_s <= RATE_MAX_PER_S {
        return Some(Rate::PerSecond(per_s));
    }
    reader.report(Problem::at(
        node.place,
        format!("`{path}` is out of range"),
        format!("expected more than 0 and at most {RATE_MAX_PER_S} requests per second"),
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
            reader.advise(
                entry.place,
                format!("`{}` cannot be given as a header", shown(&entry.name)),
                "the length of the body follows from `body`",
                "give the body as [load] body = \"...\"; body = \"\" sends a length of 0",
            );
        }
        // The connection could not be used again (RFC 9112, 9.6).
        let closes = |option: &str| option.trim().eq_ignore_ascii_case("close");
        if entry.name.eq_ignore_ascii_case("Connection") && value.split(',').any(closes) {
            reader.advise(
                entry.place,
                "`Connection: close` cannot be given as a header",
                "the load would use its connections again",
                "[load] keepalive = false opens a connection per request and sends this header",
            );
        }
        let is_same = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(&entry.name);
        if let Some((first, _)) = headers.iter().find(is_same) {
            let (first, again) = (shown(first), shown(&entry.name));
            reader.report(Problem::at(
                entry.place,
                format!("the header `{first}` is given again as `{again}`"),
                "expected each header once; upper and lower case do not matter",
            ));
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
