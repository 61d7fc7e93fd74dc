//! lighttpd in front of Apache and its CGI script, asked from near and from far.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::common::{self, Place, array, hosts_or_skip, journal, skip, spec};
use readings::LinkKind;
use serde_json::Value;

fn row<'a>(document: &'a Value, subject: &str, from: &str) -> &'a Value {
    let rows = array(&document["table"]);
    rows.iter()
        .find(|row| row["subject"] == subject && row["condition"]["from"] == from)
        .unwrap()
}

/// Whether the experiment can run here; says so when it cannot.
fn can_run(place: &Place) -> bool {
    if !common::can_run(place, "lighttpd-proxy") {
        return false;
    }
    if !net::os::is_root() {
        skip("hosts with a quota need root");
        return false;
    }
    hosts_or_skip(&[spec("one")], Some(LinkKind::UserSpace)).is_some()
}

/// Whether this kernel tells root of each thread that ends: from 6.0 on, and in its first namespace
/// of processes, which has this number.
fn ends_are_told() -> bool {
    const FIRST: u64 = 0xEFFF_FFFC;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let major: u32 = release.split('.').next().unwrap().parse().unwrap();
    major >= 6 && fs::metadata("/proc/self/ns/pid").unwrap().ino() == FIRST
}

#[test]
fn from_far_the_distance_is_seen_and_lighttpd_opens_a_connection_for_each_request() {
    let place = Place::alone();
    if !can_run(&place) {
        return;
    }
    let mut command = place.weigh("run lighttpd-proxy --out r --format json");
    for set in [
        "factors.from=[\"outside\", \"driver\"]",
        "factors.load=[{ threads = 1, connections = 2 }]",
        "design.blocks=1",
        "design.warmup=300ms",
        "design.window=1s",
        "design.slice=500ms",
        "design.retries=0",
        "design.bottleneck=false",
    ] {
        command.args(["--set", set]);
    }
    place.settle(&mut command);
    let done = place.start_command(command).end();
    let document = done.result();
    assert_eq!(document["trials"]["done"], 8, "{}", done.err);
    assert_eq!(document["trials"]["failed"], 0, "{}", document["trials"]);

    let subjects = [
        ("lighttpd", "backend", "proxy"),
        ("lighttpd_half", "backend-half", "proxy-half"),
        ("direct", "backend", "proxy"),
    ];
    let mut rows_with_faults = 0;
    for (subject, backend, proxy) in subjects {
        for from in ["outside", "driver"] {
            let row = row(&document, subject, from);
            assert!(row["errors"].as_object().unwrap().values().all(|n| n == 0));
            // A path without upstreams has no such figure.
            let behind = row["upstream_connections_per_request"].as_f64();
            let behind = behind.unwrap_or(0.0);
            let expected = if subject == "direct" { 0.0 } else { 1.0 };
            // A slice ends with answers whose connections were counted in the next.
            assert!(
                (behind - expected).abs() < 0.25,
                "{behind} behind {subject} from {from}: {row}\n{}",
                done.err
            );
            // Scripts are processes of their own; what they take is Apache's.
            let cpu = &row["server_cpu_us_per_request"];
            assert!(cpu[backend].as_f64().unwrap() > 0.0, "{cpu}");
            assert_eq!(cpu[proxy].is_number(), subject != "direct", "{cpu}");
            // So are their faults, though Apache ignores their ends: perl alone has some 200.
            let faults = &row["server_faults_per_request"][backend];
            // On a busy machine sampling may cost too much and be reduced.
            if let Some(faults) = faults.as_f64() {
                rows_with_faults += 1;
                assert!(!ends_are_told() || faults > 100.0, "{faults}");
            }
        }
        // Two connections can have 12.8 answers a second in round trips of 156 ms, whatever the
        // servers do.
        let far = row(&document, subject, "driver")["requests_per_s"].as_f64();
        assert!(far.is_some_and(|far| far < 13.5), "{far:?} by {subject}");
    }
    assert!(rows_with_faults > 0, "{}", document["table"]);
    let fastest = subjects.map(|(subject, _, _)| {
        row(&document, subject, "driver")["requests_per_s"]
            .as_f64()
            .unwrap()
    });
    let warnings: Vec<String> = journal(&place.path("r"))
        .iter()
        .filter(|row| row["row"] == "warning")
        .filter_map(|row| row["text"].as_str().map(str::to_owned))
        .collect();
    let bound = |from: &str| {
        let begin = format!("from host `{from}`");
        let of = warnings.iter().filter(|text| text.starts_with(&begin));
        of.filter(|text| text.contains("the network's delay limits this"))
            .count()
    };
    assert_eq!(bound("outside"), 0, "{warnings:#?}");
    // A machine that is busy with other things may keep them from it.
    if fastest.iter().any(|per_s| *per_s > 0.92 * 12.8) {
        assert!(bound("driver") > 0, "{warnings:#?}");
    }

    let hosts = place.read_json("r/hosts.json");
    for recipe in ["apache", "lighttpd"] {
        let version = hosts["local"]["versions"][recipe].as_str().unwrap();
        assert!(
            version.starts_with(|c: char| c.is_ascii_digit()),
            "{version}"
        );
    }
    for host in ["vm", "half"] {
        let settings = &hosts["apart"]["hosts"][host]["settings"];
        assert_eq!(settings["net.core.somaxconn"], "65535");
        assert_eq!(settings["net.ipv4.tcp_max_syn_backlog"], "65535");
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
    // Two groups, each with all servers.
    for server in ["backend", "backend-half", "proxy", "proxy-half"] {
        let log = format!("{server}-error.log");
        let count = logs.iter().filter(|name| **name == log).count();
        assert_eq!(count, 2, "{logs:?}");
    }
    assert!(place.left().is_empty(), "{:?}", place.left());
}
