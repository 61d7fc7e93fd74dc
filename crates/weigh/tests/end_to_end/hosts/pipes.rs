//! Hosts behind pipes that are at fault: a stand-in for kubectl and nomad commits what these have
//! been seen to do. No figure may be wrong, and each fault is noticed and named.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testing::Text as _;

use serde_json::Value;

use crate::common::{
    CommandLine, Done, LIMIT, Place, Running, find, journal, only_blocks_failed, proxy_and_backend,
    skip, trials, wait_until, with_text,
};

/// Without a heartbeat for so long, either side gives the other up.
const SILENCE_S: &str = "5";

const DESIGN: &str = include_str!("pipes/design.toml");

/// A folder with a stand-in for an engine.
struct StandIn {
    place: Place,
}

impl StandIn {
    /// Makes it; `None` without Perl, which was said then.
    fn new() -> Option<Self> {
        if !Command::new("perl")
            .arg("-v")
            .output()
            .is_ok_and(|it| it.status.success())
        {
            skip("perl not installed");
            return None;
        }
        let place = Place::new();
        let script = place.write("stand_in.pl", include_str!("stand_in.pl"));
        for engine in ["kubectl", "nomad"] {
            let folder = place.path("engine");
            fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "#!/bin/sh\nexec perl {} {} {engine} \"$@\"\n",
                script.display(),
                folder.display()
            );
            place.write_script(&format!("bin/{engine}"), &text);
        }
        Some(Self { place })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path("engine").join(name)
    }

    /// Has it commit a fault from now on.
    fn commits(&self, fault: &str) {
        fs::write(self.file("fault.new"), fault).unwrap();
        fs::rename(self.file("fault.new"), self.file("fault")).unwrap();
    }

    fn weigh(&self, line: &(impl CommandLine + ?Sized)) -> Command {
        let mut command = self.place.weigh_with_bin(line);
        command.env("WEIGH_HEARTBEAT_LIMIT_S", SILENCE_S);
        command.env("XDG_CACHE_HOME", self.place.path("cache"));
        command
    }

    fn run(&self, line: &(impl CommandLine + ?Sized)) -> Done {
        self.place.start_command(self.weigh(line)).end()
    }

    fn start(&self, line: &(impl CommandLine + ?Sized)) -> Running<'_> {
        self.place.start_command(self.weigh(line))
    }

    /// An experiment on one host, declared by these lines.
    fn write(&self, host: &str, on: &str) {
        let parts = proxy_and_backend(on, on) + DESIGN;
        let text = format!("title = \"behind a pipe\"\n[hosts.pod]\n{host}\n{parts}");
        let text = text.replace("host = \"pod\"", &format!("host = \"{on}\""));
        self.place.write("x.toml", &text);
    }

    /// The agent as `kubectl exec` reaches it.
    fn exec(&self) -> String {
        let weigh = env!("CARGO_BIN_EXE_weigh");
        let words = ["kubectl", "exec", "-i", "pod-1", "--", weigh, "agent"];
        format!("exec = {words:?}\naddress = \"127.0.0.1\"\ncpus = [0]")
    }

    fn is_empty(&self) {
        let temp = self.place.temp();
        let text = temp.display().to_string();
        let left = || {
            let files = fs::read_dir(&temp).unwrap().count();
            files + with_text(&text).len()
        };
        wait_until("nothing is left", LIMIT / 10, || left() == 0);
    }
}

/// Commits a fault in the first of two blocks: its trials fail by the host's name and the fault's,
/// and the second block is measured.
fn costs_its_block_alone(fault: &str, names: &[&str]) {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    stand_in.write(&stand_in.exec(), "pod");
    let mut running = stand_in.start("run x.toml --out r");
    running.until_said("block 1/2");
    // In the middle of what is measured.
    running.go_on(Duration::from_millis(1_500));
    stand_in.commits(fault);
    let done = running.end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let all = trials(&stand_in.place.path("r"));
    assert_eq!(all.len(), 6);
    only_blocks_failed(&all, |block| block == 1, &["lost the agent: host `pod`"]);
    for reason in all.iter().map(|one| one["outcome"]["failed"].to_string()) {
        let is_named = names.iter().any(|name| reason.contains(name));
        assert!(is_named || reason == "null", "{reason}");
    }
    stand_in.is_empty();
}

#[test]
fn truncated_output_with_exit_status_0() {
    costs_its_block_alone(
        "truncate",
        &["cut off in the middle of a message", "status 0"],
    );
}

#[test]
fn exit_status_0_while_the_agent_lives_on() {
    costs_its_block_alone("exit-0", &["reports success (status 0)"]);
}

#[test]
fn dropped_input() {
    let names = ["what was sent to it did not arrive as sent: its pipe lost 1 message"];
    costs_its_block_alone("drop-input", &names);
}

#[test]
fn a_flipped_bit() {
    costs_its_block_alone("flip", &["its pipe damaged a message"]);
}

#[test]
fn output_that_is_lost() {
    costs_its_block_alone("lose-output", &["its pipe lost "]);
}

#[test]
fn output_that_comes_twice() {
    costs_its_block_alone("twice", &["its pipe repeated message"]);
}

#[test]
fn output_that_is_held_back() {
    costs_its_block_alone("hold", &["it was silent for 5 s"]);
}

/// Two back ends behind a balancer on `pod`, whose pipe is a stand-in's; the load's pipe is not.
const EVENTS: &str = include_str!("pipes/events.toml");

fn with_events(stand_in: &StandIn, blocks: u32, events: &[&str]) {
    let events = events.iter().map(|one| format!("[[events]]\n{one}\n"));
    let text = EVENTS
        .replace("POD", &stand_in.exec())
        .replace("WEIGH", env!("CARGO_BIN_EXE_weigh"))
        .replace("EVENTS", &events.collect::<String>())
        .replace("BLOCKS", &blocks.to_string());
    stand_in.place.write("x.toml", &text);
}

#[test]
fn events_happen_to_servers_behind_a_pipe_and_are_undone() {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    let events = [
        "at = \"500ms\"\nserver = \"lb\"\nwhat = \"stop\"\nuntil = \"1s\"",
        "at = \"1500ms\"\nserver = \"lb\"\nwhat = \"reload\"\nuntil = \"2s\"",
        "at = \"2500ms\"\nservers = [\"one\", \"two\"]\nwhat = \"rolling\"",
    ];
    with_events(&stand_in, 1, &events);
    let done = stand_in.run("run x.toml --out r");
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let all = trials(&stand_in.place.path("r"));
    assert_eq!(all.len(), 2, "the subject and its second copy");
    for trial in &all {
        let reading = &trial["outcome"]["done"];
        let events = reading["events"]["events"].as_array();
        let events = events.unwrap_or_else(|| panic!("{trial}"));
        let s = |event: usize, key: &str| {
            let value = events[event][key].as_f64();
            value.unwrap_or_else(|| panic!("{key} of {}", events[event]))
        };
        let what = events.iter().map(|one| one["what"].as_str().unwrap());
        let what: Vec<&str> = what.collect();
        assert_eq!(what, ["stop", "reload", "rolling", "rolling"]);
        // Never before the moment, by the clock of the load.
        assert!(s(0, "at_s") >= 0.5 && s(0, "back_s") >= 1.0, "{events:?}");
        assert!(s(1, "at_s") >= 1.5 && s(1, "in_effect_after_s") > 0.0);
        assert!(s(2, "at_s") >= 2.5 && s(3, "at_s") >= s(2, "back_s"));
        // Nothing was answered while the balancer was stopped.
        let silence_s = reading["events"]["longest_silence_s"].as_f64().unwrap();
        assert!(silence_s > 0.4, "{}", reading["events"]);
        // Its processes are sampled on their machine only if all of them live on.
        let sampled = &reading["latency_probed"]["servers"];
        assert!(
            sampled.as_object().is_some_and(|all| all.is_empty()),
            "{sampled}"
        );
    }
    stand_in.is_empty();
}

#[test]
fn a_server_that_is_stopped_when_its_pipe_breaks_is_not_left_behind() {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    let stop = "at = \"200ms\"\nserver = \"lb\"\nwhat = \"stop\"";
    with_events(&stand_in, 2, &[stop]);
    let mut running = stand_in.start("run x.toml --out r");
    running.until_said("block 1/2");
    let stopped = || {
        let all = with_text(&stand_in.place.temp().display().to_string());
        let state = |pid: i32| fs::read_to_string(format!("/proc/{pid}/stat"));
        let is_stopped = |pid| state(pid).is_ok_and(|text| text.contains(") T "));
        all.iter().any(|one| is_stopped(one.pid))
    };
    wait_until("the balancer is stopped", LIMIT, stopped);
    stand_in.commits("exit-0");
    let done = running.end();
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let all = trials(&stand_in.place.path("r"));
    assert_eq!(all.len(), 4);
    let is_lost = |block: u32| {
        let mut trials = all.iter().filter(|one| one["block"] == block);
        let reason = |one: &Value| one["outcome"]["failed"]["reason"].to_string();
        trials.any(|one| reason(one).contains("lost the agent: host `pod`"))
    };
    assert!(is_lost(1) && !is_lost(2), "{all:?}");
    stand_in.is_empty();
}

#[test]
fn the_bottleneck_of_a_server_behind_a_pipe_is_looked_for() {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    let text = format!(
        "title = \"a slow answer behind a pipe\"\n[hosts.pod]\n{}\n[hosts.client]\n\
         exec = [{:?}, \"agent\"]\n[servers.o]\nrecipe = \"origin\"\nhost = \"pod\"\n\
         [subjects]\nx = \"http://o/delay/constant/50ms\"\n[load]\nhost = \"client\"\n\
         connections = 4\n[design]\nblocks = 1\nwarmup = \"200ms\"\nwindow = \"300ms\"\n\
         latency_window = \"0s\"\nretries = 0\nbottleneck = true\n",
        stand_in.exec(),
        env!("CARGO_BIN_EXE_weigh")
    );
    stand_in.place.write("x.toml", &text);
    let call = "run x.toml --out r --format json";
    let document = stand_in.run(call).result();
    let found = &document["bottlenecks"][0];
    assert_eq!(found["bottleneck"], "concurrency", "{document}");
    assert_eq!(found["standing"], "confirmed", "{document}");
    let rows = journal(&stand_in.place.path("r"));
    let row = find(&rows, "row", "bottleneck");
    // Both hosts are this machine, which its kernel tells.
    assert_eq!(
        (&row["hosts"]["o"], &row["load_host"]),
        (&"client".into(), &"client".into())
    );
    for probe in row["probes"].as_array().unwrap() {
        let server = &probe["seen"]["servers"]["o"];
        assert!(server["threads"].as_u64() >= Some(1), "{probe}");
    }
    // Its CPU time was halved, or the reason is told.
    let halved = |probe: &Value| probe["change"] == "half_the_server_cpu";
    let was_halved = row["probes"].as_array().unwrap().iter().any(halved);
    let told = row["not_tried"]
        .to_string()
        .contains("half the servers' CPU time");
    assert!(was_halved != told, "{row}");
    stand_in.is_empty();
}

#[test]
fn an_end_that_is_cut_off_costs_nothing_and_is_told() {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    stand_in.write(&stand_in.exec(), "pod");
    fs::write(stand_in.file("cut-end"), "").unwrap();
    let done = stand_in.run("run x.toml --out r --set design.blocks=1");
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    let rows = journal(&stand_in.place.path("r"));
    let told = |row: &Value| row.to_string().contains("did not confirm its end");
    assert!(rows.iter().any(told), "{}", done.err);
    let all = trials(&stand_in.place.path("r"));
    assert!(
        all.iter().all(|one| one["outcome"]["done"].is_object()),
        "{all:?}"
    );
    stand_in.is_empty();
}

#[test]
fn presets_of_kubernetes_and_nomad_call_their_engines() {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    let log = || fs::read_to_string(stand_in.file("log")).unwrap();
    let called = |from: usize, parts: &[&str]| {
        let log = log();
        let mut calls = log.lines().skip(from);
        assert!(
            calls.any(|call| parts.iter().all(|part| call.contains(part))),
            "{parts:?} in {log}"
        );
    };
    let preset = r#"kubernetes = { image = "registry/weigh", namespace = "bench", replicas = 2 }"#;
    stand_in.write(preset, "pod2");
    let done = stand_in.run("run x.toml --out r --set design.blocks=1");
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    assert_eq!(trials(&stand_in.place.path("r")).len(), 3);
    let image = "--image=registry/weigh";
    called(0, &["--namespace=bench run weigh-pod1-", image]);
    called(0, &["--namespace=bench run weigh-pod2-"]);
    called(0, &["get pod weigh-pod2-", "--output=json"]);
    called(0, &["exec -i weigh-pod2-", "-- sh -c"]);
    for pod in ["pod1", "pod2"] {
        called(0, &[&format!("delete pod weigh-{pod}-")]);
    }
    let hosts = stand_in.place.read("r/hosts.json");
    hosts.has("weigh-pod1-");
    hosts.has("registry/weigh");
    // The program was sent to where it was missing.
    assert!(stand_in.place.path("cache/weigh").is_dir());

    let before = log().lines().count();
    stand_in.write(r#"nomad = { job = "bench", task = "weigh" }"#, "pod");
    let done = stand_in.run("run x.toml --out n --set design.blocks=1");
    assert!(done.status == 0 || done.status == 4, "{}", done.err);
    assert_eq!(trials(&stand_in.place.path("n")).len(), 3);
    called(
        before,
        &["nomad alloc exec -i -t=false -task weigh b-2 sh -c"],
    );
    stand_in.is_empty();

    let many = r#"nomad = { job = "bench", allocations = 2 }"#;
    stand_in.write(many, "pod1");
    let done = stand_in.run("run x.toml --out m");
    done.expect(1)
        .says(&["host `pod2`", "1 running allocations"]);
    fs::write(stand_in.file("refuse"), "").unwrap();
    stand_in.write(preset, "pod1");
    let done = stand_in.run("run x.toml --out f");
    done.expect(1).says(&["host `pod1`", "pods is forbidden"]);
}

#[test]
fn a_command_that_is_no_pipe_to_an_agent_is_named() {
    let Some(stand_in) = StandIn::new() else {
        return;
    };
    let says = |exec: &str, texts: &[&str]| {
        let host = format!("exec = {exec}\naddress = \"127.0.0.1\"");
        stand_in.write(&host, "pod");
        let done = stand_in.run("run x.toml --out r").expect(1);
        done.says(texts);
        assert_eq!(done.err.matches("host `pod`").count(), 1, "{}", done.err);
    };
    says(
        r#"["no-such-engine"]"#,
        &["host `pod`", "cannot start no-such-engine"],
    );
    says(r#"["cat"]"#, &["host `pod`", "as a terminal does", "-t"]);
    says(r#"["sh", "-c", "exit 0"]"#, &["host `pod`", "status 0"]);
    let old = r#"["sh", "-c", "read l; echo '{\"answer\":\"hello\"}'; sleep 9"]"#;
    says(old, &["host `pod`", "its weigh is older"]);
    let endless = r#"["sh", "-c", "tr '\\0' a < /dev/zero"]"#;
    says(endless, &["a line longer than"]);
}
