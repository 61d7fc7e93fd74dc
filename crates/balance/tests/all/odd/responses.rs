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

/// What a client asks for.
#[derive(Clone, Copy)]
pub struct Asked {
    pub is_head: bool,
    /// The number of the case.
    pub number: usize,
}

impl Asked {
    fn method(self) -> &'static str {
        if self.is_head { "HEAD" } else { "GET" }
    }
}

pub fn over_h1(address: SocketAddr, asked: Asked, version: &str) -> Result<Got, String> {
    let mut peer = Peer::connect(address);
    let (method, number) = (asked.method(), asked.number);
    peer.say(format!("{method} /{number} {version}\r\nHost: a\r\n\r\n"));
    Ok(read_answer(&mut peer, asked.is_head))
}

/// Fails where the answer neither is whole nor ends with a reset for a fault of the back end.
pub fn over_h2(address: SocketAddr, asked: Asked) -> Result<Got, String> {
    let mut client = Client::connect(address);
    let path = format!("/{}", asked.number);
    let response = client.ask(1, &with(&[(":method", asked.method()), (":path", &path)]));
    match response.reset {
        None if response.is_complete => Ok(Got::Whole {
            status: response.value(":status").parse().unwrap(),
            content: String::from_utf8_lossy(&response.body).into_owned(),
        }),
        Some(ErrorCode::InternalError) => Ok(Got::Cut),
        _ => Err(format!("{response:?}, {:?}", client.gone)),
    }
}

/// Whether a client got what it has to get: the answer with this status and content, or what the
/// faults ask for.
pub fn holds((status, content): (u16, &str), faults: &[Fate], got: &Got) -> bool {
    let is = |one: u16| matches!(got, Got::Whole { status, .. } if *status == one);
    match faults {
        [] => {
            *got == Got::Whole {
                status,
                content: content.into(),
            }
        }
        _ => faults.iter().any(|fate| match fate {
            Fate::Bad => is(502),
            Fate::Broken => is(502) || *got == Got::Cut,
            Fate::Refused(statuses) => statuses.iter().any(|one| is(*one)),
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
        let asked = Asked {
            is_head: case.is_head,
            number,
        };
        for client in ["HTTP/1.1", "HTTP/1.0", "HTTP/2"] {
            let got = match client {
                "HTTP/2" => over_h2(address, asked),
                version => over_h1(address, asked, version),
            };
            // RFC 9110, 15.2: no interim answers to HTTP/1.0, and 1.0 has no reset that matters.
            if !got
                .as_ref()
                .is_ok_and(|got| holds((case.status(), case.content()), &faults, got))
            {
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
