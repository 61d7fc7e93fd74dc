//! The status document.

use std::sync::atomic::Ordering;

use net::os;
use serde_json::{Value, json};

use super::supervisor::Supervisor;
use crate::config::model::{Backend, Service, ServiceKind, Weight};
use crate::engine::shared::state::{BackendState, DurationHistogram, ServiceState};
use crate::health::State;

/// State and counters since the start. Times are in microseconds, exact to 1/8; `session_us` is the
/// length of connections, of an HTTP service the time to the complete response.
pub fn status(supervisor: &Supervisor) -> Value {
    let (config, shared) = (supervisor.config(), supervisor.shared());
    let addresses = supervisor.addresses();
    let (reloads, reload_failures) = supervisor.reloads();
    let uptime_ns = os::now_ns().saturating_sub(shared.started_ns);
    let services = config.services.iter().zip(&shared.services);
    let services: Vec<Value> = services
        .map(|(service, state)| {
            let listen = addresses.iter().filter(|(name, _)| *name == service.name);
            let listen: Vec<String> = listen.map(|(_, address)| address.to_string()).collect();
            one_service(service, state, listen)
        })
        .collect();
    json!({
        "ok": true,
        "pid": std::process::id(),
        "file": supervisor.file().display().to_string(),
        "uptime_s": uptime_ns as f64 / 1e9,
        "io": supervisor.io().to_string(),
        "threads": config.threads,
        "reloads": reloads,
        "reload_failures": reload_failures,
        "earlier_configurations": supervisor.retired(),
        "events_lost": shared.events_lost.get(),
        "log_failures": shared.log_failures.get(),
        "command_failures": shared.hook_failures.get(),
        "accept_failures": shared.accept_failures.get(),
        "worker_restarts": shared.worker_restarts.get(),
        "services": services,
    })
}

fn one_service(service: &Service, state: &ServiceState, listen: Vec<String>) -> Value {
    let http = service.kind != ServiceKind::Tcp;
    let backends = service.backends.iter().zip(&state.backends);
    let backends: Vec<Value> = backends
        .map(|(backend, backend_state)| one_backend(backend, backend_state, http))
        .collect();
    json!({
        "name": service.name,
        "kind": if http { "http" } else { "tcp" },
        "dispatch": service.dispatch.name(),
        "listen": listen,
        "active": state.active.load(Ordering::Relaxed),
        "queued": state.queued.load(Ordering::Relaxed),
        "clients": state.clients.get(),
        "denied": state.denied.get(),
        "overflowed": state.overflowed.get(),
        "evicted": state.evicted.get(),
        "refused": state.refused.get(),
        "bad_requests": state.bad_requests.get(),
        "timeouts": state.timeouts.get(),
        "cut_silent": state.cut_silent.get(),
        "backends": backends,
    })
}

fn one_backend(backend: &Backend, backend_state: &BackendState, http: bool) -> Value {
    let (weight, kind) = match backend_state.weight() {
        Weight::Share(share) => (share, "weight"),
        Weight::Penalty(penalty) => (penalty, "penalty"),
    };
    let total = match http {
        true => backend_state.requests.get(),
        false => backend_state.connections.get(),
    };
    let active = backend_state.active.load(Ordering::Relaxed);
    let mut value = json!({
        "name": backend.name,
        "address": backend_state.address().to_string(),
        "state": backend_state.state().word(),
        "draining": backend_state.state() == State::Down && active > 0,
        "active": active,
        "total": total,
        "failed": backend_state.connect_failures.get() + backend_state.response_failures.get(),
        "connect_failures": backend_state.connect_failures.get(),
        "answer_failures": backend_state.response_failures.get(),
        "bytes_to": backend_state.bytes_to.get(),
        "bytes_from": backend_state.bytes_from.get(),
        "connect_us": quantiles(&backend_state.connect_times),
        "session_us": quantiles(&backend_state.service_times),
    });
    value[kind] = weight.into();
    value
}

fn quantiles(times: &DurationHistogram) -> Value {
    json!({ "p50": times.quantile_us(0.5), "p99": times.quantile_us(0.99) })
}
