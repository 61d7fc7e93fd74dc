//! What a worker of an HTTP service knows of its back ends.

use net::ConnId;

use crate::config::model::{
    Backend, HashKey, HeaderEdit, Inspect, Recipient, Service, ServiceKind,
};
use crate::config::model::{Dispatch, EditKind};
use crate::engine::shared::state::{BackendState, ServiceState};
use crate::http::{GuardedNames, RequestHead};
use crate::sticky;

/// Idle connections that a thread keeps, over all back ends.
pub(in crate::engine) const IDLE_MAX: usize = 1024;
/// Idle connections to one back end.
const IDLE_PER_BACKEND_MAX: usize = 256;

pub(in crate::engine) struct HttpServiceWorker {
    /// Whether every message is inspected, or only the first of a connection.
    pub inspect_all: bool,
    pub name: String,
    /// The key of a consistent hash.
    pub key: Option<HashKey>,
    pub backends: Vec<HttpBackendSlot>,
    /// Whether any back end has a sticky cookie.
    pub sticky: bool,
    /// The fields that edits set in requests.
    pub guarded: GuardedNames,
    /// How often a request may be sent again.
    pub resends: u32,
    /// Whether a client that has shut down its side gets its response.
    pub half_close: bool,
    /// Minimum rate of a request's body, bytes/s: this many bytes extend its time limit by a
    /// second. 0: the limit is not extended.
    pub body_rate_min: u32,
}

pub(in crate::engine) struct HttpBackendSlot {
    pub name: String,
    /// `Host` for requests without one.
    pub host: Vec<u8>,
    /// Edits of requests, and of responses.
    pub to_server: Vec<HeaderEdit>,
    pub to_client: Vec<HeaderEdit>,
    pub cookie: Option<Cookie>,
    /// Whether a connection may be reused for requests of other clients. It may not with a PROXY
    /// protocol header, which names the client, nor if only first messages are inspected, nor with
    /// HTTP/2, where each request has a stream of its own.
    pub reusable: bool,
    pub speaks_http_2: bool,
    /// Idle connections; most recently used last.
    pub idle: Vec<ConnId>,
    pub idle_max: usize,
}

pub(in crate::engine) struct Cookie {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
    /// The edit that sets it, unless a configured edit does.
    pub set: Option<HeaderEdit>,
}

impl HttpServiceWorker {
    /// `None` for a TCP service. `backends` counts those of all HTTP services.
    pub fn new(
        service: &Service,
        state: &ServiceState,
        backends: usize,
    ) -> Option<HttpServiceWorker> {
        let ServiceKind::Http { inspect } = service.kind else {
            return None;
        };
        let inspect_all = inspect == Inspect::EveryMessage;
        let key = match &service.dispatch {
            Dispatch::ConsistentHash {
                key: HashKey::ClientIp,
            } => None,
            Dispatch::ConsistentHash { key } => Some(key.clone()),
            _ => None,
        };
        let edits = service.backends.iter().flat_map(|one| &one.header_edits);
        let edits = edits.filter(|edit| edit.recipient == Recipient::Server);
        let guarded = GuardedNames::new(edits.map(|edit| edit.name.as_str()));
        let share = (IDLE_MAX / backends.max(1)).clamp(1, IDLE_PER_BACKEND_MAX);
        let backends: Vec<HttpBackendSlot> = service
            .backends
            .iter()
            .zip(&state.backends)
            .map(|(backend, one)| HttpBackendSlot::new(backend, one, inspect_all, share))
            .collect();
        Some(HttpServiceWorker {
            inspect_all,
            name: service.name.clone(),
            key,
            sticky: backends
                .iter()
                .any(|backend_slot| backend_slot.cookie.is_some()),
            guarded,
            resends: service.resends,
            half_close: service.half_close,
            body_rate_min: service.body_rate_min,
            backends,
        })
    }

    /// The back end that the request's cookie names.
    pub fn bound(&self, head: &RequestHead<'_>) -> Option<u32> {
        if !self.sticky {
            return None;
        }
        let is_bound = |backend_slot: &HttpBackendSlot| {
            backend_slot
                .cookie
                .as_ref()
                .is_some_and(|cookie| head.cookie(&cookie.name) == Some(cookie.value.as_slice()))
        };
        self.backends.iter().position(is_bound).map(|at| at as u32)
    }

    /// The hash key of a request, if it has one.
    pub fn key<'h>(&self, head: &RequestHead<'h>) -> Option<&'h [u8]> {
        match self.key.as_ref()? {
            HashKey::ClientIp => None,
            HashKey::Header(name) => head.value(name.as_bytes()),
            HashKey::Cookie(name) => head.cookie(name.as_bytes()),
            HashKey::Path => Some(head.path()),
        }
    }
}

impl HttpBackendSlot {
    fn new(
        backend: &Backend,
        state: &BackendState,
        inspect_all: bool,
        share: usize,
    ) -> HttpBackendSlot {
        let edits = |recipient| {
            let edits = backend.header_edits.iter();
            edits
                .filter(|edit| edit.recipient == recipient)
                .cloned()
                .collect()
        };
        let most = backend.connections_max.unwrap_or(u32::MAX) as usize;
        HttpBackendSlot {
            name: backend.name.clone(),
            host: state.address().to_string().into_bytes(),
            to_server: edits(Recipient::Server),
            to_client: edits(Recipient::Client),
            cookie: backend.sticky_cookie.as_ref().map(|cookie| Cookie {
                name: cookie.name.clone().into_bytes(),
                value: cookie.value.clone().into_bytes(),
                set: cookie
                    .set
                    .then(|| set_cookie(&cookie.name, &cookie.value))
                    .flatten(),
            }),
            reusable: inspect_all
                && backend.proxy_protocol_out.is_none()
                && !backend.speaks_http_2(),
            speaks_http_2: backend.speaks_http_2(),
            idle: Vec::new(),
            idle_max: share.min(most),
        }
    }
}

fn set_cookie(name: &str, value: &str) -> Option<HeaderEdit> {
    use crate::config::Template;
    let mut text = Vec::new();
    sticky::set_cookie(name, value, &mut text);
    // Both are ASCII and percent signs are doubled, so this does not fail.
    let text = String::from_utf8(text).ok()?.replace('%', "%%");
    Some(HeaderEdit {
        recipient: Recipient::Client,
        how: EditKind::Add,
        name: "Set-Cookie".to_owned(),
        value: Template::parse(&text).ok()?,
    })
}
