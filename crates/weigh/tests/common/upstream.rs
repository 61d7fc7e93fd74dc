//! Back ends that tests start.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Place, Running, TERM};

/// The built-in back end.
pub struct Origin<'a> {
    running: Running<'a>,
    pub url: String,
}

impl<'a> Origin<'a> {
    pub fn start(place: &'a Place) -> Self {
        let mut running = place.start(&["origin", "--listen", "127.0.0.1:0"]);
        running.until_said("/status/N");
        let said = running.errors();
        let from = said.find("http://").unwrap();
        let url = said[from..].split_whitespace().next().unwrap();
        let url = url.trim_end_matches('/').to_owned();
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
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = client.read(&mut bytes) {
        head.extend_from_slice(&bytes[..n]);
        while let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let request = String::from_utf8_lossy(&head[..end]).to_lowercase();
            head.drain(..end + 4);
            let status = status(count.fetch_add(1, Ordering::Relaxed));
            let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 4\r\n\r\nword");
            let close = request.contains("connection: close");
            if client.write_all(answer.as_bytes()).is_err() || close {
                return;
            }
        }
    }
}
