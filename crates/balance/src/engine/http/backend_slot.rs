//! What an HTTP service's worker knows of its back ends.

use net::ConnId;

use crate::config::model::{
    Backend, HashKey, HeaderEdit, Inspect, Recipient, Service, ServiceKind,
};
use crate::config::model::{Dispatch, EditKind};
use crate::engine::state::{BackendState, ServiceState};
use crate::http::RequestHead;
use crate::sticky;

/// Most connections to back ends that a thread keeps for later requests.
pub(in crate::engine) const IDLE_MAX: usize = 1024;
/// Most of them to one back end.
const IDLE_PER_BACKEND_MAX: usize = 256;

/// What a worker knows of an HTTP service, beyond what it knows of every service.
pub(in crate::engine) struct HttpServiceWorker {
    /// Every message is looked at, or only the first of a connection.
    pub inspect_all: bool,
    pub name: String,
    /// What a consistent hash is made of.
    pub key: Option<HashKey>,
    pub backends: Vec<HttpBackendSlot>,
    /// Whether any back end has a cookie.
    pub sticky: bool,
}

/// What a worker knows of a back end of an HTTP service.
pub(in crate::engine) struct HttpBackendSlot {
    pub name: String,
    /// Its host and port, for requests that name none.
    pub host: Vec<u8>,
    /// Changes of requests, and of answers.
    pub to_server: Vec<HeaderEdit>,
    pub to_client: Vec<HeaderEdit>,
    pub cookie: Option<Cookie>,
    /// Whether other clients' requests may follow on a connection. Not where a PROXY protocol
    /// header names the client, or only first messages are looked at.
    pub reusable: bool,
    /// Connections that wait for a request; the last was used last.
    pub idle: Vec<ConnId>,
    pub idle_max: usize,
}

/// A cookie that binds clients to a back end.
pub(in crate::engine) struct Cookie {
    pub name: Vec<u8>,
    pub value: Vec<u8>,
    /// The edit that sets it, where the balancer does so.
    pub set: Option<HeaderEdit>,
}

impl HttpServiceWorker {
    /// Of a service; `None` when it is not of HTTP. `backends` is the number of back ends of all
    /// HTTP services.
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
            backends,
        })
    }

    /// The back end that a request's cookie binds it to.
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

    /// What a consistent hash is made of, if the request has it.
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
            let emits_events = backend.header_edits.iter();
            emits_events
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
            reusable: inspect_all && backend.proxy_protocol_out.is_none(),
            idle: Vec::new(),
            idle_max: share.min(most),
        }
    }
}

/// The edit that sets a cookie.
fn set_cookie(name: &str, value: &str) -> Option<HeaderEdit> {
    use crate::config::Template;
    let mut text = Vec::new();
    sticky::set_cookie(name, value, &mut text);
    // Both are ASCII, and the percent signs are doubled: this does not fail.
    let text = String::from_utf8(text).ok()?.replace('%', "%%");
    Some(HeaderEdit {
        recipient: Recipient::Client,
        how: EditKind::Add,
        name: "Set-Cookie".to_owned(),
        value: Template::parse(&text).ok()?,
    })
}
