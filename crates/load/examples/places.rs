//! What filling in costs: so many requests in a closed loop, fixed or with ten places, to a server at
//! an address. Count instructions of two counts, such as with `perf stat -e instructions:u`; the
//! difference is that of the requests between.
//!
//! ```text
//! places 127.0.0.1:21001 100000 fixed|filled|body [h2]
//! ```
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{Expect, Http2, Job, Segment, Stop, Target, run};
use readings::requests::{
    AnswerSpec, Feed, FeedOrder, Fill, Piece, RequestSet, RequestSpec, Template,
};

/// Ten places, with text between.
fn ten() -> Vec<Piece> {
    let fills = [
        Fill::Seq,
        Fill::Column { feed: 0, column: 0 },
        Fill::Column { feed: 0, column: 1 },
        Fill::Int { from: 1, to: 1_000 },
        Fill::Int {
            from: -50_000,
            to: 50_000,
        },
        Fill::Hex { digits: 16 },
        Fill::Hex { digits: 8 },
        Fill::Uuid,
        Fill::Zipf {
            keys: 10_000,
            exponent: 1.1,
        },
        Fill::Seq,
    ];
    let place = |fill| {
        let place = Piece::Place {
            fill,
            is_encoded: true,
        };
        [Piece::Text(b"&x=".into()), place]
    };
    fills.into_iter().flat_map(place).collect()
}

fn set(body: bool) -> RequestSet {
    let mut path = vec![Piece::Text(b"/?".into())];
    let mut method = "GET";
    let body = body.then(|| Template(ten()));
    match body {
        Some(_) => method = "POST",
        None => path.extend(ten()),
    }
    RequestSet {
        requests: vec![RequestSpec {
            name: "filled".to_owned(),
            method: method.to_owned(),
            path: Template(path),
            fields: Vec::new(),
            body,
            weight: 1,
            expect: AnswerSpec::default(),
            pause: Duration::ZERO,
            captures: Vec::new(),
            is_once: false,
        }],
        feeds: vec![Feed {
            name: "users".to_owned(),
            columns: vec!["id".to_owned(), "name".to_owned()],
            rows: (0..10_000)
                .map(|row| vec![row.to_string(), format!("user number {row}")])
                .collect(),
            order: FeedOrder::InTurn,
        }],
        ..RequestSet::default()
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, count, kind, version @ ..] = args.as_slice() else {
        eprintln!("expected ADDRESS COUNT fixed|filled|body [h2]");
        std::process::exit(2);
    };
    let address: SocketAddr = address.parse().unwrap();
    // As long as one that is filled in.
    let path = format!("/?{}", "&x=1234567890123".repeat(11));
    let request = net::fetch::request("GET", "x", &path, &[]);
    let mut target = Target::new(address, request, Expect::default()).with_connections(16);
    if kind != "fixed" {
        target = target.with_requests(&set(kind == "body"), "x", &[]);
    }
    if !version.is_empty() {
        target.http2 = Some(Http2 { streams: 4 });
    }
    let stop = Stop::Requests(count.parse().unwrap());
    let job = Job::to(target).segment(Segment::closed(stop));
    let reading = run(&job, &Arc::default(), |_| {}).unwrap().remove(0);
    println!(
        "{} answers, {} errors, {:.0}/s on {}",
        reading.requests,
        reading.errors_all.total(),
        reading.requests_per_s(),
        reading.client.io
    );
}
