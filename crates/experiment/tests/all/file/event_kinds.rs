//! Events of every kind, and the mistakes that can be made in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::recipes::rules::context;
use crate::support::{good, parse, recipes, rendered, scratch, shown};
use experiment::manifest::Value;
use experiment::recipe::{Behind, ReloadSign, ReloadState, RenderContext, Rendered};
use experiment::{EventKind, EventTarget, Recipes};

const TEXT: &str = include_str!("../../good/events.toml");

/// The experiment with these tables `[[events]]`.
fn with(events: &[&str]) -> String {
    let events: Vec<String> = events
        .iter()
        .map(|one| format!("[[events]]\n{one}\n"))
        .collect();
    let events = events.concat();
    let factors = match events.contains("{wait}") {
        true => "[factors]\nwait = [100, 200]\n",
        false => "",
    };
    TEXT.replace("# EVENTS", &format!("{factors}{events}"))
}

const RELOAD: &str = "at = \"1s\"\nserver = \"lb\"\nwhat = \"reload\"\n\
                      params = { check = true, connect_timeout_ms = \"{wait}\" }";
const ROLLING: &str =
    "at = \"1s\"\nservers = [\"one\", \"lb\"]\nwhat = \"rolling\"\npause = \"200ms\"";
const QUOTA: &str = "at = \"1s\"\nhost = \"vm\"\nwhat = \"quota\"\nquota = 0.5\nuntil = \"2s\"";
const SLOW: &str =
    "at = \"1s\"\nserver = \"one\"\nwhat = \"slow\"\ndelay = \"20ms\"\nuntil = \"2s\"";
const LOSS: &str = "at = \"3s\"\nserver = \"one\"\nwhat = \"loss\"\nloss = \"5%\"\ndelay = \"1ms\"";

#[test]
fn every_kind_is_read_and_written_again() {
    let text = with(&[RELOAD, ROLLING, QUOTA, SLOW, LOSS]);
    let experiment = good(parse(&text));
    assert_eq!(good(parse(&experiment.to_toml())).events, experiment.events);
    let conditions = experiment.conditions();
    let events = experiment.under(&conditions[1]).events;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::Reload,
            EventKind::Rolling,
            EventKind::Quota,
            EventKind::Slow,
            EventKind::Loss
        ]
    );
    let params = &events[0].settings.params;
    assert_eq!(params["connect_timeout_ms"], Value::Integer(200));
    assert_eq!(params["check"], Value::Boolean(true));
    assert_eq!(events[1].target.servers(), ["one", "lb"]);
    assert_eq!(events[1].settings.pause, Some(Duration::from_millis(200)));
    assert_eq!(events[2].target, EventTarget::Host("vm".to_owned()));
    assert_eq!(events[2].settings.quota, Some(0.5));
    assert_eq!(events[3].settings.delay, Some(Duration::from_millis(20)));
    assert_eq!(events[4].settings.loss, Some(0.05));
    // One server can be restarted as well.
    good(parse(&with(&[
        "at = \"1s\"\nserver = \"lb\"\nwhat = \"rolling\"",
    ])));
}

#[test]
fn a_link_or_a_quota_changes_only_where_there_is_one_and_once_at_a_time() {
    let no_link = with(&[SLOW]).replace("link = { rtt = \"2ms\" }\n", "");
    shown("event-no-link", &no_link);
    let beside = with(&[SLOW]).replace("host = \"vm\"\nupstreams", "host = \"one\"\nupstreams");
    shown("event-slow-beside", &beside);
    let both = with(&[SLOW, &LOSS.replace("3s", "1500ms")]);
    shown("event-overlap", &both);
    good(parse(&with(&[SLOW, LOSS])));
}

/// The experiment on machines.
fn on_machines(event: &str) -> String {
    with(&[event])
        .replace(
            "link = {}\nquota = 4\n",
            "ssh = \"vm\"\naddress = \"192.0.2.7\"\n",
        )
        .replace(
            "link = { rtt = \"2ms\" }\n",
            "ssh = \"one\"\naddress = \"192.0.2.8\"\n",
        )
        .replace("link = {}\n", "")
}

#[test]
fn on_machines_events_are_those_that_an_agent_can_do() {
    for event in [
        RELOAD,
        ROLLING,
        "at = \"1s\"\nserver = \"one\"\nwhat = \"kill\"",
        "at = \"1s\"\nserver = \"one\"\nwhat = \"stop\"\nuntil = \"2s\"",
        "at = \"1s\"\nserver = \"one\"\nwhat = \"quota\"\nquota = 0.5",
    ] {
        assert!(good(parse(&on_machines(event))).hosts_are_machines());
    }
    shown("event-machine-quota", &on_machines(QUOTA));
    let cut = "at = \"1s\"\nserver = \"one\"\nwhat = \"cut\"";
    let host_loss = LOSS.replace("server = \"one\"", "host = \"one\"");
    for (name, event) in [
        ("event-machine-cut", cut),
        ("event-machine-slow", SLOW),
        ("event-machine-loss", &host_loss),
    ] {
        shown(name, &on_machines(event));
    }
    // Where this machine is a host, its link is not in the way of delay and loss alone.
    let linked = |event: &str| {
        on_machines(event)
            .replace(
                "[hosts.client]\n",
                "[hosts.client]\naddress = \"192.0.2.9\"\n",
            )
            .replace("ssh = \"one\"\n", "ssh = \"one\"\nlink = {}\n")
    };
    for event in [SLOW, &host_loss] {
        assert!(good(parse(&linked(event))).hosts_are_machines());
    }
    shown("event-machine-cut-here", &linked(cut));
    let away = linked(cut).replace("[hosts.client]\n", "[hosts.client]\nssh = \"client\"\n");
    good(parse(&away));
    // Between machines a cut is a loss of the same link.
    let both = format!("{cut}\nuntil = \"5s\"\n[[events]]\n{LOSS}");
    let both = linked(&both).replace("[hosts.client]\n", "[hosts.client]\nssh = \"client\"\n");
    shown("event-machine-overlap", &both);
}

#[test]
fn the_servers_that_can_be_reloaded_are_known() {
    let able: Vec<String> = recipes()
        .iter()
        .filter(|recipe| recipe.can_reload())
        .map(|recipe| recipe.name.clone())
        .collect();
    for name in "apache balance caddy haproxy lighttpd nginx nginx-stream".split(' ') {
        assert!(able.iter().any(|one| one == name), "{name}: {able:?}");
    }
}

/// What a recipe with this table `[reload]` says of it.
fn reload_of(table: &str) -> Result<Recipes, String> {
    let dir = scratch("reload-recipe");
    let folder = dir.join("tiny");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("summary = \"s\"\n[start]\ncommand = [\"x\"]\n[reload]\n{table}\n");
    std::fs::write(folder.join("recipe.toml"), text).unwrap();
    Recipes::load(std::slice::from_ref(&*dir), &[]).map_err(|error| rendered(&error))
}

#[test]
fn a_reload_needs_a_way_and_a_sign() {
    for (table, says) in [
        ("answer = \"x\"", "either a signal or a command"),
        (
            "signal = \"HUP\"\ncommand = [\"x\"]\nanswer = \"x\"",
            "either a signal or a command",
        ),
        ("signal = \"HUP\"", "does not say how it shows"),
        ("signal = \"KILL\"\nanswer = \"x\"", "KILL"),
        ("signal = \"HUP\"\nanswer = \"{{ x\"", "template"),
    ] {
        let said = reload_of(table).map(drop).unwrap_err();
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(says), "{table}: {said}");
    }
    let recipes = reload_of("signal = \"HUP\"\nnew_process = true").unwrap();
    assert!(recipes.get("tiny").unwrap().can_reload());
}

#[test]
fn a_reload_changes_files_and_nothing_else() {
    let recipes = recipes();
    let nginx = recipes.get("nginx").unwrap();
    let started = RenderContext {
        upstreams: Vec::new(),
        reload: ReloadState {
            is_expected: true,
            number: 0,
        },
        ..context(nginx, Path::new("/d"), &[])
    };
    let conf = |rendered: &Rendered| {
        let file = rendered.files.iter().find(|file| file.path == "nginx.conf");
        String::from_utf8(file.unwrap().bytes.clone()).unwrap()
    };
    let before = nginx.render(&started).unwrap();
    assert!(!conf(&before).contains("X-Weigh-Reload"));
    let gzip = BTreeMap::from([("gzip".to_owned(), Value::Boolean(true))]);
    let after = nginx.render_reload(&started, &gzip, 2).unwrap();
    assert!(conf(&after).contains("add_header X-Weigh-Reload 2 always;"));
    assert!(conf(&after).contains("gzip on;") && !conf(&before).contains("gzip on;"));
    let sign = ReloadSign::Answer("X-Weigh-Reload: 2".to_owned());
    let reload = after.reload.unwrap();
    assert_eq!((reload.signal.as_deref(), reload.sign), (Some("HUP"), sign));
    // A parameter of the command's environment cannot change.
    let caddy = recipes.get("caddy").unwrap();
    let workers = BTreeMap::from([("workers".to_owned(), Value::Integer(2))]);
    let refused = caddy
        .render_reload(&started, &workers, 1)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("cannot change `workers`"), "{refused}");
    // HAProxy has no field to add where it relays bytes.
    let haproxy = recipes.get("haproxy").unwrap();
    let mut relay = RenderContext {
        upstreams: vec![Behind {
            name: "one".to_owned(),
            addr: "127.0.0.1:8081".parse().unwrap(),
            dir: None,
            tls: false,
        }],
        ..started
    };
    let sign = |context: &RenderContext| {
        let rendered = haproxy.render_reload(context, &BTreeMap::new(), 1).unwrap();
        assert!(rendered.command.contains(&"-W".to_owned()));
        rendered.reload.unwrap().sign
    };
    assert_eq!(
        sign(&relay),
        ReloadSign::Answer("X-Weigh-Reload: 1".to_owned())
    );
    relay.params = BTreeMap::from([("mode".to_owned(), Value::Text("tcp".to_owned()))]);
    assert_eq!(sign(&relay), ReloadSign::NewProcess);
    relay.reload.is_expected = false;
    let alone = haproxy.render(&relay).unwrap();
    assert!(!alone.command.contains(&"-W".to_owned()));
}
