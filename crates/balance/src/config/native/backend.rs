//! `[services.NAME.backends.NAME]`

use std::time::Duration;

use ::config::reader::{Problem, Reader};
use ::config::section::Section;
use ::config::tree::{Entry, Node, Place, Tree};
use ::config::units::shown;

use super::fields::required;
use super::{fields, tls};
use crate::config::address;
use crate::config::model::{
    Address, Backend, EditKind, HeaderEdit, Hooks, HttpVersion, ProxyVersion, Recipient,
    StickyCookie, Weight,
};
use crate::config::validate::{self, BackendPlaces};
use crate::health::State;
use crate::sticky;

const KEYS: &str = "\
    address weight penalty decay_percent connections_max retries on_start on_end on_fail \
    traffic_log throughput_log sticky_cookie headers session_timeout proxy_protocol_out tls http \
    initial_state";

/// What a service sets for all its back ends.
pub(super) struct Shared {
    /// Header edits, which come first.
    pub edits: Vec<(HeaderEdit, Place)>,
    pub http: Option<(HttpVersion, Place)>,
}

impl Shared {
    pub fn read(reader: &mut Reader, service: &Section<'_>) -> Shared {
        Shared {
            edits: headers(reader, service),
            http: http(reader, service),
        }
    }
}

fn http(reader: &mut Reader, section: &Section<'_>) -> Option<(HttpVersion, Place)> {
    let version = match section.word(reader, "http", &["1.1", "2"])?.as_str() {
        "2" => HttpVersion::Two,
        _ => HttpVersion::One,
    };
    let (entry, _) = section.entry("http")?;
    Some((version, entry.place))
}

/// A table, or just an address.
pub(super) fn backend(
    reader: &mut Reader,
    entry: &Entry,
    path: String,
    shared: &Shared,
) -> Option<(Backend, BackendPlaces)> {
    let mut places = BackendPlaces::at(entry.node.place);
    let mut edits: Vec<(HeaderEdit, Place)> = shared.edits.clone();
    let mut version = shared.http;
    let mut backend = if let Tree::Text(text) = &entry.node.tree {
        Backend::new(&entry.name, address_of(reader, &entry.node, text)?)
    } else {
        if !matches!(entry.node.tree, Tree::Table(_)) {
            reader.expected(&entry.node, &path, "an address or a table with one");
            return None;
        }
        let section = reader.section(entry, path)?;
        fields::only(reader, &section, KEYS);
        required(reader, &section, "address")?;
        let text = section.text(reader, "address")?;
        let (address, _) = section.entry("address")?;
        places.address = address.node.place;
        let mut backend = Backend::new(&entry.name, address_of(reader, &address.node, &text)?);
        let place_of = |key: &str| section.entry(key).map(|(entry, _)| entry.place);
        places.sticky_cookie = place_of("sticky_cookie");
        places.proxy_protocol_out = place_of("proxy_protocol_out");
        places.weight = place_of("weight").or(place_of("penalty"));
        edits.extend(headers(reader, &section));
        fill(reader, &section, &mut backend);
        version = http(reader, &section).or(version);
        backend
    };
    if let Some((version, place)) = version {
        (backend.http, places.http) = (version, Some(place));
    }
    (backend.header_edits, places.edits) = edits.into_iter().unzip();
    Some((backend, places))
}

fn fill(reader: &mut Reader, section: &Section<'_>, backend: &mut Backend) {
    backend.weight = weight(reader, section);
    fields::count(
        reader,
        section,
        "decay_percent",
        0..=100,
        &mut backend.decay_percent,
    );
    backend.connections_max = fields::limit(reader, section, "connections_max");
    fields::count(reader, section, "retries", 0..=100, &mut backend.retries);
    backend.hooks = Hooks {
        on_start: fields::template(reader, section, "on_start"),
        on_end: fields::template(reader, section, "on_end"),
        on_fail: fields::template(reader, section, "on_fail"),
    };
    backend.traffic_log = fields::path(reader, section, "traffic_log");
    backend.throughput_log = fields::path(reader, section, "throughput_log");
    backend.sticky_cookie = cookie(reader, section);
    fields::duration(
        reader,
        section,
        "session_timeout",
        Duration::ZERO,
        &mut backend.session_timeout,
    );
    backend.proxy_protocol_out = section
        .word(reader, "proxy_protocol_out", &["v1", "v2"])
        .map(|word| match word.as_str() {
            "v1" => ProxyVersion::V1,
            _ => ProxyVersion::V2,
        });
    backend.tls = tls::of_backend(reader, section);
    // A back end never starts as `waking`.
    let states = ["available", "up", "unavailable", "down"];
    if let Some(state) = section
        .word(reader, "initial_state", &states)
        .and_then(|word| word.parse::<State>().ok())
    {
        backend.initial_state = state;
    }
}

fn address_of(reader: &mut Reader, node: &Node, text: &str) -> Option<Address> {
    let address = address::with_port(text);
    if address.is_none() {
        let fault = fields::no_address(node.place, text, "not a host and a port");
        reader.report(
            fault.help("a host is an IP address or a name; an IPv6 address stands in brackets"),
        );
    }
    address
}

fn weight(reader: &mut Reader, section: &Section<'_>) -> Weight {
    let mut read = |key: &str| {
        section
            .integer(reader, key, 1..=1_000_000)
            .and_then(|given| u32::try_from(given).ok())
    };
    let (share, penalty) = (read("weight"), read("penalty"));
    if let (Some((first, _)), Some((entry, path))) =
        (section.entry("weight"), section.entry("penalty"))
    {
        reader.report(
            Problem::at(
                entry.place,
                format!("`{path}` and `weight` say the same in opposite senses"),
                "expected one of the two",
            )
            .and(first.place, "the other one")
            .help("weight is a share, more is more; penalty is Crossroads' weight, more is less"),
        );
    }
    match (share, penalty) {
        (Some(share), _) => Weight::Share(share),
        (None, Some(penalty)) => Weight::Penalty(penalty),
        (None, None) => Weight::Share(1),
    }
}

fn cookie(reader: &mut Reader, section: &Section<'_>) -> Option<StickyCookie> {
    let table = section.section(reader, "sticky_cookie")?;
    fields::only(reader, &table, "name value set");
    required(reader, &table, "name")?;
    required(reader, &table, "value")?;
    let mut read = |key: &str, good: fn(&str) -> bool| {
        let text = table.text(reader, key)?;
        let (entry, path) = table.entry(key)?;
        if !good(&text) || text.is_empty() {
            reader.report(Problem::at(
                entry.node.place,
                format!("`{path}` cannot stand in a cookie: `{}`", shown(&text)),
                "expected letters, digits and `-`",
            ));
            return None;
        }
        Some(text)
    };
    let (name, value) = (
        read("name", sticky::is_name),
        read("value", sticky::is_value),
    );
    Some(StickyCookie {
        name: name?,
        value: value?,
        set: table.boolean(reader, "set").unwrap_or(true),
    })
}

/// `headers = [{ towards, how, name, value }]` of a back end or service.
pub(super) fn headers(reader: &mut Reader, section: &Section<'_>) -> Vec<(HeaderEdit, Place)> {
    let tables = fields::tables(reader, section, "headers");
    let edits = tables
        .iter()
        .filter_map(|table| Some((header(reader, table)?, table.place)));
    edits.collect()
}

fn header(reader: &mut Reader, section: &Section<'_>) -> Option<HeaderEdit> {
    fields::only(reader, section, "towards how name value");
    for key in ["towards", "how", "name", "value"] {
        required(reader, section, key)?;
    }
    let recipient = section.word(reader, "towards", &["client", "server"])?;
    let how = section.word(reader, "how", &["add", "append", "set"])?;
    let name = section.text(reader, "name")?;
    let value = fields::template(reader, section, "value")?;
    let mut refuse = |key: &str, why: &str, label: &str| {
        if let Some((entry, path)) = section.entry(key) {
            reader.report(Problem::at(
                entry.node.place,
                format!("`{path}` {why}"),
                label,
            ));
        }
    };
    if !validate::is_field_name(&name) {
        refuse(
            "name",
            "is no name of a header",
            "expected letters, digits and `-`",
        );
        return None;
    }
    if validate::is_framing(&name) {
        refuse(
            "name",
            "names a header that says where messages end, or belongs to one connection",
            "expected another header",
        );
        return None;
    }
    if !validate::is_field_value(&value.to_string()) {
        refuse(
            "value",
            "begins or ends with a space",
            "expected no space around it",
        );
        return None;
    }
    Some(HeaderEdit {
        recipient: match recipient.as_str() {
            "client" => Recipient::Client,
            _ => Recipient::Server,
        },
        how: match how.as_str() {
            "add" => EditKind::Add,
            "append" => EditKind::Append,
            _ => EditKind::Set,
        },
        name,
        value,
    })
}
