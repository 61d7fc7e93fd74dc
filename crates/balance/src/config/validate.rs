//! Where the parts of a configuration were written, and what is asked of the parts together.
//!
//! Both file forms leave their services here with the places of what can contradict each other.

use std::collections::HashMap;
use std::net::SocketAddr;

use written::reader::{Fault, Reader};
use written::tree::Place;

use super::model::{Check, Config, Dispatch, HashKey, Service, ServiceKind};

/// A service and where its parts stand.
#[derive(Debug)]
pub(super) struct LocatedService {
    pub service: Service,
    /// What says that it is TCP, or its name.
    pub kind: Place,
    /// Its dispatch mode, or its name.
    pub dispatch: Place,
    /// One for each address that it listens on.
    pub listen: Vec<Place>,
    /// One for each back end.
    pub backends: Vec<BackendPlaces>,
}

/// Where the parts of a back end stand.
#[derive(Debug)]
pub(super) struct BackendPlaces {
    pub address: Place,
    pub sticky_cookie: Option<Place>,
    /// One for each header edit.
    pub edits: Vec<Place>,
}

/// How a form says what this module's help has to name.
pub(super) struct HelpTerms {
    /// How a service is made an HTTP one.
    pub http: &'static str,
}

/// Notes what contradicts each other, within a service and between services.
pub(super) fn check(
    reader: &mut Reader,
    services: &[LocatedService],
    config: &Config,
    terms: &HelpTerms,
) {
    let mut taken: HashMap<SocketAddr, (&str, Place)> = HashMap::new();
    for located in services {
        let service = &located.service;
        if service.kind == ServiceKind::Tcp {
            only_http(reader, located, terms);
        }
        same_cookie(reader, located);
        for (address, place) in service.listen.iter().zip(&located.listen) {
            if address.port() == 0 {
                continue;
            }
            if let Some((other, first)) = taken.insert(*address, (&service.name, *place)) {
                reader.fault(
                    Fault::at(
                        *place,
                        format!("{address} is listened on twice"),
                        format!("the service `{other}` listens there"),
                    )
                    .and(first, "the first time"),
                );
            }
        }
    }
    for located in services {
        for (backend, places) in located.service.backends.iter().zip(&located.backends) {
            let Some(address) = backend.address.socket() else {
                continue;
            };
            if located.service.listen.contains(&address) {
                reader.fault(
                    Fault::at(
                        places.address,
                        format!("the balancer would be its own upstream: {address}"),
                        "the service itself listens there",
                    )
                    .help("name the back end's address"),
                );
            }
        }
    }
    if let Some((prometheus, (name, place))) = config
        .prometheus
        .and_then(|address| Some((address, taken.get(&address)?)))
    {
        reader.fault(Fault::at(
            *place,
            format!("the service `{name}` and the Prometheus page both listen on {prometheus}"),
            "expected another address than that of `prometheus`",
        ));
    }
}

/// What a TCP service cannot do.
fn only_http(reader: &mut Reader, located: &LocatedService, terms: &HelpTerms) {
    let mut fault = |place: Place, what: &str| {
        reader.fault(
            Fault::at(
                place,
                format!(
                    "{what} needs HTTP, and `{}` passes on bytes",
                    located.service.name
                ),
                "not possible in a TCP service",
            )
            .and(located.kind, "this service")
            .help(format!("make it an HTTP service: {}", terms.http)),
        );
    };
    if let Dispatch::ConsistentHash { key } = &located.service.dispatch
        && *key != HashKey::ClientIp
    {
        fault(located.dispatch, "hashing by a part of the request");
    }
    for places in &located.backends {
        if let Some(place) = places.sticky_cookie {
            fault(place, "a sticky cookie");
        }
        for place in &places.edits {
            fault(*place, "changing a header");
        }
    }
}

/// A cookie that means two back ends means neither.
fn same_cookie(reader: &mut Reader, located: &LocatedService) {
    let mut seen: HashMap<_, Place> = HashMap::new();
    for (backend, places) in located.service.backends.iter().zip(&located.backends) {
        let (Some(cookie), Some(place)) = (&backend.sticky_cookie, places.sticky_cookie) else {
            continue;
        };
        let key = (cookie.name.as_str(), cookie.value.as_str());
        if let Some(first) = seen.insert(key, place) {
            reader.fault(
                Fault::at(
                    place,
                    format!(
                        "two back ends of `{}` have the sticky cookie {}={}",
                        located.service.name, key.0, key.1
                    ),
                    "expected a value of its own",
                )
                .and(first, "the other one"),
            );
        }
    }
}

/// Whether a text can be the path of a probe.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text can be the value of a header field: no control characters, no space around it.
pub(super) fn is_field_value(text: &str) -> bool {
    text.trim() == text && !text.chars().any(char::is_control)
}

/// Whether a text can be the name of a header field (RFC 9110, 5.1).
pub(super) fn is_field_name(text: &str) -> bool {
    crate::sticky::is_name(text)
}

/// Whether a text can be a host's name: labels of letters, digits, `-` and `_`, in all at most 253
/// bytes.
pub(super) fn is_host_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.strip_suffix('.').unwrap_or(text);
    // What looks like an address and is none is a slip.
    text.len() <= 253
        && last.split('.').all(label)
        && !last
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The header fields that say where a message ends, or belong to one connection; whoever changes
/// them changes what the next server reads.
pub(super) fn is_framing(name: &str) -> bool {
    [
        "connection",
        "content-length",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
    .iter()
    .any(|framing| name.eq_ignore_ascii_case(framing))
}

/// A probe by HTTP.
pub(super) fn http_check(path: String, host: Option<String>, status: u16) -> Check {
    Check::Http { path, host, status }
}
