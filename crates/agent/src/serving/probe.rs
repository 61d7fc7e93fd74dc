//! Requests that show whether a server is ready, or a reload in effect.

use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use load::Fetcher;
use net::fetch::{Answer, exchange};

use crate::kernel::clock;
use crate::protocol::wire::AwaitServer;

/// How long one poll waits, so that an immediate answer is seen by the poll that asked.
pub(crate) const POLL_WAIT: Duration = Duration::from_millis(5);

/// One request to a server, made on a thread of its own.
pub(crate) struct Probe(Receiver<ProbeResult>);

/// When the answer came, by CLOCK_MONOTONIC, and what it was: `None` where opening a connection was
/// enough.
type ProbeResult = (i64, Result<Option<Answer>, String>);

impl Probe {
    /// # Errors
    /// When the request cannot be made in the protocol, or its thread cannot be started.
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
                            trailers: Vec::new(),
                        }
                    })
                }
            };
            answer.map(Some).map_err(|error| error.to_string())
        };
        net::os::start_thread("which asks a server", move || {
            let answer = ask();
            // Fails only if nobody waits for it any more.
            let _ = sender.send((clock::monotonic_ns(), answer));
        })
        .map_err(|error| error.to_string())?;
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
    pub(crate) since: Instant,
    /// When it was looked at last where the server listens.
    pub(crate) looked: Instant,
    pub(crate) probe: Option<Probe>,
}

impl ReadinessWait {
    pub(crate) fn begin() -> Self {
        let now = Instant::now();
        Self {
            since: now,
            looked: now,
            probe: None,
        }
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
