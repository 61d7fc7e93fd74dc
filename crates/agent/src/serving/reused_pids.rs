//! Tests that no signal goes to a process that got the process ID of one that ended. Each test runs
//! in a pid namespace of its own, where the next ID can be chosen.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::client::child_guard::ChildGuard;
use crate::protocol::wire::StartServer;
use crate::serving::servers::Servers;

/// Set inside the namespace.
const INSIDE: &str = "WEIGH_TEST_PID_NAMESPACE";
const NEXT: &str = "/proc/sys/kernel/ns_last_pid";

/// Whether this process is in the namespace. If not, the test is run there.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let can = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "sh", "-c"])
        .arg(format!("echo 10 >{NEXT}"))
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) {
        // Not root, or pid namespaces are not allowed.
        return false;
    }
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// An unrelated process, in a session of its own, with a chosen process ID if that is free. Its
/// parent lives.
struct Stranger {
    parent: Child,
    pid: i32,
}

impl Stranger {
    fn with_number(pid: i32) -> Self {
        // `setsid` forks only if it leads a process group, which a background child does not.
        let mut parent = Command::new("sh")
            .arg("-c")
            .arg(format!(
                "echo {} >{NEXT}; setsid sleep 600 & echo $!; wait",
                pid - 1
            ))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = first_number(&mut parent);
        let end = Instant::now() + Duration::from_secs(10);
        while state(pid).1 != pid && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { parent, pid }
    }

    fn lives(&self) -> bool {
        // A signal arrives a moment later.
        std::thread::sleep(Duration::from_millis(100));
        matches!(state(self.pid).0, 'S' | 'R')
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = net::os::kill(self.pid, 9);
        let _ = self.parent.wait();
    }
}

/// The number in the first line that a child prints.
fn first_number(child: &mut Child) -> i32 {
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

/// The state and the session of a process.
fn state(pid: i32) -> (char, i32) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut fields = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let state = fields.next().and_then(|word| word.chars().next());
    let session = fields.nth(2).and_then(|word| word.parse().ok());
    (state.unwrap_or('-'), session.unwrap_or(0))
}

fn server(words: &[&str]) -> StartServer {
    StartServer {
        server: "one".into(),
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        ..StartServer::default()
    }
}

#[test]
fn stopping_a_server_that_has_ended_kills_no_other_process() {
    if !is_inside("serving::reused_pids::stopping_a_server_that_has_ended_kills_no_other_process") {
        return;
    }
    let mut servers = Servers::new().unwrap();
    servers.make_folder("one", None).unwrap();
    let pid = servers.start(&server(&["true"])).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while servers.ended().is_none() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
    let stranger = Stranger::with_number(pid);
    let stopped = servers.stop("one", &[], &AtomicBool::new(false));
    assert_eq!(stopped, Some((false, true)));
    assert!(stranger.lives(), "{} was killed", stranger.pid);
    drop(stranger);
    servers.kill_all();
}

#[test]
fn an_agent_that_is_lost_takes_no_other_process_with_it() {
    if !is_inside("serving::reused_pids::an_agent_that_is_lost_takes_no_other_process_with_it") {
        return;
    }
    // The agent leaves one server behind, and has reported another that ended long ago.
    let script = "setsid sh -c 'echo $$; exec sleep 600' & read line; exit 7";
    let mut agent = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let left = first_number(&mut agent);
    let guard = ChildGuard::new(agent);
    let stranger = Stranger::with_number(500);
    assert_eq!(stranger.pid, 500);
    guard.has_started("one", left);
    guard.has_started("other", 500);
    drop(guard);
    assert!(stranger.lives(), "{} was killed", stranger.pid);
    assert!(!Path::new(&format!("/proc/{left}")).exists());
}
