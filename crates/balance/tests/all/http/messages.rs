//! Messages of all kinds on their way through the balancer.

use std::time::Duration;

use crate::support::http::*;

#[test]
fn pipelined_requests_are_served_in_order() {
    on_both(|io| {
        let backs = [BackEnd::named("a"), BackEnd::named("b")];
        let (_balancer, mut client) =
            balancer_and_client(io, &[backs[0].address, backs[1].address]);
        let mut all = String::new();
        for number in 0..200 {
            all.push_str(&get(&format!("/{number}")));
            if number % 10 == 9 {
                all.push_str(&format!(
                    "POST /p{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /"
                ));
            }
        }
        client.say(&all);
        for number in 0..200 {
            assert_eq!(&client.answer().unwrap().text()[1..], format!("/{number}"));
            if number % 10 == 9 {
                assert_eq!(&client.answer().unwrap().text()[1..], format!("/p{number}"));
            }
        }
    });
}

#[test]
fn requests_in_single_bytes_are_understood() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        let request = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for byte in request.bytes() {
            client.say([byte]);
        }
        assert_eq!(client.answer().unwrap().text(), "a/x");
        assert_eq!(back.requests()[0].body, b"abc");
    });
}

#[test]
fn answers_in_single_bytes_are_understood() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            while peer.request().is_some() {
                for byte in ok("slowly").bytes() {
                    peer.say([byte]);
                }
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for _ in 0..3 {
            assert_eq!(client.ask(get("/")).text(), "slowly");
        }
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn big_bodies_go_both_ways_unchanged() {
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    for io in BOTH {
        let back = BackEnd::new(|peer, _, _| {
            while let Some(request) = peer.request() {
                let length = request.body.len();
                peer.say(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
                ));
                peer.say(request.body);
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for turn in 0..2 {
            let mut request = Vec::new();
            if turn == 0 {
                let head = format!(
                    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                request.extend_from_slice(head.as_bytes());
                request.extend_from_slice(&body);
            } else {
                request.extend_from_slice(
                    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                );
                for chunk in body.chunks(70_001) {
                    request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    request.extend_from_slice(chunk);
                    request.extend_from_slice(b"\r\n");
                }
                request.extend_from_slice(b"0\r\n\r\n");
            }
            let answer = client.ask(request);
            assert!(answer.body == body, "{} bytes", answer.body.len());
        }
    }
}

#[test]
fn a_slow_reader_gets_all_of_a_long_answer_and_holds_little() {
    const BYTES: usize = 20_000_000;
    for io in BOTH {
        let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = sent.clone();
        let back = BackEnd::new(move |peer, _, _| {
            peer.request();
            peer.say(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n"
            ));
            for _ in 0..BYTES / 10_000 {
                peer.say([b'x'; 10_000]);
                count.fetch_add(10_000, std::sync::atomic::Ordering::SeqCst);
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say(get("/"));
        client.head().unwrap();
        // Nothing is read until the back end cannot go on; that must be long before the end.
        let now = || sent.load(std::sync::atomic::Ordering::SeqCst);
        let mut before = usize::MAX;
        while before != now() {
            before = now();
            std::thread::sleep(Duration::from_millis(150));
        }
        assert!(before < BYTES, "all {BYTES} bytes are held somewhere");
        assert_eq!(client.bytes(BYTES).unwrap().len(), BYTES);
    }
}

#[test]
fn answers_without_bodies() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            while let Some(request) = peer.request() {
                peer.say(match request.head.split(' ').nth(1).unwrap() {
                    "/204" => "HTTP/1.1 204 No Content\r\n\r\n",
                    "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n",
                    _ => "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n",
                });
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for _ in 0..2 {
            client.say("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(client.head().unwrap().contains("Content-Length: 50\r\n"));
            client.say(get("/204"));
            assert!(client.head().unwrap().starts_with("HTTP/1.1 204"));
            client.say(get("/304"));
            assert!(client.head().unwrap().contains("Content-Length: 50\r\n"));
        }
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn a_chunked_answer_with_trailers_goes_on_as_it_came() {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n";
    for io in BOTH {
        let back = BackEnd::saying(ANSWER);
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for _ in 0..2 {
            client.say(get("/"));
            assert_eq!(client.bytes(ANSWER.len()).unwrap(), ANSWER.as_bytes());
        }
        assert_eq!(back.connections(), 1);
    }
}

#[test]
fn an_old_client_gets_no_chunks_and_the_end_as_end() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            while peer.request().is_some() {
                peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
                peer.say("4\r\ndefg\r\n0\r\n\r\n");
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let head = client.head().unwrap();
        assert!(!head.to_lowercase().contains("chunked"), "{head}");
        assert_eq!(client.rest(), (b"abcdefg".to_vec(), true));
    });
}

#[test]
fn old_clients_keep_their_connection_when_they_ask_for_it() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for _ in 0..3 {
            let answer = client.ask("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
            assert_eq!(answer.values("connection"), ["keep-alive"]);
        }
        let answer = client.ask("GET / HTTP/1.0\r\n\r\n");
        assert_eq!(answer.text(), "a/");
        assert_eq!(client.rest(), (Vec::new(), true));
        assert_eq!(back.connections(), 1);
        assert!(back.requests()[0].head.starts_with("GET / HTTP/1.1\r\n"));
        assert_eq!(
            back.requests()[0].values("host"),
            [back.address.to_string()]
        );
    });
}

#[test]
fn a_client_that_says_close_is_closed() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer(io, &[back.address]);
        for _ in 0..3 {
            let mut client = Peer::connect(balancer.address());
            let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            assert_eq!(answer.values("connection"), ["close"]);
            assert_eq!(client.rest(), (Vec::new(), true));
        }
        assert_eq!(
            back.connections(),
            1,
            "the back end's connection is kept all the same"
        );
        assert!(back.requests()[0].values("connection").is_empty());
    });
}

#[test]
fn a_client_that_ends_its_side_gets_its_answers_where_half_closing_is_allowed() {
    on_both(|io| {
        let back = BackEnd::slow(Duration::from_millis(30), "late");
        let (_balancer, mut client) =
            client_with(io, &[back.address], |service| service.half_close = true);
        client.say(format!("{}{}", get("/1"), get("/2")));
        client.end();
        for _ in 0..2 {
            assert_eq!(client.answer().unwrap().text(), "late");
        }
        assert_eq!(client.rest(), (Vec::new(), true));
    });
}

#[test]
fn interim_answers_are_passed_on() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            while let Some(head) = peer.head() {
                if head.contains("Expect: 100-continue") {
                    peer.say("HTTP/1.1 100 Continue\r\n\r\n");
                    assert_eq!(peer.bytes(2).unwrap(), b"hi");
                    peer.say(ok("continued"));
                } else {
                    peer.say("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
                    peer.say(ok("hinted"));
                }
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        for _ in 0..2 {
            client.say(
                "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
            );
            assert_eq!(client.head().unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
            client.say("hi");
            assert_eq!(client.answer().unwrap().text(), "continued");
            assert_eq!(client.ask(get("/")).status(), 103);
            assert_eq!(client.answer().unwrap().text(), "hinted");
        }
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn a_client_that_is_refused_while_it_waits_to_send_is_told_and_closed() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, _| {
            peer.head();
            peer.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
            let _ = peer.rest();
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        let answer = client
            .ask("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n");
        assert_eq!((answer.status(), answer.text()), (413, "no"));
        assert_eq!(answer.values("connection"), ["close"]);
        assert_eq!(client.rest(), (Vec::new(), true));
    });
}

#[test]
fn an_upgrade_turns_the_connection_into_bytes() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, all| {
            while let Some(request) = peer.request() {
                let upgrade = request.head.contains("Upgrade: echo");
                all.note(request);
                if !upgrade {
                    peer.say(ok("plain"));
                    continue;
                }
                peer.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello ");
                while let Some(byte) = peer.bytes(1) {
                    peer.say(byte);
                }
                peer.say("end");
                return;
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        assert_eq!(client.ask(get("/")).text(), "plain");
        client
            .say("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst");
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert_eq!(client.bytes(11).unwrap(), b"hello first");
        // What would be a malformed request is bytes like any others.
        client.say("\0 \r\n\r\n");
        assert_eq!(client.bytes(6).unwrap(), b"\0 \r\n\r\n");
        client.end();
        assert_eq!(client.rest(), (b"end".to_vec(), true));
    });
}

#[test]
fn smuggled_bytes_never_reach_a_back_end() {
    let body = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}");
    let attacks = [
        head("Content-Length: 5\r\nTransfer-Encoding: chunked"),
        head("Transfer-Encoding: chunked\r\nContent-Length: 40"),
        head("Content-Length: 5\r\nContent-Length: 40"),
        head("Transfer-Encoding: xchunked"),
        head("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
        head("Transfer-Encoding : chunked"),
        head("X: y\nTransfer-Encoding: chunked"),
        head("Content_Length: 40\r\nContent-Length: 5"),
        head("Content-Length: +5"),
        head(" Transfer-Encoding: chunked"),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nabcde\r\n0\r\n\r\n"
            .to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\nHost: a\n\n".to_owned(),
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n".to_owned(),
    ];
    for io in BOTH {
        let back = BackEnd::named("a");
        let balancer = balancer(io, &[back.address]);
        for attack in &attacks {
            let mut client = Peer::connect(balancer.address());
            assert_eq!(client.ask(get("/good")).status(), 200);
            client.say(attack);
            let Some(answer) = client.answer() else {
                panic!("no answer to {attack:?}");
            };
            assert!(
                (400..=501).contains(&answer.status()),
                "{attack:?}: {}",
                answer.head
            );
            assert_eq!(answer.values("connection"), ["close"]);
            assert_eq!(client.rest(), (Vec::new(), true), "{attack:?}");
        }
        let bad = balancer.shared().services[0].bad_requests.get();
        assert_eq!(bad, attacks.len() as u64);
        for request in back.requests() {
            assert!(request.head.starts_with("GET /good "), "{}", request.head);
        }
    }
}
