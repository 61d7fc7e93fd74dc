//! Asks servers whether they are ready.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::Fetcher;
use net::fetch::{Answer, exchange};

use crate::kernel::clock;
use crate::protocol::wire::{AnswerSummary, AwaitServer, time_limit_phrase};
use crate::serving::servers::Servers;

/// How long the answer to one request may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it may take at least, however little time is left.
const PROBE_TIMEOUT_MIN: Duration = Duration::from_millis(50);
/// How long one poll waits, so that an immediate answer is seen by the poll that asked.
pub(crate) const POLL_WAIT: Duration = Duration::from_millis(5);
/// Between an answer that does not fit and the next request.
const PAUSE: Duration = Duration::from_millis(10);

/// One request to a server, made on a thread of its own.
pub(crate) struct Probe(Receiver<ProbeResult>);

/// When the answer came, by CLOCK_MONOTONIC, and what it was: `None` where opening a connection was
/// enough.
type ProbeResult = (i64, Result<Option<Answer>, String>);

impl Probe {
    /// # Errors
    /// When the request cannot be made in the protocol.
    pub(crate) fn begin(order: &AwaitServer, limit: Duration) -> Result<Self, String> {
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
    pub(crate) fn answer(&self, within: Duration) -> Option<ProbeResult> {
        match self.0.recv_timeout(within) {
            Ok(asked) => Some(asked),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let error = "the thread that asked ended early".to_owned();
                Some((clock::monotonic_ns(), Err(error)))
            }
        }
    }
}

/// A wait for a server, which is asked until an answer fits.
pub(crate) struct ReadinessWait {
    since: Instant,
    probe: Option<Probe>,
}

impl ReadinessWait {
    fn begin() -> Self {
        Self {
            since: Instant::now(),
            probe: None,
        }
    }
}

impl Servers {
    /// Waits until a server answers as expected, or `stop` is set. Returns what it answered, where
    /// it was asked by HTTP.
    pub(crate) fn wait_until_ready(
        &mut self,
        order: &AwaitServer,
        stop: &AtomicBool,
    ) -> Result<Option<AnswerSummary>, String> {
        let mut waiting = ReadinessWait::begin();
        while !stop.load(Ordering::Relaxed) {
            if let Some((_, summary)) = self.poll_ready(&mut waiting, order, PAUSE)? {
                return Ok(summary);
            }
            if waiting.probe.is_none() {
                sleep(PAUSE);
            }
        }
        Err(format!("waiting for `{}` was given up", order.name()))
    }

    /// When a server that was started answered as expected, by CLOCK_MONOTONIC; `None` if it has
    /// not yet. Returns within about [`POLL_WAIT`]; the caller polls.
    ///
    /// # Errors
    /// When the server does not run, or has not answered within its time limit.
    pub(crate) fn is_ready(&mut self, order: &AwaitServer) -> Result<Option<i64>, String> {
        let server = order.server.as_deref();
        self.must_be_alive(server)?;
        let mut one = server.and_then(|name| self.running.get_mut(name));
        let waiting = one.as_mut().and_then(|one| one.waiting.take());
        let mut waiting = waiting.unwrap_or_else(ReadinessWait::begin);
        let ready = self.poll_ready(&mut waiting, order, POLL_WAIT)?;
        if ready.is_none()
            && let Some(one) = server.and_then(|name| self.running.get_mut(name))
        {
            one.waiting = Some(waiting);
        }
        Ok(ready.map(|(at_ns, _)| at_ns))
    }

    /// Waits a while for an answer, asking first if no request is under way. Returns when one came
    /// that fits, and its summary.
    fn poll_ready(
        &mut self,
        waiting: &mut ReadinessWait,
        order: &AwaitServer,
        within: Duration,
    ) -> Result<Option<(i64, Option<AnswerSummary>)>, String> {
        let (name, server) = (order.name(), order.server.as_deref());
        let limit = Duration::from_millis(order.timeout_ms);
        let left = limit.saturating_sub(waiting.since.elapsed());
        let probe = match waiting.probe.take() {
            Some(probe) => probe,
            None => Probe::begin(order, left.clamp(PROBE_TIMEOUT_MIN, PROBE_TIMEOUT))
                .map_err(|error| format!("cannot ask `{name}`: {error}"))?,
        };
        let Some((at_ns, answer)) = probe.answer(within) else {
            waiting.probe = Some(probe);
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
                    "`{name}` did not answer as expected{}{found}{}",
                    time_limit_phrase(order.timeout_ms),
                    output.unwrap_or_default()
                ))
            }
            Err(_) => Ok(None),
        }
    }
}

impl AwaitServer {
    /// The server's name, or its address.
    fn name(&self) -> String {
        let address = || self.address.to_string();
        self.server.clone().unwrap_or_else(address)
    }
}

/// Whether an answer has a text in a header field or in its body, in any letter case.
pub(crate) fn has_text(answer: &Answer, text: &str) -> bool {
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
    use crate::protocol::wire::StartServer;

    const SLEEPS: &str = "a";

    /// Servers with one server that only sleeps.
    fn servers() -> Servers {
        servers_with("exec sleep 60")
    }

    /// Servers with one server: a shell that runs this script.
    fn servers_with(script: &str) -> Servers {
        let mut servers = Servers::new().unwrap();
        servers.make_folder(SLEEPS, None).unwrap();
        let order = StartServer {
            server: SLEEPS.into(),
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
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
        end(servers);
    }

    /// The server ignores SIGTERM, and ends at SIGINT.
    #[test]
    fn a_server_is_sent_one_signal_after_the_other_without_waiting() {
        let mut servers =
            servers_with("trap '' TERM; trap 'exit 0' INT; while :; do sleep 0.01; done");
        let signals = [
            (15, Duration::from_millis(50)),
            (2, Duration::from_secs(60)),
        ];
        let (begin, mut longest) = (Instant::now(), Duration::ZERO);
        loop {
            let before = Instant::now();
            let is_over = servers.poll_stop(SLEEPS, &signals);
            longest = longest.max(before.elapsed());
            if is_over {
                break;
            }
            sleep(Duration::from_millis(1));
        }
        assert!(begin.elapsed() >= signals[0].1);
        assert!(longest < Duration::from_secs(30), "{longest:?}");
        assert!(
            servers.poll_stop(SLEEPS, &signals),
            "it does not run any more"
        );
        end(servers);
    }
}
