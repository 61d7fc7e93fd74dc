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

/// Renders the page.
pub fn page(supervisor: &Supervisor) -> String {
    let shared = supervisor.shared();
    let (reloads, reload_failures) = supervisor.reloads();
    let mut page = Page::default();
    let uptime_ns = os::now_ns().saturating_sub(shared.started_ns);
    for (name, help, value) in [
        (
            "uptime_seconds",
            "Time since the balancer started.",
            uptime_ns as f64 / 1e9,
        ),
        (
            "reloads_total",
            "Configurations that took the place of an earlier one.",
            reloads as f64,
        ),
        (
            "reload_failures_total",
            "Configurations that could not be used.",
            reload_failures as f64,
        ),
        (
            "earlier_configurations",
            "Earlier configurations that still have clients.",
            supervisor.retired() as f64,
        ),
        (
            "events_lost_total",
            "Events that logs and commands had no room for.",
            shared.events_lost.get() as f64,
        ),
        (
            "log_failures_total",
            "Lines that could not be written to a log.",
            shared.log_failures.get() as f64,
        ),
        (
            "command_failures_total",
            "Commands that failed, took too long, or were left out.",
            shared.hook_failures.get() as f64,
        ),
        (
            "accept_failures_total",
            "Times that accepting failed for want of descriptors, memory or places.",
            shared.accept_failures.get() as f64,
        ),
        (
            "worker_restarts_total",
            "Worker threads that failed and were started again.",
            shared.worker_restarts.get() as f64,
        ),
    ] {
        page.family(name, kind(name), help);
        page.sample(name, &[], value);
    }
    page.services(&shared.services);
    page.backends(&shared.services);
    page.states(&shared.services);
    page.times(&shared.services);
    page.0
}

#[derive(Default)]
struct Page(String);

type Labels<'l> = [(&'l str, &'l str)];

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP weigh_balance_{name} {help}");
        let _ = writeln!(self.0, "# TYPE weigh_balance_{name} {kind}");
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

    fn services(&mut self, services: &[Arc<ServiceState>]) {
        type Value = fn(&ServiceState) -> u64;
        let families: [(&str, &str, Value); 10] = [
            ("active_clients", "Clients that are connected now.", |one| {
                one.active.load(Ordering::Relaxed).into()
            }),
            (
                "queued_clients",
                "Clients that wait for a back end now.",
                |one| one.queued.load(Ordering::Relaxed).into(),
            ),
            ("clients_total", "Clients accepted.", |one| {
                one.clients.get()
            }),
            (
                "clients_denied_total",
                "Clients that the access lists did not let in.",
                |one| one.denied.get(),
            ),
            (
                "clients_overflowed_total",
                "Clients turned away because there were too many, or who waited too long.",
                |one| one.overflowed.get(),
            ),
            (
                "clients_evicted_total",
                "Idle clients closed to make room for new ones.",
                |one| one.evicted.get(),
            ),
            (
                "refused_total",
                "Clients, or requests, that no back end took.",
                |one| one.refused.get(),
            ),
            (
                "bad_requests_total",
                "Clients, or requests, refused for what they said.",
                |one| one.bad_requests.get(),
            ),
            (
                "timeouts_total",
                "Waits that ended by their time limit.",
                |one| one.timeouts.get(),
            ),
            (
                "cut_silent_total",
                "Responses under way, and upgraded connections, cut after silence.",
                |one| one.cut_silent.get(),
            ),
        ];
        for (name, help, value) in families {
            self.family(name, kind(name), help);
            for one in services {
                self.sample(name, &[("service", &one.name)], value(one));
            }
        }
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

    fn backends(&mut self, services: &[Arc<ServiceState>]) {
        type Value = fn(&BackendState) -> u64;
        let families: [(&str, &str, Value); 8] = [
            (
                "backend_up",
                "Whether clients are sent to the back end.",
                |one| one.usable().into(),
            ),
            (
                "backend_active",
                "Connections that clients have to the back end, or requests under way.",
                |one| one.active.load(Ordering::Relaxed).into(),
            ),
            (
                "backend_connections_total",
                "Connections that were opened to the back end.",
                |one| one.connections.get(),
            ),
            (
                "backend_connect_failures_total",
                "Connections that could not be opened.",
                |one| one.connect_failures.get(),
            ),
            (
                "backend_requests_total",
                "Requests sent to the back end (HTTP).",
                |one| one.requests.get(),
            ),
            (
                "backend_answer_failures_total",
                "Answers that failed (HTTP).",
                |one| one.response_failures.get(),
            ),
            (
                "backend_sent_bytes_total",
                "Bytes from clients to the back end.",
                |one| one.bytes_to.get(),
            ),
            (
                "backend_received_bytes_total",
                "Bytes from the back end to clients.",
                |one| one.bytes_from.get(),
            ),
        ];
        for (name, help, value) in families {
            self.family(name, kind(name), help);
            self.each(services, |page, labels, one| {
                page.sample(name, labels, value(one))
            });
        }
    }

    fn states(&mut self, services: &[Arc<ServiceState>]) {
        let name = "backend_state";
        self.family(
            name,
            "gauge",
            "1 for the state that the back end is in, 0 for the others.",
        );
        let all = [
            State::Available,
            State::Unavailable,
            State::Waking,
            State::Down,
        ];
        self.each(services, |page, labels, one| {
            let now = one.state();
            for state in all {
                let labels = [labels, &[("state", state.word())]].concat();
                page.sample(name, &labels, u8::from(state == now));
            }
        });
    }

    fn times(&mut self, services: &[Arc<ServiceState>]) {
        type Value = fn(&BackendState) -> &DurationHistogram;
        let families: [(&str, &str, Value); 2] = [
            (
                "backend_connect_seconds",
                "Time to open a connection to the back end.",
                |one| &one.connect_times,
            ),
            (
                "backend_session_seconds",
                "Length of connections; of an HTTP service, time to a complete answer.",
                |one| &one.service_times,
            ),
        ];
        for (name, help, times) in families {
            self.family(name, "histogram", help);
            self.each(services, |page, labels, one| {
                page.histogram(name, labels, times(one))
            });
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

fn kind(name: &str) -> &'static str {
    match name.ends_with("_total") {
        true => "counter",
        false => "gauge",
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
