//! Bytes that a back end sends unasked never become a client's answer.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::IoKind;

use crate::support::http::*;

/// The environment variable for the balancer's process: event loop and back end.
const TOLD: &str = "BALANCE_TEST_UNASKED";
/// The start of the line that says where it listens.
const LISTENS: &str = "listens on ";

/// A balancer in a process of its own, so that SIGSTOP can stop it.
struct Process {
    child: Child,
    address: SocketAddr,
    /// The process ends when this is closed.
    input: Option<ChildStdin>,
    /// Kept open, so that the process can go on writing.
    _output: BufReader<ChildStdout>,
}

impl Process {
    fn start(io: IoKind, back: SocketAddr) -> Process {
        let path = "http::unasked::data_before_the_request_is_never_its_answer";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([path, "--exact", "--nocapture"])
            .env(TOLD, format!("{io} {back}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = output.by_ref().lines().find_map(|line| {
            let line = line.unwrap();
            let at = line.find(LISTENS)?;
            line[at + LISTENS.len()..].parse().ok()
        });
        Process {
            child,
            address: address.expect("it listens"),
            input,
            _output: output,
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let done = Command::new("kill").args([name, &pid]).status();
        assert!(done.unwrap().success());
    }

    fn stop(&self) {
        self.signal("-STOP");
        let tasks = format!("/proc/{}/task", self.child.id());
        until("all of its threads are stopped", || {
            std::fs::read_dir(&tasks).unwrap().all(|task| {
                let status = std::fs::read_to_string(task.unwrap().path().join("status"));
                status.is_ok_and(|status| status.contains("State:\tT"))
            })
        });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-CONT", &pid]).status();
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// What the process of the balancer does.
fn serve(told: &str) {
    let (io, back) = told.split_once(' ').unwrap();
    let io = BOTH.into_iter().find(|one| one.to_string() == io).unwrap();
    let balancer = balancer(io, &[back.parse().unwrap()]);
    println!("\n{LISTENS}{}", balancer.address());
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn data_before_the_request_is_never_its_answer() {
    if let Ok(told) = std::env::var(TOLD) {
        return serve(&told);
    }
    on_both(|io| {
        let (now, said) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (go, done) = (now.clone(), said.clone());
        let back = BackEnd::new(move |peer, number, all| {
            let request = peer.request();
            all.note(request.unwrap());
            peer.say(ok(&format!("answer {number}")));
            if number == 0 {
                until("it may speak", || go.load(Ordering::SeqCst));
                peer.say(ok("unasked"));
                done.store(true, Ordering::SeqCst);
            }
            // Whatever else comes is not answered.
            let _ = peer.rest();
        });
        let balancer = Process::start(io, back.address);
        let mut client = Peer::connect(balancer.address);
        assert_eq!(client.ask(get("/")).text(), "answer 0");
        // Both are in the kernel when the balancer polls: first the request, then the data.
        balancer.stop();
        client.say(get("/"));
        std::thread::sleep(Duration::from_millis(30));
        now.store(true, Ordering::SeqCst);
        until("it has spoken", || said.load(Ordering::SeqCst));
        std::thread::sleep(Duration::from_millis(30));
        balancer.signal("-CONT");
        assert_eq!(client.answer().unwrap().text(), "answer 1", "{io}");
    });
}

#[test]
fn bytes_in_a_buffer_behind_a_complete_answer_are_nobodys_answer() {
    // The size of a receive buffer: the answer fills one, and the rest comes in another.
    const BUFFER: usize = 32 * 1024;
    on_both(|io| {
        let back = BackEnd::new(|peer, number, all| {
            while let Some(request) = peer.request() {
                all.note(request);
                let mut answer = ok(&"x".repeat(BUFFER));
                let more = answer.len() - BUFFER;
                answer = ok(&"x".repeat(BUFFER - more));
                assert_eq!(answer.len(), BUFFER);
                if number == 0 {
                    answer += &ok("unasked");
                }
                peer.say(answer);
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say(get("/1") + &get("/2"));
        for _ in 0..2 {
            let answer = client.answer().unwrap();
            assert!(answer.body.starts_with(b"xxx"), "{io}: {answer:?}");
        }
        assert_eq!(back.connections(), 2);
    });
}
