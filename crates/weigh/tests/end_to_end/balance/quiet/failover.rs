//! A back end dies under load: it is killed, stopped, or cannot be reached any more. Nobody who
//! comes later notices, and it is used again soon after it is back.

use std::net::SocketAddr;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hosts::Topology;
use serde_json::Value;

use crate::common::{
    Done, KILL, LIMIT, Place, Running, command_on, free_port, hosts_or_skip, measured, run_on,
    skip, spec, sum, wait_until, words,
};

const STOP: i32 = 19;
const CONT: i32 = 18;
/// Requests per second.
const RATE: u64 = 400;
/// When a back end that was lost is probed.
const REVIVING: Duration = Duration::from_millis(500);
/// What a busy machine may add to that.
const BUSY: Duration = Duration::from_secs(5);

/// Here, or on a host.
type At<'a> = Option<(&'a Topology, &'a str)>;

/// Runs the program.
fn on<'p>(place: &'p Place, at: At<'_>, words: &[&str]) -> Running<'p> {
    match at {
        None => place.start(words),
        Some((topology, host)) => {
            let all = [&[env!("CARGO_BIN_EXE_weigh")], words].concat();
            let mut command = command_on(topology, host, &all);
            place.settle(&mut command);
            place.start_command(command)
        }
    }
}

fn back_end<'p>(place: &'p Place, at: At<'_>, address: SocketAddr) -> Running<'p> {
    let address = address.to_string();
    let mut running = on(place, at, &["origin", "--listen", &address]);
    running.until_said("/status/N");
    running
}

/// A balancer over three back ends, and what is needed to look at it.
struct Scene<'p> {
    place: &'p Place,
    /// Ends with this.
    _balancer: Running<'p>,
    address: SocketAddr,
    kind: &'static str,
}

impl<'p> Scene<'p> {
    fn start(
        place: &'p Place,
        at: At<'_>,
        (kind, io): (&'static str, &str),
        backends: &[SocketAddr],
        check: &str,
    ) -> Scene<'p> {
        let mut text = format!(
            "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"{kind}\"\n\
             reviving_interval = \"{}ms\"\ncheck_interval = \"{check}\"\n\
             check = {{ kind = \"http\", path = \"/\", timeout = \"300ms\" }}\n\
             timeouts = {{ connect = \"500ms\" }}\n[services.web.backends]\n",
            REVIVING.as_millis()
        );
        for (number, address) in backends.iter().enumerate() {
            text.push_str(&format!("b{number} = \"{address}\"\n"));
        }
        let file = place.write("b.toml", &text);
        let file = file.to_str().unwrap();
        let mut balancer = on(place, at, &["balance", file, "--io", io]);
        balancer.until_said("back ends: ");
        let said = balancer.errors();
        let mut lines = said.lines();
        let line = lines.find(|line| line.starts_with("service web on "));
        let address = line.unwrap().split([' ', ',']).nth(3).unwrap();
        Scene {
            place,
            address: address.parse().unwrap(),
            _balancer: balancer,
            kind,
        }
    }

    /// What is known of a back end.
    fn backend(&self, number: usize) -> Value {
        let path = self.place.path("b.toml.sock");
        let limit = Duration::from_secs(20);
        let status = balance::control::ask(&path, "status", limit).unwrap();
        status["services"][0]["backends"][number].clone()
    }

    fn is(&self, number: usize, state: &str) -> bool {
        self.backend(number)["state"] == state
    }

    /// A load of a connection per request in stages, and what is done while it goes on.
    fn load(&self, at: At<'_>, stages: &str, mut treat: impl FnMut()) -> Value {
        // Longer than it takes to send a request that nobody answers to another back end.
        let timeout = if self.kind == "http" { "5s" } else { "1s" };
        let url = format!("http://{}/", self.address);
        let how = format!("-c 2000 --stages {stages} --timeout {timeout} --expect-status 200");
        let line = format!("load {url} --no-keepalive --format json {how}");
        let before = self.total();
        let mut load = on(self.place, at, &words(&line));
        load.until("it is under way", || self.total() > before + RATE / 4);
        treat();
        // A busy machine makes such a load late; that is said, and not what is asked here.
        let done: Done = load.end_within(LIMIT);
        measured(done).1
    }

    /// A load that pauses; something is done while nothing is under way.
    fn load_around(&self, at: At<'_>, treat: impl FnOnce()) -> Value {
        let mut treat = Some(treat);
        let stages = format!("500ms@{RATE},1500ms@0,1s@{RATE}");
        self.load(at, &stages, || {
            let mut before = self.total();
            wait_until("nothing is under way", LIMIT, || {
                sleep(Duration::from_millis(100));
                let same = std::mem::replace(&mut before, self.total()) == before;
                same && sum(&self.all(), "active") == 0
            });
            treat.take().unwrap()();
        })
    }

    fn total(&self) -> u64 {
        sum(&self.all(), "total")
    }

    fn all(&self) -> Value {
        Value::Array((0..3).map(|number| self.backend(number)).collect())
    }

    /// It gets clients again, not later than it may take.
    fn comes_back(&self, at: At<'_>, number: usize, since: Instant) {
        wait_until("it is available again", LIMIT, || {
            self.is(number, "available")
        });
        let took = since.elapsed();
        assert!(took < REVIVING * 2 + BUSY, "back after {took:?}");
        let before = self.backend(number)["total"].as_u64().unwrap();
        let url = format!("http://{}/", self.address);
        let words = ["load", &url, "-c", "1", "--no-keepalive", "-n", "9", "-q"];
        on(self.place, at, &words).end().expect(0);
        let now = self.backend(number)["total"].as_u64().unwrap();
        // It asks three times before it begins.
        assert_eq!(now - before, 4, "each of three in turn");
    }
}

fn failed(document: &Value) -> u64 {
    let errors = document["errors"].as_object().unwrap();
    errors.values().map(|count| count.as_u64().unwrap()).sum()
}

/// Fails unless nobody noticed who came after it had happened. Those who wait for an answer of a
/// back end that is stopped wait in vain by TCP; requests by HTTP are sent again elsewhere.
#[track_caller]
fn nobody_noticed(scene: &Scene<'_>, document: &Value, in_flight: u64) {
    let bound = if scene.kind == "http" { 0 } else { in_flight };
    let failed = failed(document);
    assert!(
        failed <= bound,
        "{}: {failed} requests failed, {in_flight} were in flight: {}",
        scene.kind,
        document["errors"]
    );
    assert!(document["requests"].as_u64().unwrap() > RATE, "{document}");
}

/// Killed and stopped, on this machine.
fn killed_and_stopped(how: (&'static str, &str)) {
    let place = Place::quiet();
    let addresses: Vec<SocketAddr> = (0..3)
        .map(|_| SocketAddr::from(([127, 0, 0, 1], free_port())))
        .collect();
    let start = |number: usize| back_end(&place, None, addresses[number]);
    let mut backends: Vec<Running<'_>> = (0..3).map(start).collect();
    let scene = Scene::start(&place, None, how, &addresses, "0s");
    let document = scene.load_around(None, || backends[0].signal(KILL));
    nobody_noticed(&scene, &document, 0);
    let met = scene.backend(0)["connect_failures"].as_u64().unwrap();
    assert!(met > 0, "clients met it");
    assert!(scene.is(0, "unavailable") || scene.is(0, "waking"));
    let since = Instant::now();
    backends[0] = start(0);
    scene.comes_back(None, 0, since);
    drop(scene);

    // The kernel goes on accepting for a process that is stopped: only a probe finds out.
    let scene = Scene::start(&place, None, how, &addresses, "200ms");
    let mut in_flight = 0;
    let document = scene.load(None, &format!("4s@{RATE}"), || {
        backends[1].signal(STOP);
        wait_until("it was found", LIMIT, || scene.is(1, "unavailable"));
        in_flight = scene.backend(1)["active"].as_u64().unwrap();
    });
    assert!(in_flight > 0);
    nobody_noticed(&scene, &document, in_flight);
    let since = Instant::now();
    backends[1].signal(CONT);
    scene.comes_back(None, 1, since);
}

/// Cut off from the network, on a host of its own.
fn unreachable(how: (&'static str, &str)) {
    let place = Place::quiet();
    let Some(topology) = hosts_or_skip(&["lb", "b0", "b1", "b2"].map(spec), None) else {
        return;
    };
    let works = command_on(&topology, "b2", &["ip", "link", "show"])
        .stdout(Stdio::null())
        .status();
    if works.is_err() {
        return skip("balance_failover: a network device is switched off by `ip` (iproute2)");
    }
    let hosts = ["b0", "b1", "b2"];
    let addresses = hosts.map(|host| SocketAddr::new(topology.address("lb", host).unwrap(), 8080));
    let at = |host: &'static str| Some((&topology, host));
    let _backends: Vec<Running<'_>> = hosts
        .into_iter()
        .zip(addresses)
        .map(|(host, address)| back_end(&place, at(host), address))
        .collect();
    let scene = Scene::start(&place, at("lb"), how, &addresses, "0s");
    let device = run_on(
        &topology,
        "b2",
        &["ip", "-o", "-4", "addr", "show", "scope", "global"],
    );
    let device = device.split_whitespace().nth(1).unwrap().to_owned();
    let switch = |to: &str| run_on(&topology, "b2", &["ip", "link", "set", &device, to]);
    let mut in_flight = 0;
    let document = scene.load_around(at("lb"), || {
        // Usually none, as the load pauses; more if it has gone on already.
        in_flight = scene.backend(2)["active"].as_u64().unwrap();
        switch("down");
    });
    nobody_noticed(&scene, &document, in_flight);
    let met = scene.backend(2)["connect_failures"].as_u64().unwrap();
    assert!(met > 0, "clients met it");
    let since = Instant::now();
    switch("up");
    scene.comes_back(at("lb"), 2, since);
}

#[test]
fn tcp_clients_are_sent_elsewhere_by_io_uring() {
    killed_and_stopped(("tcp", "uring"));
}

#[test]
fn tcp_clients_are_sent_elsewhere_by_epoll() {
    killed_and_stopped(("tcp", "epoll"));
}

#[test]
fn http_requests_are_sent_elsewhere_by_io_uring() {
    killed_and_stopped(("http", "uring"));
}

#[test]
fn http_requests_are_sent_elsewhere_by_epoll() {
    killed_and_stopped(("http", "epoll"));
}

#[test]
fn a_back_end_without_a_network_is_passed_over() {
    std::thread::scope(|scope| {
        for how in [
            ("tcp", "uring"),
            ("tcp", "epoll"),
            ("http", "uring"),
            ("http", "epoll"),
        ] {
            scope.spawn(move || unreachable(how));
        }
    });
}
