//! The balancer in front of real servers: how many requests do they see?
//!
//! Ambiguous messages are those in which two servers could see different requests. Whatever the
//! balancer makes of one, the server behind it must see as many requests as the balancer sent, and
//! none that was hidden in another. Servers that are not installed are left out.
#![allow(clippy::unwrap_used)]

mod corpus;
mod servers;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use balance::config::model::{Backend, Service, ServiceKind};
use balance::{Balancer, Config};
use net::IoKind;

use corpus::{Message, messages};
use servers::{Kind, Server};

/// Time limit: whatever takes longer hangs.
const LONG: Duration = Duration::from_secs(10);
/// How long to wait for an answer that may not come.
const QUIET: Duration = Duration::from_millis(150);

fn balancer(io: IoKind, server: SocketAddr) -> Balancer {
    let mut service = Service::new("web");
    service.listen.push("127.0.0.1:0".parse().unwrap());
    service.kind = ServiceKind::HTTP;
    service.backends.push(Backend::new("one", server.into()));
    let mut config = Config::new();
    config.connections_per_thread = 256;
    config.services.push(service);
    Balancer::start(&config, io).unwrap()
}

fn sent(balancer: &Balancer) -> u64 {
    balancer.shared().services[0].backends[0].requests.get()
}

/// Sends pieces one after the other. Then reads until so many answers, the end, or silence.
fn send(address: SocketAddr, pieces: &[&[u8]], answers: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let patience = if answers > 0 { LONG } else { QUIET };
    stream.set_read_timeout(Some(patience)).unwrap();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The message may be refused before it is complete.
        let _ = stream.write_all(piece);
    }
    let (mut got, mut piece) = (Vec::new(), [0; 16384]);
    loop {
        let begun = got.windows(9).filter(|nine| nine == b"HTTP/1.1 ").count();
        if answers > 0 && begun >= answers {
            return got;
        }
        match stream.read(&mut piece) {
            Ok(0) => return got,
            Ok(n) => got.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return got,
            Err(e) if answers == 0 && e.kind() == ErrorKind::WouldBlock => return got,
            Err(e) => panic!("{e}, after {}", got.escape_ascii()),
        }
    }
}

/// A target that no other message has.
fn target(number: usize) -> String {
    format!("/n{number}n")
}

/// Whether a log line belongs to an earlier message that was cut off.
fn is_of_another(line: &str, number: usize) -> bool {
    !line.contains(&target(number)) && line.contains("/n") && !line.contains("/mark-")
}

/// The requests of a message that a server logged. A marker request, sent afterwards on a
/// connection of its own, shows when the log is complete.
fn seen(
    server: &Server,
    balancer: &Balancer,
    number: usize,
    pieces: &[&[u8]],
    answers: usize,
) -> Vec<String> {
    let before = server.requests().len();
    send(balancer.address(), pieces, answers);
    let mark = format!("/mark-{number}-");
    let request = format!("GET {mark} HTTP/1.1\r\nHost: a\r\n\r\n");
    send(balancer.address(), &[request.as_bytes()], 1);
    let end = Instant::now() + LONG;
    loop {
        let lines = server.requests().split_off(before);
        let lines = lines
            .into_iter()
            .filter(|line| !is_of_another(line, number));
        let (marks, others): (Vec<String>, Vec<String>) =
            lines.partition(|line| line.contains(&mark));
        if !marks.is_empty() && others.len() >= answers {
            assert_eq!(marks.len(), 1, "the request behind it came more than once");
            return others;
        }
        assert!(
            Instant::now() < end,
            "the server saw {others:?} and {marks:?}, expected {answers} and 1"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Where the body begins, or the middle of a message without one.
fn cut(bytes: &[u8]) -> usize {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    match head {
        Some(at) if at + 4 < bytes.len() => at + 4,
        _ => bytes.len() / 2,
    }
}

/// What Node logs of a message that was cut off, and of one with too long a head: no second request.
const NO_REQUEST: [&str; 2] = [
    "malformed: HPE_INVALID_EOF_STATE",
    "malformed: HPE_HEADER_OVERFLOW",
];

/// Requests among what a server logged.
fn accepted(lines: &[String]) -> usize {
    let is_request = |line: &&String| !NO_REQUEST.contains(&line.as_str());
    lines.iter().filter(is_request).count()
}

fn judge(kind: Kind) {
    let Some(server) = Server::start(kind) else {
        // What nobody wanted installed is not skipped.
        let left_out = std::env::var("WEIGH_LEFT_OUT").unwrap_or_default();
        if !left_out.split(' ').any(|package| package == kind.package()) {
            testing::skip(&format!("{kind:?} is not installed"));
        }
        return;
    };
    let mut number = 0;
    for io in [IoKind::Uring, IoKind::Epoll] {
        let balancer = balancer(io, server.address);
        for Message {
            name,
            text,
            requests,
        } in messages()
        {
            let about = format!("{name}, {io}, {kind:?}");
            let answers = requests.unwrap_or(0);
            number += 1;
            let bytes = text.replace("/N", &target(number)).into_bytes();
            let before = sent(&balancer);
            let whole = seen(&server, &balancer, number, &[&bytes], answers);
            // Without the marker request.
            let sent_of_it = sent(&balancer) - before - 1;
            assert!(
                accepted(&whole) as u64 <= sent_of_it,
                "{about}: {whole:?} of {sent_of_it}"
            );
            match requests {
                // Of one that it refuses, the balancer may have sent a part.
                Some(requests) => assert_eq!(accepted(&whole), requests, "{about}: {whole:?}"),
                // One that the server refuses without an answer may be sent again.
                None => assert!(accepted(&whole) <= 1, "{about}: {whole:?}"),
            }

            // In two pieces, the balancer may forward part of a message before it refuses the rest.
            number += 1;
            let bytes = text.replace("/N", &target(number)).into_bytes();
            let (head, rest) = bytes.split_at(cut(&bytes));
            let pieces = seen(&server, &balancer, number, &[head, rest], answers);
            let most = requests.unwrap_or(1).max(1);
            assert!(
                accepted(&pieces) <= most,
                "{about}, in two pieces: {pieces:?}"
            );
        }
    }
    let hidden = server
        .requests()
        .into_iter()
        .find(|line| line.contains("hidden"));
    assert_eq!(hidden, None, "{kind:?}");
}

#[test]
fn nginx_sees_no_request_that_the_balancer_did_not_see() {
    judge(Kind::Nginx);
}

#[test]
fn apache_sees_no_request_that_the_balancer_did_not_see() {
    judge(Kind::Apache);
}

#[test]
fn node_sees_no_request_that_the_balancer_did_not_see() {
    judge(Kind::Node);
}

#[test]
fn haproxy_sees_no_request_that_the_balancer_did_not_see() {
    judge(Kind::Haproxy);
}
