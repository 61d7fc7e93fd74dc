//! Servers that take no more work in mid-run: the run goes on, ends, and says why.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use net::h2::{ErrorCode, frame};
use serde_json::Value;
use testing::http2::back_end::BackEnd;

use crate::common::{DELAYED_PAGE, Origin, Place, array};

/// So many answers are good: the probes and a part of the first trial.
const GOOD: u64 = 60;
/// A run of two blocks of windows of 300 ms ends by far before that, and one that tries for ever does
/// not.
const LIMIT: Duration = Duration::from_secs(60);

/// Answers a count of requests, and then closes its connections and its port.
fn closes_after(good: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let answers = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        while answers.load(Ordering::SeqCst) < good {
            if let Ok((client, _)) = listener.accept() {
                let answers = answers.clone();
                std::thread::spawn(move || answer(client, &answers, good));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    address
}

fn answer(mut client: TcpStream, answers: &AtomicU64, good: u64) {
    client.set_nonblocking(false).unwrap();
    let mut bytes = [0; 4096];
    // A request comes in one piece here.
    while let Ok(1..) = client.read(&mut bytes) {
        if answers.fetch_add(1, Ordering::SeqCst) >= good {
            return;
        }
        let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nword");
    }
}

/// Compares such a server with a good one. Returns the document.
fn compared(good: &str, bad: &str, more: &[&str], place: &Place) -> Value {
    let mut call = vec!["compare", good, bad, "-c", "4", "--blocks", "2"];
    call.extend(["--window", "300ms", "--same=false", "--bottleneck=false"]);
    call.extend(["--latency=false", "--format", "json", "--out", "r"]);
    call.extend(more);
    let began = Instant::now();
    let document = place.run(&call).expect(4).result();
    let took = began.elapsed();
    assert!(took < LIMIT, "{took:?}");
    assert!(place.left().is_empty(), "{:?}", place.left());
    document
}

/// The good subject was measured in both blocks, and the comparison says what the other did.
#[track_caller]
fn only_the_other_is_to_blame(document: &Value, reason: &str) {
    let rows = array(&document["table"]);
    let good = rows.iter().find(|row| row["subject"] == "good").unwrap();
    assert!(good["requests_per_s"].as_f64().unwrap() > 0.0, "{good}");
    for comparison in array(&document["comparisons"]) {
        assert_eq!(comparison["verdict"], "invalid", "{comparison}");
        let sentence = comparison["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("bad") && sentence.contains(reason),
            "{sentence}"
        );
    }
    let trials = &document["trials"];
    for failure in array(&trials["failures"]) {
        assert_eq!(failure["subjects"][0], "bad", "{failure}");
    }
    for invalid in array(&trials["invalid_trials"]) {
        assert_eq!(invalid["subject"], "bad", "{invalid}");
    }
}

#[test]
fn a_server_that_closes_its_port_fails_its_trials_and_no_others() {
    let (place, of_origin) = (Place::new(), Place::new());
    let origin = Origin::start(&of_origin);
    let good = format!("good={}{DELAYED_PAGE}", origin.url);
    let bad = format!("bad=http://{}/", closes_after(GOOD));
    let document = compared(&good, &bad, &[], &place);
    only_the_other_is_to_blame(&document, "refused");
    // In the second block nobody is there at all.
    let failed = document["trials"]["failed"].as_u64().unwrap();
    assert!(failed >= 1, "{}", document["trials"]);
    let failures = document["trials"]["failures"].to_string();
    assert!(failures.contains("refused"), "{failures}");
}

#[test]
fn a_server_that_refuses_each_stream_fails_its_trials_and_no_others() {
    let of_origin = Place::new();
    let origin = Origin::start(&of_origin);
    let good = format!("good={}{DELAYED_PAGE}", origin.url);
    for by_connection in [false, true] {
        let place = Place::new();
        let answered = AtomicU64::new(0);
        let server = BackEnd::new(&[], move |link, _| {
            while let Some((stream, _)) = link.request() {
                match answered.fetch_add(1, Ordering::SeqCst) < GOOD {
                    true => link.answer(stream, "word"),
                    false if by_connection => {
                        frame::go_away(&mut link.out, 0, ErrorCode::NoError);
                    }
                    false => frame::reset(&mut link.out, stream, ErrorCode::RefusedStream),
                }
            }
        });
        let bad = format!("bad=http://{}/", server.address);
        let document = compared(&good, &bad, &["--http", "2"], &place);
        only_the_other_is_to_blame(&document, "refused");
    }
}
