//! What the workers tell of connections and requests: to logs and to commands.
//!
//! They send it through a bounded channel and never wait for it: what does not fit is counted in
//! [`ProcessState::events_lost`](super::shared::ProcessState::events_lost). Services and back ends are given by
//! their places in the configuration.

use std::net::SocketAddr;

use crate::config::model::{Backend, Service};

/// How many events wait at most for whoever reads them: about 1 MiB.
pub(super) const EVENTS_MAX: usize = 8192;
/// How many bytes of traffic logs may be among them.
pub(super) const TRAFFIC_BYTES_MAX: u64 = 16 << 20;

/// Whether anybody wants to know of the connections and requests of a service; for one without
/// logs and commands no event of them is made. That a back end's state has changed is always told.
pub(super) fn emits_events(service: &Service) -> bool {
    let backend = |one: &Backend| {
        let hooks = &one.hooks;
        one.throughput_log.is_some()
            || one.traffic_log.is_some()
            || hooks.on_start.is_some()
            || hooks.on_end.is_some()
            || hooks.on_fail.is_some()
    };
    service.access_log.is_some() || service.backends.iter().any(backend)
}

/// The head of a request, as far as it is logged: as the client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// The method.
    pub method: Box<str>,
    /// The request target.
    pub target: Box<str>,
    /// The version is `HTTP/1.` and this.
    pub minor_version: u8,
    /// The field `Referer`, where the log has it.
    pub referer: Option<Box<str>>,
    /// The field `User-Agent`, where the log has it.
    pub user_agent: Option<Box<str>>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client's connection to a back end began.
    ConnectionOpened {
        /// The service.
        service: usize,
        /// The back end.
        backend: usize,
        /// The client.
        client: SocketAddr,
    },
    /// Such a connection is over.
    ConnectionClosed {
        /// The service.
        service: usize,
        /// The back end.
        backend: usize,
        /// The client.
        client: SocketAddr,
        /// Bytes from the client.
        bytes_to: u64,
        /// Bytes to the client.
        bytes_from: u64,
        /// How long it took, ns.
        duration_ns: u64,
    },
    /// A request was answered, or cannot be answered any more.
    RequestFinished {
        /// The service.
        service: usize,
        /// The back end; `None` where the balancer answered itself.
        backend: Option<usize>,
        /// The client.
        client: SocketAddr,
        /// The request; `None` where its head could not be read.
        line: Option<Box<RequestLine>>,
        /// The answer's status; 499 where the client left before an answer had begun.
        status: u16,
        /// Bytes of the answer.
        bytes_from: u64,
        /// From the request's first byte to the answer's last, ns.
        duration_ns: u64,
    },
    /// A back end could not be reached.
    BackendFailed {
        /// The service.
        service: usize,
        /// The back end.
        backend: usize,
        /// For whom; `None`: a probe.
        client: Option<SocketAddr>,
    },
    /// Bytes were passed on; told only of back ends with a traffic log.
    Traffic {
        /// The service.
        service: usize,
        /// The back end.
        backend: usize,
        /// The client.
        client: SocketAddr,
        /// Whether they came from the client.
        to_backend: bool,
        /// The bytes.
        bytes: Box<[u8]>,
    },
    /// From now on clients are sent to a back end, or no longer.
    BackendChanged {
        /// The service.
        service: usize,
        /// The back end.
        backend: usize,
        /// Whether they are.
        usable: bool,
    },
}
