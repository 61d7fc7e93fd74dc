//! Answers of odd back ends.

use std::net::SocketAddr;
use std::sync::Arc;

use net::IoKind;
use net::h2::ErrorCode;
use testing::http2::client::{Client, with};
use testing::odd::Fate;
use testing::odd::responses::{Response, all};

use super::{Got, read_answer, step};
use crate::http2::clients::both;
use crate::support::http::{BOTH, BackEnd, Peer, balancer_with};

/// A back end that answers `/3` with the third case.
fn back_end(cases: Arc<Vec<Response>>) -> BackEnd {
    BackEnd::new(move |peer, _, _| {
        while let Some(head) = peer.head() {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let case = &cases[path[1..].parse::<usize>().unwrap()];
            peer.say(case.bytes());
            if case.closes() {
                return;
            }
        }
    })
}

fn method(case: &Response) -> &'static str {
    if case.is_head { "HEAD" } else { "GET" }
}

fn over_h1(address: SocketAddr, case: &Response, number: usize, version: &str) -> Got {
    let mut peer = Peer::connect(address);
    let method = method(case);
    peer.say(format!("{method} /{number} {version}\r\nHost: a\r\n\r\n"));
    read_answer(&mut peer, case.is_head)
}

fn over_h2(address: SocketAddr, case: &Response, number: usize) -> Got {
    let mut client = Client::connect(address);
    let path = format!("/{number}");
    let response = client.ask(1, &with(&[(":method", method(case)), (":path", &path)]));
    match response.reset {
        None if response.is_complete => Got::Whole {
            status: response.value(":status").parse().unwrap(),
            content: String::from_utf8_lossy(&response.body).into_owned(),
        },
        Some(ErrorCode::InternalError) => Got::Cut,
        other => panic!("{}: {other:?}", case.name()),
    }
}

fn holds(case: &Response, faults: &[Fate], got: &Got) -> bool {
    let is_502 = matches!(got, Got::Whole { status: 502, .. });
    match faults {
        [] => {
            *got == Got::Whole {
                status: case.status(),
                content: case.content().into(),
            }
        }
        _ => faults.iter().any(|fate| match fate {
            Fate::Bad => is_502,
            Fate::Broken => is_502 || *got == Got::Cut,
            _ => false,
        }),
    }
}

fn every_response(io: IoKind) -> Vec<String> {
    let cases = Arc::new(all(step(3), step(3)));
    let back = back_end(cases.clone());
    let balancer = balancer_with(io, &[back.address], both);
    let address = balancer.address();
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let faults = case.faults(false);
        for client in ["HTTP/1.1", "HTTP/1.0", "HTTP/2"] {
            let got = match client {
                "HTTP/2" => over_h2(address, case, number),
                version => over_h1(address, case, number, version),
            };
            // RFC 9110, 15.2: no interim answers to HTTP/1.0, and 1.0 has no reset that matters.
            if !holds(case, &faults, &got) {
                let name = case.name();
                wrong.push(format!(
                    "{io}, {client}: {name}: {got:?}, wanted {faults:?}"
                ));
            }
        }
    }
    wrong
}

#[test]
fn answers_of_odd_back_ends_have_the_outcome_that_the_rfcs_ask_for() {
    let wrong = std::thread::scope(|scope| {
        let threads = BOTH.map(|io| scope.spawn(move || every_response(io)));
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    testing::odd::none_is_wrong(&wrong);
}
