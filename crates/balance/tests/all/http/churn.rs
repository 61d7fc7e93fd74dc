//! Clients and back ends that do anything at any time: nothing panics, spins or is left behind.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::IoKind;

use crate::support::http::*;
use crate::support::in_own_process;

/// What peers say: good and bad, whole and in part.
const REQUESTS: [&str; 12] = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
    "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nbytes",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n",
    "nonsense\r\n\r\n",
    "\r\n\r\n\r\n",
];

const ANSWERS: [&str; 12] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nuntil the end",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nbytes",
    "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n",
    "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\nmore than that",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n",
    "nonsense",
];

/// Does things with a connection until it ends or nothing more comes to mind.
fn play(stream: &mut TcpStream, words: &[&str], first: bool, rng: &mut fastrand::Rng) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
    let _ = stream.set_write_timeout(Some(Duration::from_millis(20)));
    let mut piece = vec![0; 50_000];
    let mut talks = first;
    for _ in 0..rng.usize(1..12) {
        if talks {
            let word = words[rng.usize(..words.len())].as_bytes();
            let word = match rng.u8(..8) {
                0 => &word[..rng.usize(..=word.len())],
                _ => word,
            };
            let times = if rng.u8(..6) == 0 {
                rng.usize(1..20)
            } else {
                1
            };
            if stream.write_all(&word.repeat(times)).is_err() {
                return;
            }
            if rng.u8(..8) == 0 {
                let _ = stream.write_all(&vec![b'x'; rng.usize(..400_000)]);
            }
        }
        talks = true;
        match rng.u8(..16) {
            // Closing with bytes unread resets the connection.
            0 => return,
            1 => {
                let _ = stream.shutdown(Shutdown::Write);
            }
            2 => continue,
            _ => {}
        }
        if let Ok(0) = stream.read(&mut piece) {
            return;
        }
    }
}

fn back_end(stop: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(number as u64);
                let mut piece = vec![0; 50_000];
                if rng.u8(..10) > 0 && matches!(stream.read(&mut piece), Ok(0) | Err(_)) {
                    return;
                }
                play(&mut stream, &ANSWERS, true, &mut rng);
            });
        }
    });
    address
}

/// What the process has open.
fn descriptors() -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    // One that is gone by now has no target.
    all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .collect()
}

fn churn(io: IoKind) {
    let stop = Arc::new(AtomicBool::new(false));
    let backs = [back_end(stop.clone()), back_end(stop.clone())];
    let balancer = balancer_with(io, &backs, |service| {
        service.timeouts.client_header = Duration::from_millis(300);
        service.timeouts.client_idle = Duration::from_millis(300);
        service.timeouts.upstream_answer = Duration::from_millis(300);
        service.timeouts.write_stall = Duration::from_millis(300);
        service.backends[0].connections_max = Some(6);
        service.backends[1].connections_max = Some(6);
        service.backends[1].session_timeout = Duration::from_millis(300);
        service.backends[0].session_timeout = Duration::from_millis(300);
        service.queue.time_limit = Duration::from_millis(200);
    });
    let address = balancer.address();
    std::thread::scope(|scope| {
        for thread in 0..12 {
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread + 1000);
                for _ in 0..40 {
                    let mut stream = TcpStream::connect(address).unwrap();
                    play(&mut stream, &REQUESTS, rng.u8(..10) > 0, &mut rng);
                }
            });
        }
    });
    let shared = balancer.shared();
    let state = &shared.services[0];
    let now = |one: &std::sync::atomic::AtomicU32| one.load(Ordering::Relaxed);
    // The last clients may have gone before they were accepted.
    until("all clients were accepted and released", || {
        state.clients.get() == 12 * 40
            && now(&state.active) == 0
            && now(&state.queued) == 0
            && state.backends.iter().all(|back| now(&back.active) == 0)
    });
    // It still works: any answer will do, of back ends like these.
    let answered = || {
        let mut client = Peer::connect(address);
        client.say(get("/"));
        client.rest().0.starts_with(b"HTTP/1.1 ")
    };
    until("an answer comes", answered);
    stop.store(true, Ordering::Relaxed);
    for back in backs {
        drop(TcpStream::connect(back));
    }
}

#[test]
fn peers_that_do_anything_leave_nothing_behind() {
    in_own_process(
        "http::churn::peers_that_do_anything_leave_nothing_behind",
        || {
            let before = descriptors();
            for io in BOTH {
                churn(io);
                until("descriptors are closed", || {
                    descriptors().len() <= before.len()
                });
            }
        },
    );
}
