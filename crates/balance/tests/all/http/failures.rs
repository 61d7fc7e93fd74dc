//! Back ends that fail: who is asked instead, and what the client is told.

use std::time::{Duration, Instant};

use balance::config::model::Ejection;
use net::IoKind;

use crate::support::http::*;

#[test]
fn a_client_is_sent_past_back_ends_that_refuse_whatever_it_asks() {
    on_both(|io| {
        let back = BackEnd::named("alive");
        let balancer = balancer(io, &[dead(), back.address, dead()]);
        for _ in 0..3 {
            let mut client = Peer::connect(balancer.address());
            let answer = client.ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
            assert_eq!(answer.text(), "alive/a");
        }
        assert!(back.requests().iter().all(|request| request.body == b"hi"));
    });
}

#[test]
fn without_a_back_end_the_answer_is_503_and_the_end() {
    on_both(|io| {
        let balancer = balancer(io, &[dead()]);
        for _ in 0..2 {
            let mut client = Peer::connect(balancer.address());
            let answer = client.ask(get("/"));
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.values("connection"), ["close"]);
            assert!(answer.text().len() < 100);
            assert_eq!(client.rest(), (Vec::new(), true));
        }
        let stats = balancer.stats();
        assert_eq!(stats.refused, 2);
    });
}

#[test]
fn a_safe_request_that_got_no_answer_goes_to_another_back_end() {
    on_both(|io| {
        let (silent, back) = (BackEnd::silent(), BackEnd::named("alive"));
        let balancer = balancer(io, &[silent.address, back.address]);
        for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
            let before = silent.requests().len();
            // Either of two in turn is the silent one.
            for _ in 0..2 {
                let mut client = Peer::connect(balancer.address());
                let request =
                    format!("{method} /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
                assert_eq!(client.ask(request).text(), "alive/a");
            }
            assert!(silent.requests().len() > before, "{method}");
        }
        assert!(back.requests().iter().all(|request| request.body == b"hi"));
    });
}

#[test]
fn another_request_that_got_no_answer_is_told_so() {
    on_both(|io| {
        let (silent, back) = (BackEnd::silent(), BackEnd::named("alive"));
        let balancer = balancer(io, &[silent.address, back.address]);
        let mut statuses = Vec::new();
        for _ in 0..2 {
            let mut client = Peer::connect(balancer.address());
            let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
            statuses.push(answer.status());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 502]);
        assert_eq!((silent.requests().len(), back.requests().len()), (1, 1));
    });
}

#[test]
fn an_answer_that_cannot_be_read_is_502() {
    on_both(|io| {
        for answer in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        ] {
            let back = BackEnd::saying_once(answer);
            let (balancer, mut client) = balancer_and_client(io, &[back.address]);
            let got = client.ask(get("/"));
            assert_eq!(got.status(), 502, "{answer:?}");
            let shared = balancer.shared();
            assert_eq!(shared.services[0].backends[0].response_failures.get(), 1);
        }
    });
}

/// What a client sees of an answer that its back end cut off.
fn cut_off(io: IoKind, answer: &'static str) -> (Vec<u8>, bool) {
    let back = BackEnd::new(move |peer, _, _| {
        peer.request();
        peer.say(answer);
    });
    let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
    client.say(get("/"));
    client.rest()
}

#[test]
fn an_answer_that_is_cut_off_ends_with_a_reset() {
    on_both(|io| {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        ] {
            let (got, orderly) = cut_off(io, answer);
            assert_eq!(String::from_utf8(got).unwrap(), answer);
            assert!(!orderly, "{answer:?}");
        }
        let (got, orderly) = cut_off(io, "HTTP/1.1 200 OK\r\n\r\nall of it");
        assert!(got.ends_with(b"\r\n\r\nall of it"));
        assert!(orderly, "an answer that ends with its connection is whole");
    });
}

#[test]
fn a_broken_chunk_is_not_passed_on() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            peer.request();
            peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            peer.say("4\r\ngood\r\n");
            // In a piece of its own.
            std::thread::sleep(Duration::from_millis(30));
            peer.say("zz\r\nbad!\r\n0\r\n\r\n");
            let _ = peer.rest();
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say(get("/"));
        let (got, orderly) = client.rest();
        assert!(got.ends_with(b"4\r\ngood\r\n"), "{got:?}");
        assert!(!orderly);
    });
}

#[test]
fn a_back_end_that_does_not_answer_is_504_in_time() {
    on_both(|io| {
        let back = BackEnd::mute();
        let balancer = balancer_with(io, &[back.address], |service| {
            service.timeouts.upstream_answer = Duration::from_millis(300);
        });
        let began = Instant::now();
        let mut client = Peer::connect(balancer.address());
        assert_eq!(client.ask(get("/")).status(), 504);
        assert!(began.elapsed() >= Duration::from_millis(250));
        assert_eq!(balancer.shared().services[0].timeouts.get(), 1);
    });
}

#[test]
fn a_back_end_that_fails_in_a_row_is_left_out() {
    on_both(|io| {
        let broken = BackEnd::saying("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
        let back = BackEnd::named("alive");
        let (_balancer, mut client) = client_with(io, &[broken.address, back.address], |service| {
            service.ejection = Some(Ejection {
                failures: 3,
                duration: Duration::from_secs(60),
            });
        });
        let statuses: Vec<u16> = (0..20).map(|_| client.ask(get("/")).status()).collect();
        assert_eq!(broken.requests().len(), 3, "{statuses:?}");
        assert_eq!(back.requests().len(), 17);
    });
}

#[test]
fn a_back_end_at_its_limit_has_clients_wait_their_turn() {
    on_both(|io| {
        let back = BackEnd::slow(Duration::from_millis(20), "served");
        let balancer = balancer_with(io, &[back.address], |service| {
            service.backends[0].connections_max = Some(2);
        });
        let mut clients: Vec<Peer> = (0..10).map(|_| Peer::connect(balancer.address())).collect();
        for client in &mut clients {
            client.say(get("/"));
        }
        for client in &mut clients {
            assert_eq!(client.answer().unwrap().text(), "served");
        }
        assert!(back.connections() <= 2, "{}", back.connections());
    });
}

#[test]
fn who_finds_no_place_in_the_queue_or_waits_too_long_is_sent_away() {
    on_both(|io| {
        let back = BackEnd::mute();
        let balancer = balancer_with(io, &[back.address], |service| {
            service.backends[0].connections_max = Some(1);
            service.queue.length = 1;
            service.queue.time_limit = Duration::from_millis(200);
        });
        let mut clients: Vec<Peer> = (0..3).map(|_| Peer::connect(balancer.address())).collect();
        clients[0].say(get("/"));
        until("the place is taken", || !back.requests().is_empty());
        clients[1].say(get("/"));
        let shared = balancer.shared();
        until("one waits", || queued_now(&balancer) == 1);
        assert_eq!(clients[2].ask(get("/")).status(), 503);
        assert_eq!(clients[1].answer().unwrap().status(), 503);
        assert_eq!(shared.services[0].overflowed.get(), 2);
    });
}

#[test]
fn requests_leave_a_back_end_that_was_found_dead() {
    use balance::health::{HealthEvent, State};
    on_both(|io| {
        // One that takes requests and says nothing, as a stopped process does.
        let stopped = BackEnd::mute();
        let back = BackEnd::named("alive");
        let balancer = balancer(io, &[stopped.address, back.address]);
        let mut waiting: Vec<Peer> = (0..4).map(|_| Peer::connect(balancer.address())).collect();
        for (number, client) in waiting.iter_mut().enumerate() {
            match number {
                0 | 1 => client.say(get("/")),
                _ => client.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"),
            }
        }
        until("two wait there", || stopped.requests().len() == 2);
        let shared = balancer.shared();
        shared.note(0, 0, HealthEvent::SetByOperator(State::Unavailable));
        let gets: Vec<Message> = waiting[..2]
            .iter_mut()
            .map(|one| one.answer().unwrap())
            .collect();
        assert!(gets.iter().all(|answer| answer.text() == "alive/"));
        // What may have been carried out already stays where it is.
        let posts = |head: &str| head.starts_with("POST");
        let there = stopped.requests();
        let answered = back.requests();
        assert_eq!(there.iter().filter(|one| posts(&one.head)).count(), 1);
        assert_eq!(answered.iter().filter(|one| posts(&one.head)).count(), 1);
    });
}

#[test]
fn a_back_end_that_is_taken_down_may_finish_for_so_long() {
    use balance::health::{HealthEvent, State};
    on_both(|io| {
        let back = BackEnd::mute();
        let (balancer, mut client) = client_with(io, &[back.address], |service| {
            service.drain = Duration::from_millis(400);
        });
        client.say(get("/"));
        until("it is asked", || back.requests().len() == 1);
        let began = Instant::now();
        balancer
            .shared()
            .note(0, 0, HealthEvent::SetByOperator(State::Down));
        assert!(matches!(client.answer().unwrap().status(), 502 | 503));
        assert!(
            began.elapsed() >= Duration::from_millis(350),
            "{:?}",
            began.elapsed()
        );
    });
}
