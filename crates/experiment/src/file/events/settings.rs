//! The quantities of an event, such as its quota, and what its target must have.

use std::time::Duration;

use crate::file::factors::written::WrittenFactor;
use crate::file::hosts;
use crate::file::hosts::machines;
use crate::file::servers::given_params;
use crate::recipes::Recipes;
use crate::spec::{Event, EventKind, EventSettings, EventTarget, Experiment, ParamValue, Server};
use config::nearest::suggestion;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Place;
use config::units::shown;

/// The keys of quantities, and the kinds that have them.
const FOR: [(&str, &[EventKind]); 5] = [
    ("params", &[EventKind::Reload]),
    ("quota", &[EventKind::Quota]),
    ("delay", &[EventKind::Slow, EventKind::Loss]),
    ("loss", &[EventKind::Loss]),
    ("pause", &[EventKind::Rolling]),
];
pub(crate) const KEYS: [&str; 5] = ["params", "quota", "delay", "loss", "pause"];
/// The same as the longest round trip of a link.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Reads the quantities of an event on the servers `names`.
pub(crate) fn settings(
    reader: &mut Reader,
    section: &Section<'_>,
    names: &[String],
    (servers, recipes): (&[Server], &Recipes),
    factors: &[WrittenFactor],
) -> EventSettings<ParamValue> {
    let recipe = names.first().and_then(|name| {
        let server = servers.iter().find(|server| server.name == *name)?;
        recipes.get(&server.recipe)
    });
    let params = section.section(reader, "params");
    let params = params
        .zip(recipe)
        .map_or_else(Default::default, |(given, recipe)| {
            given_params(reader, &given, recipe, factors)
        });
    let shortest = Duration::from_millis(1);
    EventSettings {
        params,
        quota: hosts::quota(reader, section),
        delay: section.duration(reader, "delay", shortest..=LONGEST_DELAY),
        loss: section.share(reader, "loss"),
        pause: section.duration(reader, "pause", Duration::ZERO..=LONGEST_PAUSE),
    }
}

/// Checks an event whose servers exist. `place` gives the place of one of its keys, or that of the
/// event where the key is absent.
pub(crate) fn check(
    reader: &mut Reader,
    experiment: &Experiment,
    event: &Event,
    recipes: &Recipes,
    place: &impl Fn(&'static str) -> Place,
) {
    let kinds = event.what.all();
    check_keys(reader, event, &kinds, place);
    for kind in kinds {
        if experiment.hosts_are_machines()
            && machines::refuses_event(reader, experiment, event, kind, place)
        {
            continue;
        }
        match &event.target {
            EventTarget::Host(host) => check_host(reader, experiment, host, kind, place),
            EventTarget::Servers(names) => {
                if names.len() > 1 && kind != EventKind::Rolling {
                    let message = format!(
                        "`events[].servers` is for \"rolling\", not \"{}\"",
                        kind.word()
                    );
                    let problem = Problem::at(place("servers"), message, "one server at a time");
                    reader.report(problem.help("write an event for each of them"));
                    continue;
                }
                for name in names {
                    check_server(reader, experiment, name, kind, recipes, place);
                }
            }
        }
    }
}

/// Checks that an event has the quantities that its kinds need, and no others.
fn check_keys(
    reader: &mut Reader,
    event: &Event,
    kinds: &[EventKind],
    place: &impl Fn(&'static str) -> Place,
) {
    let settings = &event.settings;
    let is_given = |key: &str| match key {
        "params" => !settings.params.is_empty(),
        "quota" => settings.quota.is_some(),
        "delay" => settings.delay.is_some(),
        "loss" => settings.loss.is_some(),
        _ => settings.pause.is_some(),
    };
    for (key, of) in FOR {
        if is_given(key) && !kinds.iter().any(|kind| of.contains(kind)) {
            let words: Vec<String> = of.iter().map(|one| format!("\"{}\"", one.word())).collect();
            reader.report(Problem::at(
                place(key),
                format!("`events[].{key}` is for {}", words.join(" and ")),
                "this event does something else",
            ));
        }
    }
    let needed = [
        (EventKind::Quota, "quota", "quota = 0.25, in CPUs"),
        (EventKind::Slow, "delay", "delay = \"50ms\""),
        (EventKind::Loss, "loss", "loss = \"5%\""),
    ];
    for (kind, key, example) in needed {
        if kinds.contains(&kind) && !is_given(key) {
            let message = format!("`events[].{key}` is missing");
            let label = format!("\"{}\" needs it", kind.word());
            reader.advise(place("what"), message, label, format!("add {example}"));
        }
    }
    if kinds.contains(&EventKind::Rolling) && event.until.is_some() {
        reader.advise(
            place("until"),
            "`events[].until` cannot be combined with \"rolling\"",
            "a rolling restart ends by itself",
            "remove it: the event ends when the last server is ready again",
        );
    }
}

fn check_host(
    reader: &mut Reader,
    experiment: &Experiment,
    host: &str,
    kind: EventKind,
    place: &impl Fn(&'static str) -> Place,
) {
    let Some(spec) = experiment.hosts.iter().find(|one| one.name == host) else {
        let names = experiment.hosts.iter().map(|one| one.name.as_str());
        reader.advise(
            place("host"),
            format!("no host is called `{}`", shown(host)),
            "not in [hosts]",
            suggestion(host, "hosts", names),
        );
        return;
    };
    if !kind.takes_host() {
        let message = format!("\"{}\" is done to a server, not to a host", kind.word());
        reader.advise(
            place("host"),
            message,
            "expected server = \"NAME\"",
            "only \"quota\", \"slow\" and \"loss\" are done to hosts",
        );
    } else if kind.changes_link() {
        check_link(reader, experiment, host, kind, place("host"));
    } else if spec.quota.is_none() {
        reader.advise(
            place("host"),
            format!("the host `{host}` has no quota to change"),
            "only a host that starts with a quota can get another one",
            format!("give it one that does not limit it, such as quota = 64 in [hosts.{host}]"),
        );
    }
}

fn check_server(
    reader: &mut Reader,
    experiment: &Experiment,
    name: &str,
    kind: EventKind,
    recipes: &Recipes,
    place: &impl Fn(&'static str) -> Place,
) {
    let Some(server) = experiment.server(name) else {
        return;
    };
    if kind.needs_own_host() {
        check_own_host(reader, experiment, name, kind, place("what"));
    }
    if let (true, Some(host)) = (changes_link(experiment, kind), &server.host) {
        check_link(reader, experiment, host, kind, place("what"));
    }
    let recipe = recipes.get(&server.recipe);
    if let Some(recipe) = recipe.filter(|one| kind == EventKind::Reload && !one.can_reload()) {
        let able = recipes.names().filter(|name| {
            let recipe = recipes.get(name);
            recipe.is_some_and(|recipe| recipe.can_reload())
        });
        let able: Vec<String> = able.map(|name| format!("`{name}`")).collect();
        reader.advise(
            place("what"),
            format!(
                "the server `{name}` cannot be reloaded: its recipe `{}` does not say how",
                recipe.name
            ),
            "the recipe has no [reload]",
            format!("recipes that can be reloaded: {}", able.join(", ")),
        );
    }
}

/// Whether an event changes delay or loss of a link. Between machines it is "cut" by the loss of all
/// packets, as their devices carry other packets, too.
fn changes_link(experiment: &Experiment, kind: EventKind) -> bool {
    kind.changes_link() || (kind == EventKind::Cut && experiment.hosts_are_machines())
}

/// Checks that a host has a link to change. Without `link` the kernel's bridge carries its packets,
/// or those between machines go their way: nothing delays or drops any.
fn check_link(
    reader: &mut Reader,
    experiment: &Experiment,
    host: &str,
    kind: EventKind,
    place: Place,
) {
    let spec = experiment.hosts.iter().find(|one| one.name == host);
    let is_separate = experiment.hosts_are_apart() || experiment.hosts_are_machines();
    if spec.is_some_and(|one| one.link.is_some()) || !is_separate {
        return;
    }
    reader.advise(
        place,
        format!("the host `{host}` has no link to change"),
        format!("\"{}\" changes the link of a host", kind.word()),
        format!("add link = {{}} to [hosts.{host}]"),
    );
}

/// What an event changes and restores. Two events with the same at the same time would undo each
/// other.
#[derive(PartialEq)]
enum Changed<'e> {
    LinkOf(&'e str),
    QuotaOf(&'e EventTarget),
}

/// Checks that no two events change the same quota or link at the same time.
pub(crate) fn check_overlap(
    reader: &mut Reader,
    experiment: &Experiment,
    place: impl Fn(usize) -> Place,
) {
    let window = experiment.design.latency_window;
    let host_of = |target: &'_ EventTarget| match target {
        EventTarget::Host(host) => Some(host.clone()),
        EventTarget::Servers(names) => experiment.server(names.first()?)?.host.clone(),
    };
    let hosts: Vec<_> = experiment
        .events
        .iter()
        .map(|one| host_of(&one.target))
        .collect();
    let changed = |number: usize| -> Vec<Changed<'_>> {
        let event = &experiment.events[number];
        let kinds = event.what.all();
        let link = hosts[number].as_deref().filter(|_| {
            let mut kinds = kinds.iter();
            kinds.any(|kind| changes_link(experiment, *kind))
        });
        let quota = kinds.contains(&EventKind::Quota);
        link.map(Changed::LinkOf)
            .into_iter()
            .chain(quota.then_some(Changed::QuotaOf(&event.target)))
            .collect()
    };
    let end = |event: &Event| event.until.unwrap_or(window);
    for (number, event) in experiment.events.iter().enumerate() {
        for (before, other) in experiment.events.iter().enumerate().take(number) {
            let overlap = event.at < end(other) && other.at < end(event);
            let ours = changed(number);
            let Some(what) = changed(before).into_iter().find(|one| ours.contains(one)) else {
                continue;
            };
            if !overlap {
                continue;
            }
            let what = match what {
                Changed::LinkOf(host) => format!("the link of host `{host}`"),
                Changed::QuotaOf(EventTarget::Host(host)) => format!("the quota of host `{host}`"),
                Changed::QuotaOf(EventTarget::Servers(names)) => {
                    format!("the quota of the server `{}`", names.join("`, `"))
                }
            };
            let message = format!("two events change {what} at the same time");
            let problem = Problem::at(place(number), message, "the second");
            reader.report(
                problem
                    .and(place(before), "the first")
                    .help("set `until` of the first so that it ends before the second begins"),
            );
        }
    }
}

/// Checks that nothing else uses the link of a server's host, since `what` affects the whole link.
pub(super) fn check_own_host(
    reader: &mut Reader,
    experiment: &Experiment,
    name: &str,
    what: EventKind,
    place: Place,
) {
    let (done, to_link) = match what {
        EventKind::Cut => ("cut off", "takes a host's link down"),
        EventKind::Slow => ("made slow", "adds a delay to a host's link"),
        _ => ("made to lose packets", "makes a host's link lose packets"),
    };
    let label = format!("\"{}\" {to_link}", what.word());
    let host = experiment.server(name).and_then(|one| one.host.as_deref());
    let is_separate = experiment.hosts_are_apart() || experiment.hosts_are_machines();
    let Some(host) = host.filter(|_| is_separate) else {
        reader.advise(
            place,
            format!(
                "the server `{name}` cannot be {done}: it is not on a host with its own \
                     namespace"
            ),
            label,
            "give it a host of its own ([hosts.NAME], host = \"NAME\"); hosts are \
                 namespaces as soon as one of them has `link`, `quota`, `access` or `settings`",
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
    let mut help = format!("give `{name}` a host of its own");
    if what.takes_host() {
        help.push_str(&format!(
            ", or write host = \"{host}\" if all of it is meant"
        ));
    }
    reader.advise(
        place,
        format!("the server `{name}` cannot be {done} alone: {beside} is on host `{host}` too"),
        label,
        help,
    );
}
