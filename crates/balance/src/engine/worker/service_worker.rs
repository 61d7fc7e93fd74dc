//! A service, as one worker serves it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use net::{ConnId, Io, TargetId};

use super::connection::Client;
use crate::access::AccessRules;
use crate::config::Template;
use crate::config::model::{
    Access, Backend, Dispatch, HashKey, LogFormat, ProxyVersion, Service, ServiceKind,
};
use crate::dispatch::{Candidate, Dispatcher, Request};
use crate::engine::external::ExternalChoice;
use crate::engine::http::HttpServiceWorker;
use crate::engine::shared::events::emits_events;
use crate::engine::shared::state::{BackendState, ServiceState};

/// Time limits in ns; `u64::MAX`: none.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Limits {
    pub connect: u64,
    pub client_header: u64,
    pub client_body: u64,
    pub client_idle: u64,
    /// Limit of silence on a relayed connection after one side has shut down, ns.
    pub half_closed: u64,
    pub write_stall: u64,
    pub upstream_answer: u64,
    pub queue: u64,
    /// For connections to a back end that is taken down; 0: none.
    pub drain: u64,
}

pub(in crate::engine) struct BackendSlot {
    target: TargetId,
    /// The address version that `target` was made for.
    address_version: u32,
    /// Connection limit, over all threads.
    pub most: u32,
    /// Capacity that this worker has reserved on the back end.
    pub reserved: u32,
    pub retries: u32,
    /// Limit of silence on a connection, ns.
    pub idle: u64,
    pub proxy_out: Option<ProxyVersion>,
    pub traced: bool,
    /// Number of its TLS among those of all back ends; `None` without TLS.
    tls_profile: Option<u32>,
    /// Whether its connections are HTTP/2 streams.
    speaks_http_2: bool,
}

impl BackendSlot {
    /// Whether connections to it speak TLS.
    pub fn has_tls(&self) -> bool {
        self.tls_profile.is_some()
    }

    /// The current target.
    pub fn target<I: Io>(&mut self, state: &BackendState, io: &mut I) -> TargetId {
        let address_version = state.address_version();
        if address_version != self.address_version {
            self.address_version = address_version;
            self.target = add_target(io, state, self.tls_profile, self.speaks_http_2);
        }
        self.target
    }
}

fn add_target<I: Io>(
    io: &mut I,
    state: &BackendState,
    tls_profile: Option<u32>,
    speaks_http_2: bool,
) -> TargetId {
    let address = state.address().into();
    match speaks_http_2 {
        true => io.add_stream_target(&address, &[], tls_profile),
        false => io.add_tls_target(&address, &[], tls_profile),
    }
}

pub(in crate::engine) struct ServiceWorker {
    pub backends: Vec<BackendSlot>,
    pub rules: AccessRules,
    pub limits: Limits,
    pub proxy_in: bool,
    /// Server names, and the back ends that clients who ask for them do not get.
    pub sni: Vec<(Vec<String>, Vec<u32>)>,
    /// Whether its clients may speak HTTP/2, and HTTP/1.1; an HTTP service's only.
    pub speaks_http_2: bool,
    pub speaks_http_1: bool,
    /// The proxies in front, if any were named.
    trusted: Option<AccessRules>,
    /// Client limit, over all threads.
    pub most: u32,
    pub queue_length: u32,
    /// Whether anything needs the client's address.
    pub needs_client: bool,
    /// Whether anything needs the address the client connected to.
    pub needs_local: bool,
    /// Whether any log or hook needs its events.
    pub emits_events: bool,
    /// Whether the log has `Referer` and `User-Agent`.
    pub combined: bool,
    /// Whether back ends that break connections are ejected.
    pub ejects: bool,
    /// The number of clients of this worker.
    pub clients: u32,
    /// Clients that wait for capacity.
    pub queue: VecDeque<ConnId>,
    pub http: Option<HttpServiceWorker>,
    /// The external chooser.
    pub program: Option<Template>,
    dispatcher: Dispatcher,
    /// For rebuilding the dispatcher when a weight changes.
    made_of: (Dispatch, Vec<Backend>),
    weights_version: u32,
    scratch: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Choice {
    /// This one, on which capacity was reserved.
    Backend(usize),
    /// All usable ones are at their limit.
    Full,
    NoneUsable,
    /// The external chooser has to be asked first.
    AskProgram,
    /// None: the request may go no further.
    LastHop,
}

/// In nanoseconds; zero means no limit.
pub(in crate::engine) fn limit_ns(limit: Duration) -> u64 {
    match u64::try_from(limit.as_nanos()) {
        Ok(0) | Err(_) => u64::MAX,
        Ok(ns) => ns,
    }
}

/// See [`ServiceWorker::sni`].
fn sni_rules(service: &Service) -> Vec<(Vec<String>, Vec<u32>)> {
    let others = |named: &[String]| {
        let backends = service.backends.iter().zip(0..);
        let others = backends.filter(|(one, _)| !named.contains(&one.name));
        others.map(|(_, at)| at).collect()
    };
    service
        .sni
        .iter()
        .map(|rule| (rule.names.clone(), others(&rule.back_ends)))
        .collect()
}

impl ServiceWorker {
    pub fn new<I: Io>(
        service: &Service,
        state: &ServiceState,
        rules: AccessRules,
        http: Option<HttpServiceWorker>,
        first_profile: u32,
        io: &mut I,
    ) -> ServiceWorker {
        let limits = Limits {
            connect: limit_ns(service.timeouts.connect),
            client_header: limit_ns(service.timeouts.client_header),
            client_body: limit_ns(service.timeouts.client_body),
            client_idle: limit_ns(service.timeouts.client_idle),
            half_closed: limit_ns(service.timeouts.half_closed),
            write_stall: limit_ns(service.timeouts.write_stall),
            upstream_answer: limit_ns(service.timeouts.upstream_answer),
            queue: limit_ns(service.queue.time_limit),
            drain: u64::try_from(service.drain.as_nanos()).unwrap_or(u64::MAX),
        };
        let backends: Vec<BackendSlot> = service
            .backends
            .iter()
            .zip(&state.backends)
            .zip(first_profile..)
            .map(|((backend, one), profile)| (backend, one, backend.tls.as_ref().map(|_| profile)))
            .map(|(backend, one, tls_profile)| BackendSlot {
                tls_profile,
                address_version: one.address_version(),
                target: add_target(io, one, tls_profile, backend.speaks_http_2()),
                speaks_http_2: backend.speaks_http_2(),
                most: backend.connections_max.unwrap_or(u32::MAX),
                reserved: 0,
                retries: backend.retries,
                idle: match limit_ns(backend.session_timeout) {
                    u64::MAX => limits.client_idle,
                    own => own,
                },
                proxy_out: backend.proxy_protocol_out,
                traced: backend.traffic_log.is_some(),
            })
            .collect();
        let emits_events = emits_events(service);
        let needs_local = backends
            .iter()
            .any(|backend_slot| backend_slot.proxy_out.is_some());
        let edits = service
            .backends
            .iter()
            .any(|one| !one.header_edits.is_empty());
        let by_client = match &service.dispatch {
            Dispatch::ByClientIp | Dispatch::External { .. } => true,
            // Requests without the key are hashed by the client's address.
            Dispatch::ConsistentHash { key } => {
                *key != HashKey::Path || service.kind == ServiceKind::Tcp
            }
            _ => false,
        };
        ServiceWorker {
            rules,
            limits,
            proxy_in: service.proxy_protocol_in,
            sni: sni_rules(service),
            speaks_http_2: service.http_versions().two,
            speaks_http_1: service.http_versions().one,
            trusted: (!service.trusted_proxies.is_empty())
                .then(|| AccessRules::new(&service.trusted_proxies, &[])),
            most: service.connections_max.unwrap_or(u32::MAX),
            queue_length: service.queue.length,
            needs_client: needs_local
                || by_client
                || edits
                || emits_events
                || !service.trusted_proxies.is_empty()
                || service.access != Access::default(),
            needs_local,
            emits_events,
            combined: service.access_log.is_some()
                && service.access_log_form == LogFormat::Combined,
            ejects: service.ejection.is_some(),
            clients: 0,
            queue: VecDeque::new(),
            http,
            program: match &service.dispatch {
                Dispatch::External { command } => Some(command.clone()),
                _ => None,
            },
            dispatcher: Dispatcher::new(&service.dispatch, &service.backends),
            made_of: (service.dispatch.clone(), service.backends.clone()),
            weights_version: 0,
            scratch: Vec::with_capacity(backends.len()),
            backends,
        }
    }

    /// Whether a peer with this address may connect. Where the PROXY protocol announces clients,
    /// only trusted proxies may connect. If no proxies are named, the access lists have to allow
    /// the peer itself, as it could announce any address.
    pub fn may_connect(&self, peer: IpAddr) -> bool {
        match &self.trusted {
            Some(trusted) if self.proxy_in => trusted.permit(peer),
            _ => self.rules.permit(peer),
        }
    }

    /// Whether the forwarded fields of a client's requests are believed.
    pub fn trusts(&self, client: IpAddr) -> bool {
        self.trusted
            .as_ref()
            .is_none_or(|trusted| trusted.permit(client))
    }

    /// Whether a client of an HTTP service that has shut down its side gets its response.
    pub fn half_close(&self) -> bool {
        self.http.as_ref().is_some_and(|http| http.half_close)
    }

    /// Chooses a back end and reserves capacity on it.
    pub fn choose(
        &mut self,
        state: &ServiceState,
        client_state: &Client,
        key: Option<&[u8]>,
        now_ns: u64,
        rng: &mut fastrand::Rng,
    ) -> Choice {
        let tried = &client_state.tried;
        match client_state.external_choice {
            ExternalChoice::NotAsked if self.program.is_some() => return Choice::AskProgram,
            ExternalChoice::Chosen(Some(at)) if !tried.contains(&at) => {
                let at = at as usize;
                if state.backends[at].usable() && self.reserve(state, at) {
                    return Choice::Backend(at);
                }
            }
            _ => {}
        }
        let request = Request {
            client: client_state.address.ip(),
            key,
            now_ns,
        };
        if state.weights_version() != self.weights_version {
            self.reload_weights(state);
        }
        loop {
            self.scratch.clear();
            let mut full = false;
            for (at, (backend, backend_slot)) in
                state.backends.iter().zip(&self.backends).enumerate()
            {
                let active = backend.active.load(Ordering::Relaxed);
                let able = backend.usable() && !tried.contains(&(at as u32));
                let room = active < backend_slot.most;
                full |= able && !room;
                self.scratch.push(Candidate {
                    usable: able && room,
                    active,
                    share: backend.share(),
                });
            }
            match self.dispatcher.choose(&self.scratch, &request, rng) {
                // Another thread may have taken the last slot; the next round sees that.
                Some(at) if !self.reserve(state, at) => {}
                Some(at) => return Choice::Backend(at),
                None if full => return Choice::Full,
                None => return Choice::NoneUsable,
            }
        }
    }

    /// Reserves capacity on a back end, unless it is at its limit.
    pub fn reserve(&mut self, state: &ServiceState, backend: usize) -> bool {
        let slot = &mut self.backends[backend];
        let done = state.backends[backend].reserve(slot.most);
        slot.reserved += u32::from(done);
        done
    }

    /// Releases capacity on a back end.
    pub fn release(&mut self, state: &ServiceState, backend: usize) {
        self.backends[backend].reserved -= 1;
        state.backends[backend].release(1);
    }

    /// Releases all that this worker has reserved in the shared state.
    pub fn release_all(&mut self, state: &ServiceState) {
        state.release(std::mem::take(&mut self.clients));
        let queued = self.queue.drain(..).len() as u32;
        state.queued.fetch_sub(queued, Ordering::Relaxed);
        for (slot, backend) in self.backends.iter_mut().zip(&state.backends) {
            backend.release(std::mem::take(&mut slot.reserved));
        }
    }

    /// Rebuilds the dispatcher with changed weights; its averages start over.
    fn reload_weights(&mut self, state: &ServiceState) {
        self.weights_version = state.weights_version();
        let (dispatch, backends) = &mut self.made_of;
        for (backend, state) in backends.iter_mut().zip(&state.backends) {
            backend.weight = state.weight();
        }
        self.dispatcher = Dispatcher::new(dispatch, backends);
    }

    /// Whether this back end is unusable and another one could be tried.
    pub fn other_is_usable(&self, state: &ServiceState, backend: usize, tried: &[u32]) -> bool {
        let other = |(at, one): (usize, &Arc<BackendState>)| {
            at != backend && one.usable() && !tried.contains(&(at as u32))
        };
        !state.backends[backend].usable() && state.backends.iter().enumerate().any(other)
    }

    pub fn finished(&mut self, backend: usize, bytes: u64, duration_ns: u64) {
        self.dispatcher.finished(backend, bytes, duration_ns);
    }

    pub fn answered(&mut self, backend: usize, latency_ns: u64, now_ns: u64) {
        self.dispatcher.answered(backend, latency_ns, now_ns);
    }
}
