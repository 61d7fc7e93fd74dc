//! What clients and back ends that take nothing make the balancer hold, and what is left after them.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use balance::config::model::{HttpVersions, Service, ServiceTls};
use net::IoKind;
use net::h2::settings;
use testing::http2::back_end::{BackEnd, Got};
use testing::http2::client::{Client, GET, with};
use tls::{Authority, ClientSettings, ClientTls, KeyType, Trust};

use crate::http2::back_ends::two;
use crate::support::control::Folder;
use crate::support::http::balancer_with;
use crate::support::{clients_now, in_own_process, memory, until};

/// The most that one may make the balancer hold: what `docs/src/reference/balance-http.md` says, and
/// 64 KiB for the rest of its state.
const EACH_MAX: usize = (384 + 64) * 1024;
/// The receive buffers that a thread always keeps, which may not all have been touched before.
const KEPT: usize = 128 * 32 * 1024;
/// Memory is back to this after a burst.
const WITHIN: Duration = Duration::from_secs(10);

/// A back end, on one thread and with hardly any memory: it answers the first bytes of each connection
/// with a response without end, or reads nothing at all.
fn back_end(reads: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut all: Vec<(TcpStream, bool)> = Vec::new();
        let (mut input, piece) = ([0; 4096], [b'x'; 65_536]);
        loop {
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).unwrap();
                all.push((stream, false));
            }
            all.retain_mut(|(stream, has_begun)| {
                let waits = |e: &std::io::Error| e.kind() == ErrorKind::WouldBlock;
                match stream.read(&mut input) {
                    _ if !reads => return true,
                    Ok(0) => return false,
                    Ok(_) if !*has_begun => {
                        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
                        *has_begun = stream.write_all(head).is_ok();
                    }
                    Ok(_) => {}
                    Err(e) if waits(&e) => {}
                    Err(_) => return false,
                }
                for _ in 0..if *has_begun { 32 } else { 0 } {
                    match stream.write(&piece) {
                        Ok(_) => {}
                        Err(e) if waits(&e) => break,
                        Err(_) => return false,
                    }
                }
                true
            });
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    address
}

/// A back end that speaks HTTP/2: it answers each request with content without end, as far as the
/// windows allow.
fn streaming_back_end() -> SocketAddr {
    let back = BackEnd::new(&[], |link, _| {
        let mut streams = BTreeSet::new();
        while let Some(got) = link.receive() {
            match got {
                Got::Head { stream, .. } => {
                    link.head(stream, &[(":status", "200")], false);
                    streams.insert(stream);
                }
                Got::Reset { stream, .. } => drop(streams.remove(&stream)),
                _ => {}
            }
            link.pour(&streams);
        }
    });
    back.address
}

/// Waves of those who stall, held at a time by `stall`: their number each time. `change` is for the
/// service.
fn waves<T>(
    io: IoKind,
    back: SocketAddr,
    change: impl FnOnce(&mut Service),
    stall: impl Fn(SocketAddr) -> Vec<T>,
    each_has: usize,
) {
    let balancer = balancer_with(io, &[back], |service| {
        service.offered_versions = Some(HttpVersions::BOTH);
        change(service);
    });
    // What is allocated once.
    drop(stall(balancer.address()).split_off(1));
    until("they left", || clients_now(&balancer) == 0);
    std::thread::sleep(Duration::from_millis(4500));
    let before = memory();
    for wave in 0..2 {
        let held = stall(balancer.address());
        let count = held.len() * each_has;
        // It has settled when it does not grow any more.
        let (begun, mut most, mut grown) = (Instant::now(), 0, Instant::now());
        while begun.elapsed().as_millis() < 1500 || grown.elapsed().as_millis() < 700 {
            if memory() > most {
                (most, grown) = (memory(), Instant::now());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let each = most.saturating_sub(before) / count;
        println!("{io}, wave {wave}: {} KiB each for {count}", each / 1024);
        assert!(each < EACH_MAX, "{io}, wave {wave}: {each} bytes each");
        drop(held);
        until("they left", || clients_now(&balancer) == 0);
    }
    let begun = Instant::now();
    let enough = before + before / 5 + KEPT;
    while memory() > enough && begun.elapsed() < WITHIN {
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = memory();
    println!(
        "{io}: {} KiB before, {} after {:?}",
        before / 1024,
        after / 1024,
        begun.elapsed()
    );
    assert!(after <= enough, "{after} bytes are left, {before} before");
}

/// Requests on streams whose windows stay closed.
fn deaf_streams(address: SocketAddr) -> Vec<Client<TcpStream>> {
    let all = (0..3).map(|_| {
        let mut client = Client::connect_with(address, &[(settings::INITIAL_WINDOW_SIZE, 0)]);
        for stream in 0..STREAMS {
            client.head(2 * stream as u32 + 1, &GET, true);
        }
        client.flush();
        client
    });
    all.collect()
}

const STREAMS: usize = 100;

/// Clients of HTTP/1.1 that do not read.
fn deaf_clients(address: SocketAddr) -> Vec<TcpStream> {
    let all = (0..80).map(|_| {
        let mut stream = TcpStream::connect(address).unwrap();
        // Less waits in the kernel. It takes a privilege; without it clients stall later.
        let _ = net::os::force_receive_buffer(stream.as_raw_fd(), 4096);
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        stream
    });
    all.collect()
}

/// Clients that send more than their back end takes.
fn senders(address: SocketAddr) -> Vec<TcpStream> {
    let mut all = Vec::new();
    let piece = [b'x'; 65_536];
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
            .unwrap();
        stream
            .set_write_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        while stream.write_all(&piece).is_ok() {}
        all.push(stream);
    }
    all
}

fn sending_streams(address: SocketAddr) -> Vec<Client<TcpStream>> {
    let fields = with(&[(":method", "PUT")]);
    let all = (0..3).map(|_| {
        let mut client = Client::connect(address);
        for stream in 0..STREAMS {
            let stream = 2 * stream as u32 + 1;
            client.head(stream, &fields, false);
            client.data(stream, &[b'x'; 16_000], false);
        }
        client.flush();
        client
    });
    all.collect()
}

/// A certificate for the balancer in a file, and clients that trust it.
struct Secure {
    _folder: Folder,
    file: PathBuf,
    client: ClientTls,
}

impl Secure {
    fn new(alpn: &str) -> Self {
        let (folder, authority) = (Folder::new(), Authority::new().unwrap());
        let issued = authority.issue(&["localhost".into()], KeyType::EcdsaP256);
        let identity = issued.unwrap().identity;
        let both = format!("{}{}", identity.chain, identity.key);
        let settings = ClientSettings {
            trust: Trust::Authorities(authority.certificate()),
            alpn: vec![alpn.to_owned()],
            ..ClientSettings::new("localhost")
        };
        Self {
            file: folder.write("front.pem", &both),
            _folder: folder,
            client: ClientTls::new(&settings).unwrap(),
        }
    }
}

fn clients_over_tls(io: IoKind) {
    let secure = Secure::new("http/1.1");
    let stall = |address| {
        let all = (0..60).map(|_| {
            let mut stream = secure.client.connect(address).unwrap();
            let _ = net::os::force_receive_buffer(stream.sock.as_raw_fd(), 4096);
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            stream.flush().unwrap();
            stream
        });
        all.collect()
    };
    let tls = ServiceTls::new(secure.file.clone());
    let change = |service: &mut Service| service.tls = Some(tls);
    waves(io, back_end(true), change, stall, 1);
}

fn streams_over_tls(io: IoKind) {
    let secure = Secure::new("h2");
    let stall = |address| {
        let all = (0..3).map(|_| {
            let stream = secure.client.connect(address).unwrap();
            let mut client = Client::over(stream, &[(settings::INITIAL_WINDOW_SIZE, 0)]);
            for stream in 0..STREAMS {
                client.head(2 * stream as u32 + 1, &GET, true);
            }
            client.flush();
            client
        });
        all.collect::<Vec<_>>()
    };
    let tls = ServiceTls::new(secure.file.clone());
    let change = |service: &mut Service| service.tls = Some(tls);
    waves(io, back_end(true), change, stall, STREAMS);
}

fn streams_whose_windows_stay_closed(io: IoKind) {
    waves(io, back_end(true), |_| {}, deaf_streams, STREAMS);
}

fn clients_that_do_not_read(io: IoKind) {
    waves(io, back_end(true), |_| {}, deaf_clients, 1);
}

fn uploads_that_no_back_end_takes(io: IoKind) {
    waves(io, back_end(false), |_| {}, senders, 1);
}

fn streams_that_no_back_end_takes(io: IoKind) {
    waves(io, back_end(false), |_| {}, sending_streams, STREAMS);
}

fn streams_to_back_ends_of_http_2(io: IoKind) {
    waves(io, streaming_back_end(), two, deaf_streams, STREAMS);
}

fn in_process(path: &str, test: impl FnOnce()) {
    in_own_process(&format!("http::stalled_memory::on::{path}"), test);
}

macro_rules! on_each_loop {
    ($($name:ident)*) => {
        mod on {$(
            mod $name {
                use net::IoKind;

                use crate::http::stalled_memory as all;

                #[test]
                fn io_uring() {
                    let path = concat!(stringify!($name), "::io_uring");
                    all::in_process(path, || all::$name(IoKind::Uring));
                }

                #[test]
                fn epoll() {
                    let path = concat!(stringify!($name), "::epoll");
                    all::in_process(path, || all::$name(IoKind::Epoll));
                }
            }
        )*}
    };
}

on_each_loop! {
    streams_whose_windows_stay_closed
    clients_that_do_not_read
    uploads_that_no_back_end_takes
    streams_that_no_back_end_takes
    streams_to_back_ends_of_http_2
    clients_over_tls
    streams_over_tls
}
