//! What a server sends does not stay in memory. In a process of its own, and one load after the
//! other, since it is the memory of the whole process.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::support::Counted::{Read, Timeout};
use crate::support::{
    BOTH, Counted, Peer, Server, beside, carry_out, count, get, is_own_process, origin,
};
use load::{BodyRule, Expect, StatusRule, Stop, Target};

const GROWTH_MAX_KB: u64 = 64 * 1024;

/// Memory of this process that is resident, in kB.
fn resident_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// The result of the work, and by how much memory grew at most meanwhile.
fn growth_kb<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = resident_kb();
    let (done, ends) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let mut most = 0;
        loop {
            most = most.max(resident_kb());
            match ends.recv_timeout(Duration::from_millis(10)) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return most,
            }
        }
    });
    let result = work();
    drop(done);
    (result, watch.join().unwrap().saturating_sub(before))
}

/// Has each connection make so many requests.
const REQUESTS: u64 = 2;

/// Puts load on the server, on both loops.
fn bounded(
    name: &str,
    connections: u32,
    counted: &[Counted],
    change: impl Fn(&mut Target),
    script: impl Fn(&mut Peer) + Send + Sync + 'static,
) {
    let server = Server::start(script);
    let good = origin();
    for io in BOTH {
        let name = format!("{name} on {io}");
        let stop = Stop::EachConnection(REQUESTS);
        let mut target = get(server.address);
        change(&mut target);
        let mut job = beside(io, target, connections, stop, good.address());
        job.timeout = Duration::from_millis(200);
        let (reading, growth) = growth_kb(|| carry_out(&name, &job));
        assert!(growth < GROWTH_MAX_KB, "{name}: grew by {growth} kB");
        let errors = reading.errors_all;
        assert_eq!(reading.requests_all, 0, "{name}");
        let asked = REQUESTS * u64::from(connections);
        assert_eq!(errors.total(), asked, "{name}: {errors:?}");
        assert_eq!(
            count(&reading, counted),
            errors.total(),
            "{name}: {errors:?}"
        );
    }
}

/// Answers with a head, and then with as much as the client takes.
fn floods(head: &'static str) -> impl Fn(&mut Peer) + Send + Sync + 'static {
    let megabyte = vec![b'x'; 1 << 20];
    move |peer| {
        if peer.answer(head.as_bytes()) {
            peer.flood(&megabyte);
        }
    }
}

#[test]
fn memory_stays_bounded_whatever_a_server_sends() {
    if !is_own_process("memory::memory_stays_bounded_whatever_a_server_sends") {
        return;
    }
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n";
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2540be400\r\n";
    let until_close = "HTTP/1.1 200 OK\r\n\r\n";
    let rules: [fn(&mut Target); 3] = [
        |_| {},
        |target| target.requests[0].expect.body = BodyRule::Bytes(Arc::from(&b"short"[..])),
        |target| {
            target.requests[0].expect = Expect {
                status: StatusRule::Exactly(200),
                body: BodyRule::Contains(Arc::from(&b"not in it"[..])),
            }
        },
    ];
    for rule in rules {
        bounded("10 GB", 4, &[Timeout], rule, floods(length));
    }
    bounded("a chunk of 10 GB", 4, &[Timeout], |_| {}, floods(chunk));
    bounded("without end", 4, &[Timeout], |_| {}, floods(until_close));
    let head = "HTTP/1.1 200 OK\r\nX: ";
    bounded("an endless head", 4, &[Read, Timeout], |_| {}, floods(head));
    // Heads that are not refused yet, on many connections at once.
    let almost = format!("{head}{}", "y".repeat(60_000));
    bounded(
        "heads that do not end",
        200,
        &[Timeout],
        |_| {},
        move |peer| {
            let _ = peer.answer(almost.as_bytes());
            peer.drain();
        },
    );
}
