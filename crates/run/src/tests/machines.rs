//! Events and the search for bottlenecks where hosts are machines, whose clocks differ.

use super::*;
use readings::{BottleneckReading, Change};

const FAR: &str = include_str!("machines/far.toml");

const EVENT: &str = include_str!("machines/event.toml");

const SEARCH: &str = include_str!("machines/search.toml");

/// Machines that were started an hour apart.
fn apart() -> SharedScript {
    let script = script();
    let hour_ns = 3_600_000_000_000;
    let ahead_ns = [("vm".to_owned(), hour_ns), ("client".to_owned(), -hour_ns)];
    script.borrow_mut().ahead_ns = ahead_ns.into();
    script
}

#[test]
fn an_event_happens_when_it_is_due_by_the_clock_of_its_machine() {
    let script = apart();
    let ran = run(&format!("{FAR}{EVENT}"), &script);
    let event = &ran.events_made()[0];
    let back_s = event.back_s.unwrap();
    // Not before it is due; an hour too late would be a clock that was not converted.
    assert!((0.01..60.0).contains(&event.at_s), "{event:?}");
    assert!((0.02..60.0).contains(&back_s), "{event:?}");
    let lines = log_of(&script, &["suspend"]);
    assert_eq!(lines[..2], ["suspend a true", "suspend a false"]);
}

#[test]
fn servers_whose_processes_stay_are_sampled_on_their_machine() {
    let quota = EVENT.replace("\"stop\"", "\"quota\"\nquota = 0.5");
    for (event, line) in [(EVENT, "sample  on vm"), (&quota, "sample a on vm")] {
        let script = apart();
        let ran = run(&format!("{FAR}{event}"), &script);
        assert_eq!(ran.failures(), [""; 0]);
        let lines = log_of(&script, &["sample"]);
        assert!(
            !lines.is_empty() && lines.iter().all(|it| it == line),
            "{lines:?}"
        );
        let orders = &script.borrow().orders;
        let has_none = |order: &agent::wire::LoadOrder| {
            order.watch.is_empty() && order.watch_others.is_empty()
        };
        assert!(orders.iter().all(has_none), "the load samples no server");
    }
}

#[test]
fn a_fault_on_a_machine_is_undone_after_a_failed_load() {
    let script = apart();
    script.borrow_mut().fails_in_load = Some(1);
    let ran = run(
        &format!("{FAR}{}", EVENT.replace("until = \"20ms\"\n", "")),
        &script,
    );
    let lines = log_of(&script, &["suspend"]);
    assert_eq!(lines[..2], ["suspend a true", "suspend a false"]);
    assert_eq!(ran.failures()[0], "the load broke off");
}

fn search(script: &SharedScript) -> BottleneckReading {
    let ran = run(&format!("{FAR}{SEARCH}"), script);
    let readings = ran.journal.bottlenecks();
    (*readings
        .first()
        .unwrap_or_else(|| panic!("{:?}", ran.events)))
    .clone()
}

#[test]
fn the_bottleneck_of_a_server_on_another_machine_is_confirmed() {
    let script = apart();
    script.borrow_mut().limited_rate = 0.5;
    let reading = search(&script);
    assert_eq!(reading.apart("a"), Some("vm"));
    assert!(reading.server_cpus.is_empty(), "none on the load's machine");
    assert_eq!(reading.cpus_of_servers["a"], [0, 1]);
    let seen = &reading.probes[0].seen;
    assert_eq!(seen.servers["a"].cpus, 1.0);
    assert_eq!(seen.other_cpus["vm"].len(), 1);
    let lines = log_of(&script, &["quota"]);
    assert_eq!(lines[..2], ["quota a Some(0.5)", "quota a None"]);
    let found = verdict::bottlenecks(&[&reading]);
    assert_eq!(found[0].server.as_deref(), Some("a"));
    assert_eq!(found[0].standing, verdict::Standing::Confirmed);
}

#[test]
fn what_cannot_be_tested_on_machines_is_said_with_the_reason() {
    let script = apart();
    script.borrow_mut().quota_fails = true;
    let reading = search(&script);
    let found = verdict::bottlenecks(&[&reading]);
    assert_ne!(found[0].standing, verdict::Standing::Confirmed);
    for says in [
        "half the servers' CPU time: no control group can be made",
        "twice the link's rate: the network between the machines cannot be changed",
    ] {
        let told = &found[0].not_tested;
        assert!(told.iter().any(|it| it == says), "{told:?}");
    }
}

/// [`FAR`] with a link of the client's host, and one of the server's that adds nothing.
fn with_link(link: &str) -> String {
    let client = format!("ssh = \"client\"\naddress = \"192.0.2.8\"\nlink = {link}\n");
    FAR.replace("ssh = \"client\"\n", &client)
        .replace("ssh = \"vm\"\n", "ssh = \"vm\"\nlink = {}\n")
}

/// What lies between both hosts: the agent of each is told so.
fn both_ways(link: &str) -> [String; 2] {
    [
        format!("link vm to client: {link}"),
        format!("link client to vm: {link}"),
    ]
}

#[test]
fn events_change_a_link_on_both_of_its_sides_and_restore_it() {
    for (what, changed) in [
        ("\"slow\"\ndelay = \"30ms\"", "50 ms, 0"),
        ("\"loss\"\nloss = \"25%\"", "20 ms, 0.25"),
        ("\"cut\"", "20 ms, 1"),
    ] {
        let script = apart();
        let event = EVENT.replace("\"stop\"", what);
        let ran = run(
            &format!("{}{event}", with_link("{ rtt = \"20ms\" }")),
            &script,
        );
        assert_eq!(ran.failures(), [""; 0]);
        let event = &ran.events_made()[0];
        assert!(
            event.at_s >= 0.01 && event.back_s >= Some(0.02),
            "{event:?}"
        );
        let lines = log_of(&script, &["link"]);
        let expected = [both_ways(changed), both_ways("20 ms, 0")].concat();
        assert_eq!(lines[..4], expected, "{what}");
    }
    let script = apart();
    script.borrow_mut().links_fail = true;
    let event = EVENT.replace("\"stop\"", "\"cut\"");
    let ran = run(&format!("{}{event}", with_link("{}")), &script);
    let why = &ran.failures()[0];
    assert!(why.contains("host `vm`: the kernel refuses"), "{why}");
}

#[test]
fn twice_the_rate_of_a_link_between_machines_is_tried() {
    let script = apart();
    let link = with_link("{ rate = \"8Mbit/s\" }");
    let ran = run(&format!("{link}{SEARCH}"), &script);
    let readings = ran.journal.bottlenecks();
    assert_eq!(readings[0].link_bits_per_s, Some(8e6));
    let changes = readings[0].probes.iter().map(|probe| probe.change);
    let twice = changes.filter(|one| *one == Change::TwiceTheLinkRate);
    assert_eq!(twice.count(), 3);
    let told = &readings[0].not_tried;
    assert!(!told.iter().any(|it| it.contains("link")), "{told:?}");
    let lines = log_of(&script, &["link"]);
    let expected = [
        both_ways("0 ms, 0, 16000000 bit/s"),
        both_ways("0 ms, 0, 8000000 bit/s"),
    ];
    assert_eq!(lines[..4], expected.concat());
}
