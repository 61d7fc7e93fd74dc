//! Events of connections and requests, for logs and hooks.
//!
//! Workers send them through a bounded channel and never wait; events that do not fit are counted
//! in [`ProcessState::events_lost`](super::ProcessState::events_lost). Services and back
//! ends are indexes into the configuration.

use std::net::SocketAddr;

use crate::config::model::{Backend, Service};
use crate::health::HealthEvent;

/// Capacity of the channel: about 1 MiB, besides request lines and relayed data.
pub(in crate::engine) const EVENTS_MAX: usize = 8192;
/// Bytes of request lines that may be in the channel: clients choose how long these are.
pub(in crate::engine) const LINE_BYTES_MAX: u64 = 16 << 20;
/// Bytes for traffic logs that may be in the channel.
pub(in crate::engine) const TRAFFIC_BYTES_MAX: u64 = 16 << 20;

/// Whether a service has a log or hook. Without one, no events of its connections and requests are
/// made; state changes of back ends are always reported.
pub(in crate::engine) fn emits_events(service: &Service) -> bool {
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

/// The logged part of a request's head, as the client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    pub method: Box<str>,
    pub target: Box<str>,
    /// Such as `1.1`.
    pub version: &'static str,
    /// `Referer`, where the log format has it.
    pub referer: Option<Box<str>>,
    /// `User-Agent`, where the log format has it.
    pub user_agent: Option<Box<str>>,
}

impl RequestLine {
    /// Bytes of its text.
    pub(crate) fn bytes(&self) -> u64 {
        let texts = [
            Some(&self.target),
            self.referer.as_ref(),
            self.user_agent.as_ref(),
        ];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        (self.method.len() + texts.sum::<usize>()) as u64
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection to a back end was opened for a client.
    ConnectionOpened {
        service: usize,
        backend: usize,
        client: SocketAddr,
    },
    ConnectionClosed {
        service: usize,
        backend: usize,
        client: SocketAddr,
        /// Bytes from the client.
        bytes_to: u64,
        /// Bytes to the client.
        bytes_from: u64,
        /// How long it was open, ns.
        duration_ns: u64,
        /// The time limit that ended it, by its name in the configuration.
        cut: Option<&'static str>,
    },
    /// A request was answered, or given up.
    RequestFinished {
        service: usize,
        /// The back end; `None` where the balancer answered.
        backend: Option<usize>,
        client: SocketAddr,
        /// The request; `None` where its head could not be parsed.
        line: Option<Box<RequestLine>>,
        /// Status of the response; 499 where the client left first.
        status: u16,
        /// Bytes of the request, as received; of a stream, those that HTTP/1.1 would have.
        bytes_to: u64,
        /// Bytes of the response.
        bytes_from: u64,
        /// From the first byte of the request to the last of the response, ns. A pipelined request
        /// begins with the end of the response before it.
        duration_ns: u64,
        /// The time limit that truncated the response, by its name in the configuration.
        cut: Option<&'static str>,
    },
    /// A back end could not be reached.
    BackendFailed {
        service: usize,
        backend: usize,
        /// The client; `None` for a probe.
        client: Option<SocketAddr>,
    },
    /// Data was relayed; only for back ends with a traffic log.
    Traffic {
        service: usize,
        backend: usize,
        client: SocketAddr,
        /// Whether the client sent it.
        to_backend: bool,
        /// The data.
        bytes: Box<[u8]>,
    },
    /// A back end became usable or unusable.
    BackendChanged {
        service: usize,
        backend: usize,
        usable: bool,
        /// What changed it.
        cause: HealthEvent,
        /// The `errno` of the connection that failed, if that is the cause.
        errno: Option<i32>,
    },
}
