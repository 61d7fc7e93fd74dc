//! A loop at the limit of open files: clients wait at almost no cost until one can be accepted.
//! Each test runs in a process of its own, since the limit applies to the whole process.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use net::{ConnId, Epoll, Event, Io, IoOptions, Uring, os};

const FEW: u64 = 64;

/// Runs a test, given by its path, in a process of its own for each of its variants.
pub fn alone(path: &str, variants: &[&str], test: impl FnOnce(&str)) {
    const ALONE: &str = "WEIGH_TEST_ALONE";
    if let Ok(variant) = std::env::var(ALONE) {
        return test(&variant);
    }
    for variant in variants {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        let own = own.args(["--exact", path, "--nocapture"]);
        assert!(own.env(ALONE, variant).status().unwrap().success());
    }
}

#[test]
fn clients_wait_for_a_descriptor_on_both_loops() {
    let path = "no_descriptors::clients_wait_for_a_descriptor_on_both_loops";
    let loops: &[&str] = match net::uring_unavailable() {
        None => &[Epoll::NAME, Uring::NAME],
        Some(_) => &[Epoll::NAME],
    };
    alone(path, loops, |name| match name {
        Uring::NAME => clients_wait_for_a_descriptor::<Uring>(),
        _ => clients_wait_for_a_descriptor::<Epoll>(),
    });
}

#[allow(unsafe_code)]
fn limit_descriptors() {
    let limit = libc::rlimit {
        rlim_cur: FEW,
        rlim_max: FEW,
    };
    // SAFETY: `limit` is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// Takes all descriptors except one, and connects a client with that.
fn connect_with_the_last(address: SocketAddr, taken: &mut Vec<File>) -> TcpStream {
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    taken.pop();
    TcpStream::connect(address).unwrap()
}

/// Polls until a client is accepted or the time is over. Returns the client and the failures
/// before.
fn turns<I: Io>(io: &mut I, limit: Duration) -> (Option<ConnId>, Vec<i32>) {
    let end = Instant::now() + limit;
    let mut failures = Vec::new();
    while Instant::now() < end {
        io.poll(Some(50_000_000)).unwrap();
        while let Some(event) = io.next_event() {
            match event {
                Event::Accepted { conn, .. } => return (Some(conn), failures),
                Event::AcceptFailed { errno } => failures.push(errno),
                _ => {}
            }
        }
    }
    (None, failures)
}

fn clients_wait_for_a_descriptor<I: Io>() {
    limit_descriptors();
    let mut io = I::open(IoOptions {
        outgoing: 4,
        accepted: 16,
        buffers: 4,
        files: true,
        ..IoOptions::default()
    })
    .unwrap();
    let listener = os::listen("127.0.0.1:0".parse().unwrap(), 16, false).unwrap();
    let address = listener.local_addr().unwrap();
    io.listen(listener).unwrap();
    let _first = TcpStream::connect(address).unwrap();
    let (first, _) = turns(&mut io, Duration::from_secs(10));
    let mut taken = Vec::new();

    // The client takes the last descriptor, so none is left to accept it with.
    let _second = connect_with_the_last(address, &mut taken);
    let (accepted, failures) = turns(&mut io, Duration::from_millis(200));
    assert!(accepted.is_none(), "there was no descriptor");
    assert_eq!(failures, [libc::EMFILE], "{}: said once", I::NAME);
    let spent_ns = os::thread_cpu_ns();
    let (accepted, failures) = turns(&mut io, Duration::from_secs(1));
    let spent_ms = (os::thread_cpu_ns() - spent_ns) / 1_000_000;
    assert!(accepted.is_none() && failures.is_empty(), "{failures:?}");
    assert!(spent_ms < 100, "{}: {spent_ms} ms of CPU per s", I::NAME);

    // A connection of the loop closes.
    io.close(first.unwrap());
    let (accepted, _) = turns(&mut io, Duration::from_secs(10));
    assert!(accepted.is_some());

    // A descriptor becomes free elsewhere in the process.
    let _third = connect_with_the_last(address, &mut taken);
    let (accepted, failures) = turns(&mut io, Duration::from_millis(300));
    assert!(accepted.is_none());
    assert_eq!(failures, [libc::EMFILE], "{}: said again", I::NAME);
    taken.pop();
    let (accepted, _) = turns(&mut io, Duration::from_secs(10));
    assert!(accepted.is_some(), "{}: it goes on", I::NAME);
}
