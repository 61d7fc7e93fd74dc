//! Checks across tables: references between names, cycles of upstreams, ports.

use std::collections::BTreeMap;

use crate::file::events;
use crate::file::hosts::{self, machines};
use crate::file::load::{drivers, relays, requests, traffic};
use crate::file::names::{LOAD_HOST_FACTOR, path_of_load};
use crate::file::servers::measured_params;
use crate::file::servers::subjects::path_problem;
use crate::recipe::RecipeError;
use crate::recipes::Recipes;
use crate::spec::{
    Effect, Experiment, HttpVersion, LoadChange, LoadSpec, ResolvedCondition, Server, SubjectSpec,
    Target, Upstream,
};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Place;
use config::units::shown;

pub(crate) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    baseline(reader, top, experiment);
    host_names(reader, top, experiment);
    hosts::check_apart(reader, top, experiment);
    machines::check(reader, top, experiment);
    load_hosts(reader, top, experiment);
    circles(reader, top, experiment);
    ports(reader, top, experiment);
}

fn baseline(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let baseline = &experiment.design.baseline;
    let declared = top.table.get("subjects").map(|entry| &entry.node.tree);
    let names: Vec<&str> = match declared {
        Some(config::tree::Tree::Table(table)) => {
            table.entries.iter().map(|e| e.name.as_str()).collect()
        }
        _ => return,
    };
    // A subject with a wrong URL is still declared: one mistake, not two.
    if names.is_empty() || names.contains(&baseline.as_str()) {
        return;
    }
    if let Some(place) = top.place_of(&["design", "baseline"]) {
        reader.advise(
            place,
            format!("the baseline `{}` is not a subject", shown(baseline)),
            "not in [subjects]",
            suggestion(baseline, "subjects", names),
        );
    }
}

fn host_names(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let names: Vec<&str> = experiment.hosts.iter().map(|h| h.name.as_str()).collect();
    let mut wanted: Vec<(&str, Vec<&str>)> = experiment
        .servers
        .iter()
        .filter_map(|server| {
            let host = server.host.as_deref()?;
            Some((host, vec!["servers", server.name.as_str(), "host"]))
        })
        .collect();
    for (name, load) in experiment.all_loads() {
        let key = match load.more_hosts.is_empty() {
            true => "host",
            false => "hosts",
        };
        let path = path_of_load(name, key);
        let hosts = load.host.iter().chain(&load.more_hosts);
        wanted.extend(hosts.map(|host| (host.as_str(), path.clone())));
    }
    for factor in &experiment.factors {
        let levels = factor
            .levels
            .iter()
            .filter_map(|level| match &level.effect {
                Effect::Load(LoadChange::Host(host)) => Some(host.as_str()),
                _ => None,
            });
        wanted.extend(levels.map(|host| (host, vec!["factors", factor.name.as_str()])));
    }
    for (host, path) in wanted {
        if !names.contains(&host) {
            let place = top.place_of(&path).unwrap_or_default();
            reader.advise(
                place,
                format!("no host is called `{}`", shown(host)),
                "not in [hosts]",
                suggestion(host, "hosts", names.iter().copied()),
            );
        }
    }
}

/// Checks what loads with several hosts cannot be combined with.
fn load_hosts(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    for (name, load) in experiment.all_loads() {
        if !load.more_hosts.is_empty() {
            hosts_of_load(reader, top, experiment, name, load);
        }
    }
}

fn hosts_of_load(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    name: Option<&str>,
    load: &LoadSpec,
) {
    let count = load.more_hosts.len() + 1;
    let hosts = top.place_of(&path_of_load(name, "hosts"));
    let mut refuse = |place: Option<Place>, label: &str, help: &str| {
        let place = place.or(hosts).unwrap_or_default();
        let message = format!("a load from {count} hosts is not possible here");
        reader.advise(place, message, label, help);
    };
    let from = name.map_or(LOAD_HOST_FACTOR.to_owned(), |name| {
        format!("{name}.{LOAD_HOST_FACTOR}")
    });
    if experiment.factors.iter().any(|one| one.name == from) {
        let help = format!("remove `hosts` or the factor `{from}`");
        let place = top.place_of(&["factors", &from]);
        refuse(place, "it moves the load from host to host", &help);
    }
    if !experiment.events.is_empty() {
        let help = "give the load one host";
        let label = "events need a load from one host";
        refuse(top.place_of(&["events"]), label, help);
    }
    for resolved in experiment
        .conditions()
        .iter()
        .map(|one| experiment.under(one))
    {
        let beside = resolved
            .beside
            .iter()
            .find(|one| Some(one.name.as_str()) == name);
        let subjects = beside.map_or(&resolved.subjects, |one| &one.subjects);
        if subjects
            .iter()
            .any(|one| (one.connections as usize) < count)
        {
            let place = top.place_of(&path_of_load(name, "connections"));
            let help = "open at least one connection for each host";
            return refuse(place, "fewer connections than hosts", help);
        }
        if !subjects.iter().all(|one| one.driver.is_engine()) {
            let place = top.place_of(&path_of_load(name, "driver"));
            let help = "use the built-in engine, or one host";
            return refuse(
                place,
                "only the built-in engine can share a load among hosts",
                help,
            );
        }
    }
}

/// Follows the upstreams from each server; a server reached twice on one path closes a cycle.
fn circles(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let mut clear: Vec<&str> = Vec::new();
    for server in &experiment.servers {
        let mut way = Vec::new();
        if let Some(circle) = follow(experiment, server, &mut way, &mut clear) {
            let first = circle.first().map_or("", |name| *name);
            let place = top
                .place_of(&["servers", first, "upstreams"])
                .unwrap_or_default();
            let shown: Vec<String> = circle.iter().map(|name| format!("`{name}`")).collect();
            reader.advise(
                place,
                format!("the upstreams form a cycle: {}", shown.join(" -> ")),
                "a request would never be answered",
                "remove one of them from another's `upstreams`",
            );
            // Other cycles would share servers with this one.
            return;
        }
    }
}

fn follow<'e>(
    experiment: &'e Experiment,
    server: &'e Server,
    way: &mut Vec<&'e str>,
    clear: &mut Vec<&'e str>,
) -> Option<Vec<&'e str>> {
    let name = server.name.as_str();
    if let Some(start) = way.iter().position(|passed| *passed == name) {
        let mut circle = way[start..].to_vec();
        circle.push(name);
        return Some(circle);
    }
    if clear.contains(&name) {
        return None;
    }
    way.push(name);
    for upstream in &server.upstreams {
        if let Upstream::Server(next) = upstream
            && let Some(next) = experiment.server(next)
            && let Some(circle) = follow(experiment, next, way, clear)
        {
            return Some(circle);
        }
    }
    way.pop();
    clear.push(name);
    None
}

fn ports(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let mut taken: BTreeMap<u16, &str> = BTreeMap::new();
    for server in &experiment.servers {
        let Some(port) = server.port else { continue };
        let place = |name| top.place_of(&["servers", name, "port"]).unwrap_or_default();
        if let Some(first) = taken.get(&port) {
            reader.report(
                Problem::at(
                    place(&server.name),
                    format!("`{first}` and `{}` both use port {port}", server.name),
                    "already in use",
                )
                .and(place(first), "used here")
                .help("choose another port, or leave `port` out to get a free one"),
            );
        } else {
            taken.insert(port, &server.name);
        }
    }
}

/// More trials than this would run for months.
const MOST_TRIALS: usize = 100_000;

/// Checks parameters, paths and loads under each condition.
pub(crate) fn check_conditions(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    recipes: &Recipes,
) {
    let conditions = experiment.conditions();
    let blocks = usize::try_from(experiment.design.blocks).unwrap_or(usize::MAX);
    let trials = conditions
        .len()
        .saturating_mul(blocks)
        .saturating_mul(experiment.subjects.len() + 1);
    if trials > MOST_TRIALS {
        let place = top.place_of(&["design", "blocks"]);
        reader.report(Problem::at(
            place.unwrap_or_default(),
            format!("{trials} trials are too many"),
            format!("expected at most {MOST_TRIALS}: blocks x conditions x subjects"),
        ));
        return;
    }
    let (mut asks_for_congestion, mut has_quic) = (false, false);
    for condition in conditions {
        // Further conditions would mostly repeat the mistakes of the first.
        if !reader.is_clean() {
            return;
        }
        let resolved = experiment.under(&condition);
        let beside = resolved.beside.iter().map(|one| (&one.load, &one.subjects));
        for (load, subjects) in beside.chain([(&resolved.load, &resolved.subjects)]) {
            asks_for_congestion |= load.quic_congestion.is_some();
            has_quic |= subjects.iter().any(|one| one.http == HttpVersion::Http3);
        }
        for server in &resolved.servers {
            let Some(recipe) = recipes.get(&server.recipe) else {
                continue;
            };
            if let Err(RecipeError::Param { param, why, .. }) = recipe.fill(&server.params) {
                let place = top.place_of(&["servers", &server.name, "with", &param]);
                reader.report(Problem::at(
                    place.unwrap_or_default(),
                    format!("`servers.{}.with.{param}`: {why}", server.name),
                    "under one of the conditions",
                ));
            }
        }
        measured_params::check(reader, top, &resolved);
        check_schemes(reader, top, &resolved, recipes);
        check_paths(reader, top, &resolved.subjects);
        drivers::check(reader, top, experiment, &resolved, recipes);
        events::check_load(reader, top, &resolved);
        traffic::check(reader, top, experiment, &resolved);
        relays::check(reader, top, &resolved, recipes);
        requests::check(reader, top, experiment, &resolved);
        for one in &resolved.beside {
            check_paths(reader, top, &one.subjects);
            check_http(
                reader,
                top,
                experiment,
                Some(&one.name),
                &one.load,
                &one.subjects,
            );
        }
        let name = resolved.load_name.as_deref();
        let (load, subjects) = (&resolved.load, &resolved.subjects);
        check_http(reader, top, experiment, name, load, subjects);
        let loads = resolved.beside.iter().map(|one| &one.load);
        let is_several = |count: Option<u64>| count.is_some_and(|count| count > 1);
        let exclude = |load: &LoadSpec| !load.keepalive && is_several(load.requests_per_connection);
        let own = |one: &SubjectSpec| !load.keepalive && is_several(one.requests_per_connection);
        if loads.chain([load]).any(exclude) || subjects.iter().any(own) {
            reader.report(
                Problem::of_the_file(
                    "a condition has `keepalive = false` and several requests per connection",
                )
                .help("these exclude each other: vary one of the two"),
            );
        }
    }
    if reader.is_clean() {
        requests::check_feeds(reader, top, experiment);
    }
    if asks_for_congestion && !has_quic {
        let place = top.place_of(&["load", "quic_congestion"]);
        let problem = Problem::at(
            place.unwrap_or_default(),
            "`quic_congestion` needs HTTP/3",
            "no load is over HTTP/3",
        );
        reader.report(problem.help("add http = \"3\""));
    }
}

/// Checks the paths that a load requests.
fn check_paths(reader: &mut Reader, top: &Section<'_>, subjects: &[SubjectSpec]) {
    for subject in subjects {
        if let Some(problem) = path_problem(&subject.path, false) {
            let place = top.place_of(&["subjects", &subject.name]);
            reader.report(Problem::at(
                place.unwrap_or_default(),
                format!("subject `{}`: {problem}", shown(&subject.name)),
                format!("under one of the conditions: {}", shown(&subject.path)),
            ));
        }
    }
}

/// Checks that HTTP/3 is used with TLS only, and `streams` with HTTP/2 and HTTP/3 only.
fn check_http(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    name: Option<&str>,
    load: &LoadSpec,
    subjects: &[SubjectSpec],
) {
    let is_plain_h3 = |one: &&SubjectSpec| one.http == HttpVersion::Http3 && one.scheme != "https";
    if let Some(subject) = subjects.iter().find(is_plain_h3) {
        let place = top.place_of(&["subjects", &subject.name]);
        reader.report(Problem::at(
            place.unwrap_or_default(),
            format!("subject `{}`: HTTP/3 needs TLS", shown(&subject.name)),
            "expected a URL that begins with https://",
        ));
    }
    let is_h1 = |one: &&SubjectSpec| one.streams.is_none();
    let uses = |name: &str| {
        let subject = experiment.subjects.iter().find(|one| one.name == name);
        let own = subject.and_then(|one| one.load.streams);
        own.unwrap_or(load.streams) > 1
    };
    let unused = subjects.iter().filter(is_h1).find(|one| uses(&one.name));
    if let Some(subject) = unused.filter(|_| subjects.iter().all(|one| one.streams.is_none())) {
        let place = top.place_of(&path_of_load(name, "streams"));
        let place = place.or(top.place_of(&["subjects", &subject.name]));
        reader.advise(
            place.unwrap_or_default(),
            "`streams` needs HTTP/2 or HTTP/3",
            "under one of the conditions the load is HTTP/1.1",
            "add http = \"2\", or http = \"3\"",
        );
    }
}

/// Checks that a subject's URL is an https one if its server speaks TLS, and only then.
fn check_schemes(
    reader: &mut Reader,
    top: &Section<'_>,
    resolved: &ResolvedCondition,
    recipes: &Recipes,
) {
    for subject in &resolved.subjects {
        let Target::Server(name) = &subject.target else {
            continue;
        };
        let server = resolved.servers.iter().find(|one| one.name == *name);
        let Some((server, recipe)) = server.and_then(|one| Some((one, recipes.get(&one.recipe)?)))
        else {
            continue;
        };
        let params = recipe.fill(&server.params);
        let wants_certs = params
            .as_ref()
            .is_ok_and(|params| recipe.wants_client_certs(params).unwrap_or(false));
        if wants_certs && resolved.load.tls.client_key.is_none() && subject.scheme == "https" {
            let place = top.place_of(&["subjects", &subject.name]);
            let problem = Problem::at(
                place.unwrap_or_default(),
                format!(
                    "subject `{}`: `{name}` asks clients for a certificate",
                    shown(&subject.name)
                ),
                "the load has none",
            );
            reader.report(problem.help("add to [load]: tls_client_key = \"ecdsa-p256\""));
        }
        let tls = params.and_then(|params| recipe.tls(&params));
        let (speaks_tls, wanted) = match (tls, subject.scheme.as_str()) {
            (Ok(tls), "https") if tls.is_none() => (false, "http"),
            (Ok(tls), "http") if tls.is_some() => (true, "https"),
            _ => continue,
        };
        let does = if speaks_tls {
            "speaks TLS"
        } else {
            "does not speak TLS"
        };
        let problem = Problem::at(
            top.place_of(&["subjects", &subject.name])
                .unwrap_or_default(),
            format!("subject `{}`: `{name}` {does}", shown(&subject.name)),
            format!("expected {wanted}://"),
        );
        reader.report(match recipe.param("tls") {
            Some(_) => problem.help(format!("`servers.{name}.with.tls` decides whether it does")),
            None if speaks_tls => problem,
            None => problem.help(format!(
                "the recipe `{}` has no parameter `tls`; put a server that ends TLS in front of it",
                server.recipe
            )),
        });
    }
}
