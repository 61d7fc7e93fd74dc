//! What the configuration of an HTTP service makes of messages.

use balance::config::Template;
use balance::config::model::{
    Dispatch, EditKind, HashKey, HeaderEdit, Inspect, LogFormat, ProxyVersion, Recipient,
    ServiceKind, StickyCookie,
};
use balance::{Balancer, BalancerError};

use crate::support::http::*;

fn edit(recipient: Recipient, how: EditKind, name: &str, value: &str) -> HeaderEdit {
    HeaderEdit {
        recipient,
        how,
        name: name.to_owned(),
        value: Template::parse(value).unwrap(),
    }
}

#[test]
fn headers_are_added_appended_and_set_in_both_directions() {
    on_both(|io| {
        let back =
            BackEnd::saying("HTTP/1.1 200 OK\r\nServer: secret\r\nContent-Length: 2\r\n\r\nhi");
        let (_balancer, mut client) = client_with(io, &[back.address], |service| {
            service.backends[0].header_edits = vec![
                edit(Recipient::Server, EditKind::Append, "X-Forwarded-For", "%r"),
                edit(Recipient::Server, EditKind::Add, "X-Via", "%s/%b"),
                edit(Recipient::Server, EditKind::Set, "User-Agent", "none"),
                edit(Recipient::Client, EditKind::Set, "Server", "balancer"),
                edit(Recipient::Client, EditKind::Add, "X-Served-By", "%b"),
            ];
        });
        for _ in 0..3 {
            let answer = client.ask(
                "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\nUser-Agent: me\r\nContent-Length: 4\r\n\r\nbody",
            );
            assert_eq!(answer.values("server"), ["balancer"]);
            assert_eq!(answer.values("x-served-by"), ["back0"]);
            assert_eq!(answer.text(), "hi");
        }
        for request in back.requests() {
            assert_eq!(request.values("x-forwarded-for"), ["10.0.0.1, 127.0.0.1"]);
            assert_eq!(request.values("x-via"), ["web/back0"]);
            assert_eq!(request.values("user-agent"), ["none"]);
            assert_eq!(request.body, b"body");
        }
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn edits_that_would_make_messages_ambiguous_are_refused_at_the_start() {
    for (name, value) in [
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("X", "a\r\nContent-Length: 0"),
        ("bad name", "x"),
    ] {
        let config = http_config(1, &[dead()], |service| {
            let edit = edit(Recipient::Server, EditKind::Set, name, value);
            service.backends[0].header_edits.push(edit);
        });
        let error = Balancer::start(&config, BOTH[1]).err().unwrap();
        assert!(
            matches!(error, BalancerError::Header { .. }),
            "{name}: {error}"
        );
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_cookie_binds_a_client_to_its_back_end() {
    on_both(|io| {
        let backs = ["a", "b", "c"].map(BackEnd::named);
        let addresses: Vec<_> = backs.iter().map(|back| back.address).collect();
        let (balancer, mut client) = client_with(io, &addresses, |service| {
            for (number, backend) in service.backends.iter_mut().enumerate() {
                backend.sticky_cookie = Some(StickyCookie {
                    name: "node".to_owned(),
                    value: format!("n{number}"),
                    set: true,
                });
            }
        });
        let first = client.ask(get("/"));
        let cookie = first.values("set-cookie")[0].to_owned();
        assert_eq!(cookie, "node=n0; Path=/; HttpOnly");
        // Others come in between, and the client may have another connection.
        for turn in 0..10 {
            let mut other = Peer::connect(balancer.address());
            other.ask(get("/"));
            let connection = if turn % 2 == 0 {
                &mut client
            } else {
                &mut other
            };
            let answer =
                connection.ask("GET / HTTP/1.1\r\nHost: a\r\nCookie: x=y; node=n0\r\n\r\n");
            assert_eq!(answer.text(), "a/");
            assert!(answer.values("set-cookie").is_empty(), "it has the cookie");
        }
        // Where its back end is away, it gets another one, and its cookie.
        balancer.shared().note(
            0,
            0,
            balance::health::HealthEvent::SetByOperator(balance::health::State::Down),
        );
        let answer = client.ask("GET / HTTP/1.1\r\nHost: a\r\nCookie: node=n0\r\n\r\n");
        assert_ne!(answer.text(), "a/");
        assert_eq!(answer.values("set-cookie").len(), 1);
    });
}

#[test]
fn a_hash_of_a_request_sends_the_same_to_the_same() {
    type Request = fn(usize) -> String;
    let keys: [(HashKey, Request); 3] = [
        (HashKey::Path, |n| get(&format!("/{n}?a={n}"))),
        (HashKey::Header("X-Key".to_owned()), |n| {
            format!("GET / HTTP/1.1\r\nHost: a\r\nx-key: {n}\r\n\r\n")
        }),
        (HashKey::Cookie("id".to_owned()), |n| {
            format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: id={n}\r\n\r\n")
        }),
    ];
    for io in BOTH {
        for (key, request) in &keys {
            let backs = ["a", "b", "c"].map(BackEnd::named);
            let addresses: Vec<_> = backs.iter().map(|back| back.address).collect();
            let (_balancer, mut client) = client_with(io, &addresses, |service| {
                service.dispatch = Dispatch::ConsistentHash { key: key.clone() };
            });
            let mut whose = |n| client.ask(request(n)).text()[..1].to_owned();
            let first: Vec<String> = (0..30).map(&mut whose).collect();
            let again: Vec<String> = (0..30).map(&mut whose).collect();
            assert_eq!(first, again, "{key:?}");
            assert!(
                backs.iter().all(|back| !back.requests().is_empty()),
                "{key:?}"
            );
        }
    }
}

#[test]
fn with_inspection_off_only_the_first_message_is_looked_at() {
    on_both(|io| {
        let backs = [BackEnd::named("a"), BackEnd::named("b")];
        let balancer = balancer_with(io, &[backs[0].address, backs[1].address], |service| {
            service.kind = ServiceKind::Http {
                inspect: Inspect::FirstMessage,
            };
            for backend in &mut service.backends {
                backend.header_edits = vec![
                    edit(Recipient::Server, EditKind::Set, "X-Client", "%r"),
                    edit(Recipient::Client, EditKind::Set, "X-Back", "%b"),
                ];
            }
        });
        for (turn, back) in backs.iter().enumerate() {
            let mut client = Peer::connect(balancer.address());
            for number in 0..5 {
                let answer = client.ask(get(&format!("/{number}")));
                let mark = answer.values("x-back");
                let first = format!("back{turn}");
                let expected: &[&str] = if number == 0 { &[&first] } else { &[] };
                assert_eq!(mark, expected);
            }
            // All of a connection goes to one back end.
            let marks: Vec<bool> = back
                .requests()
                .iter()
                .map(|request| request.values("x-client") == ["127.0.0.1"])
                .collect();
            assert_eq!(marks, [true, false, false, false, false]);
        }
        until("the pairs are over", || {
            active_now(&balancer, 0) + active_now(&balancer, 1) == 0
        });
    });
}

#[test]
fn with_inspection_off_a_client_is_still_sent_past_dead_back_ends() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let (_balancer, mut client) = client_with(io, &[dead(), back.address], |service| {
            service.kind = ServiceKind::Http {
                inspect: Inspect::FirstMessage,
            };
        });
        client.say(format!("{}{}", get("/1"), get("/2")));
        assert_eq!(client.answer().unwrap().text(), "a/1");
        assert_eq!(client.answer().unwrap().text(), "a/2");
    });
}

#[test]
fn a_proxy_header_names_the_client_on_a_connection_of_its_own() {
    on_both(|io| {
        let back = BackEnd::new(|peer, _, all| {
            let line = peer.head().unwrap();
            let (proxy, head) = line.split_once("\r\n").unwrap();
            all.note(Message {
                head: head.to_owned(),
                body: proxy.as_bytes().to_vec(),
            });
            peer.say(ok("hi"));
            let _ = peer.rest();
        });
        let (_balancer, mut client) = client_with(io, &[back.address], |service| {
            service.proxy_protocol_in = true;
            service.backends[0].proxy_protocol_out = Some(ProxyVersion::V1);
        });
        client.say("PROXY TCP4 192.0.2.7 192.0.2.8 1000 80\r\n");
        for _ in 0..2 {
            assert_eq!(client.ask(get("/")).text(), "hi");
        }
        assert_eq!(back.connections(), 2);
        for request in back.requests() {
            assert_eq!(request.body, b"PROXY TCP4 192.0.2.7 192.0.2.8 1000 80");
            assert_eq!(request.values("connection"), ["close"]);
        }
    });
}

#[test]
fn requests_are_told_of_where_a_log_is_asked_for() {
    use balance::engine::events::{Event, RequestLine};
    for io in BOTH {
        let back = BackEnd::new(|peer, _, all| {
            while let Some(request) = peer.request() {
                if request.head.starts_with("GET /never") {
                    all.note(request);
                    continue;
                }
                peer.say(ok("hi"));
            }
        });
        let balancer = balancer_with(io, &[back.address], |service| {
            service.access_log = Some("/dev/null".into());
            service.access_log_form = LogFormat::Combined;
        });
        let events = balancer.take_events().unwrap();
        let next = || {
            loop {
                let event = events.recv_timeout(std::time::Duration::from_secs(10));
                if let Event::RequestFinished {
                    backend,
                    client,
                    line,
                    status,
                    bytes_from,
                    ..
                } = event.unwrap()
                {
                    assert!(client.ip().is_loopback());
                    return (backend, line, status, bytes_from);
                }
            }
        };
        let mut client = Peer::connect(balancer.address());
        let answer = client.ask("GET /x?y HTTP/1.0\r\nReferer: r\r\nUser-Agent: u\r\n\r\n");
        let length = (answer.head.len() + answer.body.len()) as u64;
        let line = RequestLine {
            method: "GET".into(),
            target: "/x?y".into(),
            version: "1.0",
            referer: Some("r".into()),
            user_agent: Some("u".into()),
        };
        assert_eq!(next(), (Some(0), Some(Box::new(line)), 200, length));
        let mut client = Peer::connect(balancer.address());
        client.say("nonsense\r\n\r\n");
        let (said, _) = client.rest();
        assert_eq!(next(), (None, None, 400, said.len() as u64));
        // One that leaves before it has an answer.
        let mut client = Peer::connect(balancer.address());
        client.say([get("/x"), get("/never")].concat());
        until("it is there", || !back.requests().is_empty());
        assert_eq!(next().2, 200);
        // With an answer that it has not read, which makes it a reset.
        client.stream.peek(&mut [0]).unwrap();
        drop(client);
        let (backend, line, status, bytes) = next();
        assert_eq!((backend, status, bytes), (Some(0), 499, 0));
        assert_eq!(&*line.unwrap().target, "/never");
    }
}
