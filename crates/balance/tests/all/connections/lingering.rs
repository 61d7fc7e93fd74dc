//! Closing connections whose clients are still sending.

use std::io::{Read, Write};
use std::time::Duration;

use net::h2::{PREFACE, frame};

use crate::http2::clients::both;
use crate::support::http::{BackEnd, Peer, balancer_with, get};
use crate::support::{connect, on_both, until};

/// How many connections of a thread are waited for.
const LINGERING_MAX: usize = 256;

/// Expects an answer that ends the connection to arrive although the client keeps sending.
#[test]
fn a_client_that_is_still_sending_gets_the_last_answer_and_no_reset() {
    let back = BackEnd::named("one");
    // An HTTP/2 client whose first frame is not SETTINGS.
    let mut wrong = PREFACE.to_vec();
    frame::ping(&mut wrong, [0; 8]);
    let go_away = b"\0\0\x08\x07\0\0\0\0\0";
    on_both(|io| {
        let balancer = balancer_with(io, &[back.address], both);
        for (request, answer) in [
            (&b"no request\r\n\r\n"[..], &b"HTTP/1.1 400 "[..]),
            (
                b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                b"one/",
            ),
            (&wrong, go_away),
        ] {
            for _ in 0..20 {
                let mut stream = connect(&balancer);
                let sent = [request, &vec![b'x'; 600_000]].concat();
                stream.write_all(&sent).unwrap();
                let mut got = Vec::new();
                let ended = stream.read_to_end(&mut got);
                assert!(ended.is_ok(), "{io}: {ended:?}");
                let has_answer = got.windows(answer.len()).any(|part| part == answer);
                assert!(has_answer, "{io}: {:?}", String::from_utf8_lossy(&got));
            }
        }
    });
}

#[test]
fn clients_that_got_their_last_answer_hold_no_place_and_are_bounded() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let balancer = balancer_with(io, &[back.address], |service| {
            service.connections_max = Some(2);
        });
        // More clients than may linger.
        let held: Vec<_> = (0..300)
            .map(|number| {
                let mut stream = connect(&balancer);
                stream.write_all(b"no request\r\n\r\n").unwrap();
                let mut got = Vec::new();
                let ended = stream.read_to_end(&mut got);
                // Beyond the bound they are closed at once, which may reset them.
                let is_good = ended.is_ok() || number >= LINGERING_MAX;
                assert!(is_good, "{io} {number}: {ended:?} {got:?}");
                assert!(got.starts_with(b"HTTP/1.1 400 "), "{io}");
                stream
            })
            .collect();
        let mut peer = Peer::connect(balancer.address());
        assert_eq!(peer.ask(get("/a")).text(), "one/a");
        drop(held);
    });
}

#[test]
fn a_client_that_never_stops_sending_is_closed_in_time() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let balancer = balancer_with(io, &[back.address], |_| {});
        let mut stream = connect(&balancer);
        stream.write_all(b"no request\r\n\r\n").unwrap();
        let more = [b'x'; 65_536];
        until("it is closed", || {
            std::thread::sleep(Duration::from_millis(1));
            stream.write_all(&more).is_err()
        });
    });
}
