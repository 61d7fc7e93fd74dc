//! `backend NAME { … }`

use ::config::reader::Problem;
use ::config::tree::Place;
use ::config::units::shown;

use super::ast::{Block, Statement};
use super::values::{self, Diagnostics};
use crate::config::address;
use crate::config::model::{
    Address, Backend, EditKind, HeaderEdit, Host, Recipient, StickyCookie, Weight,
};
use crate::config::validate::{self, BackendPlaces};
use crate::sticky;

/// A back end with locations; `None` if its address is missing or invalid.
pub(super) fn backend(
    diagnostics: &mut Diagnostics<'_>,
    block: &Block,
) -> Option<(Backend, BackendPlaces)> {
    values::once_each(diagnostics, block);
    // A placeholder, so that the other statements are checked too.
    let unknown = Address {
        host: Host::Name(String::new()),
        port: 0,
    };
    let mut backend = Backend::new(&block.name, unknown);
    let mut places = BackendPlaces::at(block.place);
    let mut server = None;
    let mut port = None;
    let mut cookie = None;
    for statement in &block.statements {
        match statement.keyword.as_str() {
            "server" => {
                places.address = statement.value_place;
                server = Some(statement);
            }
            "port" => port = Some(statement),
            "stickycookie" => {
                places.sticky_cookie = Some(statement.place);
                cookie = Some(statement);
                backend.sticky_cookie = sticky_cookie(diagnostics, statement);
            }
            keyword if keyword.ends_with("header") => {
                if let Some(edit) = header(diagnostics, statement) {
                    backend.header_edits.push(edit);
                    places.edits.push(statement.place);
                }
            }
            _ => plain(diagnostics, statement, &mut backend),
        }
    }
    if let Some(statement) = cookie {
        check_cookie_setter(diagnostics, statement, &mut backend);
    }
    backend.address = place(diagnostics, block, server, port)?;
    Some((backend, places))
}

/// Independent statements.
fn plain(diagnostics: &mut Diagnostics<'_>, statement: &Statement, backend: &mut Backend) {
    match statement.keyword.as_str() {
        "verbosity" => {
            let _ = diagnostics.boolean(statement);
            diagnostics.ignored(statement, "messages do not depend on it");
        }
        "retries" => backend.retries = diagnostics.count(statement, 0..=100).unwrap_or_default(),
        "maxconnections" => backend.connections_max = diagnostics.limit(statement),
        "weight" => {
            diagnostics.unconfirmed(
                statement,
                "",
                "a penalty: what is measured of the back end is multiplied by it",
            );
            if let Some(weight) = diagnostics.count(statement, 1..=1_000_000) {
                backend.weight = Weight::Penalty(weight);
            }
        }
        "decay" => {
            diagnostics.unconfirmed(
                statement,
                "",
                "by how many percent the measured size or duration shrinks whenever another back \
                 end is chosen",
            );
            backend.decay_percent = diagnostics
                .number(statement, 0..=100)
                .and_then(|percent| u8::try_from(percent).ok())
                .unwrap_or_default();
        }
        "onstart" => backend.hooks.on_start = command(diagnostics, statement),
        "onend" => backend.hooks.on_end = command(diagnostics, statement),
        "onfail" => backend.hooks.on_fail = command(diagnostics, statement),
        "trafficlog" => backend.traffic_log = diagnostics.path(statement),
        "throughputlog" => backend.throughput_log = diagnostics.path(statement),
        "sessiontimeout" => {
            backend.session_timeout = diagnostics.seconds(statement).unwrap_or_default();
        }
        _ => {}
    }
}

fn command(
    diagnostics: &mut Diagnostics<'_>,
    statement: &Statement,
) -> Option<crate::config::Template> {
    let text = diagnostics.text(statement, "a command")?;
    diagnostics.template(statement, &text)
}

/// `server` and `port`: either has the port.
fn place(
    diagnostics: &mut Diagnostics<'_>,
    block: &Block,
    server: Option<&Statement>,
    port: Option<&Statement>,
) -> Option<Address> {
    let Some(server) = server else {
        if block.incomplete {
            return None;
        }
        diagnostics.report(
            Problem::at(
                block.place,
                format!("the back end `{}` has no server", shown(&block.name)),
                "expected `server` between its braces",
            )
            .help("add a line such as: server 10.1.1.100:80;"),
        );
        return None;
    };
    let own = address::with_port(&server.value);
    let host = match &own {
        Some(address) => Some(address.host.clone()),
        None => address::host(&server.value),
    };
    let Some(host) = host else {
        let fault =
            diagnostics.expected(server, "a host, such as 10.1.1.100 or web.example.org:80");
        diagnostics.report(fault);
        return None;
    };
    match (own, port) {
        (Some(own), None) => Some(own),
        (Some(_), Some(port)) => {
            diagnostics.report(
                Problem::at(
                    port.place,
                    format!("the back end `{}` has two ports", shown(&block.name)),
                    "expected no `port`",
                )
                .and(server.value_place, "a port stands here"),
            );
            None
        }
        (None, Some(port)) => Some(Address {
            host,
            port: u16::try_from(diagnostics.number(port, 1..=65_535)?).ok()?,
        }),
        (None, None) if block.incomplete => None,
        (None, None) => {
            diagnostics.report(
                Problem::at(
                    end(server.value_place),
                    format!("the back end `{}` has no port", shown(&block.name)),
                    "expected a colon and a port here, or `port` between the braces",
                )
                .help("add a line such as: port 80;"),
            );
            None
        }
    }
}

fn end(place: Place) -> Place {
    Place {
        start: place.end,
        ..place
    }
}

fn sticky_cookie(diagnostics: &mut Diagnostics<'_>, statement: &Statement) -> Option<StickyCookie> {
    let parts = statement.value.split_once('=');
    match parts {
        Some((name, value))
            if sticky::is_name(name) && sticky::is_value(value) && !value.is_empty() =>
        {
            Some(StickyCookie {
                name: name.to_owned(),
                value: value.to_owned(),
                set: true,
            })
        }
        _ => {
            let fault = diagnostics.expected(statement, "a cookie such as \"BalanceID=one\"");
            diagnostics.report(fault);
            None
        }
    }
}

/// If a header edit sets the cookie, the balancer does not.
fn check_cookie_setter(
    diagnostics: &mut Diagnostics<'_>,
    statement: &Statement,
    backend: &mut Backend,
) {
    let Some(cookie) = &mut backend.sticky_cookie else {
        return;
    };
    let own = backend.header_edits.iter().any(|edit| {
        edit.recipient == Recipient::Client
            && edit.name.eq_ignore_ascii_case("set-cookie")
            && edit
                .value
                .to_string()
                .split_once('=')
                .is_some_and(|(name, _)| name.trim() == cookie.name)
    });
    cookie.set = !own;
    if !own {
        diagnostics.unconfirmed(
            statement,
            "",
            "the cookie is sent to clients that do not have it, as no addclientheader does so",
        );
    }
}

fn header(diagnostics: &mut Diagnostics<'_>, statement: &Statement) -> Option<HeaderEdit> {
    let keyword = statement.keyword.as_str();
    let how = match keyword {
        _ if keyword.starts_with("add") => EditKind::Add,
        _ if keyword.starts_with("append") => EditKind::Append,
        _ => EditKind::Set,
    };
    let recipient = if keyword.contains("client") {
        Recipient::Client
    } else {
        Recipient::Server
    };
    let text = statement.value.as_str();
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let (name, value) = (name.trim_end(), value.trim());
    if !text.contains(':') || !validate::is_field_name(name) || !validate::is_field_value(value) {
        let fault = diagnostics.expected(statement, "a header such as \"X-Real-IP: %r\"");
        diagnostics.report(fault);
        return None;
    }
    if value.is_empty() {
        let fault = diagnostics.expected(statement, "a value after the header's name");
        diagnostics.report(fault);
        return None;
    }
    if validate::is_framing(name) {
        diagnostics.report(Problem::at(
            statement.value_place,
            format!(
                "`{keyword}` cannot change `{}`: it says where messages end, or belongs to one \
                 connection",
                shown(name)
            ),
            "expected another header",
        ));
        return None;
    }
    Some(HeaderEdit {
        recipient,
        how,
        name: name.to_owned(),
        value: diagnostics.template(statement, value)?,
    })
}
