//! Answers of odd back ends that speak HTTP/2.

use std::net::Shutdown;
use std::sync::Arc;

use testing::http2::back_end::{BackEnd, value};
use testing::odd::streams::{Response, all};

use super::responses::{Asked, ask_for_all};
use super::step;
use crate::http2::back_ends::clear;
use crate::support::on_both;

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

#[test]
fn answers_of_odd_back_ends_of_http_2_have_the_outcome_that_the_rfcs_ask_for() {
    let cases = Arc::new(all(step(5), step(3)));
    let asked = |case: &Response| Asked {
        name: case.name(),
        is_head: case.is_head,
        status: case.status(),
        content: case.content(),
        faults: case.faults(false),
    };
    on_both(|io| {
        let back = back_end(cases.clone());
        let balancer = clear(io, &[back.address]);
        ask_for_all(io, balancer.address(), cases.iter().map(asked));
    });
}
