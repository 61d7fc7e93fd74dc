//! The logs of HTTP services.

use std::time::Duration;

use balance::config::model::HttpVersions;
use balance::engine::events::Event;
use testing::http2::client::{Client, GET};

use crate::support::http::*;
use crate::support::{LONG, control};

/// How long the back end takes for a response.
const SLOW: Duration = Duration::from_millis(60);

#[test]
fn requests_are_logged_with_their_duration_and_their_bytes() {
    let back = BackEnd::slow(SLOW, "hi");
    on_both(|io| {
        let balancer = balancer_with(io, &[back.address], |service| {
            service.access_log = Some("/dev/null".into());
            service.offered_versions = Some(HttpVersions::BOTH);
        });
        let events = balancer.take_events().unwrap();
        let bytes_of_next = || {
            loop {
                if let Event::RequestFinished {
                    bytes_to,
                    duration_ns,
                    status: 200,
                    ..
                } = events.recv_timeout(LONG).unwrap()
                {
                    let took = Duration::from_nanos(duration_ns);
                    assert!(took >= SLOW && took < LONG, "{took:?}");
                    return bytes_to;
                }
            }
        };
        // Pipelined requests, and one whose body comes in pieces.
        let (first, second) = (get("/first"), get("/second/one"));
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n";
        let mut client = Peer::connect(balancer.address());
        client.say([first.as_str(), second.as_str()].concat());
        assert_eq!(client.answer().unwrap().text(), "hi");
        assert_eq!(client.answer().unwrap().text(), "hi");
        client.say(post);
        client.say("body");
        std::thread::sleep(Duration::from_millis(5));
        client.say("body");
        assert_eq!(client.answer().unwrap().text(), "hi");
        assert_eq!(bytes_of_next(), first.len() as u64);
        assert_eq!(bytes_of_next(), second.len() as u64);
        assert_eq!(bytes_of_next(), post.len() as u64 + 8);
        // The first byte comes alone, as it may begin HTTP/2.
        let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
        let mut client = Peer::connect(balancer.address());
        client.say("P");
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(client.ask(&post[1..]).text(), "hi");
        assert_eq!(bytes_of_next(), post.len() as u64);
        let mut client = Client::connect(balancer.address());
        assert_eq!(client.ask(1, &GET).value(":status"), "200");
        assert!(bytes_of_next() > 0);
    });
}

#[test]
fn a_request_that_is_refused_counts_as_it_came() {
    let back = BackEnd::slow(SLOW, "hi");
    on_both(|io| {
        let balancer = balancer_with(io, &[back.address], |service| {
            service.access_log = Some("/dev/null".into());
        });
        let events = balancer.take_events().unwrap();
        // At once, and in pieces.
        for pieces in [&["nonsense\r\n\r\n"][..], &["non", "sense\r\n\r\n"]] {
            let mut client = Peer::connect(balancer.address());
            for piece in pieces {
                client.say(piece);
                std::thread::sleep(Duration::from_millis(5));
            }
            client.rest();
            let Event::RequestFinished {
                bytes_to, status, ..
            } = events.recv_timeout(LONG).unwrap()
            else {
                panic!("something else");
            };
            assert_eq!((bytes_to, status), (12, 400));
        }
    });
}

#[test]
fn the_files_have_duration_and_bytes_too() {
    let back = BackEnd::slow(SLOW, "hi");
    on_both(|io| {
        let running = control::start(
            &format!(
                "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n\
                 access_log = \"FOLDER/access\"\n\
                 [services.web.backends.one]\naddress = \"{}\"\n\
                 throughput_log = \"FOLDER/throughput\"\n",
                back.address
            ),
            io,
        );
        let mut client = Peer::connect(running.address());
        let answer = client.ask(get("/"));
        let (to, from) = (get("/").len(), answer.head.len() + answer.body.len());
        let read = |name: &str| running.folder.read(name);
        control::until("all is written", || {
            !read("access").is_empty() && !read("throughput").is_empty()
        });
        let throughput = read("throughput");
        let words: Vec<u64> = throughput
            .split_whitespace()
            .skip(1)
            .map(|word| word.parse().unwrap())
            .collect();
        assert_eq!(words[..2], [to as u64, from as u64], "{throughput}");
        assert!(words[2] >= SLOW.as_micros() as u64, "{throughput}");
        let end = format!(
            " duration_us={} service=web backend=one bytes_to={to}\n",
            words[2]
        );
        let access = read("access");
        assert!(access.ends_with(&end), "{access}");
    });
}
