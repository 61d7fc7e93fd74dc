//! Servers pass on what lasts, as their recipes set them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use experiment::recipe::Behind;
use net::ws::handshake::accept_of;

use crate::common::started::Started;
use crate::common::{Origin, Place};

/// Nothing takes as long, unless it hangs.
const LONG: Duration = Duration::from_secs(20);
const EVENTS: usize = 10;
/// It ends the connection, and says so: a proxy may otherwise ask its next request there.
const NO_CONTENT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Starts a server in front of a back end; `None` where it is not installed.
fn start(name: &str, params: &str, back: SocketAddr) -> Option<Started> {
    let behind = Behind {
        name: "back".to_owned(),
        addr: back,
        dir: None,
        tls: false,
    };
    Started::over(name, params, vec![behind])
}

/// Reads until there is so much, or a text; what came, also when nothing came for so long.
fn read_until(stream: &mut TcpStream, got: &mut String, wanted: &str, quiet: Duration) -> bool {
    stream.set_read_timeout(Some(quiet)).unwrap();
    let mut piece = [0; 4096];
    while !got.contains(wanted) {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => got.push_str(&String::from_utf8_lossy(&piece[..count])),
            _ => return false,
        }
    }
    true
}

fn request(stream: &mut TcpStream) -> Option<String> {
    let mut head = String::new();
    read_until(stream, &mut head, "\r\n\r\n", LONG).then_some(head)
}

fn value<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let mut same = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    same.next().map(|(_, value)| value)
}

/// Agrees to a WebSocket and echoes what comes until the end; anything else gets an empty answer.
fn echo() -> SocketAddr {
    testing::serve(|mut stream| {
        let Some(head) = request(&mut stream) else {
            return;
        };
        let is_asked = value(&head, "upgrade").is_some_and(|it| it == "websocket");
        let key = value(&head, "sec-websocket-key").filter(|_| is_asked);
        let Some(key) = key else {
            let _ = stream.write_all(NO_CONTENT);
            return;
        };
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            accept_of(key)
        );
        let _ = stream.write_all(answer.as_bytes());
        let mut other = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut other);
    })
}

#[test]
fn websockets_pass_where_the_recipe_says_so() {
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    let back = echo();
    for (name, params, passes) in [
        ("nginx", "websocket = true", true),
        ("nginx", "", false),
        ("haproxy", "", true),
        ("caddy", "", true),
        ("apache", "websocket = true", true),
        ("lighttpd", "websocket = true", true),
        ("envoy", "websocket = true", true),
        ("envoy", "", false),
        ("traefik", "", true),
        ("nghttpx", "", true),
        ("h2o", "websocket = true", true),
        ("h2o", "", false),
        ("trafficserver", "", true),
        ("pingora", "", true),
    ] {
        let Some(running) = start(name, params, back) else {
            continue;
        };
        let mut client = TcpStream::connect(running.address).unwrap();
        let ask = format!(
            "GET /ws HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\n\
             Sec-WebSocket-Version: 13\r\n\r\n"
        );
        client.write_all(ask.as_bytes()).unwrap();
        let head = request(&mut client).unwrap();
        assert_eq!(head.starts_with("HTTP/1.1 101 "), passes, "{name}: {head}");
        if passes {
            let accept = value(&head, "sec-websocket-accept");
            assert_eq!(accept, Some(accept_of(KEY).as_str()), "{name}");
            for number in 0..3 {
                let message = format!("message {number}.");
                client.write_all(message.as_bytes()).unwrap();
                let mut got = String::new();
                assert!(read_until(&mut client, &mut got, &message, LONG), "{name}");
            }
        }
    }
}

/// Sends an event when the one before was seen, so that one that is held back never comes.
fn events() -> (SocketAddr, Sender<()>) {
    let (seen, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let address = testing::serve(move |mut stream| {
        let Some(asked) = request(&mut stream) else {
            return;
        };
        // The question whether the server is up.
        if !asked.contains(" /events ") {
            let _ = stream.write_all(NO_CONTENT);
            return;
        }
        let wait = wait.lock().unwrap();
        // HTTP/1.0, which nginx speaks by itself, knows no chunks.
        let is_chunked = !asked.contains(" HTTP/1.0\r\n");
        let framing = match is_chunked {
            true => "Transfer-Encoding: chunked",
            false => "Connection: close",
        };
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}\r\n\r\n");
        let mut is_open = stream.write_all(head.as_bytes()).is_ok();
        for number in 0..EVENTS {
            let event = format!("data: event {number}.\n\n");
            let part = match is_chunked {
                true => format!("{:x}\r\n{event}\r\n", event.len()),
                false => event,
            };
            is_open &= stream.write_all(part.as_bytes()).is_ok();
            if !is_open || wait.recv_timeout(LONG).is_err() {
                return;
            }
        }
        if is_chunked {
            let _ = stream.write_all(b"0\r\n\r\n");
        }
    });
    (address, seen)
}

#[test]
fn events_pass_at_once_where_nothing_holds_them() {
    for (name, params, passes) in [
        ("nginx", "proxy_buffering = false", true),
        ("nginx", "", false),
        ("haproxy", "no_delay = true", true),
        ("caddy", "", true),
        ("apache", "", true),
        ("envoy", "", true),
        ("traefik", "", true),
        ("nghttpx", "", true),
        ("h2o", "", true),
        ("trafficserver", "", true),
        ("pingora", "", true),
        ("lighttpd", "stream_response_body = 1", true),
        ("lighttpd", "", false),
    ] {
        let (back, seen) = events();
        let Some(running) = start(name, params, back) else {
            continue;
        };
        let mut client = TcpStream::connect(running.address).unwrap();
        let ask = b"GET /events HTTP/1.1\r\nHost: a.example\r\n\r\n";
        client.write_all(ask).unwrap();
        let mut got = String::new();
        if !passes {
            let quiet = Duration::from_millis(500);
            // The first may pass with the head.
            read_until(&mut client, &mut got, "event 0.", quiet);
            for _ in 1..EVENTS {
                seen.send(()).unwrap();
            }
            let came = read_until(&mut client, &mut got, "event 1.", quiet);
            assert!(!came, "{name} holds no event back: {got}");
            continue;
        }
        for number in 0..EVENTS {
            let event = format!("event {number}.");
            assert!(
                read_until(&mut client, &mut got, &event, LONG),
                "{name}: {got}"
            );
            seen.send(()).unwrap();
        }
    }
}

#[test]
fn upstreams_that_speak_only_http2_are_reached_where_the_recipe_says_so() {
    let place = Place::new();
    let origin = Origin::with(&place, "--http2-only");
    let back = origin.url.trim_start_matches("http://");
    let back = back.trim_end_matches('/').parse().unwrap();
    for (name, params) in [
        ("nginx", "upstream_protocol = grpc, http2 = true"),
        ("haproxy", "upstream_http2 = true"),
        ("caddy", "upstream_http2 = true, http2 = true"),
        ("apache", "upstream_http2 = true, http2 = true"),
        ("envoy", "upstream_http2 = true, http2 = true"),
        ("traefik", "upstream_http2 = true, http2 = true"),
        ("nghttpx", "upstream_http2 = true, http2 = true"),
        ("pingora", "upstream_http2 = true, http2 = true"),
    ] {
        // It answers from there, or the test fails.
        start(name, params, back);
    }
}
