//! Servers that ran before: a subject's own, and upstreams of servers that are started.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;

/// A program that listens on two ports.
struct Running(Child, [u16; 2]);

impl Running {
    fn start() -> Self {
        let program = "import socket, sys\n\
             both = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]\n\
             print(*[one.getsockname()[1] for one in both], flush=True)\n\
             sys.stdin.read()\n";
        let mut command = Command::new("python3");
        command.args(["-c", program]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let output = child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        let ports: Vec<u16> = said.split_whitespace().flat_map(str::parse).collect();
        Self(child, ports.try_into().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that runs already, and one in front of `upstreams`.
fn front(port: u16, upstreams: &[String]) -> String {
    format!(
        "title = \"front\"\n[servers.front]\ncommand = \"sh {{port}} {{upstream}}\"\n\
         upstreams = {upstreams:?}\n[servers.alone]\nrecipe = \"origin\"\nport = 18099\n\
         [subjects]\ndirect = \"http://127.0.0.1:{port}/\"\n\
         proxied = \"http://front/\"\nalone = \"http://alone/\"\n[design]\nblocks = 1\n\
         baseline = \"direct\"\nwarmup = \"10ms\"\nwindow = \"200ms\"\n\
         latency_window = \"0s\"\nbottleneck = false\n"
    )
}

fn reading<'r>(ran: &'r Finished, subject: &str) -> &'r Reading {
    let mut all = ran.done().into_iter();
    let own = all.find(|(one, _)| one.subject == subject && !one.baseline_copy);
    own.unwrap_or_else(|| panic!("{:?}", ran.failures())).1
}

fn servers(ran: &Finished, subject: &str) -> Vec<String> {
    let servers = reading(ran, subject).servers.iter();
    servers.map(|one| one.server.clone()).collect()
}

#[test]
fn a_path_goes_through_the_upstream_that_ran_before_as_the_subject_of_its_address_does() {
    let running = Running::start();
    let [port, second] = running.1;
    let script = script();
    // One process, at two addresses.
    let upstreams = [port, second].map(|port| format!("127.0.0.1:{port}"));
    let ran = run(&front(port, &upstreams), &script);
    assert_eq!(ran.failures(), [""; 0]);
    let direct = servers(&ran, "direct");
    assert!(direct[0].ends_with(&format!(":{port}")), "{direct:?}");
    assert_eq!(servers(&ran, "proxied"), ["front", direct[0].as_str()]);
    assert_eq!(servers(&ran, "alone"), ["alone"]);
    assert!(reading(&ran, "proxied").uncounted_upstreams.is_empty());
    // It is sampled once, although it is on both paths.
    let script = script.borrow();
    for order in &script.orders {
        let others = &order.watch_others;
        assert_eq!(others.len(), 1, "{others:?}");
        assert_eq!(others[0].pid, running.0.id() as i32);
    }
}

#[test]
fn an_upstream_that_cannot_be_seen_is_told() {
    let running = Running::start();
    // Reserved for documentation.
    let far = "192.0.2.1:9000".to_owned();
    let ran = run(&front(running.1[0], std::slice::from_ref(&far)), &script());
    assert_eq!(servers(&ran, "proxied"), ["front"]);
    let uncounted = |subject: &str| &reading(&ran, subject).uncounted_upstreams;
    assert_eq!(uncounted("proxied"), &BTreeSet::from([far]));
    assert!(uncounted("direct").is_empty() && uncounted("alone").is_empty());
}

#[test]
fn an_address_of_a_started_server_counts_under_its_name() {
    let running = Running::start();
    let upstreams = ["127.0.0.1:18099".to_owned()];
    let ran = run(&front(running.1[0], &upstreams), &script());
    assert_eq!(servers(&ran, "proxied"), ["front", "alone"]);
    assert!(reading(&ran, "proxied").uncounted_upstreams.is_empty());
}
