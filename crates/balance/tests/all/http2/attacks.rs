//! Clients of HTTP/2 that mean harm.

use net::h2::{ErrorCode, frame, hpack};

use crate::http2::clients::{clear, clear_and_client};
use crate::support::http::{BackEnd, ok};
use crate::support::{on_both, until};
use testing::http2::client::{Client, GET, with};

#[test]
fn requests_that_would_become_another_do_not_reach_a_back_end() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let balancer = clear(io, &[back.address]);
        let bad: [&[(&str, &str)]; 16] = [
            &[(":path", "/a b")],
            &[(":path", "/a HTTP/1.1\r\nx: y\r\n\r\nGET /b")],
            &[(":path", "/\u{1}")],
            &[("host", "b.example")],
            &[("content-length", "5")],
            &[("connection", "close")],
            &[("transfer-encoding", "chunked")],
            &[("upgrade", "h2c")],
            &[("Upper", "x")],
            &[("a b", "x")],
            &[("x", "a\r\nb: c")],
            &[("x", "a\n")],
            &[(":method", "GET /b HTTP/1.1\r\nx:")],
            &[(":authority", "a\r\nx: y")],
            &[("te", "chunked")],
            &[(":scheme", "gopher")],
        ];
        for changed in bad {
            let mut client = Client::connect(balancer.address());
            let response = client.ask(1, &with(changed));
            assert_eq!(
                response.reset,
                Some(ErrorCode::ProtocolError),
                "{changed:?}"
            );
            // The connection is usable.
            assert_eq!(client.ask(3, &GET).body, b"one/", "{changed:?}");
        }
        // Twice the same pseudo-field; fewer and more content than announced.
        let mut client = Client::connect(balancer.address());
        let twice = [&GET[..], &[(":path", "/b")]].concat();
        assert_eq!(client.ask(1, &twice).reset, Some(ErrorCode::ProtocolError));
        for (stream, content) in [(3, "abcd"), (5, "abcdef")] {
            client.head(
                stream,
                &with(&[(":method", "POST"), ("content-length", "5")]),
                false,
            );
            client.data(stream, content.as_bytes(), true);
            assert_eq!(
                client.response(stream).reset,
                Some(ErrorCode::ProtocolError)
            );
        }
        // What HTTP/1.1 refuses is refused as there.
        for changed in [&[(":authority", "a@b")][..], &[("content_length", "5")]] {
            let mut client = Client::connect(balancer.address());
            assert_eq!(
                client.ask(1, &with(changed)).value(":status"),
                "400",
                "{changed:?}"
            );
        }
        let counted = || balancer.shared().services[0].bad_requests.get();
        until("it is so", || counted() >= 16 + 1 + 2);
    });
    let ours = |head: &str| head.starts_with("GET / HTTP/1.1") || head.starts_with("POST / ");
    assert!(
        back.requests().iter().all(|one| ours(&one.head)),
        "{:?}",
        back.requests()
    );
}

/// Sends until the connection ends, or too much was accepted.
fn flooded(
    io: net::IoKind,
    most: u32,
    each: impl Fn(&mut Client<std::net::TcpStream>, u32),
) -> ErrorCode {
    let back = BackEnd::named("one");
    let (balancer, mut client) = clear_and_client(io, &[back.address]);
    client.head(1, &with(&[(":method", "POST")]), false);
    for number in 0..most {
        each(&mut client, number);
        if client.out.len() > 50_000 {
            client.flush();
        }
    }
    client.until(|client| client.gone.is_some());
    // Others are served.
    let mut other = Client::connect(balancer.address());
    assert_eq!(other.ask(1, &GET).body, b"one/");
    client.gone.map_or(ErrorCode::NoError, |(_, code)| code)
}

#[test]
fn floods_end_with_the_connection() {
    let calm = ErrorCode::EnhanceYourCalm;
    on_both(|io| {
        let code = flooded(io, 5000, |client, _| frame::ping(&mut client.out, [0; 8]));
        assert_eq!(code, calm, "PING");
        let code = flooded(io, 5000, |client, _| frame::settings(&mut client.out, &[]));
        assert_eq!(code, calm, "SETTINGS");
        let code = flooded(io, 5000, |client, _| client.data(1, &[], false));
        assert_eq!(code, calm, "empty DATA");
        let code = flooded(io, 1000, |client, at| {
            client.head(3 + 2 * at, &with(&[(":method", "POST")]), false);
            frame::reset(&mut client.out, 3 + 2 * at, ErrorCode::Cancel);
        });
        assert_eq!(code, calm, "rapid reset");
        let code = flooded(io, 1000, |client, at| {
            client.head(3 + 2 * at, &with(&[(":method", "POST")]), false);
            frame::window_update(&mut client.out, 3 + 2 * at, (1 << 31) - 1);
        });
        assert_eq!(code, calm, "resets that the balancer is made to send");
    });
}

#[test]
fn header_blocks_are_bounded() {
    let back = BackEnd::named("one");
    on_both(|io| {
        let balancer = clear(io, &[back.address]);
        // CONTINUATION without end.
        let mut client = Client::connect(balancer.address());
        let mut block = Vec::new();
        hpack::encode(&mut block, b"a", &[b'x'; 1000]);
        frame::headers(&mut client.out, 1, &block.repeat(200), true, 1000);
        client.until(|client| client.gone.is_some());
        assert_eq!(client.gone.unwrap().1, ErrorCode::EnhanceYourCalm);
        // A field that is put into the table, and then named again and again.
        let mut client = Client::connect(balancer.address());
        let mut block = vec![0x40, 1, b'a', 0x7f, 0xa1, 0x1e];
        block.extend([b'x'; 4000]);
        block.extend([0xbe; 10_000]);
        frame::headers(&mut client.out, 1, &block, true, 16_384);
        client.until(|client| client.gone.is_some());
        assert_eq!(client.gone.unwrap().1, ErrorCode::EnhanceYourCalm);
    });
}

#[test]
fn more_streams_than_announced_are_refused() {
    let back = BackEnd::new(|peer, _, _| {
        while let Some(head) = peer.head() {
            if head.contains("/wait") {
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
            peer.say(ok("done"));
        }
    });
    on_both(|io| {
        let (_balancer, mut client) = clear_and_client(io, &[back.address]);
        for at in 0..130 {
            client.head(1 + 2 * at, &with(&[(":path", "/wait")]), true);
        }
        let refused = (0..130)
            .filter(|at| client.response(1 + 2 * at).reset == Some(ErrorCode::RefusedStream))
            .count();
        assert_eq!(refused, 2);
    });
}
