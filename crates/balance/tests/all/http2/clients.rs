//! HTTP/2 to clients, HTTP/1.1 to back ends.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use balance::Balancer;
use balance::config::model::{HttpVersions, Service};
use net::IoKind;
use net::h2::{ErrorCode, frame, settings};

use crate::support::http::{BackEnd, Peer, balancer_with, client_with, get, ok};
use crate::support::{active_now, clients_now, on_both, until};
use testing::http2::client::{Client, GET, with};

pub fn both(service: &mut Service) {
    service.offered_versions = Some(HttpVersions::BOTH);
}

pub fn clear(io: IoKind, back_ends: &[SocketAddr]) -> Balancer {
    balancer_with(io, back_ends, both)
}

pub fn clear_and_client(io: IoKind, back_ends: &[SocketAddr]) -> (Balancer, Client<TcpStream>) {
    let balancer = clear(io, back_ends);
    let client = Client::connect(balancer.address());
    (balancer, client)
}

#[test]
fn streams_of_a_connection_go_to_several_back_ends_and_are_counted_as_requests() {
    let (one, two) = (BackEnd::named("one"), BackEnd::named("two"));
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[one.address, two.address]);
        for stream in [1, 3, 5, 7] {
            client.head(stream, &GET, true);
        }
        let mut bodies: Vec<_> = [1, 3, 5, 7]
            .into_iter()
            .map(|stream| {
                let response = client.response(stream);
                assert_eq!(response.value(":status"), "200");
                assert_eq!(response.value("connection"), "");
                String::from_utf8(response.body).unwrap()
            })
            .collect();
        bodies.sort();
        assert_eq!(bodies, ["one/", "one/", "two/", "two/"]);
        let shared = balancer.shared();
        let state = &shared.services[0];
        assert_eq!(state.clients.get(), 1);
        let requests: u64 = state.backends.iter().map(|one| one.requests.get()).sum();
        assert_eq!(requests, 4);
        drop(client);
        until("all is over", || {
            clients_now(&balancer) + active_now(&balancer, 0) + active_now(&balancer, 1) == 0
        });
    });
}

#[test]
fn the_same_port_speaks_both_versions() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let balancer = clear(io, &[back.address]);
        // Whatever the pieces are.
        let mut peer = Peer::connect(balancer.address());
        peer.say("P");
        std::thread::sleep(Duration::from_millis(20));
        let answer = peer.ask("OST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(answer.text(), "one/a");
        // The connection is kept.
        assert_eq!(peer.ask(get("/b")).text(), "one/b");
        let mut client = Client::connect(balancer.address());
        client.head(1, &GET, true);
        let all = std::mem::take(&mut client.out);
        for byte in all {
            client.out.push(byte);
            client.flush();
        }
        assert_eq!(client.response(1).body, b"one/");
        // Where it is not offered, it is refused as before.
        let (_only_1, mut peer) = client_with(io, &[back.address], |_| {});
        peer.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        assert!(peer.answer().unwrap().status() >= 400);
    });
}

#[test]
fn requests_arrive_as_http_1_with_the_same_meaning() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let (_balancer, mut client) = clear_and_client(io, &[back.address]);
        let path = format!("/{io}");
        let mut fields = with(&[(":path", path.as_str()), ("x-a", "b"), ("te", "trailers")]);
        fields.extend([("cookie", "a=1"), ("cookie", "b=2"), ("host", "a.example")]);
        assert_eq!(client.ask(1, &fields).value(":status"), "200");
        // With content of an announced length, and without.
        let mut fields = with(&[
            (":method", "POST"),
            (":path", path.as_str()),
            ("content-length", "5"),
        ]);
        client.head(3, &fields, false);
        client.data(3, b"hel", false);
        client.data(3, b"lo", true);
        assert_eq!(client.response(3).value(":status"), "200");
        fields.pop();
        client.head(5, &fields, false);
        client.data(5, b"hel", false);
        client.data(5, b"lo", false);
        client.data(5, b"", true);
        assert_eq!(client.response(5).value(":status"), "200");
        let mut requests = back.requests();
        requests.retain(|one| one.head.contains(&format!("{path} HTTP/1.1")));
        let [first, second, third] = &requests[..] else {
            panic!("{requests:?}");
        };
        assert_eq!(first.values("host"), ["a.example"]);
        assert_eq!(first.values("cookie"), ["a=1; b=2"]);
        assert_eq!(
            (first.values("x-a"), first.values("te")),
            (vec!["b"], vec!["trailers"])
        );
        assert_eq!(
            (&second.body[..], &third.body[..]),
            (&b"hello"[..], &b"hello"[..])
        );
        assert_eq!(second.values("content-length"), ["5"]);
        assert_eq!(third.values("transfer-encoding"), ["chunked"]);
    });
}

#[test]
fn responses_of_every_framing_pass() {
    let back = BackEnd::new(|peer, _, _| {
        while let Some(request) = peer.request() {
            let path = request.head.split(' ').nth(1).unwrap();
            match path {
                "/chunked" => peer.say(
                    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                     HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                     5\r\nhello\r\n0\r\nX-Sum: 9\r\n\r\n",
                ),
                "/none" => peer.say("HTTP/1.1 204 No Content\r\n\r\n"),
                "/same" => peer.say("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
                "/head" => peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
                "/until-close" => {
                    peer.say("HTTP/1.1 200 OK\r\n\r\nhello");
                    return;
                }
                "/cut" => {
                    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
                    return;
                }
                "/long" => peer.say(ok(&"x".repeat(1_000_000))),
                _ => return,
            }
        }
    });
    on_both(|io| {
        let (_balancer, mut client) = clear_and_client(io, &[back.address]);
        let mut stream = 1;
        let mut ask = |method: &str, path: &str| {
            stream += 2;
            client.ask(stream, &with(&[(":method", method), (":path", path)]))
        };
        let chunked = ask("GET", "/chunked");
        assert_eq!(chunked.fields[0], (":status".into(), "103".into()));
        assert_eq!(
            (chunked.value(":status"), chunked.value("x-sum")),
            ("200", "9")
        );
        assert_eq!(chunked.body, b"hello");
        assert_eq!(ask("GET", "/none").value(":status"), "204");
        let same = ask("GET", "/same");
        assert!(same.is_complete && same.value(":status") == "304");
        let head = ask("HEAD", "/head");
        assert!(head.is_complete && head.body.is_empty());
        assert_eq!(head.value("content-length"), "5");
        let closed = ask("GET", "/until-close");
        assert!(closed.is_complete && closed.body == b"hello", "{closed:?}");
        let cut = ask("GET", "/cut");
        assert_eq!(cut.reset, Some(ErrorCode::InternalError), "{cut:?}");
        assert_eq!(ask("GET", "/gone").value(":status"), "502");
        assert_eq!(ask("GET", "/long").body.len(), 1_000_000);
    });
}

#[test]
fn a_stream_that_is_not_read_neither_stalls_the_others_nor_piles_up() {
    let long = 50_000_000;
    let back = BackEnd::new(move |peer, _, _| {
        while let Some(request) = peer.request() {
            match request.head.contains("/long") {
                true => {
                    peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {long}\r\n\r\n"));
                    for _ in 0..long / 10_000 {
                        peer.say([0; 10_000]);
                    }
                }
                false => peer.say(ok("short")),
            }
        }
    });
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        // The connection's window is large, and that of each stream small.
        frame::window_update(&mut client.out, 0, 1 << 30);
        client.is_reading = false;
        client.head(1, &with(&[(":path", "/long")]), true);
        client.until(|client| client.received(1) == 65_535);
        for stream in (3..100).step_by(2) {
            assert_eq!(client.ask(stream, &GET).body, b"short");
        }
        let shared = balancer.shared();
        let taken = || {
            // Counted when the table is scanned.
            std::thread::sleep(Duration::from_millis(300));
            shared.services[0].backends[0].bytes_from.get()
        };
        let (first, second) = (taken(), taken());
        assert!(first == second && first < 20_000_000, "{first} {second}");
        // It goes on where it was.
        client.is_reading = true;
        frame::window_update(&mut client.out, 1, 60_000_000);
        assert_eq!(client.response(1).body.len(), long);
    });
}

/// How many bytes at most the kernel buffers for a connection that is not read: in the send buffer
/// of one end and the receive buffer of the other.
fn kernel_buffers() -> usize {
    let largest = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        let last = text.split_whitespace().last().unwrap();
        last.parse::<usize>().unwrap()
    };
    largest("tcp_wmem") + largest("tcp_rmem")
}

#[test]
fn a_request_whose_back_end_does_not_read_is_held_within_its_window() {
    // There are two connections: one to the back end, and one to the client.
    let bound = 2 * kernel_buffers() + 2_000_000;
    let long = 2 * bound;
    on_both(|io| {
        let (go, wait) = std::sync::mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let back = BackEnd::new(move |peer, _, _| {
            while let Some(head) = peer.head() {
                if head.contains("/slow") {
                    wait.lock().unwrap().recv().unwrap();
                    peer.bytes(long).unwrap();
                }
                peer.say(ok("done"));
            }
        });
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        let length = long.to_string();
        let fields = with(&[
            (":method", "PUT"),
            (":path", "/slow"),
            ("content-length", &length),
        ]);
        client.head(1, &fields, false);
        // As much as its windows allow.
        let sent = client.fill(1, long);
        assert!(sent < bound, "{sent} bytes were taken");
        // Another stream is served meanwhile.
        let mut other = Client::connect(balancer.address());
        assert_eq!(other.ask(1, &GET).body, b"done");
        go.send(()).unwrap();
    });
}

#[test]
fn a_reset_cancels_the_request_at_the_back_end() {
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = ended.clone();
    let back = BackEnd::new(move |peer, _, _| {
        while let Some(head) = peer.head() {
            if head.contains("/never") {
                peer.rest();
                seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                return;
            }
            peer.say(ok("done"));
        }
    });
    on_both(|io| {
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        client.head(1, &with(&[(":path", "/never")]), true);
        client.flush();
        until("it is so", || {
            balancer.shared().services[0].backends[0].requests.get() == 1
        });
        let before = ended.load(std::sync::atomic::Ordering::SeqCst);
        frame::reset(&mut client.out, 1, ErrorCode::Cancel);
        client.flush();
        until("it is so", || {
            ended.load(std::sync::atomic::Ordering::SeqCst) > before
        });
        assert_eq!(client.ask(3, &GET).body, b"done");
    });
}

#[test]
fn a_drained_connection_finishes_its_requests() {
    on_both(|io| {
        let (go, wait) = std::sync::mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let back = BackEnd::new(move |peer, _, _| {
            while let Some(head) = peer.head() {
                if head.contains("/slow") {
                    wait.lock().unwrap().recv().unwrap();
                }
                peer.say(ok("done"));
            }
        });
        let (balancer, mut client) = clear_and_client(io, &[back.address]);
        assert_eq!(client.ask(1, &GET).body, b"done");
        client.head(3, &with(&[(":path", "/slow")]), true);
        client.flush();
        until("it is so", || {
            balancer.shared().services[0].backends[0].requests.get() == 2
        });
        balancer.begin_drain();
        client.until(|client| client.gone.is_some_and(|(last, _)| last == 3));
        go.send(()).unwrap();
        assert_eq!(client.response(3).body, b"done");
        assert_eq!(client.gone, Some((3, ErrorCode::NoError)));
        client.until(|client| client.has_ended);
        assert!(balancer.drain(Duration::from_secs(10)));
    });
}

#[test]
fn idle_connections_and_unfinished_heads_have_time_limits() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let limited = |change: fn(&mut Service)| {
            balancer_with(io, &[back.address], |service| {
                both(service);
                change(service);
            })
        };
        let idle = limited(|service| service.timeouts.client_idle = Duration::from_millis(300));
        let mut client = Client::connect(idle.address());
        assert_eq!(client.ask(1, &GET).body, b"one/");
        client.until(|client| client.has_ended);
        assert_eq!(client.gone, Some((1, ErrorCode::NoError)));
        assert_eq!(idle.shared().services[0].timeouts.get(), 1);
        let header = limited(|service| service.timeouts.client_header = Duration::from_millis(300));
        // Nothing, a part of the preface, and a head without its end.
        for count in [0, 2, 24, 40] {
            let mut client = Client::connect(header.address());
            client.head(1, &GET, true);
            client.out.truncate(count);
            client.until(|client| client.has_ended);
        }
        // A request whose content does not come.
        let body = limited(|service| service.timeouts.client_body = Duration::from_millis(300));
        let mut client = Client::connect(body.address());
        client.head(1, &with(&[(":method", "POST")]), false);
        assert_eq!(client.response(1).value(":status"), "408");
    });
}

#[test]
fn a_window_that_stays_closed_ends_the_stream() {
    let back = BackEnd::new(|peer, _, _| {
        while peer.head().is_some() {
            peer.say(ok(&"x".repeat(100_000)));
        }
    });
    on_both(|io| {
        let balancer = balancer_with(io, &[back.address], |service| {
            both(service);
            service.timeouts.write_stall = Duration::from_millis(500);
        });
        let stream = std::net::TcpStream::connect(balancer.address()).unwrap();
        let closed = [(settings::INITIAL_WINDOW_SIZE, 0)];
        let mut client = Client::over(stream, &closed);
        let response = client.ask(1, &GET);
        assert_eq!(response.value(":status"), "200");
        assert_eq!(response.reset, Some(ErrorCode::InternalError));
        assert_eq!(balancer.shared().services[0].timeouts.get(), 1);
    });
}
