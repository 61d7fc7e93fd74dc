//! The TOML syntax.

mod backend;
mod fields;
mod service;
mod short;
mod sni;
mod tls;

use ::config::open;
use ::config::reader::{Problem, Reader};
use ::config::section::Section;

use super::model::{Config, Dispatch, Weight};
use super::validate::{self, HelpTerms, LocatedService};
use super::warning::{Warning, WarningKind};
use fields::NAMES_MAX;

const KEYS: &str = "threads connections_per_thread status_socket prometheus services";

const SMALLEST: &str = "\
    a balancer needs at least: listen = \"127.0.0.1:8080\" and upstreams = \
     [\"127.0.0.1:8081\"]; or a table [services.NAME] with listen and backends";

/// Parses the first source. `None` after reporting an error.
pub(super) fn parse(
    reader: &mut Reader,
    text: &str,
    warnings: &mut Vec<Warning>,
) -> Option<Config> {
    let table = open::parse(reader, text)?;
    let top = Section::whole(&table);
    if ["listen", "upstreams"]
        .iter()
        .any(|key| table.get(key).is_some())
    {
        return short::parse(reader, &top);
    }
    if table.get("services").is_none() {
        fields::only(reader, &top, KEYS);
        reader.report(
            Problem::of_the_file(
                "expected a service, found none: `listen` or `services` is missing",
            )
            .help(SMALLEST),
        );
        return None;
    }
    long(reader, &top, warnings)
}

fn long(reader: &mut Reader, top: &Section<'_>, warnings: &mut Vec<Warning>) -> Option<Config> {
    fields::only(reader, top, KEYS);
    let mut config = Config::new();
    fields::count(reader, top, "threads", 1..=1024, &mut config.threads);
    fields::count(
        reader,
        top,
        "connections_per_thread",
        1..=500_000,
        &mut config.connections_per_thread,
    );
    config.status_socket = fields::path(reader, top, "status_socket");
    config.prometheus = fields::socket(reader, top, "prometheus");
    let services = top.section(reader, "services")?;
    let mut located = Vec::new();
    for entry in services.table.entries.iter().take(NAMES_MAX) {
        fields::check_name(reader, "a service", &entry.name, entry.place);
        if let Some(section) = reader.section(entry, services.name_of(&entry.name)) {
            located.extend(service::service(reader, &section, &entry.name));
        }
    }
    if services.table.entries.is_empty() || services.table.entries.len() > NAMES_MAX {
        reader.report(Problem::at(
            services.place,
            format!(
                "expected 1 to {NAMES_MAX} services, found {}",
                services.table.entries.len()
            ),
            "the services",
        ));
    }
    let terms = HelpTerms {
        http: "kind = \"http\"",
    };
    validate::check(reader, &located, &config, &terms);
    for one in &located {
        warnings.extend(unused_weight(reader, one));
    }
    config.services = located.into_iter().map(|located| located.service).collect();
    reader.is_clean().then_some(config)
}

/// A warning about the first weight of a service whose dispatch mode does not use it.
fn unused_weight(reader: &Reader, located: &LocatedService) -> Option<Warning> {
    let dispatch = &located.service.dispatch;
    let backends = located.service.backends.iter().zip(&located.backends);
    let mut weights = backends.filter_map(|(one, places)| Some((one.weight, places.weight?)));
    let (what, place) = weights.find_map(|(weight, place)| match (dispatch, weight) {
        (_, Weight::Share(1) | Weight::Penalty(1)) => None,
        (Dispatch::ByOrder | Dispatch::ByClientIp, Weight::Share(_)) => Some(("weight", place)),
        (
            Dispatch::ByOrder
            | Dispatch::ByClientIp
            | Dispatch::RoundRobin
            | Dispatch::External { .. },
            Weight::Penalty(_),
        ) => Some(("penalty", place)),
        _ => None,
    })?;
    let why = match dispatch {
        Dispatch::ByOrder => "the dispatch mode `by-order` chooses the first available back end",
        Dispatch::ByClientIp => "the dispatch mode `by-client-ip` chooses by the client's address",
        Dispatch::External { .. } => {
            "without the program's answer, the dispatch mode `external` uses weights only"
        }
        _ => "the dispatch mode `round-robin` uses weights only; `weighted-round-robin` uses both",
    };
    let what = what.to_owned();
    Some(Warning::at(
        reader,
        place,
        WarningKind::Ignored { what, why },
    ))
}
