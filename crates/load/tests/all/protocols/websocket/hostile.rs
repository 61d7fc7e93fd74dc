//! Servers that break the rules of WebSocket.

use super::*;
use crate::support::{beside, carry_out, origin};

/// What a server does with a connection instead of its handshake.
fn instead(answer: &'static [u8]) -> Server {
    Server::start(move |peer| {
        peer.answer(answer);
        peer.drain();
    })
}

/// What a server sends once it has a message.
fn sends(bytes: Vec<u8>, is_endless: bool) -> Server {
    Server::start(move |peer| {
        let Some(mut socket) = Socket::accept(peer) else {
            return;
        };
        if socket.message().is_some() {
            socket.peer.send(&bytes);
            if is_endless {
                let fragment = [&b"\x00\x7e\x04\x00"[..], &[b'a'; 1024]].concat();
                socket.peer.flood(&fragment);
            }
            socket.peer.drain();
        }
    })
}

#[test]
fn handshakes_that_fail_are_told() {
    let answers: [(&[u8], &str); 6] = [
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "status 404 instead of 101",
        ),
        (b"HTTP/1.1 101 OK\r\n\r\n", "no `Upgrade: websocket`"),
        (
            b"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
              Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "does not belong to the key",
        ),
        (b"SSH-2.0-x\r\n\r\n", "no answer of HTTP/1.1"),
        (
            b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "status 200 instead of 101",
        ),
        (b"", "closed before an answer"),
    ];
    for (answer, words) in answers {
        let server = match answer {
            b"" => Server::start(|peer| assert!(peer.request())),
            _ => instead(answer),
        };
        let stop = Stop::After(Duration::from_millis(150));
        let target = target(server.address, in_flight(1));
        let reading = one(&job(IoKind::Epoll, target, 1, 1, stop));
        assert_eq!(reading.requests_all, 0);
        assert!(reading.errors_all.connect > 0, "{:?}", reading.errors_all);
        assert_eq!(lasting(&reading).opened, 0);
        assert_found(&reading, words);
    }
}

#[test]
fn frames_that_break_a_rule_end_the_connection_with_a_name() {
    let good = origin();
    let frames: [(&[u8], bool, &str); 10] = [
        (b"\x81\x85abcdHello", false, "a masked frame from a server"),
        (b"\xf1\x00", false, "reserved bits"),
        (b"\xc1\x00", false, "reserved bits"),
        (b"\x83\x00", false, "an unknown opcode"),
        (
            b"\x82\x7f\x80\0\0\0\0\0\0\0",
            false,
            "a frame of 2^63 bytes",
        ),
        (
            b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
            false,
            "longer than the limit",
        ),
        (b"\x02\x00", true, "longer than the limit"),
        (b"\x09\x00", false, "a fragmented control frame"),
        (b"\x81\x02\xc3\x28", false, "not UTF-8"),
        (
            b"\x88\x02\x03\xed",
            false,
            "a close frame with a code that must not be sent",
        ),
    ];
    for (io, (bytes, is_endless, words)) in BOTH.into_iter().cycle().zip(frames) {
        let server = sends(bytes.to_vec(), is_endless);
        let stop = Stop::Requests(4);
        let job = beside(
            io,
            target(server.address, in_flight(1)),
            1,
            stop,
            good.address(),
        );
        let reading = carry_out(words, &job);
        assert_eq!(
            (reading.requests_all, reading.errors_all.read),
            (0, 4),
            "{words}"
        );
        assert_found(&reading, words);
        let lasting = lasting(&reading);
        assert_eq!(
            (lasting.ends[0].how.as_str(), lasting.cut()),
            ("malformed", 4)
        );
    }
}

#[test]
fn a_bomb_is_not_unpacked() {
    use net::ws::{Deflate, Role, Writer};
    let mut bomb = Vec::new();
    let mut writer = Writer::new(Role::Server, 0, Some(Deflate::default()));
    writer.message(&mut bomb, MessageKind::Text, &vec![b'a'; 200 << 20]);
    let server = sends(bomb, false);
    let websocket = WebSocket {
        deflate: true,
        ..in_flight(1)
    };
    let reading = asks(IoKind::Epoll, target(server.address, websocket), 1, 3);
    assert_eq!((reading.requests_all, reading.errors_all.read), (0, 3));
    assert_found(&reading, "longer than the limit");
}

#[test]
fn pings_without_an_end_end_the_connection() {
    let server = Server::start(|peer| {
        if let Some(mut socket) = Socket::accept(peer)
            && socket.message().is_some()
        {
            socket.peer.flood(&b"\x8a\x00".repeat(1000));
        }
    });
    let reading = asks(IoKind::Epoll, target(server.address, in_flight(1)), 1, 2);
    assert_eq!((reading.requests_all, reading.errors_all.read), (0, 2));
    assert_found(&reading, "too many pings and pongs");
}
