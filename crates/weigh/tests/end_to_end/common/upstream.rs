//! Back ends that tests start.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Place, Running, TERM};

/// The built-in back end.
pub struct Origin<'a> {
    pub running: Running<'a>,
    pub url: String,
}

impl<'a> Origin<'a> {
    pub fn start(place: &'a Place) -> Self {
        let mut origin = Self::with(place, "");
        assert_eq!(origin.url.pop(), Some('/'));
        origin
    }

    /// With a certificate that it makes itself; `ca.pem` is for those who trust it.
    pub fn encrypted(place: &'a Place, more: &str) -> Self {
        Self::with(place, &format!("--tls --tls-write-ca ca.pem {more}"))
    }

    /// With these options. Its URL is that of its first page.
    pub fn with(place: &'a Place, options: &str) -> Self {
        let mut running = place.start(&format!("origin --listen 127.0.0.1:0 {options}"));
        running.until_said("/status/N");
        let said = running.errors();
        let from = said.find("http").unwrap();
        let url = said[from..].split_whitespace().next().unwrap().to_owned();
        Self { running, url }
    }

    /// Stops it and returns how many connections and requests it has counted.
    pub fn counts(self) -> (u64, u64) {
        self.running.signal(TERM);
        let done = self.running.end().expect(0);
        let last = done.err.lines().last().unwrap().to_owned();
        let numbers: Vec<u64> = last
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        assert_eq!(numbers.len(), 2, "{last}");
        (numbers[0], numbers[1])
    }
}

/// A back end inside the test: the status of each answer is a function of the answer's number,
/// from 0.
pub struct Answering {
    pub address: SocketAddr,
    answers: Arc<AtomicU64>,
}

impl Answering {
    pub fn start(status: impl Fn(u64) -> u16 + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(AtomicU64::new(0));
        let (count, status) = (answers.clone(), Arc::new(status));
        // Threads end with their connections, and the first with the test.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (count, status) = (count.clone(), status.clone());
                std::thread::spawn(move || serve(client, &count, &*status));
            }
        });
        Self { address, answers }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// How many answers it has given.
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }
}

fn serve(mut client: TcpStream, count: &AtomicU64, status: &dyn Fn(u64) -> u16) {
    let _ = client.set_nodelay(true);
    let _ = client.set_read_timeout(Some(Duration::from_secs(60)));
    converse(&mut client, |_| {
        (status(count.fetch_add(1, Ordering::Relaxed)), "word".into())
    });
}

/// Answers each request, by its head, with a status and a body, until the client is done.
fn converse(client: &mut (impl Read + Write), mut answer: impl FnMut(&str) -> (u16, String)) {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = client.read(&mut bytes) {
        head.extend_from_slice(&bytes[..n]);
        while let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let request = String::from_utf8_lossy(&head[..end]).into_owned();
            head.drain(..end + 4);
            let (status, body) = answer(&request);
            let answer = format!(
                "HTTP/1.1 {status} So\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let request = request.to_lowercase();
            let close = request.contains("connection: close") || request.contains("http/1.0");
            if client.write_all(answer.as_bytes()).is_err() || close {
                return;
            }
        }
    }
}

/// What a server inside the test has got.
#[derive(Clone, Default)]
pub struct Talk {
    connections: Arc<AtomicU64>,
    /// The heads of all requests, in order of arrival.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Talk {
    /// What was asked so far.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The first line of each request.
    pub fn lines(&self) -> Vec<String> {
        let first = |head: String| head.lines().next().unwrap_or_default().to_owned();
        self.heads().into_iter().map(first).collect()
    }

    /// Connections and requests since the last look.
    pub fn taken(&self) -> (u64, Vec<String>) {
        let heads = std::mem::take(&mut *self.heads.lock().unwrap());
        (self.connections.swap(0, Ordering::Relaxed), heads)
    }
}

fn attend<C: Read + Write + Send + 'static>(
    clients: impl Iterator<Item = C> + Send + 'static,
    answer: impl Fn(&str) -> (u16, String) + Copy + Send + 'static,
) -> Talk {
    let talk = Talk::default();
    let kept = talk.clone();
    // Threads end with their connections, and the first with the test.
    std::thread::spawn(move || {
        for mut client in clients {
            let kept = kept.clone();
            kept.connections.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || {
                converse(&mut client, |head| {
                    kept.heads.lock().unwrap().push(head.to_owned());
                    answer(head)
                });
            });
        }
    });
    talk
}

/// A server inside the test that answers by the request's head.
pub fn serve_tcp(
    answer: impl Fn(&str) -> (u16, String) + Copy + Send + 'static,
) -> (SocketAddr, Talk) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let clients = std::iter::from_fn(move || Some(listener.accept()));
    let clients = clients.flatten().map(|(client, _)| {
        let _ = client.set_read_timeout(Some(Duration::from_secs(60)));
        client
    });
    let talk = attend(clients, answer);
    (address, talk)
}

/// The same on a Unix socket.
pub fn serve_unix(
    path: &Path,
    answer: impl Fn(&str) -> (u16, String) + Copy + Send + 'static,
) -> Talk {
    let listener = UnixListener::bind(path).unwrap();
    let clients = std::iter::from_fn(move || Some(listener.accept()));
    attend(clients.flatten().map(|(client, _)| client), answer)
}

/// A port that nothing listens on now. It is below those that the kernel gives to connections, and
/// those that runs give to servers: a server may take seconds until it listens, and meanwhile other
/// tests open thousands of connections.
pub fn free_port() -> u16 {
    let port = std::iter::repeat_with(|| fastrand::u16(10_000..18_000));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    port.take(100).find(is_free).expect("a free port")
}
