//! Connections that are held open without being used.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::{
    Idle, IdleError, IdleHolder, Job, LoadError, Request, Segment, Stop, Target, Traffic, WebSocket,
};
use net::IoKind;
use net::h2::frame;
use origin::{Origin, OriginOptions};
use readings::{IdleEnd, IdleReading};
use tls::{ClientSettings, Trust};

use crate::http2::over_h2;
use crate::support::{BOTH, GOOD, LONG, Server, get, is_own_process, one, origin};

fn idle(mut target: Target, connections: u32, is_silent: bool) -> Target {
    target.idle = Some(Idle {
        connections,
        is_silent,
        ping_every: None,
    });
    target
}

fn job(io: IoKind, target: Target) -> Job {
    Job {
        timeout: LONG,
        connect_timeout: LONG,
        io: Some(io),
        ..Job::to(target).segment(Segment::closed(Stop::Requests(1)))
    }
}

/// Holds idle connections while `meanwhile` runs, and says what became of them.
fn hold(job: &Job, meanwhile: impl FnOnce(&IdleHolder)) -> Result<IdleReading, LoadError> {
    let mut holder = IdleHolder::start(job)?.unwrap();
    assert!(holder.open(1.0, &AtomicBool::new(false))?);
    meanwhile(&holder);
    Ok(holder.close()?.remove(0).unwrap())
}

#[test]
fn a_load_runs_beside_as_many_as_were_asked_for() {
    for io in BOTH {
        let origin = origin();
        let mut target = idle(get(origin.address()), 300, false).with_connections(4);
        target.requests[0].expect = crate::support::hello();
        let mut job = job(io, target);
        job.segments[0].stop = Stop::Requests(1_000);
        let reading = one(&job);
        assert_eq!((reading.requests, reading.errors_all.total()), (1_000, 0));
        let held = reading.idle.unwrap();
        assert_eq!((held.connections, held.opened, held.failed), (300, 300, 0));
        assert_eq!((held.open_at_end, held.closed_count()), (300, 0));
        // One request on each, before the load.
        assert_eq!(origin.stats().connections, 304);
        assert_eq!(origin.stats().received.requests, 1_300);
    }
}

#[test]
fn parts_are_opened_one_after_the_other_and_silent_ones_ask_nothing() {
    for io in BOTH {
        let origin = origin();
        let job = job(io, idle(get(origin.address()), 100, true));
        let mut holder = IdleHolder::start(&job).unwrap().unwrap();
        let stop = AtomicBool::new(false);
        for (part, open) in [(0.0, 0), (0.25, 25), (0.5, 50), (1.0, 100)] {
            assert!(holder.open(part, &stop).unwrap());
            assert_eq!(holder.open_now(), open, "{part} on {io}");
        }
        let held = holder.close().unwrap().remove(0).unwrap();
        assert_eq!((held.open_at_end, held.is_silent), (100, true));
        assert_eq!(origin.stats().received.requests, 0);
    }
}

#[test]
fn a_job_without_them_has_no_holder() {
    let server = origin();
    let job = job(IoKind::Epoll, get(server.address()));
    assert!(IdleHolder::start(&job).unwrap().is_none());
}

#[test]
fn pings_are_sent_and_answered_while_they_are_idle() {
    for io in BOTH {
        let origin = origin();
        let every = Duration::from_millis(200);
        let socket = Target {
            requests: vec![Request {
                bytes: net::fetch::request("GET", "x", "/ws/echo", &[]),
                ..get(origin.address()).requests[0].clone()
            }],
            traffic: Traffic::WebSocket(WebSocket::default()),
            ..get(origin.address())
        };
        for target in [over_h2(get(origin.address()), 1), socket] {
            let mut target = idle(target, 40, false);
            let held = hold(&job(io, target.clone()), |_| sleep(3 * every)).unwrap();
            assert_eq!((held.pings, held.pongs), (0, 0), "{io}");
            target.idle.as_mut().unwrap().ping_every = Some(every);
            let held = hold(&job(io, target), |_| sleep(6 * every)).unwrap();
            assert_eq!((held.open_at_end, held.failed), (40, 0), "{io}");
            // Each has sent several; the last ones may be on their way.
            let expected = held.pings - 40..=held.pings;
            assert!(held.pings >= 80 && held.pings <= 40 * 40, "{io}: {held:?}");
            assert!(expected.contains(&held.pongs), "{io}: {held:?}");
        }
    }
}

#[test]
fn tls_and_http2_are_spoken_on_them() {
    for io in BOTH {
        let (server, mut client) = testing::tls::localhost(&["h2", "http/1.1"]);
        client.alpn = vec!["h2".into()];
        let origin = Origin::start(&OriginOptions {
            tls: Some(server),
            ..OriginOptions::default()
        });
        let origin = origin.unwrap();
        for is_silent in [false, true] {
            let mut target = idle(over_h2(get(origin.address()), 1), 40, is_silent);
            target.tls = Some(client.clone());
            let held = hold(&job(io, target), |_| {}).unwrap();
            assert_eq!((held.open_at_end, held.failed), (40, 0), "{io} {is_silent}");
        }
        assert_eq!(
            origin.stats().received.requests,
            40,
            "of the silent ones none"
        );
    }
}

#[test]
fn websockets_are_held_and_their_pings_answered() {
    let handshake = |address, path: &str| {
        let mut target = idle(get(address), 30, false);
        target.requests[0].bytes = net::fetch::request("GET", "test", path, &[]);
        target.traffic = load::Traffic::WebSocket(load::WebSocket::default());
        target
    };
    for io in BOTH {
        let origin = origin();
        // A server that pings, and sends a message now and then.
        let paced = "/ws/paced/0?every=50ms&heartbeat=20ms";
        for path in ["/ws/echo", paced] {
            let job = job(io, handshake(origin.address(), path));
            let held = hold(&job, |_| std::thread::sleep(Duration::from_millis(300)));
            let held = held.unwrap();
            assert_eq!((held.open_at_end, held.failed), (30, 0), "{io} {path}");
        }
        // One that ends them.
        let ends = handshake(origin.address(), "/ws/paced/3?every=50ms");
        let held = hold(&job(io, ends), |_| {
            std::thread::sleep(Duration::from_millis(400));
        });
        let held = held.unwrap();
        assert_eq!((held.open_at_end, held.closed[0].how), (0, IdleEnd::Closed));
        assert_eq!(held.closed_count(), 30);
        // One that is none.
        let none = hold(&job(io, handshake(origin.address(), "/")), |_| {});
        let why = none.unwrap_err().to_string();
        assert!(why.contains("instead of 101"), "{why}");
    }
}

#[test]
fn what_the_server_ends_is_counted_with_how_and_when() {
    const AFTER: Duration = Duration::from_millis(300);
    for io in BOTH {
        let number = AtomicU64::new(0);
        let server = Server::start(move |peer| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            peer.answer(GOOD);
            match number % 3 {
                0 => return peer.drain(),
                1 => {}
                _ => peer.reset(),
            }
            peer.pause(AFTER);
        });
        let held = hold(&job(io, idle(get(server.address), 30, false)), |holder| {
            let start = Instant::now();
            while holder.open_now() > 10 && start.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let held = held.unwrap();
        assert_eq!((held.opened, held.open_at_end), (30, 10), "{io}: {held:?}");
        assert_eq!(held.closed.len(), 2, "{io}: {held:?}");
        for closed in &held.closed {
            assert!(matches!(closed.how, IdleEnd::Closed | IdleEnd::Reset));
            assert_eq!(closed.count, 10, "{io}: {held:?}");
            // It is idle from when its answer was read, a moment after the server's pause began.
            assert!(closed.first_after_s > AFTER.as_secs_f64() / 2.0, "{held:?}");
            assert!(closed.last_after_s >= closed.first_after_s);
        }
    }
}

#[test]
fn a_ping_is_answered_while_nothing_else_happens() {
    for io in BOTH {
        let (sender, answered) = mpsc::channel();
        let sender = std::sync::Mutex::new(sender);
        let server = Server::start(move |peer| {
            use std::io::Read;
            let mut out = Vec::new();
            frame::settings(&mut out, &[]);
            peer.send(&out);
            out.clear();
            frame::ping(&mut out, *b"are you?");
            // It is idle by then, or the ping comes with the settings: both are answered.
            std::thread::sleep(Duration::from_millis(50));
            peer.send(&out);
            let mut seen = Vec::new();
            let mut buffer = [0; 1024];
            while let Ok(n @ 1..) = peer.stream.read(&mut buffer) {
                seen.extend_from_slice(&buffer[..n]);
                if seen.windows(8).any(|part| part == b"are you?") {
                    let _ = sender.lock().unwrap().send(());
                    return peer.drain();
                }
            }
        });
        let target = idle(over_h2(get(server.address), 1), 1, true);
        let held = hold(&job(io, target), |_| {
            answered.recv_timeout(LONG).unwrap();
        });
        assert_eq!(held.unwrap().open_at_end, 1, "{io}");
    }
}

#[test]
fn what_cannot_be_opened_is_told_with_why() {
    for io in BOTH {
        let wrong = Server::start(|peer| {
            peer.answer(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
            peer.drain();
        });
        let closing = Server::start(|peer| {
            peer.answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        });
        let silent = Server::start(|peer| peer.drain());
        for (server, words) in [
            (&wrong, "found status 503"),
            (&closing, "closes the connection after its answer"),
            (&silent, "no answer came within"),
        ] {
            let mut job = job(io, idle(get(server.address), 5, false));
            job.targets[0].requests[0].expect = crate::support::answered(200);
            if words.starts_with("no answer") {
                (job.timeout, job.connect_timeout) =
                    (Duration::from_millis(50), Duration::from_millis(50));
            }
            let error = hold(&job, |_| {}).unwrap_err();
            assert!(
                matches!(
                    error,
                    LoadError::Idle(IdleError::Opening {
                        open: 0,
                        asked: 5,
                        ..
                    })
                ),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(text.contains(words), "{io}: {text}");
        }
    }
}

#[test]
fn more_than_files_and_ports_allow_is_refused_at_once() {
    // Nothing listens there, and nothing is asked.
    let address: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let ports = IdleHolder::start(&job(IoKind::Epoll, idle(get(address), 70_000, false)));
    let text = ports.err().unwrap().to_string();
    assert!(text.contains("net.ipv4.ip_local_port_range"), "{text}");
    let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
    let files = IdleHolder::start(&job(IoKind::Epoll, idle(get(address), 2_000_000, false)));
    let text = files.err().unwrap().to_string();
    assert!(text.contains("ulimit -n 2001000"), "{text}");
}

#[test]
fn a_stop_ends_the_opening() {
    let server = Server::start(|peer| peer.drain());
    let job = job(IoKind::Epoll, idle(get(server.address), 5, false));
    let mut holder = IdleHolder::start(&job).unwrap().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let setter = stop.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        setter.store(true, Ordering::Relaxed);
    });
    assert!(!holder.open(1.0, &stop).unwrap());
    thread.join().unwrap();
    assert_eq!(holder.close().unwrap()[0].as_ref().unwrap().opened, 0);
}

const ORIGIN: &str = "WEIGH_TEST_IDLE_ORIGIN";

/// An origin in a process of its own, which ends with its standard input.
fn origin_elsewhere(kind: &str) -> (Child, SocketAddr) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "connections::idle::its_own_memory_is_small";
    command
        .args(["--exact", name, "--nocapture"])
        .env(ORIGIN, kind);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).find_map(|line| {
        let at = line.find("origin=")?;
        line[at + 7..].split_whitespace().next()?.parse().ok()
    });
    (child, told.unwrap())
}

fn serve_until_input_ends(kind: &str) {
    let (tls, _) = testing::tls::localhost(&[]);
    let origin = Origin::start(&OriginOptions {
        connections: 8_000,
        tls: (kind == "tls").then_some(tls),
        ..OriginOptions::default()
    });
    let origin = origin.unwrap();
    println!("origin={} ", origin.address());
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn resident_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// At most 1 kB a plain connection and 20 kB one with TLS, in user space: from half of them to all.
#[test]
fn its_own_memory_is_small() {
    if let Ok(kind) = std::env::var(ORIGIN) {
        return serve_until_input_ends(&kind);
    }
    if !is_own_process("connections::idle::its_own_memory_is_small") {
        return;
    }
    for (kind, connections, bytes_max) in [("plain", 6_000, 1_000), ("tls", 2_000, 20_000)] {
        let (mut child, address) = origin_elsewhere(kind);
        for io in BOTH {
            let mut target = idle(get(address), connections, false);
            target.tls = (kind == "tls").then(|| ClientSettings {
                trust: Trust::Anything,
                ..ClientSettings::new("localhost")
            });
            let mut holder = IdleHolder::start(&job(io, target)).unwrap().unwrap();
            let stop = AtomicBool::new(false);
            assert!(holder.open(0.5, &stop).unwrap());
            let half = resident_kb();
            assert!(holder.open(1.0, &stop).unwrap());
            let more = resident_kb().saturating_sub(half) * 1024;
            let each = more / u64::from(connections / 2);
            println!("{kind} on {io}: {each} bytes a connection");
            assert!(each <= bytes_max, "{kind} on {io}: {each} bytes");
            holder.close().unwrap();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
