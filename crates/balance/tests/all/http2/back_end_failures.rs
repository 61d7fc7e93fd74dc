//! Back ends of HTTP/2 that fail, go away or attack.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use balance::config::model::Check;
use net::h2::{ErrorCode, frame};

use crate::http2::back_ends::{clear, clear_and_peer, two};
use crate::support::http::{Peer, balancer_with, client_with, get};
use crate::support::{active_now, on_both, until};
use testing::http2::back_end::{BackEnd, Got, Link, value};
use testing::http2::client::{Client, GET, with};

fn post(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
}

/// Answers all further requests.
fn serve(link: &mut Link, text: &str) {
    while let Some((stream, _)) = link.request() {
        link.answer(stream, text);
    }
}

#[test]
fn only_what_was_not_processed_is_sent_again() {
    on_both(|io| {
        // On each connection the first request is answered, and the second one not processed.
        for is_reset in [true, false] {
            let back = BackEnd::new(&[], move |link, number| {
                let Some((stream, _)) = link.request() else {
                    return;
                };
                link.answer(stream, &format!("first of {number}"));
                let Some((second, _)) = link.request() else {
                    return;
                };
                if is_reset {
                    frame::reset(&mut link.out, second, ErrorCode::RefusedStream);
                    return serve(link, "after the reset");
                }
                frame::go_away(&mut link.out, stream, ErrorCode::NoError);
                serve(link, "not reached");
            });
            let (balancer, mut peer) = clear_and_peer(io, &[back.address]);
            assert_eq!(peer.ask(post("/")).text(), "first of 0");
            let expected = match is_reset {
                true => "after the reset",
                false => "first of 1",
            };
            // Even a request that is not idempotent.
            assert_eq!(peer.ask(post("/")).text(), expected);
            let shared = balancer.shared();
            let state = &shared.services[0].backends[0];
            assert_eq!(state.response_failures.get(), 0);
            assert_eq!(back.connections(), 1 + usize::from(!is_reset));
        }
    });
}

#[test]
fn a_back_end_that_refuses_for_ever_is_not_asked_for_ever() {
    on_both(|io| {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let back = BackEnd::new(&[], move |link, _| {
            while let Some((stream, _)) = link.request() {
                counted.fetch_add(1, Ordering::SeqCst);
                frame::reset(&mut link.out, stream, ErrorCode::RefusedStream);
            }
        });
        let (_balancer, mut peer) = clear_and_peer(io, &[back.address]);
        assert_eq!(peer.ask(get("/")).status(), 503);
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn requests_in_flight_are_answered_after_goaway() {
    on_both(|io| {
        let back = BackEnd::new(&[], |link, number| {
            let Some((stream, _)) = link.request() else {
                return;
            };
            frame::go_away(&mut link.out, stream, ErrorCode::NoError);
            link.flush();
            std::thread::sleep(Duration::from_millis(100));
            link.answer(stream, &format!("{number}"));
            // The balancer closes it.
            while let Some(got) = link.receive() {
                assert!(!matches!(got, Got::Head { .. }), "{got:?}");
            }
        });
        let (balancer, mut peer) = clear_and_peer(io, &[back.address]);
        let mut other = Peer::connect(balancer.address());
        peer.say(get("/"));
        std::thread::sleep(Duration::from_millis(50));
        other.say(get("/"));
        assert_eq!(peer.answer().unwrap().text(), "0");
        assert_eq!(other.answer().unwrap().text(), "1");
    });
}

#[test]
fn a_slow_client_gets_all_of_a_response_whose_connection_has_ended() {
    on_both(|io| {
        let (to, from) = std::sync::mpsc::channel();
        let to = Mutex::new(to);
        let back = BackEnd::new(&[], move |link, _| {
            let Some((stream, _)) = link.request() else {
                return;
            };
            link.head(stream, &[(":status", "200")], false);
            let sent = link.fill(stream);
            link.data(stream, &[], true);
            frame::go_away(&mut link.out, stream, ErrorCode::NoError);
            link.flush();
            to.lock().unwrap().send(sent).unwrap();
        });
        let (_balancer, mut peer) = clear_and_peer(io, &[back.address]);
        peer.say(get("/"));
        let sent = from.recv().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let answer = peer.answer().unwrap();
        assert_eq!(answer.text().len(), sent);
    });
}

#[test]
fn a_connection_that_breaks_fails_its_streams_as_with_http_1() {
    on_both(|io| {
        // The first connection ends before the response, the second one within it.
        let back = BackEnd::new(&[], |link, number| {
            while let Some((stream, fields)) = link.request() {
                match (number, value(&fields, ":path")) {
                    (0, "/break") => return,
                    (_, "/cut") => {
                        let fields = [(":status", "200"), ("content-length", "10")];
                        link.head(stream, &fields, false);
                        link.data(stream, b"hello", false);
                        link.flush();
                        std::thread::sleep(Duration::from_millis(50));
                        return;
                    }
                    _ => link.answer(stream, &format!("{number}")),
                }
            }
        });
        let (balancer, mut peer) = clear_and_peer(io, &[back.address]);
        assert_eq!(peer.ask(get("/")).text(), "0");
        // This request is idempotent, so it is sent again.
        assert_eq!(peer.ask(get("/break")).text(), "1");
        let mut client = Client::connect(balancer.address());
        let cut = client.ask(1, &with(&[(":path", "/cut")]));
        assert!(!cut.is_complete && cut.reset.is_some(), "{cut:?}");
        peer.say(get("/cut"));
        let (all, is_orderly) = peer.rest();
        assert!(!is_orderly || !all.ends_with(b"hello"), "{all:?}");
        // The next connection works.
        let mut peer = Peer::connect(balancer.address());
        assert_eq!(peer.ask(get("/")).status(), 200);

        // A request that may have been carried out is not sent again.
        let back = BackEnd::new(&[], |link, number| {
            let _ = link.request();
            assert_eq!(number, 0);
        });
        let (_balancer, mut peer) = clear_and_peer(io, &[back.address]);
        assert_eq!(peer.ask(post("/")).status(), 502);
    });
}

#[test]
fn resets_pass_both_ways() {
    on_both(|io| {
        let resets = Arc::new(Mutex::new(Vec::new()));
        let noted = resets.clone();
        let back = BackEnd::new(&[], move |link, _| {
            while let Some(got) = link.receive() {
                match got {
                    Got::Head { stream, fields, .. } => match value(&fields, ":path") {
                        "/begun" => {
                            link.head(stream, &[(":status", "200")], false);
                            link.data(stream, b"hello", false);
                            link.flush();
                            std::thread::sleep(Duration::from_millis(100));
                            frame::reset(&mut link.out, stream, ErrorCode::InternalError);
                        }
                        "/reset" => {
                            frame::reset(&mut link.out, stream, ErrorCode::InternalError);
                        }
                        _ => {}
                    },
                    Got::Reset { stream, code } => noted.lock().unwrap().push((stream, code)),
                    _ => {}
                }
            }
        });
        let balancer = clear(io, &[back.address]);
        let mut client = Client::connect(balancer.address());
        let begun = client.ask(1, &with(&[(":path", "/begun")]));
        assert!(begun.reset.is_some(), "{begun:?}");
        let reset = client.ask(3, &with(&[(":path", "/reset"), (":method", "POST")]));
        assert_eq!(reset.value(":status"), "502");
        client.head(5, &GET, true);
        client.flush();
        until("it is active", || active_now(&balancer, 0) == 1);
        frame::reset(&mut client.out, 5, ErrorCode::Cancel);
        client.flush();
        until("the back end is told", || {
            resets.lock().unwrap().last().map(|one| one.1) == Some(ErrorCode::Cancel)
        });
        assert_eq!(active_now(&balancer, 0), 0);
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn a_client_gets_the_code_of_a_reset_that_concerns_it() {
    use ErrorCode::{Cancel, EnhanceYourCalm, InternalError, NoError, RefusedStream};

    on_both(|io| {
        // The number of the code is the last part of the path.
        let back = BackEnd::new(&[], move |link, _| {
            while let Some((stream, fields)) = link.request() {
                let path = value(&fields, ":path");
                let number = path.rsplit('/').next().unwrap().parse().unwrap();
                if path.starts_with("/begun") {
                    link.head(stream, &[(":status", "200")], false);
                    link.data(stream, b"hello", false);
                    link.flush();
                    std::thread::sleep(Duration::from_millis(50));
                }
                frame::reset(&mut link.out, stream, ErrorCode::of(number).unwrap());
                link.flush();
            }
        });
        let balancer = clear(io, &[back.address]);
        let mut client = Client::connect(balancer.address());
        let mut stream = 1;
        let mut ask = |path: &str, code: ErrorCode, content_type: &str| {
            let path = format!("{path}/{}", code as u32);
            let fields = [
                (":path", &*path),
                (":method", "POST"),
                ("content-type", content_type),
            ];
            let response = client.ask(stream, &with(&fields));
            stream += 2;
            let status = response.value(":status").to_owned();
            (status, response.reset)
        };
        let told = |code| (String::new(), Some(code));
        let begun = |code| ("200".to_owned(), Some(code));
        for kind in ["application/grpc", "text/plain"] {
            assert_eq!(ask("/begun", Cancel, kind), begun(Cancel));
            assert_eq!(ask("/begun", EnhanceYourCalm, kind), begun(EnhanceYourCalm));
            // These would say that nothing was processed, or that nothing is missing.
            assert_eq!(ask("/begun", RefusedStream, kind), begun(InternalError));
            assert_eq!(ask("/begun", NoError, kind), begun(InternalError));
        }
        let call = "application/grpc+proto";
        for code in [Cancel, EnhanceYourCalm, RefusedStream] {
            assert_eq!(ask("/reset", code, call), told(code));
        }
        assert_eq!(ask("/reset", InternalError, call).0, "502");
        assert_eq!(ask("/reset", Cancel, "text/plain").0, "502");
        assert_eq!(ask("/reset", RefusedStream, "text/plain").0, "503");
        assert_eq!(active_now(&balancer, 0), 0);
    });
}

#[test]
fn a_malformed_response_fails_alone() {
    on_both(|io| {
        let back = BackEnd::new(&[], |link, _| {
            while let Some((stream, fields)) = link.request() {
                match value(&fields, ":path") {
                    "/upper" => link.head(stream, &[(":status", "200"), ("X-A", "b")], true),
                    "/hop" => {
                        let fields = [(":status", "200"), ("transfer-encoding", "chunked")];
                        link.head(stream, &fields, true);
                    }
                    "/split" => {
                        let fields = [(":status", "200"), ("x-a", "b\r\nx-c: d")];
                        link.head(stream, &fields, true);
                    }
                    "/switch" => link.head(stream, &[(":status", "101")], false),
                    "/short" => {
                        let fields = [(":status", "200"), ("content-length", "5")];
                        link.head(stream, &fields, true);
                    }
                    "/interim" => {
                        for _ in 0..100 {
                            link.head(stream, &[(":status", "100")], false);
                        }
                    }
                    _ => link.answer(stream, "well"),
                }
            }
        });
        let balancer = clear(io, &[back.address]);
        let paths = ["/upper", "/hop", "/split", "/switch", "/short", "/interim"];
        for path in paths {
            let mut peer = Peer::connect(balancer.address());
            let mut answer = peer.ask(get(path));
            while answer.status() == 100 {
                answer = peer.answer().unwrap();
            }
            assert_eq!(answer.status(), 502, "{path}");
        }
        let mut peer = Peer::connect(balancer.address());
        assert_eq!(peer.ask(get("/")).text(), "well");
        assert_eq!(back.connections(), 1);
    });
}

#[test]
fn a_back_end_that_does_not_read_gets_no_more_requests_on_that_connection() {
    on_both(|io| {
        // The first connection is not read.
        let back = BackEnd::new(&[], |link, number| {
            if number == 0 {
                link.flush();
                std::thread::sleep(Duration::from_secs(8));
                return;
            }
            serve(link, "read");
        });
        let balancer = balancer_with(io, &[back.address], |service| {
            two(service);
            service.timeouts.upstream_answer = Duration::from_millis(200);
        });
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n",
            "x".repeat(50_000)
        );
        let mut statuses = BTreeSet::new();
        for _ in 0..20 {
            let peers = (0..20).map(|_| Peer::connect(balancer.address()));
            let mut peers: Vec<Peer> = peers.collect();
            peers.iter_mut().for_each(|peer| peer.say(&request));
            for peer in &mut peers {
                statuses.insert(peer.answer().unwrap().status());
            }
            if statuses.contains(&200) {
                break;
            }
        }
        assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [200, 504]);
        assert!(back.connections() > 1);
    });
}

/// A flood: frames that carry nothing for a response.
type Flood = fn(&mut Vec<u8>, u32);

#[test]
fn floods_of_a_back_end_end_its_connection_and_no_other() {
    let floods: [Flood; 6] = [
        |out, _| frame::ping(out, [0; 8]),
        |out, _| frame::settings(out, &[]),
        |out, stream| frame::data(out, stream, &[], false),
        |out, stream| frame::window_update(out, stream, 1),
        |out, stream| frame::reset(out, stream, ErrorCode::Cancel),
        |out, _| frame::go_away(out, 1 << 30, ErrorCode::NoError),
    ];
    on_both(|io| {
        for flood in floods {
            let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (noted_begin, noted) = (begun.clone(), ended.clone());
            let attacker = BackEnd::new(&[], move |link, _| {
                let Some((stream, _)) = link.request() else {
                    return;
                };
                noted_begin.fetch_add(1, Ordering::SeqCst);
                let mut one = Vec::new();
                flood(&mut one, stream);
                let many = one.repeat(1000);
                for _ in 0..10_000 {
                    if std::io::Write::write_all(&mut link.stream, &many).is_err() {
                        noted.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                }
            });
            let good = BackEnd::named("good");
            let (balancer, mut peer) =
                client_with(io, &[attacker.address, good.address], |service| {
                    two(service);
                    service.timeouts.upstream_answer = Duration::from_secs(5);
                });
            let mut other = Peer::connect(balancer.address());
            // The first of two goes to the attacker. It is not sent again.
            peer.say(post("/"));
            until("the flood has begun", || begun.load(Ordering::SeqCst) > 0);
            for number in 0..100 {
                let path = format!("/{number}");
                other.say(get(&path));
                let answer = other.answer().unwrap();
                if answer.status() != 200 {
                    other = Peer::connect(balancer.address());
                    continue;
                }
                assert_eq!(answer.text(), format!("good{path}"));
            }
            assert!(peer.answer().is_some_and(|one| one.status() >= 500));
            until("the flood is ended", || ended.load(Ordering::SeqCst) > 0);
        }
    });
}

#[test]
fn a_back_end_of_another_protocol_cannot_be_reached() {
    on_both(|io| {
        let old = crate::support::http::BackEnd::named("old");
        let (_balancer, mut peer) = clear_and_peer(io, &[old.address]);
        assert_eq!(peer.ask(get("/")).status(), 503);
        // A back end that never sends anything.
        let silent = crate::support::serve(|stream| {
            std::thread::sleep(Duration::from_secs(20));
            drop(stream);
        });
        let (_balancer, mut peer) = client_with(io, &[silent], |service| {
            two(service);
            service.timeouts.connect = Duration::from_millis(300);
        });
        assert_eq!(peer.ask(get("/")).status(), 503);
    });
}

#[test]
fn a_back_end_that_shows_no_sign_of_life_is_left() {
    on_both(|io| {
        let back = BackEnd::new(&[], |link, number| {
            link.answers_pings = number > 0;
            let mut open = BTreeSet::new();
            while let Some((stream, _)) = link.request() {
                open.insert(stream);
                if number > 0 || open.len() == 1 {
                    link.answer(stream, "alive");
                }
            }
        });
        let (_balancer, mut peer) = clear_and_peer(io, &[back.address]);
        assert_eq!(peer.ask(get("/")).text(), "alive");
        // From here on it is silent, while its connection seems open.
        assert_eq!(peer.ask(get("/")).text(), "alive");
        assert_eq!(back.connections(), 2);
    });
}

#[test]
fn probes_speak_http_2() {
    on_both(|io| {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = asked.clone();
        let back = BackEnd::new(&[], move |link, _| {
            while let Some((stream, fields)) = link.request() {
                let path = value(&fields, ":path").to_owned();
                let is_well = path != "/health" || noted.lock().unwrap().len() < 3;
                noted.lock().unwrap().push(path);
                match is_well {
                    true => link.answer(stream, "well"),
                    false => link.head(stream, &[(":status", "500")], true),
                }
            }
        });
        let balancer = balancer_with(io, &[back.address], |service| {
            two(service);
            service.check = Check::Http {
                path: "/health".into(),
                host: None,
                status: 200,
            };
            service.check_interval = Duration::from_millis(50);
        });
        let shared = balancer.shared();
        let state = &shared.services[0].backends[0];
        until("it was probed", || asked.lock().unwrap().len() >= 2);
        assert!(state.usable());
        until("a probe has failed", || !state.usable());
        assert!(asked.lock().unwrap().iter().all(|path| path == "/health"));
    });
}
