//! The program can be killed at any moment: nothing stays behind, and the run goes on later.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::{
    Done, KILL, Place, Running, alive, can_run, control_groups, descendants, devices,
    groups_of_hosts, journal, key, proxy_and_backend, run_with, trials, wait_until,
    write_light_proxy_cost,
};
use crate::hosts::run::can_be_made;

/// So soon after the program's death everything that it started has to be gone.
const SOON: Duration = Duration::from_secs(2);

const PROXY_COST: [&str; 6] = [
    "design.blocks=2",
    "design.warmup=200ms",
    "design.window=400ms",
    "design.latency_window=0s",
    "design.bottleneck=false",
    "design.retries=0",
];

/// Kills the program and looks that all is gone.
fn kill(place: &Place, mut running: Running<'_>, moment: &str) {
    let family = descendants(running.pid());
    let agents = running.look().clone();
    running.signal(KILL);
    let killed = Instant::now();
    running.end().expect(-KILL);
    let mut left = Vec::new();
    while killed.elapsed() < SOON {
        left = place.left();
        left.extend(alive(&family));
        left.extend(control_groups(&agents));
        if left.is_empty() {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{SOON:?} after it was killed {moment} there are {left:#?}");
}

/// Goes on with the run; every trial of the plan is done then.
fn resume(place: &Place, count: usize) {
    let folder = place.path("r");
    let before = trials(&folder);
    let done = place.run("run --resume r --format json");
    let document = done.result();
    assert_eq!(document["trials"]["done"], count, "{}", done.err);
    assert_eq!(document["trials"]["failed"], 0, "{}", document["trials"]);
    let after = trials(&folder);
    assert_eq!(after[..before.len()], before, "what was kept stays");
    let keys: BTreeSet<String> = after.iter().map(key).collect();
    assert_eq!(keys.len(), count);
    assert_eq!(journal(&folder).last().unwrap()["complete"], true);
    for name in ["hosts.json", "report.html", "summary.md", "summary.json"] {
        assert!(folder.join(name).exists(), "no {name}");
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}

/// A share of a whole, different in each run of the tests.
fn random_share(salt: u32) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mixed = u64::from(now.subsec_nanos() ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

fn begun(folder: &Path) -> bool {
    !journal(folder).is_empty()
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_nothing_and_goes_on() {
    // The two blocks take some three seconds, and never less: one moment in each of them.
    let mut sets = PROXY_COST;
    sets[2] = "design.window=200ms";
    for (part, from_s) in [0.0, 1.6].into_iter().enumerate() {
        let place = Place::new();
        let folder = place.path("r");
        let mut running = place.start(&run_with(write_light_proxy_cost(&place), &sets, "r"));
        running.until("the journal has begun", || begun(&folder));
        let after = Duration::from_secs_f64(from_s + 0.7 * random_share(part as u32));
        running.go_on(after);
        kill(&place, running, &format!("{after:?} after it had begun"));
        resume(&place, 6);
    }
}

#[test]
fn two_processes_do_not_write_the_same_run() {
    let place = Place::new();
    let folder = place.path("r");
    let call = run_with(write_light_proxy_cost(&place), &PROXY_COST, "r");
    let mut running = place.start(&call);
    running.until("the journal has begun", || begun(&folder));
    let process = format!("(process {})", running.pid());
    let done = place.run("run --resume r").expect(1);
    done.says(&["a run is going on in r"]);
    // Not every kernel tells who.
    if !std::fs::read("/proc/locks").unwrap_or_default().is_empty() {
        done.says(&[&process]);
    }
    place.run(&call).expect(2).says(&["holds a run already"]);
    running.until("a trial was measured", || !trials(&folder).is_empty());
    let report = place.run("report r --format json");
    assert!(report.json()["trials"]["done"].as_u64() > Some(0));
    assert!(!running.has_ended());
    running.signal(KILL);
    running.end().expect(-KILL);
    resume(&place, 6);
}

#[test]
fn of_two_that_begin_in_a_folder_at_once_one_is_refused() {
    let place = Place::new();
    let call = short_run(write_light_proxy_cost(&place), "r");
    let starts = [place.start(&call), place.start(&call)];
    let mut ends = starts.map(|start| start.end());
    ends.sort_by_key(|end| end.status == 2);
    let [done, refused] = ends;
    assert_eq!(done.result()["trials"]["done"], 3, "{}", done.err);
    refused.expect(2).says(&["holds a run already", "--resume"]);
}

#[test]
fn real_servers_and_their_scripts_are_gone_too() {
    let place = Place::new();
    if !can_run(&place, "lighttpd-proxy") {
        return;
    }
    let mut sets = PROXY_COST.to_vec();
    sets[0] = "design.blocks=1";
    sets.extend([
        "factors.from=[\"client\"]",
        "factors.load=[{ threads = 1, connections = 8 }]",
        "design.slice=200ms",
    ]);
    let mut running = place.start(&run_with("lighttpd-proxy", &sets, "r"));
    let pid = running.pid();
    running.until("scripts run", || {
        let processes = descendants(pid);
        let runs = |name: &str| processes.iter().any(|one| one.to_string().contains(name));
        runs("second.pl") && runs("lighttpd.conf")
    });
    kill(&place, running, "while scripts ran");
    resume(&place, 4);
}

#[test]
fn nothing_is_waited_for_once_the_program_is_dead() {
    for (script, ready_s) in [
        // A server that does not become ready...
        ("exec sleep 1000", 90),
        // ...and one that is to be stopped and has much time for it.
        (
            "trap '' TERM; {{ weigh }} origin --listen {{ listen.addr }} & sleep 1000",
            90,
        ),
    ] {
        let place = Place::new();
        place.recipe(
            "slow",
            &format!(
                "summary = \"slow\"\n[programs]\nsh = [\"sh\"]\n\
                 [start]\ncommand = [\"{{{{ programs.sh }}}}\", \"-c\", \"{script}\"]\n\
                 [stop]\nsignals = [{{ signal = \"TERM\", wait = \"60s\" }}]\n\
                 [ready]\npath = \"/\"\ntimeout = \"{ready_s}s\"\n"
            ),
        );
        place.write(
            "x.toml",
            "title = \"x\"\n[servers.a]\nrecipe = \"slow\"\n\
             [subjects]\nx = \"http://a/\"\ny = \"http://a/bytes/9\"\n",
        );
        let mut call = run_with("x.toml", &PROXY_COST, "r");
        call.extend(["--recipes", "recipes"]);
        let mut running = place.start(&call);
        let pid = running.pid();
        running.until("the server is up", || {
            descendants(pid)
                .iter()
                .any(|one| one.to_string().contains("sleep 1000"))
        });
        if script.contains("origin") {
            // Its first block is measured by then, and the server told to stop.
            running.go_on(Duration::from_secs(4));
        }
        kill(&place, running, script);
    }
}

#[test]
fn an_agent_that_is_killed_costs_its_block_and_leaves_nothing() {
    let place = Place::new();
    let folder = place.path("r");
    let mut running = place.start(&run_with(write_light_proxy_cost(&place), &PROXY_COST, "r"));
    running.until_said("block 1/2");
    running.go_on(Duration::from_millis(800));
    let agent = descendants(running.pid())
        .into_iter()
        .find(|process| process.to_string().ends_with(" agent)"))
        .unwrap();
    let family = descendants(agent.pid as u32);
    net::os::kill(agent.pid, KILL).unwrap();
    wait_until("its servers are gone", SOON, || alive(&family).is_empty());
    let done = running.end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    done.says(&["lost the agent", "block 2/2"]);
    assert!(place.left().is_empty(), "{:?}", place.left());
    let groups = control_groups(&done.agents);
    assert!(groups.is_empty(), "{groups:?}");
    assert_eq!(done.agents.len(), 2, "another took its place");
    let failed = trials(&folder)
        .into_iter()
        .filter(|trial| trial["outcome"]["failed"].is_object())
        .count();
    assert_eq!(failed, 3);
    resume(&place, 6);
}

/// Moments at which each of two runs is killed, one in each such share of its time.
const MOMENTS: usize = 5;

const SHORT: [&str; 6] = [
    "design.blocks=1",
    "design.warmup=50ms",
    "design.window=200ms",
    "design.latency_window=0s",
    "design.bottleneck=false",
    "design.retries=0",
];

fn on_hosts() -> String {
    let parts = proxy_and_backend("vm", "vm");
    format!(
        "title = \"on hosts\"\n[hosts.vm]\nquota = 1\n[hosts.near]\nlink = {{ rtt = \"1ms\" }}\n\
         {parts}[load]\nhost = \"near\"\nconnections = 4\n"
    )
}

fn short_run<'a>(experiment: &'a str, folder: &'a str) -> Vec<&'a str> {
    let mut call = run_with(experiment, &SHORT, folder);
    call.extend(["--format", "json"]);
    call
}

/// Kills a short run at random moments, one in each fifth of its time from start to end, and goes on
/// after each. Whatever was left is gone when the next start has ended.
fn killed_at_random_moments(experiment: &str, seed: u64) {
    let place = Place::new();
    place.write("hosts.toml", &on_hosts());
    write_light_proxy_cost(&place);
    let devices_before = devices();
    let whole = |done: Done| {
        let document = done.result();
        assert_eq!(document["trials"]["done"], 3, "{}", done.err);
        assert_eq!(document["trials"]["failed"], 0, "{}", done.err);
    };
    let start = Instant::now();
    whole(place.run(&short_run(experiment, "whole")));
    let takes = start.elapsed();
    let mut random = fastrand::Rng::with_seed(seed);
    for moment in 0..MOMENTS {
        let out = format!("r{moment}");
        let after = takes.mul_f64((moment as f64 + random.f64()) / MOMENTS as f64);
        let folder = place.path(&out);
        let mut running = place.start(&short_run(experiment, &out));
        let (pid, started) = (running.pid(), Instant::now());
        while started.elapsed() < after && !running.has_ended() {
            running.look();
            sleep(Duration::from_millis(2));
        }
        let family = descendants(pid);
        let agents = running.look().clone();
        // The last of the random moments may be after its end.
        if !running.has_ended() {
            running.signal(KILL);
        }
        running.end();
        let words = format!("{experiment}, killed {after:?} after its start");
        // The next start: on with the run, or where nothing was begun the same again.
        whole(match begun(&folder) {
            true => place.run(&format!("run --resume {out} --format json")),
            false => place.run(&short_run(experiment, &out)),
        });
        // A busy machine may be late to end what a closed pipe has told to end.
        wait_until(
            &format!("nothing is left: {words}"),
            Duration::from_secs(20),
            || alive(&family).is_empty(),
        );
        assert!(place.left().is_empty(), "{words}: {:?}", place.left());
        let groups = control_groups(&agents);
        assert!(groups.is_empty(), "{words}: {groups:?}");
        assert_eq!(groups_of_hosts(pid), BTreeSet::new(), "{words}");
        assert_eq!(devices(), devices_before, "{words}");
    }
}

#[test]
fn whatever_the_moment_the_next_start_finds_all_gone() {
    killed_at_random_moments("proxy-cost.toml", 5);
}

#[test]
fn whatever_the_moment_hosts_are_gone_too() {
    if can_be_made() {
        killed_at_random_moments("hosts.toml", 7);
    }
}
