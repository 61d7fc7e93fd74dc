//! The thread that probes back ends: those that are unavailable, and on request those that are
//! not.
//!
//! Each probe runs on a thread of its own, at most one per back end, so that a back end that does
//! not answer holds up no other's probe. A probe whose back end's state was changed in the
//! meantime is left to end and its result is not noted.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::{fetch, os};

use super::state::Shared;
use crate::config::model::{Backend, Check, Config, ProxyVersion, Service};
use crate::health::HealthEvent;

/// How often each back end is asked whether a probe is due: short beside any interval that makes
/// sense, and nothing beside the work of a relay.
const TURN: Duration = Duration::from_millis(20);
/// Limit of a probe where the service has none.
const UNLIMITED: Duration = Duration::from_secs(60);
/// Longest page of a probe by HTTP, bytes; a longer one fails.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// What a probe says of itself by the PROXY protocol: its command LOCAL in version 2 (2.2), and
/// in version 1, which has none, an unknown sender (2.1).
const LOCAL_V1: &[u8] = b"PROXY UNKNOWN\r\n";
const LOCAL_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/// Starts the thread; it ends soon after [`Shared::stop`] is set. `addresses` has the address of
/// each back end, by service. Without a thread nothing could be revived.
///
/// # Panics
/// When the system has no thread to give, as [`std::thread::spawn`] does.
pub fn spawn(
    config: Arc<Config>,
    shared: Arc<Shared>,
    addresses: Arc<Vec<Vec<SocketAddr>>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || Keeper::new(&config, &shared, &addresses).run())
}

/// The probes of one back end.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// A thread probes it.
    under_way: bool,
    /// That thread's result is nobody's any more.
    stale: bool,
    /// A probe is due.
    due: bool,
}

struct Keeper<'k> {
    config: &'k Config,
    shared: &'k Shared,
    addresses: &'k [Vec<SocketAddr>],
    slots: Vec<Vec<Slot>>,
    sender: Sender<(usize, usize, bool)>,
    results: Receiver<(usize, usize, bool)>,
}

impl<'k> Keeper<'k> {
    fn new(config: &'k Config, shared: &'k Shared, addresses: &'k [Vec<SocketAddr>]) -> Keeper<'k> {
        let (sender, results) = mpsc::channel();
        let slots = shared.services.iter();
        Keeper {
            config,
            shared,
            addresses,
            slots: slots
                .map(|service| vec![Slot::default(); service.backends.len()])
                .collect(),
            sender,
            results,
        }
    }

    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.look();
            let end = Instant::now() + TURN;
            loop {
                let left = end.saturating_duration_since(Instant::now());
                match self.results.recv_timeout(left) {
                    Ok((service, backend, well)) => self.ended(service, backend, well),
                    // It cannot be disconnected: a sender is kept here.
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
        }
    }

    /// Starts the probes that are due.
    fn look(&mut self) {
        let now_ns = os::now_ns();
        for (service, state) in self.shared.services.iter().enumerate() {
            for (backend, life) in state.backends.iter().enumerate() {
                let slot = &mut self.slots[service][backend];
                if life.probe_due(now_ns, &state.policy) {
                    slot.due = true;
                    // It is asked for again only after the state was changed.
                    slot.stale = slot.under_way;
                }
                if slot.due && !slot.under_way {
                    self.probe(service, backend);
                }
            }
        }
    }

    fn probe(&mut self, service: usize, backend: usize) {
        let probe = self
            .config
            .services
            .get(service)
            .and_then(|one| Some((one, one.backends.get(backend)?)))
            .and_then(|(one, two)| {
                let address = *self.addresses.get(service)?.get(backend)?;
                Some(Probe::new(one, two, address))
            });
        let Some(probe) = probe else { return };
        let sender = self.sender.clone();
        let started = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || {
                // Nobody waits for it when the balancer has ended.
                let _ = sender.send((service, backend, probe.carry_out()));
            });
        // Without a thread it stays due, and the next turn tries again.
        if started.is_ok() {
            self.slots[service][backend] = Slot {
                under_way: true,
                ..Slot::default()
            };
        }
    }

    fn ended(&mut self, service: usize, backend: usize, well: bool) {
        let slot = &mut self.slots[service][backend];
        slot.under_way = false;
        if std::mem::take(&mut slot.stale) {
            return;
        }
        let event = match well {
            true => HealthEvent::ProbeOk,
            false => HealthEvent::ProbeFailed,
        };
        let state = &self.shared.services[service];
        // Where the state was changed and no new probe is due, this is without effect.
        state.backends[backend].note(event, os::now_ns(), &state.policy);
    }
}

/// How to probe a back end.
#[derive(Clone, Debug)]
struct Probe {
    address: SocketAddr,
    connect_limit: Duration,
    /// What is asked and answered; `None`: connecting is enough.
    http: Option<Exchange>,
}

#[derive(Clone, Debug)]
struct Exchange {
    greeting: &'static [u8],
    request: Vec<u8>,
    status: u16,
    answer_limit: Duration,
}

impl Probe {
    fn new(service: &Service, backend: &Backend, address: SocketAddr) -> Probe {
        let limit = |limit: Duration| match limit.is_zero() {
            true => UNLIMITED,
            false => limit,
        };
        let http = match &service.check {
            Check::Tcp => None,
            Check::Http { path, host, status } => {
                let own = backend.address.to_string();
                let host = host.as_deref().unwrap_or(&own);
                let close = [("Connection".to_owned(), "close".to_owned())];
                Some(Exchange {
                    greeting: match backend.proxy_protocol_out {
                        None => b"",
                        Some(ProxyVersion::V1) => LOCAL_V1,
                        Some(ProxyVersion::V2) => LOCAL_V2,
                    },
                    request: fetch::request("GET", host, path, &close),
                    status: *status,
                    answer_limit: limit(service.timeouts.upstream_answer),
                })
            }
        };
        Probe {
            address,
            connect_limit: limit(service.timeouts.connect),
            http,
        }
    }

    /// Whether it went well.
    fn carry_out(&self) -> bool {
        let Some(http) = &self.http else {
            return TcpStream::connect_timeout(&self.address, self.connect_limit).is_ok();
        };
        let answer = fetch::fetch_after(
            &net::Address::Inet(self.address),
            http.greeting,
            &http.request,
            self.connect_limit.saturating_add(http.answer_limit),
            PAGE_BYTES_MAX,
        );
        answer.is_ok_and(|answer| answer.status == http.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::proxy_protocol::{Header, Parsed, parse};

    #[test]
    fn probes_announce_themselves_by_the_proxy_protocol() {
        for (bytes, header) in [(LOCAL_V1, Header::Unknown), (LOCAL_V2, Header::Local)] {
            let taken = bytes.len();
            assert_eq!(parse(bytes), Ok(Parsed::Done { taken, header }));
        }
    }
}
