//! Hosts for tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hosts::{Topology, TopologyError, TopologyOptions};
use readings::{HostSpec, LinkKind, LinkSpec};
use serde_json::Value;

use super::skip;

pub fn spec(name: &str) -> HostSpec {
    HostSpec {
        name: name.to_string(),
        ..HostSpec::default()
    }
}

/// A host of that name behind a link.
pub fn far(name: &str, link: LinkSpec) -> HostSpec {
    HostSpec {
        link: Some(link),
        ..spec(name)
    }
}

/// Names the program for a copy of a test that another user runs.
pub const PROGRAM: &str = "WEIGH_TEST_PROGRAM";

/// Copies a program, to run the copy. Another process does it: a file that is open for writing here is
/// also open in each child that another test has just forked, and cannot be run meanwhile (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    let done = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(done.success(), "{}", from.display());
}

pub fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| env!("CARGO_BIN_EXE_weigh").into(), PathBuf::from)
}

/// Makes hosts.
pub fn topology(hosts: &[HostSpec], kind: Option<LinkKind>) -> Result<Topology, TopologyError> {
    let options = TopologyOptions {
        kind,
        seed: 11,
        ..TopologyOptions::default()
    };
    Topology::build(&program(), hosts, &options)
}

/// Makes hosts, or says that this machine does not let it.
pub fn hosts_or_skip(hosts: &[HostSpec], kind: Option<LinkKind>) -> Option<Topology> {
    match topology(hosts, kind) {
        Ok(topology) => Some(topology),
        // What root cannot do is a mistake, except where the kernel lacks it.
        Err(TopologyError::Impossible(reason)) if may_lack(&reason) => {
            skip(&reason);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn may_lack(reason: &str) -> bool {
    !net::os::is_root() || reason.contains("/dev/net/tun") || reason.contains("does not let")
}

/// A command that runs on a host.
pub fn command_on(topology: &Topology, host: &str, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    let setup = topology.setup_in(host).unwrap().unwrap();
    net::os::set_up_child(&mut command, setup);
    command
}

/// What a command prints that runs on a host to its end.
pub fn run_on(topology: &Topology, host: &str, words: &[&str]) -> String {
    let output = command_on(topology, host, words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?} on {host}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The document of a load that is made on a host.
pub fn load_on(topology: &Topology, host: &str, words: &[&str]) -> Value {
    let program = program();
    let all = [
        &[program.to_str().unwrap(), "load"],
        words,
        &["--format", "json"],
    ]
    .concat();
    let output = command_on(topology, host, &all).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // On a busy machine a load may be late and say that it is invalid (4); it was made all the same.
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 4)), "{all:?} on {host}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A built-in back end on a host, at port 8080; it is gone when this is dropped.
pub struct BackEnd {
    child: std::process::Child,
}

impl BackEnd {
    pub fn on(topology: &Topology, host: &str) -> Self {
        let program = program();
        let words = [
            program.to_str().unwrap(),
            "origin",
            "--listen",
            "0.0.0.0:8080",
        ];
        let mut command = command_on(topology, host, &words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let back_end = Self {
            child: command.spawn().unwrap(),
        };
        let path = format!("/proc/{}/net/tcp", back_end.child.id());
        // Port 8080 in state LISTEN.
        super::wait_until("the back end listens", super::LIMIT, || {
            std::fs::read_to_string(&path)
                .is_ok_and(|text| text.contains("00000000:1F90 00000000:0000 0A"))
        });
        back_end
    }
}

impl Drop for BackEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
