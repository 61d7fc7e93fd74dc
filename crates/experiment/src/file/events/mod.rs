//! `[[events]]`: what happens to servers and hosts in a measured window.

mod settings;

use std::time::Duration;

use super::factors::placeholders::only_placeholder;
use super::factors::written::{WrittenFactor, factor_names};
use super::names::MOST_NAMES;
use crate::recipes::Recipes;
use crate::spec::{
    Apart, Design, Event, EventKind, EventTarget, EventWhat, Experiment, Rate, ResolvedCondition,
    Server,
};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units::{duration_text, shown};

const DAY: Duration = Duration::from_secs(24 * 3600);
const WORDS: &str = "expected \"kill\", \"stop\", \"cut\", \"reload\", \"rolling\", \"quota\", \
                     \"slow\", \"loss\", or \"{NAME}\" with the name of a factor";
/// The keys that name what an event happens to.
const TARGETS: [&str; 3] = ["server", "servers", "host"];

/// Reads `[[events]]`.
pub(super) fn events(
    reader: &mut Reader,
    top: &Section<'_>,
    factors: &[WrittenFactor],
    servers: &[Server],
    recipes: &Recipes,
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
        let keys = [&["at", "what", "until"][..], &TARGETS, &settings::KEYS];
        section.only(reader, &keys.concat());
        let at = match section.entry("at") {
            Some(_) => section.duration(reader, "at", Duration::ZERO..=DAY),
            None => {
                missing(reader, &section, "at", "at = \"2s\"");
                None
            }
        };
        let target = target(reader, &section);
        let what = what(reader, &section, factors);
        let until = section.duration(reader, "until", Duration::ZERO..=DAY);
        let names = target.as_ref().map_or(&[][..], EventTarget::servers);
        let settings = settings::settings(reader, &section, names, (servers, recipes), factors);
        if let (Some(at), Some(target), Some(what)) = (at, target, what) {
            events.push(Event {
                at,
                target,
                what,
                until,
                settings,
            });
        }
    }
    events
}

/// Reads what an event happens to, from one of three keys.
fn target(reader: &mut Reader, section: &Section<'_>) -> Option<EventTarget> {
    let mut given = TARGETS.iter().filter_map(|key| section.table.get(key));
    let first = given.next();
    if let (Some(first), Some(second)) = (first, given.next()) {
        let message = format!(
            "`{}` and `{}` exclude each other",
            section.name_of(&first.name),
            section.name_of(&second.name)
        );
        let problem = Problem::at(second.place, message, "the second");
        reader.report(problem.and(first.place, "the first"));
        return None;
    }
    match first.map(|entry| entry.name.as_str()) {
        Some("host") => section.text(reader, "host").map(EventTarget::Host),
        Some("servers") => {
            let names = section.texts(reader, "servers")?;
            if names.is_empty() {
                reader.report(Problem::at(
                    section.value_place("servers"),
                    format!("`{}` is empty", section.name_of("servers")),
                    "expected names of servers",
                ));
                return None;
            }
            let names = names.into_iter().map(|(name, _)| name);
            Some(EventTarget::Servers(names.collect()))
        }
        _ => {
            let server = section.required_text(reader, "server", "\"the name of a server\"")?;
            Some(EventTarget::Servers(vec![server]))
        }
    }
}

fn missing(reader: &mut Reader, section: &Section<'_>, key: &str, example: &str) {
    reader.advise(
        section.place,
        format!("`{}` is missing", section.name_of(key)),
        format!("`{key}` is expected here"),
        format!("add {example}"),
    );
}

fn what(
    reader: &mut Reader,
    section: &Section<'_>,
    factors: &[WrittenFactor],
) -> Option<EventWhat> {
    let Some((entry, path)) = section.entry("what") else {
        missing(
            reader,
            section,
            "what",
            "what = \"kill\", \"stop\", \"cut\", \"reload\", \"rolling\", \"quota\", \"slow\" or \"loss\"",
        );
        return None;
    };
    let text = reader.text(&entry.node, &path)?;
    let Some(name) = only_placeholder(&text) else {
        let kind = EventKind::of_word(&text);
        if kind.is_none() {
            unknown(reader, entry.node.place, &path, &text);
        }
        return kind.map(EventWhat::Kind);
    };
    let Some(factor) = factors.iter().find(|factor| factor.name == name) else {
        reader.advise(
            entry.node.place,
            format!("`{path}` names an unknown factor: `{}`", shown(name)),
            "not in [factors]",
            suggestion(name, "factors", factor_names(factors)),
        );
        return None;
    };
    let mut by_level = Vec::new();
    for level in &factor.levels {
        match EventKind::of_word(&level.text) {
            Some(kind) => by_level.push((level.text.clone(), kind)),
            None => {
                let path = format!("factors.{name}[]");
                unknown(reader, level.node.place, &path, &level.text);
            }
        }
    }
    Some(EventWhat::Factor {
        factor: name.to_owned(),
        by_level,
    })
}

fn unknown(reader: &mut Reader, place: Place, path: &str, text: &str) {
    let words = EventKind::ALL.map(EventKind::word);
    reader.advise(
        place,
        format!("`{path}`: unknown event `{}`", shown(text)),
        WORDS,
        suggestion(text, "words", words),
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
pub(super) fn check(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    recipes: &Recipes,
) {
    if experiment.events.is_empty() {
        return;
    }
    check_design(reader, top, experiment);
    for (number, event) in experiment.events.iter().enumerate() {
        let place = |key| place_in(top, number, key);
        check_times(reader, experiment, event, place);
        let servers = event.target.servers();
        let key = if servers.len() > 1 {
            "servers"
        } else {
            "server"
        };
        let known = servers
            .iter()
            .all(|name| check_server(reader, experiment, name, place(key)));
        if known {
            settings::check(reader, experiment, event, recipes, &place);
        }
    }
    settings::check_overlap(reader, experiment, |number| place_in(top, number, "at"));
}

/// Whether a server exists; reports it otherwise.
fn check_server(reader: &mut Reader, experiment: &Experiment, name: &str, place: Place) -> bool {
    if experiment.server(name).is_none() {
        let names = experiment.servers.iter().map(|one| one.name.as_str());
        reader.advise(
            place,
            format!("no server is called `{}`", shown(name)),
            "not in [servers]",
            suggestion(name, "servers", names),
        );
        return false;
    }
    if !experiment.start_order().iter().any(|one| one.name == name) {
        reader.report(Problem::at(
            place,
            format!("no subject's requests reach the server `{name}`"),
            "it is never started",
        ));
    }
    true
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
        reader.advise(
            place("window"),
            "an experiment with events has no closed loop",
            "remove this key",
            "set the length of the open loop: latency_window = \"10s\"",
        );
    }
    if design.apart == Apart::Never {
        reader.advise(
            place("apart"),
            "an experiment with events measures each subject with servers of its own",
            "expected \"always\"",
            "leave `apart` out: an event must not affect the next subject's servers",
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
        reader.advise(
            place("until"),
            beyond("until"),
            lasts,
            "leave it out to undo the event at the end of the window",
        );
    }
}

pub(super) fn check_load(reader: &mut Reader, top: &Section<'_>, resolved: &ResolvedCondition) {
    if resolved.events.is_empty() {
        return;
    }
    let at = |key| {
        let place = top.place_of(&["load", key]).or(top.place_of(&["load"]));
        place.unwrap_or_default()
    };
    if resolved.load.rate == Rate::Auto {
        reader.advise(
            at("rate"),
            "an experiment with events needs a rate",
            "expected a number of requests per second",
            "there is no closed loop to derive it from; set rate = \"2000/s\" in [load]",
        );
    }
    if let Some(other) = resolved.subjects.iter().find(|one| !one.driver.is_engine()) {
        reader.advise(
            at("driver"),
            format!(
                "events need the built-in engine, but the subject `{}` has the driver `{}`",
                other.name, other.driver.name
            ),
            "not possible with events",
            "leave `driver` out",
        );
    }
}
