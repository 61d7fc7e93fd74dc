//! Many clients of every kind leave no descriptor and little memory behind.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;

use crate::support::{
    BOTH, connect, dead, echo, in_own_process, memory, read, serve_on, service, start, until,
};
use balance::Balancer;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn active(balancer: &Balancer) -> u32 {
    let service = &balancer.shared().services[0];
    let backends = service.backends.iter();
    let there: u32 = backends.map(|one| one.active.load(Ordering::Relaxed)).sum();
    there + service.active.load(Ordering::Relaxed)
}

fn one_client(number: usize, balancer: &Balancer) {
    let mut stream = connect(balancer);
    match number % 5 {
        // Gone at once, perhaps before it was accepted.
        0 => {}
        // Reset, as the greeting is unread.
        1 => drop(stream.peek(&mut [0])),
        2 => {
            assert_eq!(read(&mut stream, 1), "a");
            stream.write_all(&[b'x'; 3000]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            assert_eq!(rest.len(), 3000);
        }
        3 => {
            stream.shutdown(Shutdown::Write).unwrap();
            let mut got = String::new();
            stream.read_to_string(&mut got).unwrap();
            assert_eq!(got, "a");
        }
        // A slow reader that goes away with bytes under way in both directions.
        _ => {
            let _ = stream.write_all(&[b'y'; 300_000]);
        }
    }
}

#[test]
fn nothing_is_left_behind() {
    in_own_process("connections::leaks::nothing_is_left_behind", || {
        for io in BOTH {
            churn(io);
            slow_readers(io);
        }
    });
}

fn churn(io: net::IoKind) {
    let mut service = service(&[echo("a"), dead(), echo("a")]);
    service.timeouts.connect = crate::support::LONG;
    let balancer = start(io, service);
    // Threads of the back ends, and buffers, come with the first.
    (0..50).for_each(|number| one_client(number, &balancer));
    until("all have gone", || active(&balancer) == 0);
    let before = descriptors();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).for_each(|number| one_client(number, &balancer)));
        }
    });
    until("all have gone", || active(&balancer) == 0);
    let mut now = descriptors();
    // Back ends that were still writing close theirs a little later.
    until("descriptors are closed", || {
        now = descriptors();
        now <= before
    });
    let state = balancer.shared();
    assert_eq!(state.services[0].queued.load(Ordering::Relaxed), 0);
    assert!(state.services[0].clients.get() >= 1000);
    drop(balancer);
}

/// Clients that read nothing hold a bounded amount each, and hold nobody else up.
fn slow_readers(io: net::IoKind) {
    const READERS: usize = 240;
    /// Eight buffers of 32 KiB, what came with the same turn, and what else a connection takes. On busy
    /// CPUs more comes with a turn.
    const EACH_MAX: usize = 24 * 32 * 1024;
    /// Not on the stacks of the back end's threads, which are in this process too.
    static PIECE: [u8; 65536] = [0; 65536];
    let listener = net::os::listen("127.0.0.1:0".parse().unwrap(), 1024, false).unwrap();
    let endless = serve_on(listener, |mut stream| {
        let mut first = [0];
        if stream.read_exact(&mut first).is_err() || first == *b"s" {
            let _ = stream.write_all(b"short");
            return;
        }
        while stream.write_all(&PIECE).is_ok() {}
    });
    let mut service = service(&[endless]);
    service.timeouts.connect = crate::support::LONG;
    let before = memory();
    let balancer = start(io, service);
    let state = balancer.shared();
    let begins = memory().saturating_sub(before);
    assert!(begins < 32 << 20, "{io}: {begins} bytes before any client");
    let readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut stream = connect(&balancer);
            stream.write_all(b"e").unwrap();
            stream
        })
        .collect();
    // All stand still when no byte comes from the back end any more; it is counted as it passes.
    let bytes = || state.services[0].backends[0].bytes_from.get();
    let (mut last, mut same) = (0, 0);
    until("everybody stands still", || {
        std::thread::sleep(std::time::Duration::from_millis(120));
        same = if bytes() == last && last > 0 {
            same + 1
        } else {
            0
        };
        last = bytes();
        same >= 3
    });
    let grown = memory().saturating_sub(before);
    assert!(
        grown < READERS * EACH_MAX,
        "{io}: {grown} bytes for {READERS}"
    );
    for _ in 0..20 {
        let mut stream = connect(&balancer);
        stream.write_all(b"s").unwrap();
        assert_eq!(read(&mut stream, 5), "short", "{io}");
    }
    // A loop that spins never gets below half a CPU.
    until("the threads sleep", || {
        let spent_ns = net::os::process_cpu_ns();
        std::thread::sleep(std::time::Duration::from_millis(100));
        net::os::process_cpu_ns() - spent_ns < 50_000_000
    });
    drop(readers);
    until("all have gone", || active(&balancer) == 0);
}
