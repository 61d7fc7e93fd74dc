//! `[[events]]`: what happens to servers in a measured window.

use std::time::Duration;

use super::names::MOST_NAMES;
use super::placeholders::only_placeholder;
use super::written_factors::{WrittenFactor, factor_names};
use crate::spec::{Apart, Design, Event, EventFault, Experiment, Fault, Rate, ResolvedCondition};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units::{duration_text, shown};

const DAY: Duration = Duration::from_secs(24 * 3600);
const WORDS: &str = "expected \"kill\", \"stop\", \"cut\", or \"{NAME}\" with the name of a factor";

/// Reads `[[events]]`.
pub(super) fn events(
    reader: &mut Reader,
    top: &Section<'_>,
    factors: &[WrittenFactor],
) -> Vec<Event> {
    let Some((entry, path)) = top.entry("events") else {
        return Vec::new();
    };
    let Tree::Array(items) = &entry.node.tree else {
        reader.expected(&entry.node, &path, "a list of tables, such as [[events]]");
        return Vec::new();
    };
    if let Some(first) = items.get(MOST_NAMES) {
        reader.report(Problem::at(
            first.place,
            format!("{} events are too many", items.len()),
            format!("expected at most {MOST_NAMES}"),
        ));
    }
    let mut events = Vec::new();
    for item in items.iter().take(MOST_NAMES) {
        let Tree::Table(table) = &item.tree else {
            reader.expected(item, "events[]", "a table, such as { at = \"2s\", … }");
            continue;
        };
        let section = Section {
            path: "events[]".to_owned(),
            place: item.place,
            table,
        };
        section.only(reader, &["at", "server", "what", "until"]);
        let at = match section.entry("at") {
            Some(_) => section.duration(reader, "at", Duration::ZERO..=DAY),
            None => {
                missing(reader, &section, "at", "at = \"2s\"");
                None
            }
        };
        let server = section.required_text(reader, "server", "\"the name of a server\"");
        let what = what(reader, &section, factors);
        let until = section.duration(reader, "until", Duration::ZERO..=DAY);
        if let (Some(at), Some(server), Some(what)) = (at, server, what) {
            events.push(Event {
                at,
                server,
                what,
                until,
            });
        }
    }
    events
}

fn missing(reader: &mut Reader, section: &Section<'_>, key: &str, example: &str) {
    reader.report(
        Problem::at(
            section.place,
            format!("`{}` is missing", section.name_of(key)),
            format!("`{key}` is expected here"),
        )
        .help(format!("add {example}")),
    );
}

fn what(
    reader: &mut Reader,
    section: &Section<'_>,
    factors: &[WrittenFactor],
) -> Option<EventFault> {
    let Some((entry, path)) = section.entry("what") else {
        missing(
            reader,
            section,
            "what",
            "what = \"kill\", \"stop\" or \"cut\"",
        );
        return None;
    };
    let text = reader.text(&entry.node, &path)?;
    let Some(name) = only_placeholder(&text) else {
        let fault = Fault::of_word(&text);
        if fault.is_none() {
            unknown(reader, entry.node.place, &path, &text);
        }
        return fault.map(EventFault::Fault);
    };
    let Some(factor) = factors.iter().find(|factor| factor.name == name) else {
        reader.report(
            Problem::at(
                entry.node.place,
                format!("`{path}` names an unknown factor: `{}`", shown(name)),
                "not in [factors]",
            )
            .help(suggestion(name, "factors", factor_names(factors))),
        );
        return None;
    };
    let mut by_level = Vec::new();
    for level in &factor.levels {
        match Fault::of_word(&level.text) {
            Some(fault) => by_level.push((level.text.clone(), fault)),
            None => {
                let path = format!("factors.{name}[]");
                unknown(reader, level.node.place, &path, &level.text);
            }
        }
    }
    Some(EventFault::Factor {
        factor: name.to_owned(),
        by_level,
    })
}

fn unknown(reader: &mut Reader, place: Place, path: &str, text: &str) {
    let words = Fault::ALL.map(Fault::word);
    reader.report(
        Problem::at(
            place,
            format!("`{path}`: unknown event `{}`", shown(text)),
            WORDS,
        )
        .help(suggestion(text, "words", words)),
    );
}

/// Adapts a design to events: only an open loop, and separate servers for each subject.
pub(super) fn fit(design: &mut Design, top: &Section<'_>) {
    if top.place_of(&["design", "window"]).is_none() {
        design.window = Duration::ZERO;
    }
    if design.apart == Apart::Auto {
        design.apart = Apart::Always;
    }
    design.bottleneck = false;
}

/// Checks an experiment with events.
pub(super) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    if experiment.events.is_empty() {
        return;
    }
    check_design(reader, top, experiment);
    if experiment.hosts_are_machines() {
        let place = top.place_of(&["events"]).unwrap_or_default();
        reader.report(
            Problem::at(
                place,
                "`events`: hosts behind ssh cannot be had with them",
                "only on this machine",
            )
            .help("take `ssh` from the hosts, or remove the events"),
        );
        return;
    }
    for (number, event) in experiment.events.iter().enumerate() {
        let place = |key| place_in(top, number, key);
        check_times(reader, experiment, event, place);
        let name = event.server.as_str();
        if experiment.server(name).is_none() {
            let names = experiment.servers.iter().map(|one| one.name.as_str());
            reader.report(
                Problem::at(
                    place("server"),
                    format!("no server is called `{}`", shown(name)),
                    "not in [servers]",
                )
                .help(suggestion(name, "servers", names)),
            );
            continue;
        }
        if !experiment.start_order().iter().any(|one| one.name == name) {
            reader.report(Problem::at(
                place("server"),
                format!("no subject's requests reach the server `{name}`"),
                "it is never started",
            ));
        }
        if faults(&event.what).contains(&Fault::Cut) {
            check_cut(reader, experiment, name, place("what"));
        }
    }
}

/// The faults of an event under any condition.
fn faults(what: &EventFault) -> Vec<Fault> {
    match what {
        EventFault::Fault(fault) => vec![*fault],
        EventFault::Factor { by_level, .. } => by_level.iter().map(|(_, fault)| *fault).collect(),
    }
}

fn place_in(top: &Section<'_>, number: usize, key: &str) -> Place {
    let list = top.table.get("events").map(|entry| &entry.node);
    let item = list.and_then(|node| match &node.tree {
        Tree::Array(items) => items.get(number),
        _ => None,
    });
    let inner = item.and_then(|item| match &item.tree {
        Tree::Table(table) => table.get(key).map(|entry| entry.node.place),
        _ => None,
    });
    inner.or(item.map(|item| item.place)).unwrap_or_default()
}

fn check_design(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    let design = &experiment.design;
    let place = |key| top.place_of(&["design", key]).unwrap_or_default();
    if !design.window.is_zero() {
        reader.report(
            Problem::at(
                place("window"),
                "an experiment with events has no closed loop",
                "remove this key",
            )
            .help("set the length of the open loop: latency_window = \"10s\""),
        );
    }
    if design.apart == Apart::Never {
        reader.report(
            Problem::at(
                place("apart"),
                "an experiment with events measures each subject with servers of its own",
                "expected \"always\"",
            )
            .help("leave `apart` out: an event must not affect the next subject's servers"),
        );
    }
}

fn check_times(
    reader: &mut Reader,
    experiment: &Experiment,
    event: &Event,
    place: impl Fn(&'static str) -> Place,
) {
    let window = experiment.design.latency_window;
    let beyond = |key: &str| format!("`events[].{key}` is after the end of the measured window");
    let lasts = format!(
        "the window (`latency_window`) lasts {}",
        duration_text(window)
    );
    if event.at >= window {
        reader.report(Problem::at(place("at"), beyond("at"), lasts));
        return;
    }
    let Some(until) = event.until else { return };
    if until <= event.at {
        reader.report(Problem::at(
            place("until"),
            "`events[].until` is not after `at`",
            format!("expected more than {}", duration_text(event.at)),
        ));
    } else if until > window {
        reader.report(
            Problem::at(place("until"), beyond("until"), lasts)
                .help("leave it out to undo the event at the end of the window"),
        );
    }
}

/// A link can be cut only where nothing else uses it.
fn check_cut(reader: &mut Reader, experiment: &Experiment, name: &str, place: Place) {
    let host = experiment.server(name).and_then(|one| one.host.as_deref());
    let Some(host) = host.filter(|_| experiment.hosts_are_apart()) else {
        reader.report(
            Problem::at(
                place,
                format!(
                    "the server `{name}` cannot be cut off: it is not on a host with its own namespace"
                ),
                "\"cut\" takes a host's link down",
            )
            .help(
                "give it a host of its own ([hosts.NAME], host = \"NAME\"); hosts are \
                 namespaces as soon as one of them has `link`, `quota`, `access` or `settings`",
            ),
        );
        return;
    };
    let mut others = experiment.servers.iter();
    let other = others.find(|one| one.name != name && one.host.as_deref() == Some(host));
    let conditions = experiment.conditions();
    let mut loads = conditions.iter().map(|one| experiment.under(one).load.host);
    let beside = match other {
        Some(other) => format!("the server `{}`", other.name),
        None if loads.any(|load| load.as_deref() == Some(host)) => "the load".to_owned(),
        None => return,
    };
    reader.report(
        Problem::at(
            place,
            format!(
                "the server `{name}` cannot be cut off alone: {beside} is on host `{host}` too"
            ),
            "\"cut\" takes a host's link down",
        )
        .help(format!("give `{name}` a host of its own")),
    );
}

/// Checks the load of a condition.
pub(super) fn check_load(reader: &mut Reader, top: &Section<'_>, resolved: &ResolvedCondition) {
    if resolved.events.is_empty() {
        return;
    }
    let at = |key| {
        let place = top.place_of(&["load", key]).or(top.place_of(&["load"]));
        place.unwrap_or_default()
    };
    if resolved.load.rate == Rate::Auto {
        reader.report(
            Problem::at(
                at("rate"),
                "an experiment with events needs a rate",
                "expected a number of requests per second",
            )
            .help("there is no closed loop to derive it from; set rate = \"2000/s\" in [load]"),
        );
    }
    if let Some(other) = resolved.subjects.iter().find(|one| !one.driver.is_engine()) {
        reader.report(
            Problem::at(
                at("driver"),
                format!(
                    "an experiment with events is measured by the built-in engine alone, and \
                     `{}` has the driver `{}`",
                    other.name, other.driver.name
                ),
                "not possible with events",
            )
            .help("leave `driver` out"),
        );
    }
}
