//! `service NAME { … }`

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ::config::nearest::suggestion;
use ::config::reader::Problem;
use ::config::tree::Place;
use ::config::units::shown;

use super::ast::{Block, File, Statement};
use super::values::Diagnostics;
use super::{backend, values};
use crate::access::Prefix;
use crate::config::model::{Dispatch, Inspect, OVER_MAX, Service, ServiceKind};
use crate::config::validate::{LocatedService, is_printable};

const MODES: &str =
    "roundrobin random bysize byduration byconnections byorder byclientip externalhandler";

pub(super) fn services(diagnostics: &mut Diagnostics<'_>, file: &File) -> Vec<LocatedService> {
    check_unique_names(diagnostics, &file.services, "service");
    file.services
        .iter()
        .map(|block| service(diagnostics, block))
        .collect()
}

/// Reports duplicate names.
fn check_unique_names(diagnostics: &mut Diagnostics<'_>, blocks: &[Block], noun: &str) {
    let mut seen: HashMap<&str, Place> = HashMap::new();
    for block in blocks {
        if let Some(first) = seen.insert(&block.name, block.place) {
            diagnostics.report(
                Problem::at(
                    block.place,
                    format!("two {noun}s are called `{}`", shown(&block.name)),
                    "expected a name of its own",
                )
                .and(first, "the first one"),
            );
        }
    }
}

fn service(diagnostics: &mut Diagnostics<'_>, block: &Block) -> LocatedService {
    values::once_each(diagnostics, block);
    let mut located = LocatedService {
        service: Service::new(&block.name),
        kind: block.place,
        dispatch: block.place,
        listen: Vec::new(),
        backends: Vec::new(),
    };
    let mut listen = Listen::default();
    let mut http = None;
    let mut inspect = None;
    for statement in &block.statements {
        match statement.keyword.as_str() {
            "port" => {
                listen.given = Some(statement.value_place);
                listen.port = diagnostics.number(statement, 1..=65_535);
            }
            "bindto" => listen.bind = bind(diagnostics, statement),
            "type" => {
                located.kind = statement.value_place;
                http = kind(diagnostics, statement);
            }
            "headerinspection" => {
                inspect = diagnostics
                    .boolean(statement)
                    .map(|every| (every, statement));
            }
            "dispatchmode" => located.dispatch = statement.value_place,
            _ => {}
        }
        plain(diagnostics, statement, &mut located.service);
    }
    listen.put(diagnostics, block, &mut located);
    match (http, inspect) {
        (Some(true), every) => {
            located.service.kind = ServiceKind::Http {
                inspect: match every {
                    Some((false, _)) => Inspect::FirstMessage,
                    _ => Inspect::EveryMessage,
                },
            };
        }
        (_, Some((_, statement))) => diagnostics.report(
            Problem::at(
                statement.place,
                "`headerinspection` selects HTTP messages, and this is TCP",
                "not possible in a TCP service",
            )
            .help("make it an HTTP service: type http;"),
        ),
        _ => {}
    }
    check_unique_names(diagnostics, &block.backends, "back end");
    for one in &block.backends {
        if let Some((backend, places)) = backend::backend(diagnostics, one) {
            located.service.backends.push(backend);
            located.backends.push(places);
        }
    }
    if block.backends.is_empty() && !block.incomplete {
        diagnostics.report(
            Problem::at(
                block.place,
                format!("the service `{}` has no back end", shown(&block.name)),
                "expected at least one between its braces",
            )
            .help("add a back end such as: backend one { server 10.1.1.100; port 80; }"),
        );
    }
    located
}

/// `port` and `bindto`, in any order.
#[derive(Default)]
struct Listen {
    given: Option<Place>,
    port: Option<u64>,
    bind: Option<IpAddr>,
}

impl Listen {
    fn put(self, diagnostics: &mut Diagnostics<'_>, block: &Block, located: &mut LocatedService) {
        let Some(place) = self.given else {
            if block.incomplete {
                return;
            }
            diagnostics.report(
                Problem::at(
                    block.place,
                    format!("the service `{}` has no port", shown(&block.name)),
                    "expected `port` between its braces",
                )
                .help("add a line such as: port 8080;"),
            );
            return;
        };
        if let Some(port) = self.port.and_then(|port| u16::try_from(port).ok()) {
            let bind = self.bind.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
            located.service.listen.push(SocketAddr::new(bind, port));
            located.listen.push(place);
        }
    }
}

fn bind(diagnostics: &mut Diagnostics<'_>, statement: &Statement) -> Option<IpAddr> {
    let address = statement.value.parse().ok();
    if address.is_none() {
        let fault = diagnostics.expected(statement, "an IP address of this machine");
        diagnostics.report(fault);
    }
    address
}

fn kind(diagnostics: &mut Diagnostics<'_>, statement: &Statement) -> Option<bool> {
    match statement.value.as_str() {
        "any" | "tcp" => Some(false),
        "http" => Some(true),
        other => {
            let fault = diagnostics.expected(statement, "any, tcp or http");
            diagnostics.report(fault.help(suggestion(other, "types", ["any", "tcp", "http"])));
            None
        }
    }
}

/// Independent statements.
fn plain(diagnostics: &mut Diagnostics<'_>, statement: &Statement, service: &mut Service) {
    match statement.keyword.as_str() {
        "dispatchmode" => {
            if let Some(mode) = dispatch(diagnostics, statement) {
                service.dispatch = mode;
            }
        }
        "verbosity" => {
            let _ = diagnostics.boolean(statement);
            diagnostics.ignored(statement, "messages do not depend on it");
        }
        "revivinginterval" => {
            if let Some(interval) = diagnostics.seconds(statement) {
                service.reviving_interval = interval;
            }
        }
        "checkinterval" => {
            diagnostics.unconfirmed(
                statement,
                "",
                "how often back ends that are available are probed, in seconds",
            );
            if let Some(interval) = diagnostics.seconds(statement) {
                service.check_interval = interval;
            }
        }
        "maxconnections" => service.connections_max = diagnostics.limit(statement),
        "backlog" => {
            if statement.value == "0" {
                diagnostics.unconfirmed(statement, "0", "the default");
            } else if let Some(backlog) = diagnostics.count(statement, 1..=65_535) {
                service.backlog = backlog;
            }
        }
        "shmkey" => {
            let _ = diagnostics.number(statement, 0..=u64::MAX);
            diagnostics.ignored(statement, "there is no shared memory here");
        }
        "allowfrom" => service
            .access
            .allow
            .extend(prefixes(diagnostics, statement)),
        "denyfrom" => service.access.deny.extend(prefixes(diagnostics, statement)),
        "trustedproxies" => service
            .trusted_proxies
            .extend(prefixes(diagnostics, statement)),
        "allowfile" => service.access.allow_file = diagnostics.path(statement),
        "denyfile" => service.access.deny_file = diagnostics.path(statement),
        "useraccount" => {
            service.user_account = diagnostics.text(statement, "the name of an account")
        }
        // `service` handles the others.
        _ => {}
    }
}

fn prefixes(diagnostics: &mut Diagnostics<'_>, statement: &Statement) -> Vec<Prefix> {
    let mut prefixes = Vec::new();
    for word in statement
        .value
        .split([' ', ','])
        .filter(|word| !word.is_empty())
    {
        match word.parse() {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => diagnostics.report(
                Problem::at(
                    statement.value_place,
                    format!(
                        "`{}`: `{}` is not an address prefix: {error}",
                        statement.keyword,
                        shown(word)
                    ),
                    "expected prefixes",
                )
                .help("a prefix is such as 10/8, 192.168.1.7 or 2001:db8::/32"),
            ),
        }
    }
    if statement.value.trim().is_empty() {
        let fault = diagnostics.expected(statement, "prefixes such as 10/8 or 192.168.1.7");
        diagnostics.report(fault);
    }
    prefixes
}

fn dispatch(diagnostics: &mut Diagnostics<'_>, statement: &Statement) -> Option<Dispatch> {
    let value = statement.value.trim();
    let (mode, rest) = value.split_once(' ').unwrap_or((value, ""));
    let rest = rest.trim();
    let averaging = matches!(mode, "bysize" | "byduration" | "byconnections");
    let over = match rest.split_once(' ').unwrap_or((rest, "")) {
        ("", _) => None,
        _ if mode == "externalhandler" => None,
        ("over", number) if averaging => {
            let inner = Statement {
                keyword: format!("dispatchmode {mode} over"),
                value: number.to_owned(),
                ..statement.clone()
            };
            let over = diagnostics.count(&inner, 1..=OVER_MAX)?;
            diagnostics.unconfirmed(
                statement,
                &format!("{mode} over"),
                "the average over this many of the last connections",
            );
            Some(over)
        }
        (word, _) => {
            diagnostics.report(
                Problem::at(
                    statement.value_place,
                    format!(
                        "`dispatchmode {}` does not go on with `{}`",
                        shown(mode),
                        shown(word)
                    ),
                    if averaging {
                        "expected `over` and a number, or the end"
                    } else {
                        "expected the end"
                    },
                )
                .help("is a `;` missing?"),
            );
            return None;
        }
    };
    Some(match mode {
        "roundrobin" => Dispatch::RoundRobin,
        "random" => Dispatch::Random,
        "bysize" => Dispatch::BySize { over },
        "byduration" => Dispatch::ByDuration { over },
        "byconnections" => Dispatch::ByConnections { over },
        "byorder" => Dispatch::ByOrder,
        "byclientip" => Dispatch::ByClientIp,
        "externalhandler" if !is_printable(rest) => {
            let fault = diagnostics.expected(
                statement,
                "externalhandler and a command without control characters",
            );
            diagnostics.report(fault);
            return None;
        }
        "externalhandler" => {
            diagnostics.unconfirmed(
                statement,
                mode,
                "the command prints a back end's name, or its place counted from 0",
            );
            Dispatch::External {
                command: diagnostics.template(statement, rest)?,
            }
        }
        other => {
            let fault = diagnostics.expected(statement, "a mode");
            diagnostics.report(fault.help(suggestion(other, "modes", MODES.split(' '))));
            return None;
        }
    })
}
