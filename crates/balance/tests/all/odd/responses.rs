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
use crate::support::http::{BackEnd, Peer, balancer_with};
use crate::support::on_both;

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

/// A request for a case, and what its answer has to be.
pub struct Asked {
    pub name: String,
    pub is_head: bool,
    pub status: u16,
    pub content: &'static str,
    pub faults: Vec<Fate>,
}

impl Asked {
    fn method(&self) -> &'static str {
        if self.is_head { "HEAD" } else { "GET" }
    }

    fn over_h1(&self, address: SocketAddr, path: &str, version: &str) -> Result<Got, String> {
        let mut peer = Peer::connect(address);
        peer.say(format!(
            "{} {path} {version}\r\nHost: a\r\n\r\n",
            self.method()
        ));
        Ok(read_answer(&mut peer, self.is_head))
    }

    /// Fails where the answer neither is whole nor ends with a reset for a fault of the back end.
    fn over_h2(&self, address: SocketAddr, path: &str) -> Result<Got, String> {
        let mut client = Client::connect(address);
        let response = client.ask(1, &with(&[(":method", self.method()), (":path", path)]));
        match response.reset {
            None if response.is_complete => Ok(Got::Whole {
                status: response.value(":status").parse().unwrap(),
                content: String::from_utf8_lossy(&response.body).into_owned(),
            }),
            // The code of a back end that cancels passes.
            Some(ErrorCode::InternalError | ErrorCode::Cancel) => Ok(Got::Cut),
            _ => Err(format!("{response:?}, {:?}", client.gone)),
        }
    }

    /// Whether a client got what it has to get: the answer with this status and content, or what the
    /// faults ask for.
    fn holds(&self, got: &Got) -> bool {
        let is = |one: u16| matches!(got, Got::Whole { status, .. } if *status == one);
        match &self.faults[..] {
            [] => {
                *got == Got::Whole {
                    status: self.status,
                    content: self.content.into(),
                }
            }
            faults => faults.iter().any(|fate| match fate {
                Fate::Bad => is(502),
                Fate::Broken => is(502) || *got == Got::Cut,
                Fate::Refused(statuses) => statuses.iter().any(|one| is(*one)),
                _ => false,
            }),
        }
    }
}

/// Asks for each case by its number, over every version.
pub fn ask_for_all(io: IoKind, address: SocketAddr, cases: impl Iterator<Item = Asked>) {
    let mut wrong = Vec::new();
    for (number, case) in cases.enumerate() {
        let path = format!("/{number}");
        for client in ["HTTP/1.1", "HTTP/1.0", "HTTP/2"] {
            let got = match client {
                "HTTP/2" => case.over_h2(address, &path),
                version => case.over_h1(address, &path, version),
            };
            // RFC 9110, 15.2: no interim answers to HTTP/1.0, and 1.0 has no reset that matters.
            if !got.as_ref().is_ok_and(|got| case.holds(got)) {
                let (name, faults) = (&case.name, &case.faults);
                wrong.push(format!(
                    "{io}, {client}: {name}: {got:?}, wanted {faults:?}"
                ));
            }
        }
    }
    testing::odd::none_is_wrong(&wrong);
}

#[test]
fn answers_of_odd_back_ends_have_the_outcome_that_the_rfcs_ask_for() {
    let cases = Arc::new(all(step(3), step(3)));
    let asked = |case: &Response| Asked {
        name: case.name(),
        is_head: case.is_head,
        status: case.status(),
        content: case.content(),
        faults: case.faults(false),
    };
    on_both(|io| {
        let back = back_end(cases.clone());
        let balancer = balancer_with(io, &[back.address], both);
        ask_for_all(io, balancer.address(), cases.iter().map(asked));
    });
}
