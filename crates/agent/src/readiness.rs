//! Asks servers whether they are ready.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::Fetcher;
use net::fetch::{Answer, exchange};

use super::servers::Servers;
use super::wire::{AnswerSummary, AwaitServer};
use crate::clock;

/// How long the answer to one request may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// How long it may take at least, however little time is left.
const ANSWERS_WITHIN_MIN: Duration = Duration::from_millis(50);
/// How long an order that must not wait waits for an answer: a server that answers at once is seen
/// by the order that asks it.
pub(super) const AT_ONCE: Duration = Duration::from_millis(5);
/// Between an answer that does not fit and the next request.
const PAUSE: Duration = Duration::from_millis(10);

/// One request to a server, made on a thread of its own.
pub(super) struct Asking(Receiver<Asked>);

/// When the answer came, by CLOCK_MONOTONIC, and what it was: `None` where opening a connection was
/// enough.
type Asked = (i64, Result<Option<Answer>, String>);

impl Asking {
    /// # Errors
    /// When the request cannot be made in the protocol.
    pub(super) fn begin(order: &AwaitServer, limit: Duration) -> Result<Self, String> {
        // The bound on reference bodies.
        const BYTES_MAX: usize = 64 << 20;
        let (sender, receiver) = mpsc::channel();
        let address = order.address;
        let request = order.request.clone().into_bytes();
        let wanted = order.contains.clone().unwrap_or_default().into_bytes();
        let is_http = !order.raw && !request.is_empty();
        let fetcher = is_http
            .then(|| Fetcher::new(order.http, order.tls.as_ref(), request.clone()))
            .transpose()
            .map_err(|error| error.to_string())?;
        let mut preamble = Vec::new();
        if order.proxy_protocol {
            // With addresses: Varnish refuses a header that says UNKNOWN.
            net::proxy_protocol::encode_v1(address, address, &mut preamble);
        }
        let ask = move || -> Result<Option<Answer>, String> {
            if request.is_empty() {
                let connected = TcpStream::connect_timeout(&address, limit);
                return connected.map(|_| None).map_err(|error| error.to_string());
            }
            let answer = match fetcher {
                Some(fetcher) => fetcher.fetch(&address.into(), &preamble, limit, BYTES_MAX),
                None => {
                    exchange(&address.into(), &request, &wanted, limit, BYTES_MAX).map(|body| {
                        Answer {
                            status: 0,
                            fields: Vec::new(),
                            body,
                        }
                    })
                }
            };
            answer.map(Some).map_err(|error| error.to_string())
        };
        std::thread::spawn(move || {
            let answer = ask();
            // Fails only if nobody waits for it any more.
            let _ = sender.send((clock::monotonic_ns(), answer));
        });
        Ok(Self(receiver))
    }

    /// The answer, if it comes within that time.
    pub(super) fn answer(&self, within: Duration) -> Option<Asked> {
        match self.0.recv_timeout(within) {
            Ok(asked) => Some(asked),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let error = "the request was given up".to_owned();
                Some((clock::monotonic_ns(), Err(error)))
            }
        }
    }
}

/// A wait for a server, which is asked until an answer fits.
pub(super) struct Waiting {
    since: Instant,
    asking: Option<Asking>,
}

impl Waiting {
    fn begin() -> Self {
        Self {
            since: Instant::now(),
            asking: None,
        }
    }
}

impl Servers {
    /// Waits until a server answers as expected, or `stop` is set. Returns what it answered, where
    /// it was asked by HTTP.
    pub(super) fn wait_until_ready(
        &mut self,
        order: &AwaitServer,
        stop: &AtomicBool,
    ) -> Result<Option<AnswerSummary>, String> {
        let mut waiting = Waiting::begin();
        while !stop.load(Ordering::Relaxed) {
            if let Some((_, summary)) = self.ask_again(&mut waiting, order, PAUSE)? {
                return Ok(summary);
            }
            if waiting.asking.is_none() {
                sleep(PAUSE);
            }
        }
        Err(format!("waiting for `{}` was given up", order.name()))
    }

    /// When a server that was started answered as expected, by CLOCK_MONOTONIC; `None` if it has
    /// not yet. It hardly waits: it is called again and again, and asks on a thread.
    ///
    /// # Errors
    /// When the server does not run, or has not answered within its time limit.
    pub(super) fn is_ready(&mut self, order: &AwaitServer) -> Result<Option<i64>, String> {
        let server = order.server.as_deref();
        self.must_be_alive(server)?;
        let mut one = server.and_then(|name| self.running.get_mut(name));
        let waiting = one.as_mut().and_then(|one| one.waiting.take());
        let mut waiting = waiting.unwrap_or_else(Waiting::begin);
        let ready = self.ask_again(&mut waiting, order, AT_ONCE)?;
        if ready.is_none()
            && let Some(one) = server.and_then(|name| self.running.get_mut(name))
        {
            one.waiting = Some(waiting);
        }
        Ok(ready.map(|(at_ns, _)| at_ns))
    }

    /// Waits a while for an answer, asking first if no request is under way. Returns when one came
    /// that fits, and its summary.
    fn ask_again(
        &mut self,
        waiting: &mut Waiting,
        order: &AwaitServer,
        within: Duration,
    ) -> Result<Option<(i64, Option<AnswerSummary>)>, String> {
        let (name, server) = (order.name(), order.server.as_deref());
        let limit = Duration::from_millis(order.timeout_ms);
        let left = limit.saturating_sub(waiting.since.elapsed());
        let asking = match waiting.asking.take() {
            Some(asking) => asking,
            None => Asking::begin(order, left.clamp(ANSWERS_WITHIN_MIN, ANSWERS_WITHIN))
                .map_err(|error| format!("cannot ask `{name}`: {error}"))?,
        };
        let Some((at_ns, answer)) = asking.answer(within) else {
            waiting.asking = Some(asking);
            return Ok(None);
        };
        let answer = answer.and_then(|answer| match &answer {
            Some(answer) => fits(order, answer).map(|()| (!order.raw).then(|| summary(answer))),
            None => Ok(None),
        });
        self.must_be_alive(server)?;
        match answer {
            Ok(summary) => Ok(Some((at_ns, summary))),
            Err(found) if waiting.since.elapsed() >= limit => {
                let output = server.map(|server| self.last_output(server));
                Err(format!(
                    "`{name}` did not answer as expected within {} ms: {found}{}",
                    order.timeout_ms,
                    output.unwrap_or_default()
                ))
            }
            Err(_) => Ok(None),
        }
    }
}

impl AwaitServer {
    /// The server, in words.
    fn name(&self) -> String {
        let address = || self.address.to_string();
        self.server.clone().unwrap_or_else(address)
    }
}

/// Whether an answer has a text in a header field or in its body, in any letter case.
pub(super) fn has_text(answer: &Answer, text: &str) -> bool {
    let wanted = text.to_ascii_lowercase();
    let has = |text: String| text.to_ascii_lowercase().contains(&wanted);
    let field = |(name, value): &(String, Vec<u8>)| {
        has(format!("{name}: {}", String::from_utf8_lossy(value)))
    };
    answer.fields.iter().any(field) || has(String::from_utf8_lossy(&answer.body).into_owned())
}

fn summary(answer: &Answer) -> AnswerSummary {
    let coding = answer.field("content-encoding").unwrap_or_default();
    AnswerSummary {
        status: answer.status,
        body_bytes: answer.body.len() as u64,
        body_hash: fnv_1a(&answer.body),
        coding: String::from_utf8_lossy(coding).trim().to_ascii_lowercase(),
    }
}

/// The 64-bit FNV-1a hash, which is the same on every machine.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn fits(order: &AwaitServer, answer: &Answer) -> Result<(), String> {
    let status_fits = match order.status {
        _ if order.raw => true,
        Some(status) => answer.status == status,
        None => answer.status < 500,
    };
    if !status_fits {
        let expected = order.status.map_or("below 500".into(), |s| s.to_string());
        return Err(format!("status {} (expected {expected})", answer.status));
    }
    let text = String::from_utf8_lossy(&answer.body);
    match &order.contains {
        Some(wanted) if !text.contains(wanted.as_str()) => Err(if order.raw {
            format!("an answer without `{wanted}`, which begins: {text:.120}")
        } else {
            format!(
                "status {} without `{wanted}` in the body, which begins: {text:.120}",
                answer.status
            )
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};

    use super::*;
    use crate::wire::StartServer;

    const SLEEPS: &str = "a";

    /// Servers with one server that only sleeps.
    fn servers() -> Servers {
        let mut servers = Servers::new().unwrap();
        servers.make_folder(SLEEPS, None).unwrap();
        let order = StartServer {
            server: SLEEPS.into(),
            command: ["/bin/sleep", "60"].map(str::to_owned).to_vec(),
            ..StartServer::default()
        };
        servers.start(&order).unwrap();
        servers
    }

    fn end(mut servers: Servers) {
        servers.stop(SLEEPS, &[], &AtomicBool::new(true));
        servers.folders.clear();
        std::fs::remove_dir_all(&servers.path).unwrap();
    }

    fn order(address: SocketAddr, timeout_ms: u64) -> AwaitServer {
        AwaitServer {
            server: Some(SLEEPS.into()),
            address,
            request: "GET / HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            raw: false,
            status: Some(200),
            contains: None,
            tls: None,
            http: readings::HttpVersion::default(),
            proxy_protocol: false,
            timeout_ms,
        }
    }

    #[test]
    fn a_slow_answer_is_not_waited_for_and_its_time_is_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let order = order(listener.local_addr().unwrap(), 60_000);
        let (release, released) = mpsc::channel::<()>();
        let answers = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            released.recv().unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
            clock::monotonic_ns()
        });
        let mut servers = servers();
        for _ in 0..3 {
            assert_eq!(servers.is_ready(&order), Ok(None));
        }
        let released_ns = clock::monotonic_ns();
        release.send(()).unwrap();
        // Only one connection is accepted: the request that is under way is the one that counts.
        answers.join().unwrap();
        let ready_ns = loop {
            if let Some(ready_ns) = servers.is_ready(&order).unwrap() {
                break ready_ns;
            }
        };
        assert!(released_ns <= ready_ns && ready_ns <= clock::monotonic_ns());
        end(servers);
    }

    #[test]
    fn a_server_that_does_not_answer_in_time_is_an_error() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let order = order(closed.local_addr().unwrap(), 30);
        drop(closed);
        let mut servers = servers();
        let why = loop {
            if let Err(why) = servers.is_ready(&order) {
                break why;
            }
        };
        assert!(why.contains("within 30 ms"), "{why}");
        assert!(!servers.has_ended(SLEEPS).unwrap());
        end(servers);
    }
}
