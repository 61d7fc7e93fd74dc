//! Answers of odd back ends that speak HTTP/2.

use std::net::Shutdown;
use std::sync::Arc;

use net::IoKind;
use testing::http2::back_end::{BackEnd, value};
use testing::odd::streams::{Response, all};

use super::responses::{Asked, holds, over_h1, over_h2};
use super::step;
use crate::http2::back_ends::clear;
use crate::support::http::BOTH;

/// A back end that answers `/3` with the third case.
fn back_end(cases: Arc<Vec<Response>>) -> BackEnd {
    BackEnd::new(&[], move |link, _| {
        while let Some((stream, fields)) = link.request() {
            let path = value(&fields, ":path");
            let case = &cases[path[1..].parse::<usize>().unwrap()];
            link.out.extend(case.bytes(stream));
            if case.closes() {
                link.flush();
                let _ = link.stream.shutdown(Shutdown::Write);
                while link.receive().is_some() {}
                return;
            }
        }
    })
}

fn every_response(io: IoKind) -> Vec<String> {
    let cases = Arc::new(all(step(5), step(3)));
    let back = back_end(cases.clone());
    let balancer = clear(io, &[back.address]);
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
fn answers_of_odd_back_ends_of_http_2_have_the_outcome_that_the_rfcs_ask_for() {
    let wrong = std::thread::scope(|scope| {
        let threads = BOTH.map(|io| scope.spawn(move || every_response(io)));
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    testing::odd::none_is_wrong(&wrong);
}
