//! Users against servers that hold them to what they were told.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{Segment, Stop, Target};
use net::IoKind;
use readings::requests::{
    Capture, CaptureFrom, Fill, Piece, RequestSet, RequestSpec, Template, Users,
};

use crate::http2::{over_h2, secure_origin};
use crate::http3::{origin_with, over_h3};
use crate::support::{BOTH, Peer, Server, job, one, origin, target};

/// The logins of a shop: which of them have been used.
#[derive(Default)]
struct Logins {
    used: HashMap<String, u32>,
    forbidden: Vec<String>,
}

/// Answers the requests of a connection: a login gives a token and a cookie, both of which the next
/// request must bring, and no other may bring again.
fn serve(logins: &Mutex<Logins>, peer: &mut Peer, closes: bool) {
    while let Some(head) = head(peer) {
        let mut all = logins.lock().unwrap();
        let number = all.used.len();
        let connection = if closes { "Connection: close\r\n" } else { "" };
        let (status, cookie, body) = match head.starts_with("POST /login") {
            true => {
                let token = format!("token-{number}");
                all.used.insert(token.clone(), 0);
                let cookie = format!("Set-Cookie: session=s-{token}; Path=/; HttpOnly\r\n");
                (200, cookie, format!(r#"{{"auth":{{"token":"{token}"}}}}"#))
            }
            false => {
                let token = value(&head, "Authorization: Bearer ").to_owned();
                let is_own = value(&head, "Cookie: ") == format!("session=s-{token}");
                let uses = all.used.get_mut(&token).map(|uses| {
                    *uses += 1;
                    *uses
                });
                let is_good = is_own && uses == Some(1);
                if !is_good {
                    all.forbidden.push(head.clone());
                }
                let status = if is_good { 200 } else { 403 };
                (status, String::new(), "{}".to_owned())
            }
        };
        drop(all);
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\n{cookie}{connection}Content-Length: {length}\r\n\r\n{body}"
        );
        if peer.stream.write_all(answer.as_bytes()).is_err() || closes {
            return;
        }
    }
}

/// The head of the next request; its body, if there is one, has two bytes.
fn head(peer: &mut Peer) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        peer.stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    if !value(&head, "Content-Length: ").is_empty() {
        peer.stream.read_exact(&mut [0; 2]).ok()?;
    }
    Some(head)
}

/// What follows the start of a line.
fn value<'h>(head: &'h str, start: &str) -> &'h str {
    let mut lines = head.lines();
    lines
        .find_map(|line| line.strip_prefix(start))
        .unwrap_or_default()
}

fn spec(method: &str, path: Vec<Piece>) -> RequestSpec {
    RequestSpec {
        name: format!("{method} {path:?}"),
        method: method.to_owned(),
        path: Template(path),
        ..RequestSpec::default()
    }
}

fn text(text: &str) -> Piece {
    Piece::Text(text.into())
}

fn filled(fill: Fill) -> Piece {
    Piece::Place {
        fill,
        is_encoded: false,
    }
}

fn users(requests: Vec<RequestSpec>) -> RequestSet {
    RequestSet {
        requests,
        captured: vec!["token".to_owned()],
        in_order: true,
        users: Some(Users {
            keeps_cookies: true,
        }),
        ..RequestSet::default()
    }
}

#[test]
fn fifty_users_carry_what_their_logins_gave_them() {
    let mut login = spec("POST", vec![text("/login")]);
    login.body = Some(Template::fixed("{}"));
    login.captures = vec![Capture {
        name: 0,
        from: CaptureFrom::Json("/auth/token".to_owned()),
    }];
    let mut private = spec("GET", vec![text("/private")]);
    private.pause = Duration::from_millis(60);
    let bearer = vec![text("Bearer "), filled(Fill::Captured { name: 0 })];
    private.fields = vec![("Authorization".to_owned(), Template(bearer))];
    private.expect.json = vec![(String::new(), serde_json::json!({}))];
    let set = users(vec![login, private]);
    for (io, closes) in [
        (IoKind::Uring, false),
        (IoKind::Epoll, false),
        (IoKind::Epoll, true),
    ] {
        let logins = Arc::new(Mutex::new(Logins::default()));
        let own = logins.clone();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::on(listener, move |peer| serve(&own, peer, closes));
        let target = target(address, "/").with_requests(&set, "shop", &[]);
        // 50 users in half a second.
        let window = Stop::After(Duration::from_millis(500));
        let mut job = job(io, target, 50, 2, window);
        job.segments = vec![Segment::open(100.0, window)];
        let reading = one(&job);
        drop(server);
        let logins = logins.lock().unwrap();
        assert_eq!(logins.forbidden, [""; 0], "{io:?}");
        assert_eq!(reading.errors_all.total(), 0, "{:?}", reading.wrong);
        let users = reading.users.unwrap();
        assert_eq!((users.arrived, logins.used.len()), (50, 50));
        // A user whose second step is due after the window leaves before it.
        let second = logins.used.values().filter(|uses| **uses == 1).count() as u64;
        assert_eq!((users.rounds, users.under_way), (second, 50 - second));
        assert!(second > 0);
        assert_eq!(reading.requests, 50 + second);
        // The pause is part of the round, and of no latency.
        assert!(users.round.quantile_us(0.0) >= 60_000.0 * 0.999);
    }
}

#[test]
fn users_are_served_over_tls_and_streams() {
    let mut second = spec("GET", vec![text("/bytes/"), filled(Fill::Seq)]);
    second.pause = Duration::from_millis(1);
    second.captures = vec![Capture {
        name: 0,
        from: CaptureFrom::Field("content-length".to_owned()),
    }];
    let third = spec(
        "GET",
        vec![text("/bytes/"), filled(Fill::Captured { name: 0 })],
    );
    let set = users(vec![spec("GET", vec![text("/")]), second, third]);
    let fill = |target: Target| target.with_requests(&set, "shop", &[]);
    for io in BOTH {
        let (secure, client) = secure_origin(&["h2", "http/1.1"]);
        let over_tls = |target: Target, alpn: &str| {
            let mut client = client.clone();
            client.alpn = vec![alpn.into()];
            Target {
                tls: Some(client),
                ..target
            }
        };
        let (quic, quic_client) = origin_with(true, io);
        let plain = origin();
        let of = |address| fill(target(address, "/"));
        for (name, target) in [
            ("h1", of(plain.address())),
            ("h2", over_h2(of(plain.address()), 4)),
            ("h1 and TLS", over_tls(of(secure.address()), "http/1.1")),
            (
                "h2 and TLS",
                over_h2(over_tls(of(secure.address()), "h2"), 4),
            ),
            ("h3", fill(over_h3(quic.address(), "/", &quic_client, 4))),
        ] {
            let reading = one(&job(io, target, 2, 1, Stop::Requests(120)));
            assert_eq!(reading.errors_all.total(), 0, "{name}: {:?}", reading.wrong);
            assert_eq!(reading.requests, 120, "{name}");
            let users = reading.users.unwrap();
            assert!(users.rounds >= 120 / 3 - 8, "{name}: {}", users.rounds);
            assert_eq!(users.arrived, users.rounds + users.under_way, "{name}");
        }
    }
}
