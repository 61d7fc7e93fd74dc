//! Checks across the parts of a configuration, with source locations.
//!
//! Both syntaxes use these.

use std::collections::HashMap;
use std::net::SocketAddr;

use ::config::reader::{Problem, Reader};
use ::config::tree::Place;

pub(super) use crate::sticky::is_name as is_field_name;

use super::model::{Config, Dispatch, HashKey, Inspect, Service, ServiceKind};

/// A service with source locations.
#[derive(Debug)]
pub(super) struct LocatedService {
    pub service: Service,
    /// The protocol, or the name of the service.
    pub kind: Place,
    /// The dispatch mode, or the name of the service.
    pub dispatch: Place,
    /// One per address.
    pub listen: Vec<Place>,
    /// One per back end.
    pub backends: Vec<BackendPlaces>,
}

/// Source locations of a back end.
#[derive(Debug, Default)]
pub(super) struct BackendPlaces {
    pub address: Place,
    pub sticky_cookie: Option<Place>,
    pub http: Option<Place>,
    pub proxy_protocol_out: Option<Place>,
    /// Its `weight` or `penalty`. `None` in Crossroads' syntax, which has no warning about it.
    pub weight: Option<Place>,
    /// One per header edit.
    pub edits: Vec<Place>,
}

impl BackendPlaces {
    /// The places of a back end that has nothing but an address.
    pub fn at(address: Place) -> BackendPlaces {
        BackendPlaces {
            address,
            ..BackendPlaces::default()
        }
    }
}

/// Wording of help texts, by syntax.
pub(super) struct HelpTerms {
    /// How to make a service HTTP.
    pub http: &'static str,
}

/// Reports conflicts within and between services.
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
        http_2(reader, located);
        for (address, place) in service.listen.iter().zip(&located.listen) {
            if address.port() == 0 {
                continue;
            }
            if let Some((other, first)) = taken.insert(*address, (&service.name, *place)) {
                reader.report(
                    Problem::at(
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
                reader.report(
                    Problem::at(
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
        reader.report(Problem::at(
            *place,
            format!("the service `{name}` and the Prometheus page both listen on {prometheus}"),
            "expected another address than that of `prometheus`",
        ));
    }
}

/// Reports what a TCP service cannot do.
fn only_http(reader: &mut Reader, located: &LocatedService, terms: &HelpTerms) {
    let mut fault = |place: Place, what: &str| {
        reader.report(
            Problem::at(
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

/// Reports back ends that cannot get requests in HTTP/2.
fn http_2(reader: &mut Reader, located: &LocatedService) {
    for (backend, places) in located.service.backends.iter().zip(&located.backends) {
        let Some(place) = places.http.filter(|_| backend.speaks_http_2()) else {
            continue;
        };
        let message = format!("`{}` cannot get requests in HTTP/2", backend.name);
        match (located.service.kind, places.proxy_protocol_out) {
            (ServiceKind::Tcp, _) => reader.report(
                Problem::at(place, message, "not possible in a TCP service")
                    .and(located.kind, "this service")
                    .help("make it an HTTP service, or leave `http` out"),
            ),
            (
                ServiceKind::Http {
                    inspect: Inspect::FirstMessage,
                },
                _,
            ) => reader.report(
                Problem::at(place, message, "HTTP/2 needs every message inspected")
                    .and(located.kind, "this service")
                    .help("leave `inspect` out, or leave `http` out"),
            ),
            (ServiceKind::Http { .. }, Some(proxy)) => reader.report(
                Problem::at(
                    place,
                    message,
                    "a connection carries requests of many clients",
                )
                .and(proxy, "and this announces one client per connection")
                .help("announce clients in a header field: `headers`"),
            ),
            (ServiceKind::Http { .. }, None) => {}
        }
    }
}

/// Reports a cookie that two back ends share.
fn same_cookie(reader: &mut Reader, located: &LocatedService) {
    let mut seen: HashMap<_, Place> = HashMap::new();
    for (backend, places) in located.service.backends.iter().zip(&located.backends) {
        let (Some(cookie), Some(place)) = (&backend.sticky_cookie, places.sticky_cookie) else {
            continue;
        };
        let key = (cookie.name.as_str(), cookie.value.as_str());
        if let Some(first) = seen.insert(key, place) {
            reader.report(
                Problem::at(
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

/// A valid path for a probe.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A text that is neither blank nor has control characters.
pub(super) fn is_printable(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

/// A valid header value: no control characters or surrounding whitespace.
pub(super) fn is_field_value(text: &str) -> bool {
    text.trim() == text && !text.chars().any(char::is_control)
}

/// Fields about framing or the connection; editing them would change what the next server parses.
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
