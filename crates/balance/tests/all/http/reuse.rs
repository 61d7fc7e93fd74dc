//! Connections to back ends that are used again, and what happens when they are stale.

use crate::support::http::*;

#[test]
fn requests_of_all_clients_share_connections() {
    on_both(|io| {
        let back = BackEnd::named("one");
        let balancer = balancer(io, &[back.address]);
        let mut clients: Vec<Peer> = (0..3).map(|_| Peer::connect(balancer.address())).collect();
        for turn in 0..20 {
            for client in &mut clients {
                let answer = client.ask(get(&format!("/{turn}")));
                assert_eq!(
                    (answer.status(), answer.text()),
                    (200, &*format!("one/{turn}"))
                );
            }
        }
        assert_eq!(back.connections(), 1, "one request at a time needs one");
        assert_eq!(back.requests().len(), 60);
        let shared = balancer.shared();
        let state = &shared.services[0].backends[0];
        assert_eq!((state.requests.get(), state.connections.get()), (60, 1));
        // Noted after the client has got its answer.
        until("60 times are noted", || {
            state.service_times.counts().iter().sum::<u64>() == 60
        });
        until("all places are given back", || {
            active_now(&balancer, 0) == 0
        });
    });
}

#[test]
fn a_head_that_need_not_change_arrives_as_it_was_sent() {
    on_both(|io| {
        let back = BackEnd::named("one");
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        let head = "GET /x?y=1 HTTP/1.1\r\nhOST:  test\r\nX-Odd:\tvalue \r\nAccept: */*\r\n\r\n";
        for _ in 0..2 {
            client.ask(head);
        }
        assert!(back.requests().iter().all(|request| request.head == head));
    });
}

#[test]
fn requests_at_the_same_time_have_connections_of_their_own() {
    on_both(|io| {
        // Answers only once two requests are there.
        let back = BackEnd::new(|peer, _, all| {
            while let Some(request) = peer.request() {
                all.note(request);
                until("the other request", || all.requests().len() >= 2);
                peer.say(ok("both"));
            }
        });
        let balancer = balancer(io, &[back.address]);
        let mut clients: Vec<Peer> = (0..2).map(|_| Peer::connect(balancer.address())).collect();
        for client in &mut clients {
            client.say(get("/"));
        }
        for client in &mut clients {
            assert_eq!(client.answer().unwrap().text(), "both");
        }
        assert_eq!(back.connections(), 2);
    });
}

/// A back end that answers once on each connection; from the second request on it closes without
/// an answer, as a server does whose keep-alive time has just passed.
fn forgetful() -> BackEnd {
    BackEnd::new(|peer, _, all| {
        let Some(request) = peer.request() else {
            return;
        };
        all.note(request);
        peer.say(ok("first"));
        // The request that comes now finds the connection closed.
        let _ = peer.bytes(1);
    })
}

#[test]
fn a_safe_request_on_a_stale_connection_is_sent_again_on_a_fresh_one() {
    on_both(|io| {
        let back = forgetful();
        let (balancer, mut client) = balancer_and_client(io, &[back.address]);
        for turn in 1..=3 {
            assert_eq!(client.ask(get("/")).text(), "first");
            assert_eq!(back.connections(), turn);
        }
        let shared = balancer.shared();
        assert!(shared.services[0].backends[0].usable());
        assert_eq!(shared.services[0].backends[0].response_failures.get(), 0);
    });
}

#[test]
fn a_request_that_changes_things_is_not_sent_again() {
    on_both(|io| {
        let back = forgetful();
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        assert_eq!(client.ask(get("/")).text(), "first");
        let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(answer.status(), 502);
        assert_eq!(back.connections(), 1, "it was not sent anywhere else");
    });
}

#[test]
fn a_request_that_changes_things_is_not_risked_on_a_connection_that_was_idle() {
    on_both(|io| {
        let back = forgetful();
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        assert_eq!(client.ask(get("/")).text(), "first");
        // Longer than a connection counts as just used.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let answer = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(answer.text(), "first");
        assert_eq!(back.connections(), 2);
    });
}

#[test]
fn a_connection_that_the_back_end_closes_in_the_pool_is_not_used() {
    on_both(|io| {
        // Closes each connection after its first answer, without saying so.
        let back = BackEnd::new(|peer, _, all| {
            if let Some(request) = peer.request() {
                all.note(request);
                peer.say(ok("only"));
            }
        });
        let (balancer, mut client) = balancer_and_client(io, &[back.address]);
        assert_eq!(client.ask(get("/")).text(), "only");
        // The end is in the loop's hands at once; wait for a turn of it to have passed.
        let mut other = Peer::connect(balancer.address());
        other.say("GET / HTTP/1.1\r\n\r\n");
        assert_eq!(other.answer().unwrap().status(), 400);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(client.ask(post).text(), "only");
        assert_eq!(back.connections(), 2);
    });
}

#[test]
fn a_back_end_that_says_close_is_believed() {
    on_both(|io| {
        let back =
            BackEnd::saying("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for turn in 1..=3 {
            let answer = client.ask(get("/"));
            assert!(answer.values("connection").is_empty(), "{}", answer.head);
            assert_eq!(back.connections(), turn);
        }
    });
}

#[test]
fn bytes_behind_an_answer_never_reach_another_client() {
    on_both(|io| {
        let back = BackEnd::saying(format!("{}{}", ok("mine"), ok("poison")));
        let balancer = balancer(io, &[back.address]);
        for _ in 0..5 {
            let mut client = Peer::connect(balancer.address());
            assert_eq!(client.ask(get("/")).text(), "mine");
            assert_eq!(client.ask(get("/")).text(), "mine");
        }
        assert_eq!(back.connections(), 10);
    });
}

#[test]
fn several_threads_share_limits_and_each_keeps_its_own_connections() {
    on_both(|io| {
        let back = BackEnd::named("one");
        let balancer = threads_with(io, 2, &[back.address], |service| {
            service.backends[0].connections_max = Some(3);
        });
        let address = balancer.address();
        std::thread::scope(|scope| {
            for number in 0..12 {
                scope.spawn(move || {
                    let mut client = Peer::connect(address);
                    for turn in 0..40 {
                        let path = format!("/{number}/{turn}");
                        assert_eq!(client.ask(get(&path)).text(), format!("one{path}"));
                    }
                });
            }
        });
        assert_eq!(back.requests().len(), 480);
        // Those in the pools come to those under way.
        assert!(back.connections() <= 2 * 3 + 3, "{}", back.connections());
    });
}

#[test]
fn a_back_end_that_was_moved_gets_no_more_requests_where_it_was() {
    on_both(|io| {
        let (old, new) = (BackEnd::named("old"), BackEnd::named("new"));
        let (balancer, mut client) = balancer_and_client(io, &[old.address]);
        assert_eq!(client.ask(get("/")).text(), "old/");
        balancer.shared().services[0].backends[0].move_to(new.address);
        for _ in 0..3 {
            assert_eq!(client.ask(get("/")).text(), "new/");
        }
        assert_eq!((old.requests().len(), new.connections()), (1, 1));
    });
}
