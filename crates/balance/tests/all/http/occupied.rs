//! Cheap ways to occupy a balancer: clients that have gone, idle ones, slow bodies, and requests
//! that no back end survives.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use balance::Balancer;
use balance::config::model::{HttpVersions, Service};

use net::h2::{ErrorCode, settings};
use testing::http2::client::{Client, GET};

use crate::support::http::*;
use crate::support::{connect, echo, read, serve, service, start};

fn one_at_a_time(service: &mut Service) {
    service.backends[0].connections_max = Some(1);
}

#[test]
fn a_client_that_has_closed_leaves_its_place_and_the_queue() {
    on_both(|io| {
        let back = BackEnd::mute();
        let (balancer, mut first) = client_with(io, &[back.address], one_at_a_time);
        first.say(get("/"));
        until("the place is taken", || back.requests().len() == 1);
        let mut waiting = Peer::connect(balancer.address());
        waiting.say(get("/"));
        until("one waits", || queued_now(&balancer) == 1);
        let began = Instant::now();
        drop(waiting);
        until("it left the queue", || queued_now(&balancer) == 0);
        drop(first);
        until("all have left", || clients_now(&balancer) == 0);
        assert_eq!(active_now(&balancer, 0), 0);
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{io}: {:?}",
            began.elapsed()
        );
    });
}

#[test]
fn a_new_client_gets_the_place_of_one_that_is_idle() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer_with(io, &[back.address], |service| {
            service.connections_max = Some(3);
        });
        let mut idle: Vec<Peer> = (0..3).map(|_| Peer::connect(balancer.address())).collect();
        for client in &mut idle {
            client.ask(get("/"));
            std::thread::sleep(Duration::from_millis(30));
        }
        let mut early = Peer::connect(balancer.address());
        early.say(get("/early"));
        assert_eq!(early.answer(), None, "who asked just now keeps its place");
        std::thread::sleep(Duration::from_millis(1200));
        let mut new = Peer::connect(balancer.address());
        new.say(get("/new"));
        assert_eq!(new.answer().expect("a place").text(), "a/new", "{io}");
        assert_eq!(
            idle[0].rest().0,
            b"",
            "the one that was idle for longest is closed"
        );
        assert_eq!(idle[2].ask(get("/again")).text(), "a/again");
        let state = &balancer.shared().services[0];
        assert_eq!((state.evicted.get(), state.overflowed.get()), (1, 1));
    });
}

/// Clients that take nothing of their responses have all places. Without need they may do so for
/// `write_stall`, a minute.
#[test]
fn new_clients_and_streams_get_the_places_of_those_that_take_nothing() {
    let body = vec![b'x'; 32 << 20];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let large = [head.into_bytes(), body].concat();
    let back = BackEnd::new(move |peer, _, _| {
        while let Some(request) = peer.request() {
            match request.head.starts_with("GET /small ") {
                true => peer.say(ok("small")),
                false => peer.say(&large),
            }
        }
    });
    on_both(|io| {
        let mut config = http_config(1, &[back.address], |service| {
            service.offered_versions = Some(HttpVersions::BOTH);
        });
        config.connections_per_thread = 8;
        let balancer = Balancer::start(&config, io).unwrap();
        let closed = [(settings::INITIAL_WINDOW_SIZE, 0)];
        let mut deaf = Client::connect_with(balancer.address(), &closed);
        for stream in 0..60 {
            deaf.head(2 * stream + 1, &GET, true);
        }
        deaf.flush();
        let deaf_clients: Vec<Peer> = (0..6)
            .map(|_| {
                let mut client = Peer::connect(balancer.address());
                client.say(get("/"));
                client
            })
            .collect();
        let state = &balancer.shared().services[0];
        until("all places are taken", || state.overflowed.get() > 0);
        let small = testing::http2::client::with(&[(":path", "/small")]);
        let mut early = Client::connect(balancer.address());
        assert_eq!(early.ask(1, &small).reset, Some(ErrorCode::RefusedStream));
        let mut stream = 3;
        until("a stream has a place", || {
            let answer = early.ask(stream, &small);
            stream += 2;
            answer.body == b"small"
        });
        let mut kept = Vec::new();
        until("four clients have places", || {
            let mut client = Peer::connect(balancer.address());
            client.say(get("/small"));
            if client
                .answer()
                .is_some_and(|answer| answer.text() == "small")
            {
                kept.push(client);
            }
            kept.len() == 4
        });
        assert!(state.evicted.get() >= 4);
        drop(deaf_clients);
    });
}

/// Its connection was idle for longest until then.
#[test]
fn a_new_stream_does_not_cost_its_own_connection() {
    on_both(|io| {
        let back = BackEnd::mute();
        let mut config = http_config(1, &[back.address], |service| {
            service.offered_versions = Some(HttpVersions::BOTH);
        });
        config.connections_per_thread = 2;
        let balancer = Balancer::start(&config, io).unwrap();
        let mut idle = Client::connect(balancer.address());
        idle.flush();
        let mut busy = Client::connect(balancer.address());
        for stream in 0..32 {
            busy.head(2 * stream + 1, &GET, true);
        }
        busy.flush();
        until("all places are taken", || back.requests().len() == 32);
        std::thread::sleep(Duration::from_millis(1200));
        let answer = idle.ask(1, &GET);
        assert_eq!(answer.reset, Some(ErrorCode::RefusedStream), "{io}");
        let state = &balancer.shared().services[0];
        let counts = (state.evicted.get(), state.overflowed.get());
        assert_eq!(counts, (0, 1), "{io}");
    });
}

/// The kernel takes nothing more for it for longer than a client may take nothing.
#[test]
fn a_slow_client_keeps_its_place() {
    let body = vec![b'x'; 32 << 20];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let large = [head.into_bytes(), body].concat();
    let back = BackEnd::new(move |peer, _, _| {
        while peer.request().is_some() {
            peer.say(&large);
        }
    });
    on_both(|io| {
        let (balancer, mut slow) = client_with(io, &[back.address], |service| {
            service.connections_max = Some(1);
        });
        slow.say(get("/"));
        let (begun, mut got) = (Instant::now(), 0);
        let mut new = Vec::new();
        while begun.elapsed() < Duration::from_secs(8) {
            let mut piece = [0; 4096];
            got += slow.stream.read(&mut piece).expect("the slow client stays");
            std::thread::sleep(Duration::from_millis(40));
            if got >> 15 > new.len() {
                new.push(Peer::connect(balancer.address()));
            }
        }
        let state = &balancer.shared().services[0];
        assert!(new.len() > 5, "{io}: {got} bytes");
        assert_eq!(state.evicted.get(), 0, "{io}");
    });
}

/// Sends a body in pieces, one every 20 ms, while it is accepted. Returns the status of the answer
/// and how long that took.
fn send_slowly(balancer: &Balancer, pieces: usize, piece: &'static str) -> (u16, Duration) {
    let began = Instant::now();
    let mut client = Peer::connect(balancer.address());
    let length = pieces * piece.len();
    client.say(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
    ));
    let mut body = client.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        for _ in 0..pieces {
            std::thread::sleep(Duration::from_millis(20));
            if body.write_all(piece.as_bytes()).is_err() {
                return;
            }
        }
    });
    let answer = client.answer().expect("an answer");
    (answer.status(), began.elapsed())
}

#[test]
fn a_body_that_comes_drop_by_drop_ends_in_time() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer_with(io, &[back.address], |service| {
            service.timeouts.client_body = Duration::from_millis(400);
        });
        let (status, took) = send_slowly(&balancer, 100_000, "x");
        assert_eq!(status, 408, "{io}");
        assert!(took < Duration::from_secs(3), "{took:?}");
        until("its place is free", || clients_now(&balancer) == 0);
        assert_eq!(balancer.shared().services[0].timeouts.get(), 1);
        let backend = &balancer.shared().services[0].backends[0];
        assert_eq!(backend.response_failures.get(), 0, "it is not to blame");
    });
}

#[test]
fn a_long_body_that_comes_steadily_is_waited_for() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer_with(io, &[back.address], |service| {
            service.timeouts.client_body = Duration::from_millis(200);
        });
        let (status, took) = send_slowly(
            &balancer,
            50,
            "sixty bytes, that is some 3,000 bytes in each second or so.",
        );
        assert_eq!(status, 200, "{io}");
        assert!(took > Duration::from_millis(900), "{took:?}");
    });
}

#[test]
fn a_relayed_client_that_has_closed_does_not_stay_until_the_idle_limit() {
    on_both(|io| {
        let deaf = serve(|stream| {
            // It neither reads nor closes.
            std::thread::sleep(LONG);
            drop(stream);
        });
        let mut service = service(&[deaf]);
        service.timeouts.half_closed = Duration::from_millis(300);
        let balancer = start(io, service);
        let stream = connect(&balancer);
        until("it is connected", || {
            balancer.shared().services[0].backends[0].connections.get() == 1
        });
        let began = Instant::now();
        drop(stream);
        until("its place is free", || clients_now(&balancer) == 0);
        assert!(began.elapsed() < Duration::from_secs(3), "{io}");
    });
}

#[test]
fn a_relayed_client_that_closed_without_a_word_leaves_the_queue() {
    on_both(|io| {
        let mut service = service(&[echo("x")]);
        service.backends[0].connections_max = Some(1);
        service.queue.time_limit = LONG;
        let balancer = start(io, service);
        let mut first = connect(&balancer);
        assert_eq!(read(&mut first, 1), "x");
        let silent = connect(&balancer);
        until("one waits", || queued_now(&balancer) == 1);
        drop(silent);
        until("it left the queue", || queued_now(&balancer) == 0);
        until("its place is free", || clients_now(&balancer) == 1);
    });
}

#[test]
fn a_request_that_no_back_end_survives_is_not_shown_to_all() {
    on_both(|io| {
        let backs: Vec<BackEnd> = (0..6).map(|_| BackEnd::silent()).collect();
        let addresses: Vec<_> = backs.iter().map(|back| back.address).collect();
        let (_balancer, mut client) = client_with(io, &addresses, |_| {});
        assert_eq!(client.ask(get("/")).status(), 502);
        let asked: usize = backs.iter().map(|back| back.requests().len()).sum();
        assert_eq!(asked, 3, "{io}: it is sent again twice");
        let (_balancer, mut client) = client_with(io, &addresses, |service| service.resends = 0);
        assert_eq!(client.ask(get("/")).status(), 502);
        let now: usize = backs.iter().map(|back| back.requests().len()).sum();
        assert_eq!(now - asked, 1, "{io}: it is not sent again");
    });
}
