//! Requests of odd clients.

use std::net::Shutdown;
use std::sync::Mutex;

use balance::Balancer;
use net::IoKind;
use net::h2::{ErrorCode, frame, hpack};
use net::http::RequestParser;
use testing::http2::client::{Client, with};
use testing::odd::Fate;
use testing::odd::closings::{CLOSINGS, StreamEnd};
use testing::odd::requests::{Answers, Request, all};

use super::{Got, read_answer, step};
use crate::http2::clients::both;
use crate::support::http::{BOTH, BackEnd, Peer, active_now, balancer_with, clients_now, until};

/// What a back end was asked for: method, target, bytes of content.
type Asked = (String, String, u64);
/// That, and the value of `Max-Forwards`.
type Seen = (Asked, Option<String>);

/// A back end that notes what it reads, and whether `Max-Forwards` came as it has to.
fn back_end(asked: &'static Mutex<Vec<Seen>>) -> BackEnd {
    BackEnd::new(move |peer, _, _| {
        let mut parser = RequestParser::default();
        while let Some(bytes) = peer.some().filter(|bytes| !bytes.is_empty()) {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let Ok((taken, is_complete)) = parser.feed(rest) else {
                    return asked.lock().unwrap().push(Default::default());
                };
                rest = &rest[taken..];
                if is_complete {
                    let request = parser.request();
                    let forwards = request.field("max-forwards").map(str::to_owned);
                    let (method, target) = (request.method.clone(), request.target.clone());
                    let is_head = method == "HEAD";
                    let one = ((method, target, request.body_bytes), forwards);
                    asked.lock().unwrap().push(one);
                    let body = if is_head { "" } else { "ok" };
                    peer.say(format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}"
                    ));
                }
            }
        }
    })
}

/// How a client was answered.
#[derive(Debug, PartialEq)]
enum Outcome {
    Answered(u16),
    Reset,
    Other(String),
}

fn over_h1(address: std::net::SocketAddr, request: &Request, number: usize) -> Outcome {
    let mut peer = Peer::connect(address);
    peer.say(request.bytes(number));
    match read_answer(&mut peer, request.method.text == b"HEAD") {
        Got::Whole { status, .. } => Outcome::Answered(status),
        Got::Cut => Outcome::Other("the connection ended".into()),
    }
}

fn over_h2(address: std::net::SocketAddr, request: &Request, number: usize) -> Outcome {
    let mut client = Client::connect(address);
    let (fields, data) = request.stream(number);
    let mut block = Vec::new();
    for (name, value) in &fields {
        hpack::encode(&mut block, name, value);
    }
    frame::headers(&mut client.out, 1, &block, data.is_empty(), 16_384);
    if !data.is_empty() {
        client.data(1, data.as_bytes(), true);
    }
    let response = client.response(1);
    let status = response.value(":status").parse().unwrap_or(0);
    match (response.is_complete, response.reset) {
        (true, _) => Outcome::Answered(status),
        (false, Some(ErrorCode::ProtocolError)) if status == 0 => Outcome::Reset,
        _ => Outcome::Other(format!("{response:?}, {:?}", client.gone)),
    }
}

/// Whether the outcome is what the rows ask for.
fn holds(request: &Request, faults: &[Fate], outcome: &Outcome) -> bool {
    let expected = match request.answered_by() {
        Answers::BackEnd => 200,
        Answers::Balancer(status) => status,
    };
    match faults {
        [] => *outcome == Outcome::Answered(expected),
        _ => faults.iter().any(|fate| match (fate, outcome) {
            (Fate::Refused(statuses), Outcome::Answered(status)) => statuses.contains(status),
            (Fate::Reset, Outcome::Reset) => true,
            _ => false,
        }),
    }
}

/// What the back end has to see.
fn seen(request: &Request, number: usize, is_h2: bool, faults: &[Fate]) -> Vec<Seen> {
    if !faults.is_empty() || request.answered_by() != Answers::BackEnd {
        return Vec::new();
    }
    let forwards = String::from_utf8_lossy(request.fields.text).into_owned();
    let forwards = forwards.strip_prefix("Max-Forwards: ").map(str::trim);
    let is_counted = matches!(request.method.text, b"OPTIONS" | b"TRACE");
    let forwards = match forwards {
        Some("5") if is_counted => Some("4".to_owned()),
        other => other.map(str::to_owned),
    };
    vec![(request.asked(number, is_h2), forwards)]
}

fn every_request(io: IoKind) -> Vec<String> {
    let asked: &'static Mutex<Vec<_>> = Box::leak(Box::default());
    let back = back_end(asked);
    let balancer = balancer_with(io, &[back.address], both);
    let mut wrong = Vec::new();
    for (number, request) in all(step(11)).iter().enumerate() {
        type Over = fn(std::net::SocketAddr, &Request, usize) -> Outcome;
        for (is_h2, over) in [(false, over_h1 as Over), (true, over_h2 as Over)] {
            let Some(faults) = request.faults(is_h2) else {
                continue;
            };
            let outcome = over(balancer.address(), request, number);
            let came = std::mem::take(&mut *asked.lock().unwrap());
            let version = if is_h2 { "HTTP/2" } else { "HTTP/1" };
            if !holds(request, &faults, &outcome) || came != seen(request, number, is_h2, &faults) {
                let name = request.name();
                wrong.push(format!(
                    "{io}, {version}: {name}: {outcome:?}, wanted {faults:?}; the back end saw {came:?}"
                ));
            }
        }
    }
    wrong
}

#[test]
fn requests_of_odd_clients_have_the_outcome_that_the_rfcs_ask_for() {
    let wrong = std::thread::scope(|scope| {
        let threads = BOTH.map(|io| scope.spawn(move || every_request(io)));
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    testing::odd::none_is_wrong(&wrong);
}

/// Whether nothing reached a back end as a whole, and nothing is left of the clients.
fn left_nothing(balancer: &Balancer, asked: &Mutex<Vec<Seen>>) {
    until("all places are free", || {
        clients_now(balancer) + active_now(balancer, 0) == 0
    });
    assert!(asked.lock().unwrap().is_empty(), "{asked:?}");
}

/// A client of HTTP/1 that leaves behind these bytes.
fn leave_h1(balancer: &Balancer, bytes: &[u8], what: &str) {
    let mut peer = Peer::connect(balancer.address());
    peer.say(bytes);
    peer.end();
    // RFC 9112, 8: an error response may be sent before the end.
    match read_answer(&mut peer, false) {
        Got::Cut => {}
        Got::Whole { status, .. } => {
            assert!((400..500).contains(&status), "{what}: {status}");
        }
    }
}

/// A client of HTTP/2 that leaves so, or resets its stream and stays.
fn leave_h2(balancer: &Balancer, end: StreamEnd, what: &str) {
    let mut client = Client::connect(balancer.address());
    let fields = with(&[(":method", "POST"), ("content-length", "5")]);
    let before = client.out.len();
    client.head(1, &fields, false);
    client
        .out
        .truncate(end.head.map_or(usize::MAX, |bytes| before + bytes));
    if !end.data.is_empty() {
        client.data(1, end.data, false);
    }
    if let Some(code) = end.reset {
        frame::reset(&mut client.out, 1, ErrorCode::of(code).unwrap());
        let other = client.ask(3, &with(&[(":method", "OPTIONS"), ("max-forwards", "0")]));
        assert!(other.is_complete, "{what}: {other:?}, {:?}", client.gone);
        assert_eq!(client.received(1), 0, "{what}");
        return;
    }
    client.flush();
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.until(|client| client.gone.is_some());
}

/// Clients that leave in the middle: nothing reaches a back end as a whole, and nothing stays.
#[test]
fn requests_that_end_too_early_reach_no_back_end_as_a_whole() {
    crate::support::on_both(|io| {
        let asked: &'static Mutex<Vec<_>> = Box::leak(Box::default());
        let back = back_end(asked);
        let balancer = balancer_with(io, &[back.address], both);
        for row in &CLOSINGS {
            if let Some(bytes) = row.h1 {
                leave_h1(&balancer, bytes, row.what);
                left_nothing(&balancer, asked);
            }
            if let Some(end) = row.h2 {
                leave_h2(&balancer, end, row.what);
                left_nothing(&balancer, asked);
            }
        }
        let whole = b"POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        let chunks = b"POST /N HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
            5\r\nhello\r\n0\r\n\r\n";
        for bytes in [&whole[..], chunks] {
            for end in 1..bytes.len() {
                leave_h1(&balancer, &bytes[..end], &format!("{end} bytes"));
                assert!(asked.lock().unwrap().is_empty(), "{io}: {end} bytes");
            }
        }
        left_nothing(&balancer, asked);
    });
}
