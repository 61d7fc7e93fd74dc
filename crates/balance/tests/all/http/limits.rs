//! Clients that are slow, greedy or gone: every wait ends, and what is held is bounded.

use std::time::{Duration, Instant};

use crate::support::http::*;

#[test]
fn a_head_that_does_not_come_is_waited_for_only_so_long() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer_with(io, &[back.address], |service| {
            service.timeouts.client_header = Duration::from_millis(300);
        });
        let began = Instant::now();
        let mut silent = Peer::connect(balancer.address());
        let mut slow = Peer::connect(balancer.address());
        slow.say("GET / HTTP/1.1\r\nHo");
        assert_eq!(slow.answer().unwrap().status(), 408);
        assert_eq!(
            silent.rest(),
            (Vec::new(), true),
            "nobody asked for anything"
        );
        assert!(began.elapsed() >= Duration::from_millis(250));
        assert_eq!(back.connections(), 0);
    });
}

#[test]
fn a_head_that_comes_drop_by_drop_is_no_excuse() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let (_balancer, mut slow) = client_with(io, &[back.address], |service| {
            service.timeouts.client_header = Duration::from_millis(400);
        });
        slow.say("GET / HTTP/1.1\r\nX: ");
        let end = Instant::now() + Duration::from_millis(700);
        while Instant::now() < end {
            slow.say("x");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(slow.answer().unwrap().status(), 408);
    });
}

#[test]
fn a_client_between_requests_is_kept_as_long_as_configured() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let (_balancer, mut client) = client_with(io, &[back.address], |service| {
            service.timeouts.client_header = Duration::from_millis(100);
            service.timeouts.client_idle = Duration::from_millis(600);
        });
        client.ask(get("/"));
        let began = Instant::now();
        assert_eq!(client.rest(), (Vec::new(), true));
        assert!(
            began.elapsed() >= Duration::from_millis(500),
            "{:?}",
            began.elapsed()
        );
    });
}

#[test]
fn a_body_that_does_not_come_ends_the_request() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            let _ = peer.rest();
        });
        let (balancer, mut client) = client_with(io, &[back.address], |service| {
            service.timeouts.upstream_answer = Duration::from_millis(300);
        });
        let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
        assert_eq!(answer.status(), 408);
        let shared = balancer.shared();
        assert_eq!(shared.services[0].backends[0].response_failures.get(), 0);
    });
}

#[test]
fn a_client_that_takes_nothing_is_reset_in_time() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            peer.request();
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
            let piece = vec![b'x'; 1_000_000];
            for _ in 0..50 {
                peer.say(&piece);
            }
        });
        let (balancer, mut client) = client_with(io, &[back.address], |service| {
            service.timeouts.write_stall = Duration::from_millis(300);
        });
        client.say(get("/"));
        client.head().unwrap();
        until("it is let go", || clients_now(&balancer) == 0);
        assert!(!client.rest().1, "it must not look whole");
    });
}

#[test]
fn a_head_beyond_the_bounds_is_refused() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let (balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say("GET / HTTP/1.1\r\nHost: a\r\nX: ");
        client.say(vec![b'x'; 70_000]);
        assert_eq!(client.answer().unwrap().status(), 431);
        let mut client = Peer::connect(balancer.address());
        let fields: String = (0..101).map(|n| format!("X{n}: y\r\n")).collect();
        client.say(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(client.answer().unwrap().status(), 431);
        let mut client = Peer::connect(balancer.address());
        client.say("GET /");
        client.say(vec![b'x'; 70_000]);
        assert_eq!(client.answer().unwrap().status(), 414);
        assert_eq!(back.connections(), 0);
    });
}

#[test]
fn an_answer_whose_head_has_no_end_is_502() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            peer.request();
            peer.say("HTTP/1.1 200 OK\r\nX: ");
            peer.say(vec![b'x'; 70_000]);
            let _ = peer.rest();
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        assert_eq!(client.ask(get("/")).status(), 502);
    });
}

#[test]
fn endless_interim_answers_are_502() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            peer.request();
            for _ in 0..100 {
                peer.say("HTTP/1.1 102 Processing\r\n\r\n");
            }
            let _ = peer.rest();
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say("GET / HTTP/1.0\r\n\r\n");
        // A client of HTTP/1.0 does not see the interim ones.
        assert_eq!(client.answer().unwrap().status(), 502);
    });
}

#[test]
fn who_sends_requests_without_reading_answers_is_not_read_for_ever() {
    on_both(|io| {
        let long = "x".repeat(100_000);
        let back = BackEnd::saying(ok(&long));
        let (balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.stream.set_nonblocking(true).unwrap();
        let requests = get("/").repeat(1000);
        let (mut sent, mut quiet) = (0, 0);
        // Its requests stay where they are: at last in its own socket.
        while quiet < 50 {
            match std::io::Write::write(&mut client.stream, requests.as_bytes()) {
                Ok(n) => (sent, quiet) = (sent + n, 0),
                Err(_) => {
                    quiet += 1;
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            assert!(sent < 100_000_000, "it reads on and on");
        }
        let answered = back.requests().len();
        assert!(
            answered < 300,
            "{answered} answers of 100 kB wait for a client"
        );
        drop(client);
        until("it is let go", || clients_now(&balancer) == 0);
    });
}

#[test]
fn a_client_that_asks_while_the_balancer_drains_gets_a_last_answer() {
    on_both(|io| {
        let back = BackEnd::saying(ok("one"));
        let (balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.ask(get("/"));
        balancer.begin_drain();
        std::thread::sleep(Duration::from_millis(300));
        let answer = client.ask(get("/"));
        assert_eq!(
            (answer.text(), answer.values("connection")),
            ("one", vec!["close"])
        );
        assert_eq!(client.rest(), (Vec::new(), true));
    });
}

#[test]
fn draining_ends_connections_behind_their_answers() {
    on_both(|io| {
        let back = BackEnd::slow(Duration::from_millis(100), "late");
        let (balancer, mut idle) = balancer_and_client(io, &[back.address]);
        idle.ask(get("/"));
        let mut busy = Peer::connect(balancer.address());
        busy.say(get("/"));
        until("it is under way", || back.requests().len() == 2);
        assert!(balancer.drain(Duration::from_secs(5)));
        let answer = busy.answer().unwrap();
        assert_eq!(
            (answer.text(), answer.values("connection")),
            ("late", vec!["close"])
        );
        assert_eq!(idle.rest(), (Vec::new(), true));
    });
}
