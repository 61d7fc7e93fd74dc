//! The thread that probes back ends.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use net::os;

use super::state::Shared;
use crate::config::model::Config;
use crate::health::HealthEvent;

/// How often each back end is asked whether a probe is due.
const TURN: Duration = Duration::from_millis(20);

/// Starts the thread; it ends when [`Shared::stop`] is set.
pub fn spawn(config: Arc<Config>, shared: Arc<Shared>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while !shared.stop.load(Ordering::Relaxed) {
            for (at, service) in shared.services.iter().enumerate() {
                for (number, backend) in service.backends.iter().enumerate() {
                    if backend.probe_due(os::now_ns(), &service.policy) {
                        let limit = config.services[at].timeouts.connect;
                        probe(shared.clone(), at, number, limit);
                    }
                }
            }
            std::thread::sleep(TURN);
        }
    })
}

fn probe(shared: Arc<Shared>, service: usize, backend: usize, limit: Duration) {
    std::thread::spawn(move || {
        let limit = if limit.is_zero() {
            Duration::MAX
        } else {
            limit
        };
        let address = shared.services[service].backends[backend].address();
        let event = match TcpStream::connect_timeout(&address, limit) {
            Ok(_) => HealthEvent::ProbeOk,
            Err(_) => HealthEvent::ProbeFailed,
        };
        shared.note(service, backend, event);
    });
}
