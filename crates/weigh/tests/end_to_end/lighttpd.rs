//! lighttpd in front of Apache and its CGI script. Connections are counted for the whole network, so
//! no other test may open any meanwhile.

use std::fs;
use std::process::Command;

use crate::common::{Place, array, skip};
use serde_json::Value;

/// Puts the program that follows into a network of its own.
const ALONE: &str = r#"
use strict;
socket(my $any, 2, 2, 0) or die "socket: $!";
# SIOCSIFFLAGS, IFF_UP and IFF_RUNNING: the interface to itself is down in a new network.
my $up = pack("a16 s x22", "lo", 0x41);
ioctl($any, 0x8914, $up) or die "ioctl: $!";
exec @ARGV or die "exec: $!";
"#;

/// A command that runs another in a network of its own, where that is allowed.
fn alone() -> Option<Command> {
    let make = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "perl", "-e", ALONE]);
        command
    };
    let works = make()
        .arg("true")
        .output()
        .is_ok_and(|out| out.status.success());
    works.then(make)
}

fn row<'a>(document: &'a Value, subject: &str) -> &'a Value {
    let rows = array(&document["table"]);
    rows.iter().find(|row| row["subject"] == subject).unwrap()
}

#[test]
fn lighttpd_opens_a_connection_to_apache_for_each_request() {
    let place = Place::alone();
    let listing = place.run(&["list", "--format", "json"]).expect(0).json();
    let experiments = array(&listing["experiments"]);
    let experiment = experiments
        .iter()
        .find(|one| one["name"] == "lighttpd-proxy")
        .unwrap();
    if experiment["can_run"] == false {
        skip(&format!("lighttpd-proxy: {}", experiment["missing"]));
        return;
    }
    let mut command = alone().unwrap_or_else(|| Command::new("env"));
    command.arg(env!("CARGO_BIN_EXE_weigh"));
    command.args(["run", "lighttpd-proxy", "--out", "r", "--format", "json"]);
    for set in [
        "factors.connections=[8]",
        "design.blocks=2",
        "design.warmup=300ms",
        "design.window=1s",
        "design.slice=500ms",
        "design.latency_window=0s",
    ] {
        command.args(["--set", set]);
    }
    place.settle(&mut command);
    let document = place.start_command(command).end().result();
    assert_eq!(document["trials"]["done"], 6);
    assert_eq!(document["trials"]["failed"], 0, "{}", document["trials"]);

    let behind = |subject: &str| {
        row(&document, subject)["upstream_connections_per_request"]
            .as_f64()
            .unwrap()
    };
    let (direct, lighttpd) = (behind("direct"), behind("lighttpd"));
    assert!((0.9..1.2).contains(&lighttpd), "{lighttpd} behind lighttpd");
    assert!(direct < 0.1, "{direct} behind nothing");
    for subject in ["direct", "lighttpd"] {
        let row = row(&document, subject);
        assert!(row["errors"].as_object().unwrap().values().all(|n| n == 0));
        // Scripts are processes of their own; what they take is Apache's.
        let cpu = &row["server_cpu_us_per_request"];
        assert!(cpu["backend"].as_f64().unwrap() > 0.0, "{cpu}");
        assert_eq!(cpu["proxy"].is_number(), subject == "lighttpd", "{cpu}");
    }

    let text = fs::read_to_string(place.path("r/hosts.json")).unwrap();
    let hosts: Value = serde_json::from_str(&text).unwrap();
    for recipe in ["apache", "lighttpd"] {
        let version = hosts["local"]["versions"][recipe].as_str().unwrap();
        assert!(
            version.starts_with(|c: char| c.is_ascii_digit()),
            "{version}"
        );
    }
    let files = &hosts["local"]["servers"]["backend"]["files"];
    assert!(
        files["apache.conf"]
            .as_str()
            .unwrap()
            .contains("ListenBacklog 10000")
    );
    let mut logs: Vec<String> = Vec::new();
    for trial in fs::read_dir(place.path("r/trials")).unwrap() {
        for file in fs::read_dir(trial.unwrap().path()).unwrap() {
            logs.push(file.unwrap().file_name().into_string().unwrap());
        }
    }
    logs.sort();
    assert_eq!(
        logs,
        [
            "backend-error.log",
            "backend-error.log",
            "proxy-error.log",
            "proxy-error.log"
        ]
    );
    assert!(place.left().is_empty(), "{:?}", place.left());
}
