//! Servers that are installed pass on what lasts, as their recipes set them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::recipes::installed::{found, short_folder};
use crate::recipes::rules::text;
use crate::support::recipes;
use experiment::manifest::Value;
use experiment::recipe::{Behind, RenderContext};
use net::ws::handshake::accept_of;

/// Nothing takes as long, unless it hangs.
const LONG: Duration = Duration::from_secs(20);
const ON: Value = Value::Boolean(true);
const OFF: Value = Value::Boolean(false);
const EVENTS: usize = 10;

/// A server in front of a back end.
struct Running {
    child: Child,
    dir: PathBuf,
    address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Some have to end their workers themselves.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Starts a server; `None` where it is not installed.
fn start(name: &str, params: &[(&str, Value)], back: SocketAddr) -> Option<Running> {
    let recipe = recipes().get(name).unwrap();
    let programs = found(recipe)?.programs;
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let dir = short_folder();
    let params = params.iter();
    let out = recipe
        .render(&RenderContext {
            name: "front".to_owned(),
            dir: dir.clone(),
            listen_addr: address,
            upstreams: vec![Behind {
                name: "back".to_owned(),
                addr: back,
                dir: None,
                tls: false,
            }],
            params: params
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            programs,
            weigh: PathBuf::from("weigh"),
            cpus: 1,
            certificates: None,
            reload: Default::default(),
            checkout: None,
        })
        .unwrap();
    for folder in &out.dirs {
        std::fs::create_dir_all(dir.join(folder)).unwrap();
    }
    for file in &out.files {
        let path = dir.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.bytes).unwrap();
    }
    let mut command = Command::new(&out.command[0]);
    let options = out.command[1..].iter().filter(|word| !word.is_empty());
    command.args(options).envs(out.env).current_dir(&dir);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = Running {
        child: child.unwrap(),
        dir,
        address,
    };
    let end = Instant::now() + LONG;
    while TcpStream::connect(address).is_err() {
        let ended = running.child.try_wait().unwrap();
        assert!(ended.is_none() && Instant::now() < end, "{name}: {ended:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Some(status) = out.ready.status {
        let ask = format!("GET {} HTTP/1.1\r\nHost: a.example\r\n\r\n", out.ready.path);
        let expected = format!("HTTP/1.1 {status} ");
        let is_ready = || {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(ask.as_bytes()).unwrap();
            request(&mut client).is_some_and(|head| head.starts_with(&expected))
        };
        while !is_ready() {
            assert!(Instant::now() < end, "{name} is not ready");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Some(running)
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

/// Agrees to a WebSocket, and echoes what comes until the end.
fn echo() -> SocketAddr {
    testing::serve(|mut stream| {
        let Some(head) = request(&mut stream) else {
            return;
        };
        let Some(key) = value(&head, "sec-websocket-key") else {
            return;
        };
        let is_asked = value(&head, "upgrade").is_some_and(|it| it == "websocket");
        if !is_asked {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            return;
        }
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
        ("nginx", vec![("websocket", ON)], true),
        ("nginx", vec![], false),
        ("haproxy", vec![], true),
        ("caddy", vec![], true),
        ("apache", vec![("websocket", ON)], true),
        ("lighttpd", vec![("websocket", ON)], true),
        ("envoy", vec![("websocket", ON)], true),
        ("envoy", vec![], false),
        ("traefik", vec![], true),
        ("nghttpx", vec![], true),
        ("h2o", vec![("websocket", ON)], true),
        ("h2o", vec![], false),
        ("trafficserver", vec![], true),
        ("pingora", vec![], true),
    ] {
        let Some(running) = start(name, &params, back) else {
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
        ("nginx", vec![("proxy_buffering", OFF)], true),
        ("nginx", vec![], false),
        ("haproxy", vec![("no_delay", ON)], true),
        ("caddy", vec![], true),
        ("apache", vec![], true),
        ("envoy", vec![], true),
        ("traefik", vec![], true),
        ("nghttpx", vec![], true),
        ("h2o", vec![], true),
        ("trafficserver", vec![], true),
        ("pingora", vec![], true),
        (
            "lighttpd",
            vec![("stream_response_body", Value::Integer(1))],
            true,
        ),
        ("lighttpd", vec![], false),
    ] {
        let (back, seen) = events();
        let Some(running) = start(name, &params, back) else {
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
fn configurations_for_http_2_upstreams_start() {
    let back = echo();
    let grpc = [("upstream_protocol", text("grpc")), ("http2", ON)];
    for (name, params) in [
        ("nginx", grpc.to_vec()),
        ("haproxy", vec![("upstream_http2", ON)]),
        ("caddy", vec![("upstream_http2", ON), ("http2", ON)]),
        ("apache", vec![("upstream_http2", ON), ("http2", ON)]),
        ("envoy", vec![("upstream_http2", ON), ("http2", ON)]),
        ("traefik", vec![("upstream_http2", ON), ("http2", ON)]),
        ("nghttpx", vec![("upstream_http2", ON), ("http2", ON)]),
        ("pingora", vec![("upstream_http2", ON), ("http2", ON)]),
    ] {
        // It takes connections, or the test fails.
        start(name, &params, back);
    }
}
