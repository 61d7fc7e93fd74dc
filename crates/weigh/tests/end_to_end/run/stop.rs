//! A run that is stopped by a signal keeps what it has measured, and goes on later.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{
    HUP, INT, Place, RUN, Running, TERM, alive, array, descendants, flat, journal, key, quickly,
    signal, trials, write_light_proxy_cost,
};

const SETS: [&str; 3] = [
    "design.blocks=3",
    "design.window=500ms",
    "design.latency_window=0s",
];
/// The same with one block.
const ONE_BLOCK: [&str; 3] = ["design.blocks=1", SETS[1], SETS[2]];

fn start<'p>(place: &'p Place, sets: &[&str]) -> Running<'p> {
    let mut command = place.weigh(&quickly(write_light_proxy_cost(place), sets, "r"));
    // No order of these runs takes longer, so a silent agent is known by it.
    command.env("WEIGH_AGENT_SILENCE_S", "8");
    place.start_command(command)
}

/// How often each trial stands in the journal.
fn counted(folder: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for trial in trials(folder) {
        *counts.entry(key(&trial)).or_insert(0) += 1;
    }
    counts
}

/// Stops a run in its second block, and looks at what it has kept.
fn stopped(place: &Place, number: i32, status: i32) {
    let folder = place.path("r");
    let mut running = start(place, &SETS);
    // The first block is in the journal, the second under way: after a second of warming up it is
    // measured for a second and a half.
    running.until_said("block 2/3");
    running.go_on(Duration::from_millis(1500));
    let family = descendants(running.pid());
    running.signal(number);
    let done = running.end().expect(status);
    done.says(&["what was measured is kept", "weigh run --resume r"]);
    assert!(alive(&family).is_empty(), "{:?}", alive(&family));
    assert!(place.left().is_empty(), "{:?}", place.left());
    assert_no_groups(&done.agents);

    // What was measured is shown, and only whole blocks of it are kept.
    let document = done.json();
    assert_eq!(document["trials"]["failed"], 0, "{}", document["trials"]);
    let before = trials(&folder);
    // What the machine spoilt was repeated.
    assert_eq!(document["trials"]["done"], counted(&folder).len());
    assert!(
        before.len().is_multiple_of(3) && counted(&folder).len() < 9,
        "{}",
        before.len()
    );
    for trial in &before {
        let measured = &trial["outcome"]["done"]["throughput"];
        let duration_s = measured["duration_s"].as_f64().unwrap();
        assert!((duration_s - 0.5).abs() < 0.01, "cut short: {duration_s} s");
    }
    let last = journal(&folder).pop().unwrap();
    assert_eq!(last["row"], "end");
    assert_eq!(last["complete"], false);
}

/// Goes on with a run that was stopped, whatever stopped it.
fn resumed(place: &Place) {
    let folder = place.path("r");
    let before = trials(&folder);
    let call = "run --resume r --format json";
    let document = place.run(call).result();
    assert_eq!(document["trials"]["done"], 9);
    assert_eq!(document["trials"]["failed"], 0);
    let counts = counted(&folder);
    assert_eq!(counts.len(), 9, "{counts:?}");
    // What was kept is not measured again.
    let kept: Vec<String> = before.iter().map(key).collect();
    let later = trials(&folder).split_off(before.len());
    assert!(
        !later.iter().any(|one| kept.contains(&key(one))),
        "{counts:?}"
    );
    assert_eq!(
        trials(&folder)[..before.len()],
        before,
        "what was kept stays"
    );
    assert_eq!(journal(&folder).last().unwrap()["complete"], true);
    assert!(folder.join("hosts.json").exists());
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// No control group of these agents is left.
fn assert_no_groups(agents: &std::collections::BTreeSet<String>) {
    assert!(!agents.is_empty(), "the test saw no agent");
    let left = crate::common::control_groups(agents);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn ctrl_c_is_status_130_and_resume_makes_the_rest() {
    let place = Place::new();
    stopped(&place, INT, 130);
    resumed(&place);
}

#[test]
fn sigterm_is_status_143_and_keeps_what_was_measured() {
    stopped(&Place::new(), TERM, 143);
}

#[test]
fn a_terminal_that_goes_is_status_129_and_keeps_what_was_measured() {
    stopped(&Place::new(), HUP, 129);
}

#[test]
fn a_run_that_waits_for_a_server_can_be_stopped_at_once() {
    let place = Place::new();
    place.recipe(
        "sleepy",
        "summary = \"never answers\"\n[programs]\nsleep = [\"sleep\"]\n\
         [start]\ncommand = [\"{{ programs.sleep }}\", \"1000\"]\n\
         [ready]\npath = \"/\"\ntimeout = \"90s\"\n",
    );
    place.write(
        "x.toml",
        "title = \"x\"\n[servers.a]\nrecipe = \"sleepy\"\n[subjects]\nx = \"http://a/\"\n\
         y = \"http://a/y\"\n",
    );
    let mut running = place.start(RUN);
    let pid = running.pid();
    running.until("the server is up", || {
        descendants(pid)
            .iter()
            .any(|process| process.to_string().contains("sleep 1000"))
    });
    running.signal(INT);
    // Far less than the server has to become ready.
    let done = running.end_within(Duration::from_secs(15)).expect(130);
    let document = done.json();
    assert_eq!(document["trials"]["done"], 0);
    assert_eq!(document["trials"]["failed"], 0);
    assert!(array(&document["warnings"]).is_empty(), "{document}");
    assert!(place.left().is_empty(), "{:?}", place.left());
    assert_no_groups(&done.agents);
}

#[test]
fn the_agent_is_not_reached_by_a_terminals_ctrl_c() {
    use std::os::unix::process::CommandExt as _;
    let place = Place::new();
    let mut command = place.weigh(&quickly(write_light_proxy_cost(&place), &SETS, "r"));
    // A terminal signals the whole group of processes in its foreground.
    command.process_group(0);
    let mut running = place.start_command(command);
    running.until_said("block 1/3");
    running.go_on(Duration::from_millis(800));
    net::os::kill(-(running.pid() as i32), INT).unwrap();
    let done = running.end().expect(130);
    assert!(!done.err.contains("lost the agent"), "{}", done.err);
    assert_eq!(done.json()["trials"]["failed"], 0);
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// SIGSTOP on x86 and ARM.
const STOP: i32 = 19;

/// A run whose agent stands still in its first block.
fn with_a_stopped_agent(place: &Place) -> Running<'_> {
    let mut running = start(place, &ONE_BLOCK);
    running.until_said("block 1/1");
    running.go_on(Duration::from_millis(800));
    let agent = descendants(running.pid())
        .into_iter()
        .find(|process| process.to_string().ends_with(" agent)"));
    signal(agent.unwrap().pid as u32, STOP);
    running
}

#[test]
fn an_agent_that_stands_still_is_given_up_once_the_run_is_to_stop() {
    let place = Place::new();
    let running = with_a_stopped_agent(&place);
    let family = descendants(running.pid());
    running.signal(INT);
    let done = running.end_within(Duration::from_secs(25)).expect(130);
    assert!(alive(&family).is_empty(), "{:?}", alive(&family));
    assert!(place.left().is_empty(), "{:?}", place.left());
    assert_no_groups(&done.agents);
}

#[test]
fn a_second_signal_leaves_no_agent_that_stands_still() {
    let place = Place::new();
    let mut running = with_a_stopped_agent(&place);
    let family = descendants(running.pid());
    running.signal(INT);
    running.go_on(Duration::from_millis(500));
    running.signal(INT);
    // Less than the agent has after the first.
    let done = running.end_within(Duration::from_secs(7)).expect(130);
    // What was killed is gone a moment later.
    let killed = Instant::now();
    let left = || [alive(&family), place.left()].concat();
    while !left().is_empty() && killed.elapsed() < Duration::from_secs(1) {
        sleep(Duration::from_millis(5));
    }
    assert!(left().is_empty(), "{:?}", left());
    assert_no_groups(&done.agents);
}

#[test]
fn an_agent_that_stands_still_costs_its_block() {
    let place = Place::new();
    let running = with_a_stopped_agent(&place);
    let done = running.end();
    let document = done.result();
    assert_eq!(document["trials"]["failed"], 0, "made again: {document}");
    // The missing answer or the missing heartbeat is reported, whichever is noticed first.
    let lost = ["has not answered for", "was silent for"];
    let said = flat(&done.err);
    let is_told = lost
        .iter()
        .any(|how| said.contains(&format!("lost the agent: it {how}")));
    assert!(is_told, "{said}");
    assert!(place.left().is_empty(), "{:?}", place.left());
    assert_no_groups(&done.agents);
}
