//! Hosts on one machine: they know each other, are kept within bounds, and leave nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{
    BackEnd, KILL, Place, Turn, alive, descendants, devices, far, groups_of_hosts, has,
    hosts_or_skip, load_on, run_on, skip, spec, wait_until,
};
use agent::wire::{Answer, Order, StartServer};
use readings::{HostSpec, LinkSpec};

/// Set for a copy of this program that builds hosts and waits to be killed.
const BUILDER: &str = "WEIGH_TEST_BUILDER";
/// Set for a copy of this program that an ordinary user runs.
const ORDINARY: &str = "WEIGH_TEST_ORDINARY";

/// The network namespaces that some process is in.
fn networks() -> BTreeSet<u64> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::metadata(entry.path().join("ns/net")).ok())
        .map(|namespace| namespace.ino())
        .collect()
}

#[test]
fn hosts_know_each_other_by_name_and_the_machine_does_not_notice() {
    let _turn = Turn::shared();
    let (names, seen) = (fs::read("/etc/hosts").unwrap(), devices());
    let Some(topology) = hosts_or_skip(&[spec("client"), spec("server")], None) else {
        return;
    };
    let _back_end = BackEnd::on(&topology, "server");
    let document = load_on(&topology, "client", &["http://server:8080/", "-n", "10"]);
    assert_eq!(document["requests"], 10, "{document}");
    // Each has the other's address, its own name, and no devices but its own.
    let found = run_on(&topology, "server", &["getent", "ahostsv4", "client"]);
    assert!(found.starts_with("10.77.0.1 "), "{found}");
    assert_eq!(run_on(&topology, "server", &["uname", "-n"]), "server\n");
    let own = run_on(&topology, "server", &["cat", "/proc/net/dev"]);
    assert!(own.contains("net0:") && !own.contains("eth0:"), "{own}");
    // Programs start where they would without a host.
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        run_on(&topology, "server", &["pwd"]).trim(),
        here.to_str().unwrap()
    );
    assert_eq!(fs::read("/etc/hosts").unwrap(), names);
    assert_eq!(devices(), seen);
}

#[test]
fn an_agent_in_a_host_is_an_agent_as_any_other() {
    let _turn = Turn::shared();
    let Some(topology) = hosts_or_skip(&[spec("server")], None) else {
        return;
    };
    let mut agent = topology.agent_in("server").unwrap();
    let server = "a".to_string();
    let user = None;
    agent.ask(&Order::Folder { server, user }).unwrap();
    let started = agent.ask(&Order::Start(StartServer {
        server: "a".into(),
        command: ["sleep", "1000"].map(String::from).to_vec(),
        ..StartServer::default()
    }));
    let Answer::Started { pid, .. } = started.unwrap() else {
        panic!("it was not started");
    };
    let network = |pid: u32| fs::metadata(format!("/proc/{pid}/ns/net")).unwrap().ino();
    assert_ne!(network(pid as u32), network(std::process::id()));
    drop(agent);
    assert!(fs::metadata(format!("/proc/{pid}")).is_err());
}

#[test]
fn settings_are_the_hosts_own() {
    let _turn = Turn::shared();
    let path = "/proc/sys/net/core/somaxconn";
    let before = fs::read_to_string(path).unwrap();
    let set = |name: &str, value: &str| HostSpec {
        settings: vec![(name.to_string(), value.to_string())],
        ..spec("server")
    };
    let Some(topology) = hosts_or_skip(&[set("net.core.somaxconn", "777")], None) else {
        return;
    };
    assert_eq!(run_on(&topology, "server", &["cat", path]), "777\n");
    let built = topology.host("server").unwrap();
    assert_eq!(built.settings["net.core.somaxconn"], "777");
    assert!(built.settings.contains_key("net.ipv4.tcp_max_syn_backlog"));
    assert_eq!(fs::read_to_string(path).unwrap(), before);
    let error = |name, value| {
        crate::common::topology(&[set(name, value)], None)
            .err()
            .unwrap()
    };
    let unknown = error("net.core.somaxcon", "1").to_string();
    has(&unknown, "no setting `net.core.somaxcon`");
    let refused = error("net.core.somaxconn", "many").to_string();
    has(&refused, "does not accept `many`");
}

#[test]
fn a_host_has_its_share_of_cpus() {
    let _turn = Turn::shared();
    let cpus = net::os::allowed_cpus().unwrap()[..1].to_vec();
    let small = HostSpec {
        cpus: cpus.clone(),
        quota: Some(0.2),
        ..spec("small")
    };
    let topology = match crate::common::topology(&[small], None) {
        Ok(topology) => topology,
        Err(e) => return skip(&e.to_string()),
    };
    // Some work, in CPU seconds and seconds of the clock.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times; cat /proc/uptime";
    let uptime = |text: &str| -> f64 { text.split(' ').next().unwrap().parse().unwrap() };
    let before = uptime(&fs::read_to_string("/proc/uptime").unwrap());
    let said = run_on(&topology, "small", &["sh", "-c", script]);
    let took_s = uptime(said.lines().last().unwrap()) - before;
    let user = said.split_whitespace().next().unwrap();
    let used_s: f64 = user
        .strip_prefix("0m")
        .unwrap()
        .trim_end_matches('s')
        .parse()
        .unwrap();
    assert!(used_s > 0.02, "{said}");
    assert!(used_s / took_s < 0.27, "{used_s} s of {took_s} s");
    let list = run_on(
        &topology,
        "small",
        &["grep", "Cpus_allowed_list", "/proc/self/status"],
    );
    assert_eq!(list.split_whitespace().last().unwrap(), cpus[0].to_string());
    assert!(!groups_of_hosts(std::process::id()).is_empty());
}

/// What the copy of this program does that is killed.
#[test]
fn a_builder_that_waits() {
    if std::env::var_os(BUILDER).is_none() {
        return;
    }
    let link = LinkSpec {
        rtt_ns: 1_000_000,
        ..LinkSpec::default()
    };
    let bounded = HostSpec {
        quota: Some(0.5),
        cpus: net::os::allowed_cpus().unwrap()[..1].to_vec(),
        ..far("server", link)
    };
    let topology = match crate::common::topology(&[spec("client"), bounded], None) {
        Ok(topology) => topology,
        Err(e) => return println!("CANNOT {}", e.to_string().replace('\n', " ")),
    };
    let mut agent = topology.agent_in("server").unwrap();
    agent
        .ask(&Order::Folder {
            server: "a".into(),
            user: None,
        })
        .unwrap();
    agent
        .ask(&Order::Start(StartServer {
            server: "a".into(),
            command: ["sh", "-c", "sleep 1000 & sleep 1000"]
                .map(String::from)
                .to_vec(),
            ..StartServer::default()
        }))
        .unwrap();
    println!("BUILT");
    std::thread::sleep(Duration::from_secs(100));
}

/// What the copy of this program does that an ordinary user runs.
#[test]
fn an_ordinary_users_hosts() {
    if std::env::var_os(ORDINARY).is_none() {
        return;
    }
    assert!(!net::os::is_root());
    let topology = match crate::common::topology(&[spec("client"), spec("server")], None) {
        Ok(topology) => topology,
        Err(e) => return println!("CANNOT {}", e.to_string().replace('\n', " ")),
    };
    let _back_end = BackEnd::on(&topology, "server");
    let document = load_on(&topology, "client", &["http://server:8080/", "-n", "10"]);
    assert_eq!(document["requests"], 10, "{document}");
    let user = run_on(&topology, "server", &["id", "-u"]);
    let (own, _) = net::namespace::user_and_group();
    assert_eq!(user.trim(), own.to_string());
    let bounded = HostSpec {
        quota: Some(0.5),
        ..spec("small")
    };
    let refused = crate::common::topology(&[bounded], None)
        .err()
        .unwrap()
        .to_string();
    has(&refused, "run as root");
    println!("GOOD");
}

#[test]
fn an_ordinary_user_has_hosts_too() {
    const NOBODY: u32 = 65_534;
    let place = Place::new();
    // Where that user may read it.
    let copy = |from: std::path::PathBuf, name| {
        let to = place.path(name);
        crate::common::copy_program(&from, &to);
        to
    };
    let tests = copy(std::env::current_exe().unwrap(), "tests");
    let weigh = copy(crate::common::program(), "weigh");
    let mut command = Command::new(&tests);
    command
        .env(crate::common::PROGRAM, weigh)
        .args([
            "--exact",
            "hosts::topology::an_ordinary_users_hosts",
            "--nocapture",
        ])
        .env(ORDINARY, "1")
        .env("TMPDIR", std::env::temp_dir())
        .current_dir("/");
    if net::os::is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => return skip(&format!("an ordinary user cannot start {tests:?}: {e}")),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some((_, why)) = said.split_once("CANNOT ") {
        return skip(why.lines().next().unwrap());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("GOOD"), "{said}{errors}");
}

mod alone {
    use super::*;

    #[test]
    fn who_is_killed_leaves_nothing_behind() {
        // A run of another test would remove what this one looks for.
        let place = Place::alone();
        let (seen, before) = (devices(), networks());
        for kill_agent_too in [false, true] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([
                "--exact",
                "hosts::topology::a_builder_that_waits",
                "--nocapture",
            ]);
            place.settle(&mut command);
            let mut builder = command
                .env(BUILDER, "1")
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut said = String::new();
            for line in BufReader::new(builder.stdout.take().unwrap()).lines() {
                said = line.unwrap();
                if said.contains("BUILT") || said.contains("CANNOT") {
                    break;
                }
            }
            let family = descendants(builder.id());
            if kill_agent_too {
                // Then nobody is left to tidy up.
                for process in family
                    .iter()
                    .filter(|one| one.to_string().ends_with(" agent)"))
                {
                    net::os::kill(process.pid, KILL).unwrap();
                }
            }
            builder.kill().unwrap();
            let pid = builder.id();
            builder.wait().unwrap();
            if let Some((_, why)) = said.split_once("CANNOT ") {
                return skip(why);
            }
            has(&said, "BUILT");
            assert!(family.len() >= 3, "{family:?}");
            if !kill_agent_too {
                wait_until("all processes are gone", Duration::from_secs(2), || {
                    alive(&family).is_empty()
                });
            }
            // What has a name is removed by the next run.
            assert!(!groups_of_hosts(pid).is_empty());
            let done = place.run("run proxy-cost --dry-run");
            assert_eq!(done.status, 0, "{}", done.err);
            drop(crate::common::topology(&[spec("next")], None).unwrap());
            assert_eq!(groups_of_hosts(pid), BTreeSet::new());
            wait_until("all processes are gone", Duration::from_secs(2), || {
                alive(&family).is_empty()
            });
        }
        assert_eq!(devices(), seen);
        // Other tests' hosts come and go, so only what was made meanwhile and stays counts.
        wait_until("the namespaces are gone", crate::common::LIMIT, || {
            networks().is_subset(&before)
        });
        let _ = place;
    }
}
