//! Answers of odd servers that speak HTTP/2.

use std::net::Shutdown;
use std::sync::Arc;

use load::Http2;
use testing::http2::back_end::{BackEnd, value};
use testing::odd::streams::{Response, all};

use super::{Asked, every_answer, on_both_loops, step};

#[test]
fn answers_of_odd_servers_of_http_2_are_counted_as_the_rfcs_ask_for() {
    let cases = Arc::new(all(step(5), step(5)));
    let of_server = cases.clone();
    let server = BackEnd::new(&[], move |link, _| {
        while let Some((stream, fields)) = link.request() {
            let path = value(&fields, ":path");
            let case = &of_server[path[1..].parse::<usize>().unwrap()];
            link.out.extend(case.bytes(stream));
            if case.closes() {
                link.flush();
                let _ = link.stream.shutdown(Shutdown::Write);
                while link.receive().is_some() {}
                return;
            }
        }
    });
    let asked = |case: &Response| Asked {
        name: case.name(),
        is_head: case.is_head,
        status: case.status(),
        content: case.content(),
        faults: case.faults(true),
        http2: Some(Http2 { streams: 1 }),
    };
    on_both_loops(|io| every_answer(io, server.address, cases.iter().map(asked)));
}
