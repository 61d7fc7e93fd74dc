//! Pipelined requests over HTTP/1.1: order, pauses, and the end of a connection. On both event
//! loops, with and without TLS.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use net::IoKind;
use origin::{Origin, OriginOptions};
use tls::ClientTls;

/// Longer than anything here takes; what hangs fails after it.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// More than a block of a long body, and not a multiple of one.
const SIZE: usize = 2_000_001;
/// Connections that the origin may have at one time.
const PLACES: u32 = 64;
const LONG_BODY: &str = "/bytes/2000001";
const DELAYED: &str = "/delay/constant/30ms";

struct Setup {
    origin: Origin,
    tls: Option<ClientTls>,
}

impl Setup {
    fn new(io: IoKind, with_tls: bool) -> Self {
        let (server, client) = testing::tls::localhost(&[]);
        let origin = Origin::start(&OriginOptions {
            io,
            connections: PLACES,
            tls: with_tls.then_some(server),
            ..OriginOptions::default()
        });
        Self {
            origin: origin.unwrap(),
            tls: with_tls.then(|| ClientTls::new(&client).unwrap()),
        }
    }

    fn client(&self) -> Client {
        Client::connect(self.origin.address(), self.tls.as_ref())
    }

    /// Waits until the origin has taken this many requests.
    fn wait_for_requests(&self, count: u64) {
        wait_until("the requests are taken", || {
            self.origin.stats().received.requests >= count
        });
    }

    /// A client that sends all requests at once, the last with `Connection: close`.
    fn pipelined(&self, paths: &[&str]) -> Client {
        let mut client = self.client();
        let (last, others) = paths.split_last().unwrap();
        let mut text: String = others.iter().map(|path| get(path, "")).collect();
        text.push_str(&get(last, "Connection: close\r\n"));
        client.write_all(text.as_bytes()).unwrap();
        client.flush().unwrap();
        client
    }
}

/// All combinations of event loop and TLS.
fn setups() -> impl Iterator<Item = Setup> {
    let loops = [IoKind::Epoll, IoKind::Uring];
    let loops = loops
        .into_iter()
        .filter(|io| *io == IoKind::Epoll || net::uring_unavailable().is_none());
    loops.flat_map(|io| [false, true].map(|with_tls| Setup::new(io, with_tls)))
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n")
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

struct Client {
    stream: Box<dyn Stream>,
    socket: TcpStream,
}

impl Client {
    fn connect(to: SocketAddr, tls: Option<&ClientTls>) -> Self {
        let (stream, socket): (Box<dyn Stream>, TcpStream) = match tls {
            Some(tls) => {
                let stream = tls.connect(to).unwrap();
                let socket = stream.sock.try_clone().unwrap();
                (Box::new(stream), socket)
            }
            None => {
                let stream = TcpStream::connect(to).unwrap();
                (Box::new(stream.try_clone().unwrap()), stream)
            }
        };
        socket.set_read_timeout(Some(TIME_LIMIT)).unwrap();
        Self { stream, socket }
    }

    /// The lengths of the bodies until the origin closes. Their text is checked.
    fn bodies(self) -> Vec<usize> {
        let mut stream = BufReader::new(self.stream);
        let mut lengths = Vec::new();
        loop {
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                if stream.read_line(&mut line).unwrap() == 0 {
                    return lengths;
                }
                if let Some(text) = line.strip_prefix("Content-Length: ") {
                    length = text.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            if length != HELLO {
                let wrong = body
                    .iter()
                    .enumerate()
                    .position(|(i, byte)| *byte != text(i));
                assert_eq!(wrong, None, "of {length}");
            }
            lengths.push(length);
        }
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// The length of the body of `/` and of delayed answers.
const HELLO: usize = 13;

/// The byte of a body of `/bytes/N` at a position.
fn text(i: usize) -> u8 {
    match i % 64 {
        63 => b'\n',
        _ => b'a' + ((i / 64 + i) % 26) as u8,
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + TIME_LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "not within {TIME_LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn requests_wait_for_the_long_and_the_delayed_answers_before_them() {
    for setup in setups() {
        let paths = [
            LONG_BODY, DELAYED, "/bytes/5", LONG_BODY, LONG_BODY, DELAYED, DELAYED, "/bytes/7", "/",
        ];
        let lengths = setup.pipelined(&paths).bodies();
        assert_eq!(
            lengths,
            [SIZE, HELLO, 5, SIZE, SIZE, HELLO, HELLO, 7, HELLO]
        );
    }
}

/// All places of the origin can be had at one time.
fn all_places_are_free(setup: &Setup) {
    wait_until("all places are free", || {
        let mut clients: Vec<Client> = (0..PLACES).map(|_| setup.client()).collect();
        clients.iter_mut().all(|client| {
            let asked = client.write_all(get("/", "").as_bytes());
            let asked = asked.and_then(|()| client.flush());
            asked.is_ok() && matches!(client.read(&mut [0; 200]), Ok(1..))
        })
    });
}

#[test]
fn a_client_that_closes_its_sending_side_gets_the_answers_that_are_not_delayed() {
    // With TLS, an end without close_notify is an error.
    for setup in setups().filter(|setup| setup.tls.is_none()) {
        // A delayed answer and what follows are left out if the end is noticed first. The last case
        // fits the limit of what is queued but for the delayed answer.
        let cases: [(&[&str], &[usize], usize); 5] = [
            (&[DELAYED], &[HELLO], 0),
            (&[LONG_BODY, "/bytes/5"], &[SIZE, 5], 2),
            (&[LONG_BODY, DELAYED, "/bytes/5"], &[SIZE, HELLO, 5], 1),
            (&[LONG_BODY, "/bytes/5", DELAYED], &[SIZE, 5, HELLO], 2),
            (
                &["/bytes/998300", "/bytes/998300", DELAYED],
                &[998_300, 998_300, HELLO],
                2,
            ),
        ];
        for (paths, lengths, least) in cases {
            let mut client = setup.client();
            let text: String = paths.iter().map(|path| get(path, "")).collect();
            client.write_all(text.as_bytes()).unwrap();
            client.flush().unwrap();
            client.socket.shutdown(Shutdown::Write).unwrap();
            let found = client.bodies();
            assert!(found.len() >= least, "{paths:?}: {found:?}");
            assert_eq!(found, lengths[..found.len()], "{paths:?}");
        }
        all_places_are_free(&setup);
    }
}

#[test]
fn a_tls_client_that_ends_its_side_and_resets_leaves_its_place() {
    for setup in setups() {
        let Some(tls) = &setup.tls else { continue };
        for _ in 0..PLACES {
            let mut stream = tls.connect(setup.origin.address()).unwrap();
            stream
                .write_all(get("/bytes/20000000", "").as_bytes())
                .unwrap();
            stream.flush().unwrap();
            stream.read_exact(&mut [0; 10]).unwrap();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
            // The origin reads the alert before the reset, which unread data cause.
            std::thread::sleep(Duration::from_millis(5));
        }
        all_places_are_free(&setup);
    }
}

#[test]
fn input_after_the_last_request_loses_no_answer() {
    for setup in setups() {
        let mut client = setup.pipelined(&["/bytes/20000000", "/bytes/5"]);
        // While the origin does not read.
        setup.wait_for_requests(1);
        client.write_all(get("/", "").as_bytes()).unwrap();
        client.flush().unwrap();
        assert_eq!(client.bodies(), [20_000_000, 5]);
    }
}

#[test]
fn a_client_that_does_not_read_gets_no_further_answers() {
    for setup in setups() {
        // More than the socket buffers hold.
        let client = setup.pipelined(&["/bytes/20000000"; 4]);
        setup.wait_for_requests(1);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(setup.origin.stats().received.requests, 1);
        // Short answers wait too.
        let paths = ["/bytes/500000"; 40];
        let other = setup.pipelined(&paths);
        setup.wait_for_requests(2);
        std::thread::sleep(Duration::from_millis(100));
        assert!(setup.origin.stats().received.requests < 1 + 40);
        assert_eq!(client.bodies(), [20_000_000; 4]);
        assert_eq!(other.bodies(), [500_000; 40]);
    }
}

#[test]
fn short_answers_do_not_wait_for_a_client_that_does_not_read() {
    for setup in setups() {
        let client = setup.pipelined(&["/"; 1_000]);
        setup.wait_for_requests(1_000);
        assert_eq!(client.bodies(), [HELLO; 1_000]);
    }
}

#[test]
fn answers_to_head_have_no_content() {
    for setup in setups() {
        for (path, length) in [
            ("/bytes/0", 0),
            ("/bytes/67108864", 67_108_864),
            ("/delay/constant/1ms", HELLO),
        ] {
            let mut client = setup.client();
            let text = format!("HEAD {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
            client.write_all(text.as_bytes()).unwrap();
            client.flush().unwrap();
            let mut got = String::new();
            client.read_to_string(&mut got).unwrap();
            assert!(
                got.contains(&format!("\r\nContent-Length: {length}\r\n")),
                "{got}"
            );
            assert!(got.ends_with("\r\n\r\n"), "{got}");
        }
    }
}

/// Reading is paused while a long body is sent; that must not hide that the client has gone.
#[test]
fn clients_that_go_while_they_are_not_read_leave_their_places() {
    for io in [IoKind::Uring, IoKind::Epoll] {
        let setup = Setup::new(io, false);
        for _ in 0..2 * PLACES {
            let mut stream = TcpStream::connect(setup.origin.address()).unwrap();
            stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
            let text = get(LONG_BODY, "").repeat(4);
            // While no place is free, it is closed.
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.read_exact(&mut [0; 1_000]);
            // It is closed with unread bytes, which resets the connection.
        }
        wait_until("there is a place", || {
            let mut stream = TcpStream::connect(setup.origin.address()).unwrap();
            let _ = stream.write_all(get("/", "Connection: close\r\n").as_bytes());
            let mut got = Vec::new();
            stream.read_to_end(&mut got).is_ok() && got.starts_with(b"HTTP/1.1 200 ")
        });
    }
}
