//! Answers of odd servers, whose outcomes stand in `docs/src/reference/odd-messages.md`: the same over
//! both event loops.
//!
//! With `WEIGH_FUZZ_S` set, every pair of rows is tried.

mod streams;

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{BodyRule, Expect, Http2, StatusRule, Stop, Target};
use net::IoKind;
use net::fetch::request;
use testing::odd::Fate;
use testing::odd::responses::{Response, all};

use crate::support::{BOTH, Peer, Server, get, job, one};

/// Reads a request without content; its path, unless the client has gone.
fn path(peer: &mut Peer) -> Option<String> {
    let (mut got, mut byte) = (Vec::new(), [0]);
    while !got.ends_with(b"\r\n\r\n") {
        match peer.stream.read(&mut byte) {
            Ok(1) => got.push(byte[0]),
            _ => return None,
        }
    }
    let text = String::from_utf8(got).unwrap();
    text.split(' ').nth(1).map(str::to_owned)
}

fn holds(faults: &[Fate], [good, read, status]: [u64; 3]) -> bool {
    match faults {
        [] => good == 1,
        _ => faults.iter().any(|fate| match fate {
            Fate::Bad | Fate::Broken => read == 1,
            Fate::Status => status == 1,
            _ => false,
        }),
    }
}

/// Of pairs, every so manieth is tried.
fn step(quick: usize) -> usize {
    match std::env::var_os("WEIGH_FUZZ_S") {
        Some(_) => 1,
        None => quick,
    }
}

/// A request for a case, and what its answer has to be.
struct Asked {
    name: String,
    is_head: bool,
    status: u16,
    content: &'static str,
    faults: Vec<Fate>,
    http2: Option<Http2>,
}

/// Asks for each case by its number. Returns those that are counted wrongly.
fn every_answer(
    io: IoKind,
    address: SocketAddr,
    cases: impl Iterator<Item = Asked>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, case) in cases.enumerate() {
        let method = if case.is_head { "HEAD" } else { "GET" };
        let expect = Expect {
            status: StatusRule::Exactly(match case.status {
                // No good answer has it.
                0..200 => 200,
                status => status,
            }),
            body: BodyRule::Bytes(case.content.as_bytes().into()),
        };
        let request = request(method, "a", &format!("/{number}"), &[]);
        let target = Target {
            http2: case.http2,
            ..Target::new(address, request, expect)
        };
        let mut job = job(io, target, 1, 1, Stop::Requests(1));
        job.timeout = Duration::from_secs(5);
        let reading = one(&job);
        let errors = reading.errors_all;
        let counts = [reading.requests_all, errors.read, errors.status];
        if !holds(&case.faults, counts) || reading.requests_all + errors.total() != 1 {
            let (name, wrongs, faults) = (&case.name, &reading.wrong, &case.faults);
            wrong.push(format!(
                "{io}: {name}: {errors:?} {wrongs:?}, wanted {faults:?}"
            ));
        }
    }
    wrong
}

/// The same over both loops at once.
fn on_both_loops(of: impl Fn(IoKind) -> Vec<String> + Sync) {
    let wrong = std::thread::scope(|scope| {
        let of = &of;
        let threads = BOTH.map(|io| scope.spawn(move || of(io)));
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    testing::odd::none_is_wrong(&wrong);
}

#[test]
fn answers_of_odd_servers_are_counted_as_the_rfcs_ask_for() {
    let cases = Arc::new(all(step(5), step(5)));
    let of_server = cases.clone();
    let server = Server::start(move |peer| {
        while let Some(path) = path(peer) {
            let case = &of_server[path[1..].parse::<usize>().unwrap()];
            if !peer.send(&case.bytes()) || case.closes() {
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
        http2: None,
    };
    on_both_loops(|io| every_answer(io, server.address, cases.iter().map(asked)));
}

/// An interim answer is no sign of the answer itself, in whatever pieces both come.
#[test]
fn the_first_byte_is_that_of_the_final_answer() {
    const PAUSE: Duration = Duration::from_millis(100);
    let (hints, good) = (
        "HTTP/1.1 103 A\r\nLink: <a>\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    for pieces in [
        vec![hints.to_owned(), good.to_owned()],
        vec![hints[..20].to_owned(), format!("{}{}", &hints[20..], good)],
        vec![
            hints.to_owned(),
            hints.to_owned() + &good[..10],
            good[10..].to_owned(),
        ],
    ] {
        let of_server = pieces.clone();
        let server = Server::start(move |peer| {
            while path(peer).is_some() {
                for (number, piece) in of_server.iter().enumerate() {
                    if number > 0 {
                        std::thread::sleep(PAUSE);
                    }
                    peer.send(piece.as_bytes());
                }
            }
        });
        for io in BOTH {
            let reading = one(&job(io, get(server.address), 1, 1, Stop::Requests(2)));
            assert_eq!(reading.requests_all, 2, "{io}: {:?}", reading.wrong);
            let least_us = PAUSE.as_micros() as f64 * 0.99;
            let (first, last) = (&reading.first_byte, &reading.transfer);
            assert!(first.quantile_us(0.0) >= least_us, "{io}: {pieces:?}");
            let has_rest = pieces.len() == 3;
            // A client that was late to read the first byte has less of the rest to wait for.
            let all_us = first.quantile_us(1.0) + last.quantile_us(1.0);
            assert!(
                !has_rest || all_us >= 2.0 * least_us,
                "{io}: {pieces:?}: {all_us}"
            );
        }
    }
}
