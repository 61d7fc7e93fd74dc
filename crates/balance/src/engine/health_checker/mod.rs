//! The thread that probes back ends and re-resolves their names.
//!
//! It sleeps until a probe is due, a probe's socket is ready, or the state of a back end changes
//! ([`Waker`](net::os::Waker)). A state change cancels the probe under way.

pub(super) mod lookups;
mod probe;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::os;
use net::wait::{Watch, wait};
use tls::ClientTls;

use super::restarts::restart_on_panic;
use super::shared::Shared;
use super::shared::events::{Event, emits_events};
use crate::config::model::{Config, Host};
use crate::health::{HealthEvent, State};
use lookups::{LookupFn, Lookups};
use probe::{Probe, ProbeSettings};

/// How often host names are resolved again; also before a back end is revived. 30 s, as the
/// system's resolver does not report TTLs.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(30);
/// Polling interval when there is no waker.
const WITHOUT_WAKER: Duration = Duration::from_millis(50);

/// The running thread; dropping it stops the thread at once.
pub struct HealthChecker {
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl HealthChecker {
    /// Starts the thread. `tls`: of each back end, over all services.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        config: Arc<Config>,
        shared: Arc<Shared>,
        tls: Vec<Option<ClientTls>>,
    ) -> Result<HealthChecker, os::StartThreadError> {
        HealthChecker::start_with(config, shared, tls, lookups::by_system, LOOKUP_INTERVAL)
    }

    fn start_with(
        config: Arc<Config>,
        shared: Arc<Shared>,
        tls: Vec<Option<ClientTls>>,
        look_up: LookupFn,
        lookup_interval: Duration,
    ) -> Result<HealthChecker, os::StartThreadError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, state) = (stop.clone(), shared.clone());
        let thread = os::start_thread("of the health checker", move || {
            restart_on_panic("the health checker", &state, || {
                let (config, shared) = (config.clone(), state.clone());
                let mut check_loop = CheckLoop::new(config, shared, &tls, look_up, lookup_interval);
                while !stopped.load(Ordering::Acquire) {
                    check_loop.go();
                }
            });
        })?;
        Ok(HealthChecker {
            stop,
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for HealthChecker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct CheckedBackend {
    service: usize,
    backend: usize,
    settings: ProbeSettings,
    probe: Option<Probe>,
    /// Host name and port, unless it is an IP address.
    name: Option<(String, u16)>,
    /// A lookup is under way.
    asked: bool,
    /// The last lookup failed, which was reported.
    lost: bool,
}

struct CheckLoop {
    config: Arc<Config>,
    shared: Arc<Shared>,
    slots: Vec<CheckedBackend>,
    lookups: Option<Lookups>,
    lookup_interval: Duration,
    next_lookup: Instant,
}

impl CheckLoop {
    fn new(
        config: Arc<Config>,
        shared: Arc<Shared>,
        tls: &[Option<ClientTls>],
        look_up: LookupFn,
        lookup_interval: Duration,
    ) -> CheckLoop {
        let mut tls = tls.iter();
        let mut slots = Vec::new();
        // The thread of an earlier configuration, or one that panicked, may have left probes under
        // way.
        let now_ns = os::now_ns();
        for backend_state in shared.services.iter().flat_map(|one| &one.backends) {
            backend_state.probe_lost(now_ns);
        }
        for (service, one) in config.services.iter().enumerate() {
            for (backend, two) in one.backends.iter().enumerate() {
                slots.push(CheckedBackend {
                    service,
                    backend,
                    settings: ProbeSettings::new(one, two, tls.next().and_then(Option::as_ref)),
                    probe: None,
                    name: match &two.address.host {
                        Host::Name(name) => Some((name.clone(), two.address.port)),
                        Host::Ip(_) => None,
                    },
                    asked: false,
                    lost: false,
                });
            }
        }
        let named = slots.iter().any(|slot| slot.name.is_some());
        CheckLoop {
            lookups: named.then(|| Lookups::start(look_up, &shared)),
            config,
            shared,
            slots,
            lookup_interval,
            next_lookup: Instant::now() + lookup_interval,
        }
    }

    /// One iteration: does what is due, then sleeps.
    fn go(&mut self) {
        #[cfg(test)]
        self.shared
            .meet_panic(super::shared::Fault::HealthCheckerPanic);
        self.take_addresses();
        let again = Instant::now() >= self.next_lookup;
        if again {
            self.next_lookup = Instant::now() + self.lookup_interval;
        }
        let now_ns = os::now_ns();
        let mut sleep_ns = u64::MAX;
        for number in 0..self.slots.len() {
            let slot = &self.slots[number];
            let state = &self.shared.services[slot.service];
            let backend_state = state.backends[slot.backend].clone();
            let due = backend_state.probe_due(now_ns, &state.policy);
            let next_wake_ns = backend_state.next_wake_ns(now_ns, &state.policy);
            if again || (due && backend_state.state() == State::Waking) {
                self.look_up(number);
            }
            if due {
                self.begin(number);
            }
            sleep_ns = sleep_ns.min(next_wake_ns.unwrap_or(u64::MAX).saturating_sub(now_ns));
        }
        self.sleep(Duration::from_nanos(sleep_ns));
    }

    fn sleep(&mut self, most: Duration) {
        let now = Instant::now();
        let mut limit = most;
        if self.lookups.is_some() {
            limit = limit.min(self.next_lookup.saturating_duration_since(now));
        }
        let CheckLoop { shared, slots, .. } = self;
        let wake_fd = shared.waker.descriptor();
        let mut watches: Vec<Watch<'_>> = wake_fd.map(Watch::read).into_iter().collect();
        if wake_fd.is_none() {
            limit = limit.min(WITHOUT_WAKER);
        }
        let mut owners = Vec::new();
        for (number, slot) in slots.iter().enumerate() {
            if let Some(probe) = &slot.probe {
                limit = limit.min(probe.end().saturating_duration_since(now));
                watches.push(probe.watch());
                owners.push(number);
            }
        }
        // `poll` takes milliseconds as an i32.
        let limit = limit.min(Duration::from_secs(86_400));
        if wait(&mut watches, Some(limit)).is_err() {
            std::thread::sleep(WITHOUT_WAKER);
        }
        let bells = usize::from(wake_fd.is_some());
        let ready: Vec<bool> = watches.iter().skip(bells).map(|one| one.ready).collect();
        if wake_fd.is_some() {
            shared.waker.drain();
        }
        for (number, ready) in owners.into_iter().zip(ready) {
            self.go_on(number, ready);
        }
    }

    fn begin(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let address = self.shared.services[slot.service].backends[slot.backend].address();
        match Probe::begin(&slot.settings, address) {
            Ok(probe) => slot.probe = Some(probe),
            Err(_) => self.ended(number, false),
        }
    }

    fn go_on(&mut self, number: usize, ready: bool) {
        let Some(probe) = &mut self.slots[number].probe else {
            return;
        };
        let late = Instant::now() >= probe.end();
        let ended = if ready { probe.go_on() } else { None };
        if let Some(well) = ended.or(late.then_some(false)) {
            self.ended(number, well);
        }
    }

    fn ended(&mut self, number: usize, well: bool) {
        let slot = &mut self.slots[number];
        slot.probe = None;
        let (service, backend) = (slot.service, slot.backend);
        let backend_state = &self.shared.services[service].backends[backend];
        let before = backend_state.usable();
        let event = match well {
            true => HealthEvent::ProbeOk,
            false => HealthEvent::ProbeFailed,
        };
        // Ignored if the state was changed meanwhile.
        self.shared.note(service, backend, event);
        if before && !backend_state.usable() && emits_events(&self.config.services[service]) {
            self.shared.emit(Event::BackendFailed {
                service,
                backend,
                client: None,
            });
        }
    }

    fn look_up(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let backend_state = &self.shared.services[slot.service].backends[slot.backend];
        if let (Some((name, port)), Some(lookups), false) = (&slot.name, &self.lookups, slot.asked)
            && !backend_state.address_overridden()
        {
            slot.asked = true;
            lookups.ask((slot.service, slot.backend), name, *port);
        }
    }

    /// Applies the results of lookups.
    fn take_addresses(&mut self) {
        while let Some((index, found)) = self.lookups.as_ref().and_then(Lookups::next) {
            let mut slots = self.slots.iter_mut();
            let Some(slot) = slots.find(|slot| (slot.service, slot.backend) == index) else {
                continue;
            };
            slot.asked = false;
            let state = &self.shared.services[slot.service];
            let backend_state = &state.backends[slot.backend];
            let who = format!("service {}, back end {}", state.name, backend_state.name);
            let present = backend_state.address();
            let failed = match found {
                Ok(found) => match lookups::choose(present, &found) {
                    Some(address) => {
                        if address != present && !backend_state.address_overridden() {
                            backend_state.move_to(address);
                            let notice = format!("{who} has moved from {present} to {address}");
                            self.shared.notices.push(notice);
                        }
                        None
                    }
                    None => Some("the name has no address".to_owned()),
                },
                Err(error) => Some(error.to_string()),
            };
            let lost = std::mem::replace(&mut slot.lost, failed.is_some());
            if let (Some(why), false) = (failed, lost) {
                let notice = format!("{who} stays at {present}: cannot resolve its name: {why}");
                self.shared.notices.push(notice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Address, Backend, Service};
    use std::io;
    use std::net::SocketAddr;

    fn elsewhere(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::from(([127, 0, 0, 9], port))])
    }

    #[test]
    fn a_back_end_whose_name_has_another_address_is_moved_there() {
        let mut service = Service::new("web");
        let address = Address {
            host: Host::Name("back.example".to_owned()),
            port: 80,
        };
        service.backends.push(Backend::new("one", address.clone()));
        service.backends.push(Backend::new("two", address));
        let mut config = Config::new();
        config.services.push(service);
        let at = SocketAddr::from(([127, 0, 0, 1], 80));
        let shared = Arc::new(Shared::new(&config, &[vec![at, at]], os::now_ns()));
        let backends = &shared.services[0].backends;
        backends[1].set_address_overridden(true);
        let often = Duration::from_millis(1);
        let health_checker =
            HealthChecker::start_with(Arc::new(config), shared.clone(), vec![], elsewhere, often)
                .unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while backends[0].address() == at && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(health_checker);
        assert_eq!(
            backends[0].address(),
            SocketAddr::from(([127, 0, 0, 9], 80))
        );
        assert_eq!(backends[1].address(), at, "an operator placed it");
        let notices = shared.notices.take();
        assert_eq!(
            notices,
            ["service web, back end one has moved from 127.0.0.1:80 to 127.0.0.9:80"]
        );
    }

    #[test]
    fn it_ends_at_once() {
        let mut config = Config::new();
        config.services.push(Service::new("web"));
        let shared = Arc::new(Shared::new(&config, &[vec![]], 0));
        let health_checker = HealthChecker::start(Arc::new(config), shared, vec![]).unwrap();
        // Nothing is ever due, so only the alarm can end its sleep.
        drop(health_checker);
    }
}
