//! Counters in the Prometheus text format 0.0.4.

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use net::os;

use super::supervisor::Supervisor;
use crate::engine::shared::state::{BackendState, DurationHistogram, ServiceState};
use crate::health::State;

/// Upper bounds of histogram buckets, as powers of two of microseconds: 16 us to 67 s, by factors
/// of four.
const BOUNDS: [usize; 12] = [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26];

/// Families with their help, in the order of the values.
const OWN: [&str; 9] = [
    "uptime_seconds: Time since the balancer started.",
    "reloads_total: Configurations that took the place of an earlier one.",
    "reload_failures_total: Configurations that could not be used.",
    "earlier_configurations: Earlier configurations that still have clients.",
    "events_lost_total: Events that logs and commands had no room for.",
    "log_failures_total: Lines that could not be written to a log.",
    "command_failures_total: Commands that failed, took too long, or were left out.",
    "accept_failures_total: Times that accepting failed for want of descriptors, memory or places.",
    "worker_restarts_total: Worker threads that failed and were started again.",
];
const OF_SERVICES: [&str; 10] = [
    "active_clients: Clients that are connected now.",
    "queued_clients: Clients that wait for a back end now.",
    "clients_total: Clients accepted.",
    "clients_denied_total: Clients that the access lists did not let in.",
    "clients_overflowed_total: Clients turned away because there were too many, or who waited too long.",
    "clients_evicted_total: Idle clients closed to make room for new ones.",
    "refused_total: Clients, or requests, that no back end took.",
    "bad_requests_total: Clients, or requests, refused for what they said.",
    "timeouts_total: Waits that ended by their time limit.",
    "cut_silent_total: Responses under way, and upgraded connections, cut after silence.",
];
const OF_BACKENDS: [&str; 8] = [
    "backend_up: Whether clients are sent to the back end.",
    "backend_active: Connections that clients have to the back end, or requests under way.",
    "backend_connections_total: Connections that were opened to the back end.",
    "backend_connect_failures_total: Connections that could not be opened.",
    "backend_requests_total: Requests sent to the back end (HTTP).",
    "backend_answer_failures_total: Answers that failed (HTTP).",
    "backend_sent_bytes_total: Bytes from clients to the back end.",
    "backend_received_bytes_total: Bytes from the back end to clients.",
];
const STATES: &str = "backend_state: 1 for the state that the back end is in, 0 for the others.";
const TIMES: [&str; 2] = [
    "backend_connect_seconds: Time to open a connection to the back end.",
    "backend_session_seconds: Length of connections; of an HTTP service, time to a complete answer.",
];

fn of_service(one: &ServiceState) -> [u64; OF_SERVICES.len()] {
    [
        one.active.load(Ordering::Relaxed).into(),
        one.queued.load(Ordering::Relaxed).into(),
        one.clients.get(),
        one.denied.get(),
        one.overflowed.get(),
        one.evicted.get(),
        one.refused.get(),
        one.bad_requests.get(),
        one.timeouts.get(),
        one.cut_silent.get(),
    ]
}

fn of_backend(one: &BackendState) -> [u64; OF_BACKENDS.len()] {
    [
        one.usable().into(),
        one.active.load(Ordering::Relaxed).into(),
        one.connections.get(),
        one.connect_failures.get(),
        one.requests.get(),
        one.response_failures.get(),
        one.bytes_to.get(),
        one.bytes_from.get(),
    ]
}

/// Renders the page.
pub fn page(supervisor: &Supervisor) -> String {
    let shared = supervisor.shared();
    let (reloads, reload_failures) = supervisor.reloads();
    let mut page = Page::default();
    let uptime_ns = os::now_ns().saturating_sub(shared.started_ns);
    let own = [
        uptime_ns as f64 / 1e9,
        reloads as f64,
        reload_failures as f64,
        supervisor.retired() as f64,
        shared.events_lost.get() as f64,
        shared.log_failures.get() as f64,
        shared.hook_failures.get() as f64,
        shared.accept_failures.get() as f64,
        shared.worker_restarts.get() as f64,
    ];
    for (row, value) in OWN.iter().zip(own) {
        let name = page.family(row, None);
        page.sample(name, &[], value);
    }
    for (at, row) in OF_SERVICES.iter().enumerate() {
        let name = page.family(row, None);
        for one in &shared.services {
            page.sample(name, &[("service", &one.name)], of_service(one)[at]);
        }
    }
    for (at, row) in OF_BACKENDS.iter().enumerate() {
        let name = page.family(row, None);
        page.each(&shared.services, |page, labels, one| {
            page.sample(name, labels, of_backend(one)[at]);
        });
    }
    let name = page.family(STATES, None);
    page.each(&shared.services, |page, labels, one| {
        let now = one.state();
        for state in [
            State::Available,
            State::Unavailable,
            State::Waking,
            State::Down,
        ] {
            let labels = [labels, &[("state", state.word())]].concat();
            page.sample(name, &labels, u8::from(state == now));
        }
    });
    for (at, row) in TIMES.iter().enumerate() {
        let name = page.family(row, Some("histogram"));
        page.each(&shared.services, |page, labels, one| {
            page.histogram(name, labels, [&one.connect_times, &one.service_times][at]);
        });
    }
    page.0
}

#[derive(Default)]
struct Page(String);

type Labels<'l> = [(&'l str, &'l str)];

impl Page {
    /// Begins a family, a counter if its name says so. Returns the name.
    fn family<'r>(&mut self, row: &'r str, kind: Option<&str>) -> &'r str {
        let (name, help) = row.split_once(": ").unwrap_or((row, ""));
        let kind = kind.unwrap_or(match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        });
        // Writing into a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP weigh_balance_{name} {help}");
        let _ = writeln!(self.0, "# TYPE weigh_balance_{name} {kind}");
        name
    }

    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        let _ = write!(self.0, "weigh_balance_{name}");
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn each(
        &mut self,
        services: &[Arc<ServiceState>],
        mut show: impl FnMut(&mut Page, &Labels<'_>, &BackendState),
    ) {
        for service in services {
            for one in &service.backends {
                let labels = [
                    ("service", service.name.as_str()),
                    ("backend", one.name.as_str()),
                ];
                show(self, &labels, one);
            }
        }
    }

    fn histogram(&mut self, name: &str, labels: &Labels<'_>, times: &DurationHistogram) {
        // One snapshot, so that buckets and count agree.
        let counts = times.counts();
        let bucket = format!("{name}_bucket");
        let mut sample = |bound: &str, count: u64| {
            let labels = [labels, &[("le", bound)]].concat();
            self.sample(&bucket, &labels, count);
        };
        for power in BOUNDS {
            let bound = (1_u64 << power) as f64 / 1e6;
            sample(&bound.to_string(), counts[..=power].iter().sum());
        }
        let all = counts.iter().sum();
        sample("+Inf", all);
        let sum_s = times.sum_us() as f64 / 1e6;
        self.sample(&format!("{name}_sum"), labels, sum_s);
        self.sample(&format!("{name}_count"), labels, all);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
