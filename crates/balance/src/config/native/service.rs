//! `[services.NAME]`

use std::time::Duration;

use ::config::nearest::suggestion;
use ::config::reader::{Problem, Reader};
use ::config::section::Section;
use ::config::tree::{Place, Tree};
use ::config::units::shown;

use super::fields;
use super::fields::{NAMES_MAX, required};
use super::{backend, sni, tls};
use crate::access::Prefix;
use crate::config::model::{
    Access, Check, Dispatch, Ejection, HashKey, HttpVersions, Inspect, LogFormat, OVER_MAX,
    PEAK_EWMA_DECAY, Probing, Service, ServiceKind,
};
use crate::config::validate::{self, LocatedService};

const KEYS: &str = "\
    listen kind inspect dispatch reviving_interval check_interval check ejection slow_start \
    drain connections_max queue backlog access trusted_proxies timeouts tls http_versions http \
    sni proxy_protocol_in resends half_close body_rate_min access_log access_log_form \
    user_account backends headers";

const MODES: &str = "\
    round-robin random by-size by-duration by-connections by-order by-client-ip external \
    weighted-round-robin least-connections peak-ewma consistent-hash";

pub(super) fn service(
    reader: &mut Reader,
    section: &Section<'_>,
    name: &str,
) -> Option<LocatedService> {
    fields::only(reader, section, KEYS);
    let mut service = Service::new(name);
    let place_of = |key: &str| {
        section
            .entry(key)
            .map_or(section.place, |(entry, _)| entry.node.place)
    };
    let mut listen_places = Vec::new();
    listen(reader, section, &mut service, &mut listen_places);
    kind(reader, section, &mut service);
    if let Some(dispatch) = dispatch(reader, section) {
        service.dispatch = dispatch;
    }
    let zero = Duration::ZERO;
    for (key, value) in [
        ("reviving_interval", &mut service.reviving_interval),
        ("check_interval", &mut service.check_interval),
        ("slow_start", &mut service.slow_start),
        ("drain", &mut service.drain),
    ] {
        fields::duration(reader, section, key, zero, value);
    }
    if let Some(check) = check(reader, section, &mut service.probing) {
        service.check = check;
    }
    service.ejection = ejection(reader, section);
    service.connections_max = fields::limit(reader, section, "connections_max");
    queue(reader, section, &mut service);
    fields::count(reader, section, "backlog", 1..=65_535, &mut service.backlog);
    service.access = access(reader, section);
    service.trusted_proxies = prefixes(reader, section, "trusted_proxies");
    timeouts(reader, section, &mut service);
    service.tls = tls::of_service(reader, section);
    service.offered_versions = http_versions(reader, section, service.kind);
    fields::count(reader, section, "resends", 0..=100, &mut service.resends);
    fields::boolean(reader, section, "half_close", &mut service.half_close);
    fields::count(
        reader,
        section,
        "body_rate_min",
        0..=i64::from(u32::MAX),
        &mut service.body_rate_min,
    );
    fields::boolean(
        reader,
        section,
        "proxy_protocol_in",
        &mut service.proxy_protocol_in,
    );
    service.access_log = fields::path(reader, section, "access_log");
    let form = section.word(reader, "access_log_form", &["common", "combined"]);
    if form.as_deref() == Some("combined") {
        service.access_log_form = LogFormat::Combined;
    }
    service.user_account = fields::text(reader, section, "user_account");
    let shared = backend::Shared::read(reader, section);
    let mut backends = Vec::new();
    if let Some(table) =
        required(reader, section, "backends").and_then(|()| section.section(reader, "backends"))
    {
        for entry in table.table.entries.iter().take(NAMES_MAX) {
            fields::check_name(reader, "a back end", &entry.name, entry.place);
            let path = table.name_of(&entry.name);
            let Some((one, places)) = backend::backend(reader, entry, path, &shared) else {
                continue;
            };
            service.backends.push(one);
            backends.push(places);
        }
        let count = table.table.entries.len();
        if count == 0 || count > NAMES_MAX {
            reader.report(Problem::at(
                table.place,
                format!("expected 1 to {NAMES_MAX} back ends, found {count}"),
                "the back ends of this service",
            ));
        }
    }
    service.sni = sni::rules(reader, section, &service);
    Some(LocatedService {
        kind: place_of("kind"),
        dispatch: place_of("dispatch"),
        listen: listen_places,
        backends,
        service,
    })
}

fn listen(
    reader: &mut Reader,
    section: &Section<'_>,
    service: &mut Service,
    places: &mut Vec<Place>,
) {
    if required(reader, section, "listen").is_none() {
        return;
    }
    for node in fields::one_or_more(reader, section, "listen").unwrap_or_default() {
        if let Some(address) = fields::socket_of(reader, node, &section.name_of("listen")) {
            service.listen.push(address);
            places.push(node.place);
        }
    }
}

fn kind(reader: &mut Reader, section: &Section<'_>, service: &mut Service) {
    let word = section.word(reader, "kind", &["tcp", "http"]);
    let inspect = section.word(reader, "inspect", &["first", "every"]);
    if word.as_deref() == Some("http") {
        service.kind = ServiceKind::Http {
            inspect: match inspect.as_deref() {
                Some("first") => Inspect::FirstMessage,
                _ => Inspect::EveryMessage,
            },
        };
    } else if let (Some((entry, path)), Some(_)) = (section.entry("inspect"), inspect) {
        reader.report(
            Problem::at(
                entry.node.place,
                format!("`{path}` selects HTTP messages, and this is TCP"),
                "not possible in a TCP service",
            )
            .help("add kind = \"http\""),
        );
    }
}

fn http_versions(
    reader: &mut Reader,
    section: &Section<'_>,
    kind: ServiceKind,
) -> Option<HttpVersions> {
    let given = section.texts(reader, "http_versions")?;
    let (entry, path) = section.entry("http_versions")?;
    let mut versions = HttpVersions {
        one: false,
        two: false,
    };
    for (version, place) in &given {
        match version.as_str() {
            "1.1" => versions.one = true,
            "2" => versions.two = true,
            other => {
                let message = format!("`{path}` does not know `{}`", shown(other));
                let problem = Problem::at(*place, message, "expected \"1.1\" or \"2\"");
                reader.report(problem);
            }
        }
    }
    let problem = match kind {
        ServiceKind::Tcp => Some(("this is TCP", "add kind = \"http\"")),
        ServiceKind::Http {
            inspect: Inspect::FirstMessage,
        } if versions.two => Some((
            "HTTP/2 needs every message inspected",
            "leave `inspect` out, or offer only \"1.1\"",
        )),
        ServiceKind::Http { .. } if given.is_empty() => {
            Some(("it is empty", "name \"1.1\", \"2\" or both"))
        }
        ServiceKind::Http { .. } => None,
    };
    if let Some((why, help)) = problem {
        let message = format!("`{path}` cannot be used: {why}");
        reader.report(Problem::at(entry.node.place, message, "not possible here").help(help));
    }
    Some(versions)
}

fn dispatch(reader: &mut Reader, section: &Section<'_>) -> Option<Dispatch> {
    let (entry, path) = section.entry("dispatch")?;
    let table;
    let (mode, arguments) = match &entry.node.tree {
        Tree::Text(mode) => (mode.clone(), None),
        Tree::Table(_) => {
            table = reader.section(entry, path.clone())?;
            let mode = table.required_text(reader, "mode", "\"round-robin\"")?;
            (mode, Some(&table))
        }
        _ => {
            reader.expected(
                &entry.node,
                &path,
                "a mode such as \"round-robin\", or a table with one",
            );
            return None;
        }
    };
    let takes = match mode.as_str() {
        "by-size" | "by-duration" | "by-connections" => "mode over",
        "external" => "mode command",
        "peak-ewma" => "mode decay",
        "consistent-hash" => "mode key name",
        _ => "mode",
    };
    if let Some(arguments) = arguments {
        fields::only(reader, arguments, takes);
    }
    let over = arguments.and_then(|arguments| {
        arguments
            .integer(reader, "over", 1..=i64::from(OVER_MAX))
            .and_then(|over| u32::try_from(over).ok())
    });
    Some(match mode.as_str() {
        "round-robin" => Dispatch::RoundRobin,
        "random" => Dispatch::Random,
        "by-size" => Dispatch::BySize { over },
        "by-duration" => Dispatch::ByDuration { over },
        "by-connections" => Dispatch::ByConnections { over },
        "by-order" => Dispatch::ByOrder,
        "by-client-ip" => Dispatch::ByClientIp,
        "external" => {
            let Some(arguments) = arguments else {
                reader.report(
                    Problem::at(
                        entry.node.place,
                        format!("`{path}` needs the command that is asked"),
                        "the command is missing",
                    )
                    .help("write { mode = \"external\", command = \"/usr/local/bin/choose %r\" }"),
                );
                return None;
            };
            required(reader, arguments, "command")?;
            Dispatch::External {
                command: fields::template(reader, arguments, "command")?,
            }
        }
        "weighted-round-robin" => Dispatch::WeightedRoundRobin,
        "least-connections" => Dispatch::LeastConnections,
        "peak-ewma" => {
            let mut decay = PEAK_EWMA_DECAY;
            if let Some(arguments) = arguments {
                fields::duration(
                    reader,
                    arguments,
                    "decay",
                    Duration::from_millis(1),
                    &mut decay,
                );
            }
            Dispatch::PeakEwma { decay }
        }
        "consistent-hash" => Dispatch::ConsistentHash {
            key: match arguments {
                None => HashKey::ClientIp,
                Some(arguments) => hash_key(reader, arguments)?,
            },
        },
        other => {
            reader.report(
                Problem::at(
                    entry.node.place,
                    format!("`{path}` does not know `{}`", shown(other)),
                    "not one of its modes",
                )
                .help(suggestion(other, "modes", MODES.split(' '))),
            );
            return None;
        }
    })
}

fn hash_key(reader: &mut Reader, arguments: &Section<'_>) -> Option<HashKey> {
    let words = ["client-ip", "header", "cookie", "path"];
    let Some(word) = arguments.word(reader, "key", &words) else {
        return arguments
            .entry("key")
            .is_none()
            .then_some(HashKey::ClientIp);
    };
    let named = matches!(word.as_str(), "header" | "cookie");
    if !named {
        if let Some((entry, path)) = arguments.entry("name") {
            reader.report(Problem::at(
                entry.place,
                format!("`{path}` goes with key = \"header\" or \"cookie\""),
                "not expected here",
            ));
        }
        return Some(match word.as_str() {
            "path" => HashKey::Path,
            _ => HashKey::ClientIp,
        });
    }
    required(reader, arguments, "name")?;
    let name = fields::text(reader, arguments, "name")?;
    if !validate::is_field_name(&name) {
        let (entry, path) = arguments.entry("name")?;
        reader.report(Problem::at(
            entry.node.place,
            format!("`{path}` is no name of a {word}: `{}`", shown(&name)),
            "expected letters, digits and `-`",
        ));
        return None;
    }
    Some(match word.as_str() {
        "header" => HashKey::Header(name),
        _ => HashKey::Cookie(name),
    })
}

fn check(reader: &mut Reader, section: &Section<'_>, probing: &mut Probing) -> Option<Check> {
    let table = section.section(reader, "check")?;
    fields::only(reader, &table, "kind path host status rise fall timeout");
    fields::count(reader, &table, "rise", 1..=100, &mut probing.rise);
    fields::count(reader, &table, "fall", 1..=100, &mut probing.fall);
    fields::duration(
        reader,
        &table,
        "timeout",
        Duration::ZERO,
        &mut probing.timeout,
    );
    let kind = table.word(reader, "kind", &["tcp", "http"]);
    if kind.as_deref() != Some("http") {
        for key in ["path", "host", "status"] {
            if let Some((entry, path)) = table.entry(key) {
                reader.report(Problem::at(
                    entry.place,
                    format!("`{path}` goes with kind = \"http\""),
                    "not expected here",
                ));
            }
        }
        return Some(Check::Tcp);
    }
    let mut status = 200;
    fields::count(reader, &table, "status", 100..=599, &mut status);
    let path = fields::text(reader, &table, "path").unwrap_or_else(|| "/".to_owned());
    let host = fields::text(reader, &table, "host");
    let good_host = |host: &String| !host.contains(char::is_whitespace) && host.is_ascii();
    for (key, good) in [
        ("path", validate::is_path(&path)),
        ("host", host.as_ref().is_none_or(good_host)),
    ] {
        if let (false, Some((entry, path))) = (good, table.entry(key)) {
            reader.report(Problem::at(
                entry.node.place,
                format!("`{path}` cannot be sent in a request"),
                if key == "path" {
                    "expected a path that begins with /, without spaces"
                } else {
                    "expected a host's name, without spaces"
                },
            ));
        }
    }
    Some(Check::Http { path, host, status })
}

fn ejection(reader: &mut Reader, section: &Section<'_>) -> Option<Ejection> {
    let table = section.section(reader, "ejection")?;
    fields::only(reader, &table, "failures duration");
    // In a row, so that occasional errors do not eject it; 30 s, as a restart takes.
    let mut ejection = Ejection {
        failures: 5,
        duration: Duration::from_secs(30),
    };
    fields::count(
        reader,
        &table,
        "failures",
        1..=1_000_000,
        &mut ejection.failures,
    );
    let least = Duration::from_millis(1);
    fields::duration(reader, &table, "duration", least, &mut ejection.duration);
    Some(ejection)
}

fn queue(reader: &mut Reader, section: &Section<'_>, service: &mut Service) {
    let Some(table) = section.section(reader, "queue") else {
        return;
    };
    fields::only(reader, &table, "length time_limit");
    let queue = &mut service.queue;
    fields::count(reader, &table, "length", 0..=1_000_000, &mut queue.length);
    let least = Duration::from_millis(1);
    fields::duration(reader, &table, "time_limit", least, &mut queue.time_limit);
}

fn access(reader: &mut Reader, section: &Section<'_>) -> Access {
    let Some(table) = section.section(reader, "access") else {
        return Access::default();
    };
    fields::only(reader, &table, "allow deny allow_file deny_file");
    Access {
        allow: prefixes(reader, &table, "allow"),
        deny: prefixes(reader, &table, "deny"),
        allow_file: fields::path(reader, &table, "allow_file"),
        deny_file: fields::path(reader, &table, "deny_file"),
    }
}

/// A list of address prefixes; empty if the key is missing.
fn prefixes(reader: &mut Reader, section: &Section<'_>, key: &str) -> Vec<Prefix> {
    let mut prefixes = Vec::new();
    for (text, place) in section.texts(reader, key).unwrap_or_default() {
        match text.parse() {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => reader.report(
                Problem::at(
                    place,
                    format!("`{}` is not an address prefix: {error}", shown(&text)),
                    "expected a prefix",
                )
                .help("a prefix is such as \"10.0.0.0/8\", \"192.168.1.7\" or \"2001:db8::/32\""),
            ),
        }
    }
    prefixes
}

fn timeouts(reader: &mut Reader, section: &Section<'_>, service: &mut Service) {
    let Some(table) = section.section(reader, "timeouts") else {
        return;
    };
    let timeouts = &mut service.timeouts;
    let all = [
        ("connect", &mut timeouts.connect),
        ("client_header", &mut timeouts.client_header),
        ("client_body", &mut timeouts.client_body),
        ("client_idle", &mut timeouts.client_idle),
        ("half_closed", &mut timeouts.half_closed),
        ("upstream_answer", &mut timeouts.upstream_answer),
        ("write_stall", &mut timeouts.write_stall),
    ];
    table.only(reader, &all.each_ref().map(|(key, _)| *key));
    for (key, value) in all {
        fields::duration(reader, &table, key, Duration::ZERO, value);
    }
}
