//! Events begin when they are due and are undone, whatever becomes of the load.

use std::time::Duration;

use super::*;
use agent::wire::Order;

const STOPPED: &str = include_str!("events/experiment.toml");

#[test]
fn an_event_is_undone_after_a_failed_load() {
    let script = script_with(|it| it.fails_in_load = Some(1));
    let ran = run(STOPPED, &script);
    let log = &script.borrow().log;
    let at = |what: &str| log.iter().position(|one| one == what);
    assert!(at("suspend a true").is_some(), "{log:?}");
    assert!(at("suspend a true") < at("suspend a false"), "{log:?}");
    assert_eq!(
        ran.failures().first().map(String::as_str),
        Some("the load broke off")
    );
}

/// A sample of them may take long, and the agent carries out one order at a time.
#[test]
fn connections_of_a_stopped_server_are_not_counted_just_before_an_event_is_due() {
    let counted = |event: &str| {
        let script = script();
        run(&with_event(event), &script);
        log_of(&script, &["connections"]).len()
    };
    let stop = "server = \"a\"\nwhat = \"stop\"";
    let other = "[[events]]\nat = \"150ms\"\nserver = \"a\"\nwhat = \"kill\"";
    assert!(counted(stop) > 0);
    assert!(counted(&format!("{stop}\nuntil = \"800ms\"")) > 0);
    assert_eq!(counted(&format!("{stop}\nuntil = \"15ms\"")), 0);
    assert_eq!(counted(&format!("{stop}\n{other}")), 0);
}

#[test]
fn an_event_that_is_begun_or_undone_late_says_so() {
    const DELAY: Duration = Duration::from_millis(20);
    let begun: fn(&Order) -> Duration = |order| match order {
        Order::Suspend {
            suspended: true, ..
        } => DELAY,
        _ => Duration::ZERO,
    };
    let undone: fn(&Order) -> Duration = |order| match order {
        Order::Suspend {
            suspended: false, ..
        } => DELAY,
        _ => Duration::ZERO,
    };
    let event = "server = \"a\"\nwhat = \"stop\"\nuntil = \"12ms\"";
    for delay in [begun, undone] {
        let script = script();
        script.borrow_mut().order_delay = delay;
        let ran = run(&with_event(event), &script);
        let event = &ran.events_made()[0];
        let late_s = event.late_s.unwrap();
        let most = (event.at_s - 0.005).max(event.back_s.unwrap() - 0.012);
        assert!(late_s >= 0.02 && late_s <= most, "{event:?}");
    }
}

#[test]
fn an_event_that_was_not_undone_in_the_window_is_as_late_as_its_end() {
    // The fake load is over long before.
    let event = "server = \"a\"\nwhat = \"stop\"\nuntil = \"800ms\"";
    let ran = run(&with_event(event), &script());
    let event = &ran.events_made()[0];
    let late_s = event.late_s.unwrap();
    assert!(
        (late_s - 0.2).abs() < 1e-6 && event.back_s.is_none(),
        "{event:?}"
    );
}

/// Two back ends behind a balancer, and these events from 5 ms on.
fn with_two_back_ends(events: &str) -> String {
    with_event(events).replace(
        "[subjects]\na = \"http://a/\"",
        "[servers.b]\nrecipe = \"origin\"\n[servers.lb]\nrecipe = \"balance\"\n\
         upstreams = [\"a\", \"b\"]\n[subjects]\na = \"http://lb/\"",
    )
}

/// A server that is started again takes its time, and one that is stopped as well.
#[test]
fn a_wait_for_a_server_does_not_delay_other_events() {
    let kill = "server = \"a\"\nwhat = \"kill\"\nuntil = \"6ms\"";
    let rolling = "servers = [\"a\"]\nwhat = \"rolling\"";
    let stop = "[[events]]\nat = \"15ms\"\nserver = \"b\"\nwhat = \"stop\"";
    // The load takes 30 ms.
    let (later, at_once) = (Duration::from_millis(60), Duration::ZERO);
    for (first, ready_after, ends_after) in [
        (kill, later, at_once),
        (rolling, later, at_once),
        (rolling, at_once, later),
    ] {
        let script = script();
        script.borrow_mut().ready_after = ready_after;
        script.borrow_mut().ends_after = ends_after;
        let text = with_two_back_ends(&format!("{first}\n{stop}"));
        let ran = run(&text, &script);
        let log = log_of(&script, &["suspend", "start"]);
        let resumed = log.iter().position(|one| one == "suspend b false");
        let suspended = log.iter().position(|one| one == "suspend b true");
        assert!(suspended.is_some() && suspended < resumed, "{log:?}");
        let events = ran.events_made();
        // It is not ready within the load, but is restored afterwards.
        assert!(
            events[0].back_s.is_none_or(|back_s| back_s > 0.03),
            "{events:?}"
        );
        assert!(
            events[1].late_s.is_some_and(|late_s| late_s < 0.01),
            "{events:?}"
        );
    }
}

#[test]
fn an_event_waits_for_its_own_server_to_start() {
    let kill = "server = \"a\"\nwhat = \"kill\"\nuntil = \"6ms\"";
    let stop = "[[events]]\nat = \"8ms\"\nserver = \"a\"\nwhat = \"stop\"";
    let script = script_with(|it| it.ready_after = Duration::from_millis(12));
    let ran = run(&with_event(&format!("{kill}\n{stop}")), &script);
    let events = ran.events_made();
    let back_s = events[0].back_s.unwrap();
    assert!(events[1].at_s >= back_s && back_s >= 0.018, "{events:?}");
    let late_s = events[1].late_s.unwrap();
    assert!(
        late_s < 0.01,
        "the wait for its server is not lateness: {events:?}"
    );
    // One that is never ready: the second event does not happen, which is late.
    let script = script_with(|it| it.ready_after = Duration::from_millis(40));
    let text = with_event(&format!("{kill}\n{stop}"));
    let text = text.replace("latency_window = \"1s\"", "latency_window = \"25ms\"");
    let ran = run(&text, &script);
    let events = ran.events_made();
    assert!(events[0].back_s.unwrap() >= 0.04, "{events:?}");
    assert!(events[1].late_s.unwrap() >= 0.016, "{events:?}");
}

#[test]
fn an_event_that_cannot_be_undone_costs_the_hosts() {
    let script = script_with(|it| it.fails_in_load = Some(1));
    script.borrow_mut().resume_fails = true;
    let ran = run(STOPPED, &script);
    let failures = ran.failures();
    assert!(
        failures.iter().any(|it| it.contains("could not be")),
        "{failures:?}"
    );
    assert!(ran.opened > 1, "the server stays suspended");
}

/// [`STOPPED`] with another event.
fn with_event(event: &str) -> String {
    let old = "server = \"a\"\nwhat = \"stop\"";
    assert!(STOPPED.contains(old));
    STOPPED.replace(old, event)
}

const ORIGIN: &str = "[servers.a]\nrecipe = \"origin\"";
const BALANCE: &str = "[servers.a]\nrecipe = \"balance\"\nupstreams = [\"127.0.0.1:9\"]";

#[test]
fn a_reload_is_in_effect_when_it_shows_and_is_undone_at_the_end() {
    let script = script_with(|it| it.in_effect_at_check = 2);
    let event = "server = \"a\"\nwhat = \"reload\"\nparams = { check = true }";
    let text = with_event(event).replace(ORIGIN, BALANCE);
    let ran = run(&text, &script);
    let event = &ran.events_made()[0];
    assert_eq!((event.what.as_str(), event.back_s), ("reload", None));
    // It was checked twice, 10 ms apart.
    let after_s = event.in_effect_after_s.unwrap();
    assert!(after_s >= 0.01, "{after_s}");
    let line = "reload a HUP balance.toml";
    // A reload and its undoing, for the baseline and for its copy, which are the same processes.
    assert_eq!(log_of(&script, &["reload"]), [line; 4]);
}

/// A reload that adds routes is in effect when the last of the new ones answers.
#[test]
fn a_reload_asks_for_what_the_new_configuration_has() {
    let nginx = "[servers.a]\nrecipe = \"nginx\"\nupstreams = [\"127.0.0.1:9\"]";
    for (params, path) in [("", "/"), ("params = { routes = 3 }", "/r3/")] {
        let script = script();
        let event = format!("server = \"a\"\nwhat = \"reload\"\n{params}");
        run(&with_event(&event).replace(ORIGIN, nginx), &script);
        let asked = script.borrow().reload_asked.clone();
        assert!(
            asked.starts_with(&format!("GET {path} HTTP/1.1\r\n")),
            "{asked}"
        );
    }
}

#[test]
fn a_reload_that_does_not_show_has_no_time_and_is_undone_after_a_failed_load() {
    let script = script_with(|it| it.in_effect_at_check = usize::MAX);
    let event = "server = \"a\"\nwhat = \"reload\"";
    let text = with_event(event).replace(ORIGIN, BALANCE);
    let ran = run(&text, &script);
    assert_eq!(ran.events_made()[0].in_effect_after_s, None);
    let script = script_with(|it| it.fails_in_load = Some(1));
    run(&text, &script);
    assert!(log_of(&script, &["reload"]).len() >= 2);
}

#[test]
fn a_parameter_of_the_command_line_cannot_be_reloaded() {
    let event = "server = \"a\"\nwhat = \"reload\"\nparams = { io = \"epoll\" }";
    let text = with_event(event).replace(ORIGIN, BALANCE);
    let failures = run(&text, &script()).failures();
    let told = "a reload cannot change `io`";
    assert!(failures.iter().all(|it| it.contains(told)), "{failures:?}");
    assert!(!failures.is_empty());
}

#[test]
fn a_rolling_restart_takes_one_server_after_the_other() {
    let script = script();
    let text = with_two_back_ends("servers = [\"b\", \"a\"]\nwhat = \"rolling\"");
    let ran = run(&text, &script);
    let lines = log_of(&script, &["start", "load", "stop"]);
    let load = lines.iter().position(|it| it.starts_with("load")).unwrap();
    let rolled = ["stop b", "start b", "stop a", "start a"];
    assert_eq!(lines[load + 1..load + 5], rolled, "{lines:?}");
    let events = ran.events_made();
    let names: Vec<&str> = events.iter().map(|event| event.server.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let (first, second) = (&events[0], &events[1]);
    assert!(
        second.at_s >= first.back_s.unwrap() && first.at_s >= 0.005,
        "{events:?}"
    );
    assert!(second.back_s.is_some());
}

#[test]
fn a_rolling_restart_that_has_no_time_says_who_was_left_out() {
    let script = script();
    let text = with_two_back_ends("servers = [\"b\", \"a\"]\nwhat = \"rolling\"\npause = \"10s\"");
    let ran = run(&text, &script);
    assert!(
        ran.warnings("`a` had not been restarted yet") >= 1,
        "{:?}",
        ran.events
    );
    assert_eq!(ran.events_made().len(), 1);
}

#[test]
fn a_quota_ends_with_the_event_or_with_a_failed_load() {
    for fails in [None, Some(1)] {
        let script = script();
        script.borrow_mut().fails_in_load = fails;
        let event = "server = \"a\"\nwhat = \"quota\"\nquota = 0.25\nuntil = \"15ms\"";
        run(&with_event(event), &script);
        let lines = log_of(&script, &["quota"]);
        assert_eq!(lines[..2], ["quota a Some(0.25)", "quota a None"]);
        assert_eq!(lines.len() % 2, 0, "{lines:?}");
    }
}

/// A server on a host with a quota and a link.
fn on_a_host(event: &str) -> String {
    with_event(event)
        .replace(
            "[servers.a]\nrecipe = \"origin\"",
            "[hosts.client]\n[hosts.one]\nquota = 2\nlink = { loss = \"1%\" }\n\
             [servers.a]\nrecipe = \"origin\"\nhost = \"one\"",
        )
        .replace("[load]\n", "[load]\nhost = \"client\"\n")
}

#[test]
fn a_hosts_link_and_quota_change_and_are_restored() {
    for (event, lines) in [
        (
            "server = \"a\"\nwhat = \"slow\"\ndelay = \"20ms\"\nuntil = \"15ms\"",
            ["link one 20 ms, 0", "link one as declared"],
        ),
        (
            "host = \"client\"\nwhat = \"loss\"\nloss = \"10%\"",
            ["link client 0 ms, 0.1", "link client as declared"],
        ),
        (
            "host = \"one\"\nwhat = \"quota\"\nquota = 0.5",
            ["quota of the host Some(0.5)", "quota of the host None"],
        ),
    ] {
        let text = on_a_host(event).replace("[hosts.client]\n", "[hosts.client]\nlink = {}\n");
        for fails in [None, Some(1)] {
            let script = script();
            script.borrow_mut().fails_in_load = fails;
            let ran = run(&text, &script);
            let log = log_of(&script, &["link", "quota"]);
            assert_eq!(log[..2], lines, "{:?}", ran.failures());
            assert_eq!(log.len() % 2, 0, "{log:?}");
            if fails.is_none() && event.starts_with("host") {
                let event = &ran.events_made()[0];
                assert_eq!(
                    (event.server.as_str(), event.in_rotation_after_s),
                    ("", None)
                );
                assert!(event.host.is_some());
            }
        }
    }
}
