//! HTTP/2 to back ends.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use balance::Balancer;
use balance::config::model::{HttpVersion, Service};
use net::IoKind;
use net::h2::settings;

use crate::http2::clients::both;
use crate::support::http::{self, Peer, balancer_with, client_with, get};
use crate::support::{active_now, on_both, queued_now, until};
use testing::http2::back_end::{BackEnd, Got, value};
use testing::http2::client::{Client, GET, with};

/// HTTP/2 on both sides, without TLS.
pub fn two(service: &mut Service) {
    both(service);
    for backend in &mut service.backends {
        backend.http = HttpVersion::Two;
    }
}

pub fn clear(io: IoKind, back_ends: &[SocketAddr]) -> Balancer {
    balancer_with(io, back_ends, two)
}

pub fn clear_and_peer(io: IoKind, back_ends: &[SocketAddr]) -> (Balancer, Peer) {
    let balancer = clear(io, back_ends);
    let peer = Peer::connect(balancer.address());
    (balancer, peer)
}

#[test]
fn requests_of_many_clients_share_a_connection() {
    on_both(|io| {
        let back = BackEnd::named("one");
        let balancer = clear(io, &[back.address]);
        let mut peers: Vec<Peer> = (0..20).map(|_| Peer::connect(balancer.address())).collect();
        for round in 0..3 {
            for (number, peer) in peers.iter_mut().enumerate() {
                peer.say(get(&format!("/{number}/{round}")));
            }
            for (number, peer) in peers.iter_mut().enumerate() {
                let answer = peer.answer().unwrap();
                assert_eq!(answer.text(), format!("one/{number}/{round}"));
                assert_eq!(answer.values("content-length").len(), 1);
            }
        }
        let mut client = Client::connect(balancer.address());
        for stream in (1..100).step_by(2) {
            client.head(stream, &GET, true);
        }
        for stream in (1..100).step_by(2) {
            assert_eq!(client.response(stream).body, b"one/");
        }
        assert_eq!(back.connections(), 1);
        let shared = balancer.shared();
        let state = &shared.services[0].backends[0];
        assert_eq!((state.connections.get(), state.requests.get()), (1, 110));
        assert_eq!(state.response_failures.get(), 0);
        until("no request is active", || active_now(&balancer, 0) == 0);
    });
}

#[test]
fn requests_arrive_with_the_same_meaning() {
    on_both(|io| {
        // Answers with the request as it arrived.
        let back = BackEnd::new(&[], |link, _| {
            let mut seen = String::new();
            while let Some(got) = link.receive() {
                let done = got.ended();
                match got {
                    Got::Head { fields, .. } => {
                        seen.clear();
                        for (name, value) in fields {
                            seen += &format!("{name}={value};");
                        }
                    }
                    Got::Data { bytes, .. } => seen += &String::from_utf8(bytes).unwrap(),
                    Got::Trailers { fields, .. } => seen += &format!(";{fields:?}"),
                    _ => {}
                }
                if let Some(stream) = done {
                    link.answer(stream, &seen);
                }
            }
        });
        let (balancer, mut peer) = clear_and_peer(io, &[back.address]);
        let answer = peer.ask(
            "GET http://b.example/a?b HTTP/1.1\r\nHost: a.example\r\nX-A: b\r\n\
             Connection: upgrade, x-hop\r\nX-Hop: 1\r\nUpgrade: websocket\r\nTE: trailers\r\n\r\n",
        );
        assert_eq!(
            answer.text(),
            ":method=GET;:scheme=http;:authority=b.example;:path=/a?b;x-a=b;te=trailers;"
        );
        let answer = peer.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        let head = ":method=POST;:scheme=http;:authority=a;:path=/;";
        assert_eq!(answer.text(), format!("{head}content-length=5;hello"));
        let answer = peer.ask(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nhel\r\n2\r\nlo\r\n0\r\nX-Sum: 5\r\n\r\n",
        );
        assert_eq!(answer.text(), format!("{head}hello;[(\"x-sum\", \"5\")]"));
        // From an HTTP/2 client, with trailers.
        let mut client = Client::connect(balancer.address());
        let fields = with(&[(":method", "POST"), ("te", "trailers"), ("cookie", "a=1")]);
        client.head(1, &fields, false);
        client.data(1, b"hello", false);
        client.head(1, &[("x-sum", "5")], true);
        let body = client.response(1).body;
        let expected = ":method=POST;:scheme=http;:authority=a.example;:path=/;cookie=a=1;\
                        te=trailers;hello;[(\"x-sum\", \"5\")]";
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    });
}

#[test]
fn responses_of_every_framing_pass() {
    on_both(|io| {
        let back = BackEnd::new(&[], |link, _| {
            while let Some((stream, fields)) = link.request() {
                match value(&fields, ":path") {
                    "/interim" => {
                        link.head(stream, &[(":status", "103"), ("link", "</a>")], false);
                        link.head(stream, &[(":status", "200"), ("x-a", "b")], false);
                        link.data(stream, b"hello", false);
                        link.head(stream, &[("x-sum", "5")], true);
                    }
                    "/none" => link.head(stream, &[(":status", "204")], true),
                    "/same" => {
                        let fields = [(":status", "304"), ("content-length", "5")];
                        link.head(stream, &fields, true);
                    }
                    "/empty" => link.head(stream, &[(":status", "200")], true),
                    "/unframed" => {
                        link.head(stream, &[(":status", "200")], false);
                        link.data(stream, b"hello", true);
                    }
                    "/head" => {
                        let fields = [(":status", "200"), ("content-length", "5")];
                        link.head(stream, &fields, false);
                        link.data(stream, b"", true);
                    }
                    _ => {
                        link.head(stream, &[(":status", "200")], false);
                        link.data(stream, &[b'x'; 50_000], false);
                        link.data(stream, b"", true);
                    }
                }
            }
        });
        let (balancer, mut peer) = clear_and_peer(io, &[back.address]);
        let early = peer.ask(get("/interim"));
        assert_eq!((early.status(), early.values("link")), (103, vec!["</a>"]));
        let last = peer.head().unwrap();
        assert!(last.starts_with("HTTP/1.1 200 OK\r\n"), "{last}");
        assert_eq!(
            peer.bytes(25).unwrap(),
            b"5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n".to_vec()
        );
        assert_eq!(peer.ask(get("/none")).status(), 204);
        let same = peer.ask(get("/same"));
        assert_eq!(
            (same.status(), same.values("content-length")),
            (304, vec!["5"])
        );
        let empty = peer.ask(get("/empty"));
        assert_eq!(empty.values("content-length"), ["0"]);
        let unframed = peer.ask(get("/unframed"));
        assert_eq!(unframed.text(), "hello");
        assert_eq!(unframed.values("transfer-encoding"), ["chunked"]);
        peer.say("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(peer.head().unwrap().contains("content-length: 5\r\n"));
        assert_eq!(peer.ask(get("/long")).body.len(), 50_000);
        // HTTP/1.0 has no chunked coding.
        let mut old = Peer::connect(balancer.address());
        old.say("GET /unframed HTTP/1.0\r\nHost: a\r\n\r\n");
        let (all, is_orderly) = old.rest();
        assert!(is_orderly && all.ends_with(b"\r\n\r\nhello"));
        // HTTP/2 on both sides.
        let mut client = Client::connect(balancer.address());
        let response = client.ask(1, &with(&[(":path", "/interim")]));
        let names: Vec<_> = response.fields.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, [":status", "link", ":status", "x-a", "x-sum"]);
        assert_eq!(
            (&response.body[..], response.is_complete),
            (&b"hello"[..], true)
        );
        let response = client.ask(3, &with(&[(":path", "/long")]));
        assert_eq!(response.body.len(), 50_000);
        let response = client.ask(5, &with(&[(":path", "/none")]));
        assert_eq!(response.value(":status"), "204");
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn a_slow_client_does_not_stall_others() {
    on_both(|io| {
        let back = BackEnd::new(&[], |link, _| {
            while let Some((stream, fields)) = link.request() {
                match value(&fields, ":path") {
                    // As much as the window of a stream. The rest has to wait.
                    "/long" => {
                        let fields = [(":status", "200"), ("content-length", "10000000")];
                        link.head(stream, &fields, false);
                        link.data(stream, &[b'x'; 65_535], false);
                    }
                    path => link.answer(stream, path),
                }
            }
        });
        let balancer = clear(io, &[back.address]);
        let mut slow: Vec<Client<_>> = (0..3)
            .map(|_| {
                let mut client = Client::connect(balancer.address());
                client.is_reading = false;
                client.head(1, &with(&[(":path", "/long")]), true);
                client.until(|client| client.received(1) > 1000);
                client
            })
            .collect();
        let mut client = Client::connect(balancer.address());
        for number in 0..200 {
            let stream = 2 * number + 1;
            let path = format!("/{number}");
            let response = client.ask(stream, &with(&[(":path", &path)]));
            assert_eq!(response.body, path.as_bytes());
        }
        assert_eq!(back.connections(), 1);
        // If a client gives up, its stream to the back end is reset, too.
        for client in &mut slow {
            net::h2::frame::reset(&mut client.out, 1, net::h2::ErrorCode::Cancel);
            client.flush();
        }
        until("no request is active", || active_now(&balancer, 0) == 0);
    });
}

#[test]
fn content_passes_through_small_windows_both_ways() {
    const SMALL: &[(u16, u32)] = &[(settings::INITIAL_WINDOW_SIZE, 100)];
    on_both(|io| {
        // This back end echoes the content.
        let back = BackEnd::new(SMALL, |link, _| {
            while let Some(got) = link.receive() {
                match got {
                    Got::Head { stream, .. } => link.head(stream, &[(":status", "200")], false),
                    Got::Data { stream, bytes, end } => link.data(stream, &bytes, end),
                    _ => {}
                }
            }
        });
        let balancer = clear(io, &[back.address]);
        let body: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let mut peer = Peer::connect(balancer.address());
        let mut writer = peer.stream.try_clone().unwrap();
        let length = body.len();
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        let sent = [head.as_bytes(), &body].concat();
        let thread = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &sent));
        assert!(peer.answer().unwrap().body == body);
        thread.join().unwrap().unwrap();
        let mut client = Client::connect(balancer.address());
        client.head(1, &with(&[(":method", "POST")]), false);
        for (at, piece) in body[..60_000].chunks(10_000).enumerate() {
            client.data(1, piece, at == 5);
        }
        assert!(client.response(1).body == body[..60_000]);
    });
}

#[test]
fn as_many_connections_are_opened_as_a_back_end_needs() {
    const FEW: &[(u16, u32)] = &[(settings::MAX_CONCURRENT_STREAMS, 2)];
    on_both(|io| {
        // This back end answers once six requests have come, two on each connection.
        let all = Arc::new(Barrier::new(3));
        let back = BackEnd::new(FEW, move |link, _| {
            while let (Some((one, _)), Some((two, _))) = (link.request(), link.request()) {
                all.wait();
                link.answer(one, "a");
                link.answer(two, "b");
            }
        });
        let balancer = clear(io, &[back.address]);
        let mut peers: Vec<Peer> = (0..6).map(|_| Peer::connect(balancer.address())).collect();
        for _ in 0..3 {
            for peer in &mut peers {
                peer.say(get("/"));
            }
            for peer in &mut peers {
                assert_eq!(peer.answer().unwrap().status(), 200);
            }
        }
        assert_eq!(back.connections(), 3);
    });
}

#[test]
fn requests_without_a_place_wait_and_the_back_end_is_not_to_blame() {
    const ONE: &[(u16, u32)] = &[(settings::MAX_CONCURRENT_STREAMS, 1)];
    on_both(|io| {
        let asked = Arc::new(AtomicUsize::new(0));
        let is_open = Arc::new(AtomicBool::new(false));
        let (counted, gate) = (asked.clone(), is_open.clone());
        let back = BackEnd::new(ONE, move |link, _| {
            while let Some((stream, _)) = link.request() {
                counted.fetch_add(1, Ordering::SeqCst);
                until("it may answer", || gate.load(Ordering::SeqCst));
                link.answer(stream, "done");
            }
        });
        let balancer = balancer_with(io, &[back.address], |service| {
            two(service);
            service.timeouts.connect = Duration::from_millis(500);
        });
        let ask = |count: usize| {
            let peers = (0..count).map(|_| Peer::connect(balancer.address()));
            let mut peers: Vec<Peer> = peers.collect();
            peers.iter_mut().for_each(|peer| peer.say(get("/")));
            peers
        };
        let first = ask(64);
        until("64 are asked", || asked.load(Ordering::SeqCst) == 64);
        // These have no place, and wait until the time to connect is over.
        for mut peer in ask(6) {
            assert_eq!(peer.answer().unwrap().status(), 503);
        }
        let shared = balancer.shared();
        let state = &shared.services[0].backends[0];
        assert_eq!(state.connect_failures.get(), 0);
        // These get a place in time.
        let last = ask(6);
        is_open.store(true, Ordering::SeqCst);
        for mut peer in first.into_iter().chain(last) {
            assert_eq!(peer.answer().unwrap().text(), "done");
        }
        assert_eq!(back.connections(), 64);
    });
}

#[test]
fn the_limit_of_a_back_end_counts_requests() {
    on_both(|io| {
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let back = BackEnd::new(&[], move |link, _| {
            while let Some((stream, _)) = link.request() {
                let _ = gate.lock().unwrap().recv();
                link.answer(stream, "done");
            }
        });
        let balancer = balancer_with(io, &[back.address], |service| {
            two(service);
            service.backends[0].connections_max = Some(2);
        });
        let mut client = Client::connect(balancer.address());
        for stream in [1, 3, 5, 7] {
            client.head(stream, &GET, true);
        }
        client.flush();
        until("two are active and two wait", || {
            (active_now(&balancer, 0), queued_now(&balancer)) == (2, 2)
        });
        for _ in 0..4 {
            release.send(()).unwrap();
        }
        for stream in [1, 3, 5, 7] {
            assert_eq!(client.response(stream).body, b"done");
        }
    });
}

#[test]
fn back_ends_of_both_versions_serve_one_service() {
    on_both(|io| {
        let (new, old) = (BackEnd::named("new"), http::BackEnd::named("old"));
        let (_balancer, mut peer) = client_with(io, &[new.address, old.address], |service| {
            both(service);
            service.backends[0].http = HttpVersion::Two;
        });
        let mut bodies: Vec<_> = (0..4)
            .map(|_| peer.ask(get("/")).text().to_owned())
            .collect();
        bodies.sort();
        assert_eq!(bodies, ["new/", "new/", "old/", "old/"]);
    });
}

/// Against nghttpd, if it is installed.
#[test]
fn nghttpd_serves_files_of_any_size() {
    let folder = std::env::temp_dir().join(format!("balance-nghttpd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let body: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(folder.join("long"), &body).unwrap();
    std::fs::write(folder.join("short"), b"short").unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let program = std::process::Command::new("nghttpd")
        .args(["--no-tls", "--address=127.0.0.1", "-d"])
        .arg(&folder)
        .arg(address.port().to_string())
        .stdout(std::process::Stdio::null())
        .spawn();
    let Ok(mut server) = program else {
        return eprintln!("nghttpd is not installed");
    };
    until("it listens", || {
        std::net::TcpStream::connect(address).is_ok()
    });
    on_both(|io| {
        let balancer = clear(io, &[address]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut peer = Peer::connect(balancer.address());
                    for _ in 0..5 {
                        assert!(peer.ask(get("/long")).body == body);
                        assert_eq!(peer.ask(get("/short")).text(), "short");
                        assert_eq!(peer.ask(get("/none")).status(), 404);
                    }
                });
            }
        });
        let shared = balancer.shared();
        let state = &shared.services[0].backends[0];
        assert_eq!((state.connections.get(), state.requests.get()), (1, 120));
    });
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
