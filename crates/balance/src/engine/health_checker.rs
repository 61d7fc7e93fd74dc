//! The thread that probes back ends, and looks up again where they are.
//!
//! It sleeps until a probe is due, a connection of a probe has something to tell, or the state of
//! a back end was changed ([`Waker`](super::alarm::Alarm)). A probe whose back end's state was
//! changed in the meantime is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::os;
use net::wait::{Watch, wait};

use super::events::{Event, wanted};
use super::lookups::{self, LookUp, Lookups};
use super::probe::{Manner, Probe};
use super::shared::Shared;
use crate::config::model::{Config, Host};
use crate::health::{HealthEvent, State};

/// How often host names are looked up again; besides, whenever a back end is to be revived.
/// 30 s: the system's resolver does not tell for how long an answer holds, and few names change
/// more often.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(30);
/// It looks up at least this often where nothing can wake it.
const WITHOUT_WAKER: Duration = Duration::from_millis(50);

/// The running thread; dropping it ends the thread at once.
pub struct HealthChecker {
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl HealthChecker {
    /// Starts the thread.
    ///
    /// # Panics
    /// When the system has no thread to give, as [`std::thread::spawn`] does.
    pub fn start(config: Arc<Config>, shared: Arc<Shared>) -> HealthChecker {
        HealthChecker::start_with(config, shared, lookups::by_system, LOOK_UP_AGAIN)
    }

    fn start_with(
        config: Arc<Config>,
        shared: Arc<Shared>,
        look_up: LookUp,
        look_up_again: Duration,
    ) -> HealthChecker {
        let stop = Arc::new(AtomicBool::new(false));
        let mut rounds = Rounds::new(config, shared.clone(), look_up, look_up_again);
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                rounds.go();
            }
        });
        HealthChecker {
            stop,
            shared,
            thread: Some(thread),
        }
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

/// What is known of a back end here.
struct Slot {
    service: usize,
    backend: usize,
    manner: Manner,
    probe: Option<Probe>,
    /// Its host name and port, where it has a name.
    name: Option<(String, u16)>,
    /// A lookup of its name was asked for.
    asked: bool,
    /// The last lookup failed, which was told.
    lost: bool,
}

struct Rounds {
    config: Arc<Config>,
    shared: Arc<Shared>,
    slots: Vec<Slot>,
    lookups: Option<Lookups>,
    look_up_again: Duration,
    look_up_at: Instant,
}

impl Rounds {
    fn new(
        config: Arc<Config>,
        shared: Arc<Shared>,
        look_up: LookUp,
        look_up_again: Duration,
    ) -> Rounds {
        let mut slots = Vec::new();
        // An earlier configuration's thread may have had some under way.
        let now_ns = os::now_ns();
        for life in shared.services.iter().flat_map(|one| &one.backends) {
            life.probe_lost(now_ns);
        }
        for (service, one) in config.services.iter().enumerate() {
            for (backend, two) in one.backends.iter().enumerate() {
                slots.push(Slot {
                    service,
                    backend,
                    manner: Manner::new(one, two),
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
        Rounds {
            lookups: named.then(|| Lookups::start(look_up, &shared.waker)),
            config,
            shared,
            slots,
            look_up_again,
            look_up_at: Instant::now() + look_up_again,
        }
    }

    /// One round: what is due, then sleep.
    fn go(&mut self) {
        self.take_addresses();
        let again = Instant::now() >= self.look_up_at;
        if again {
            self.look_up_at = Instant::now() + self.look_up_again;
        }
        let now_ns = os::now_ns();
        let mut sleep_ns = u64::MAX;
        for number in 0..self.slots.len() {
            let slot = &self.slots[number];
            let state = &self.shared.services[slot.service];
            let life = state.backends[slot.backend].clone();
            let due = life.probe_due(now_ns, &state.policy);
            let look_ns = life.look_ns(now_ns, &state.policy);
            if again || (due && life.state() == State::Waking) {
                self.look_up(number);
            }
            if due {
                self.begin(number);
            }
            sleep_ns = sleep_ns.min(look_ns.unwrap_or(u64::MAX).saturating_sub(now_ns));
        }
        self.sleep(Duration::from_nanos(sleep_ns));
    }

    fn sleep(&mut self, most: Duration) {
        let now = Instant::now();
        let mut limit = most;
        if self.lookups.is_some() {
            limit = limit.min(self.look_up_at.saturating_duration_since(now));
        }
        let Rounds { shared, slots, .. } = self;
        let bell = shared.waker.descriptor();
        let mut watches: Vec<Watch<'_>> = bell.map(Watch::read).into_iter().collect();
        if bell.is_none() {
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
        // Bounded, as the longest wait is given in milliseconds of 32 bits.
        let limit = limit.min(Duration::from_secs(86_400));
        if wait(&mut watches, Some(limit)).is_err() {
            std::thread::sleep(WITHOUT_WAKER);
        }
        let bells = usize::from(bell.is_some());
        let ready: Vec<bool> = watches.iter().skip(bells).map(|one| one.ready).collect();
        if bell.is_some() {
            shared.waker.drain();
        }
        for (number, ready) in owners.into_iter().zip(ready) {
            self.go_on(number, ready);
        }
    }

    fn begin(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let address = self.shared.services[slot.service].backends[slot.backend].address();
        match Probe::begin(&slot.manner, address) {
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
        let life = &self.shared.services[service].backends[backend];
        let before = life.usable();
        let event = match well {
            true => HealthEvent::ProbeOk,
            false => HealthEvent::ProbeFailed,
        };
        // Where the state was changed and no new probe was due, this is without effect.
        self.shared.note(service, backend, event);
        if before && !life.usable() && wanted(&self.config.services[service]) {
            self.shared.tell(Event::BackendFailed {
                service,
                backend,
                client: None,
            });
        }
    }

    fn look_up(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let life = &self.shared.services[slot.service].backends[slot.backend];
        if let (Some((name, port)), Some(lookups), false) = (&slot.name, &self.lookups, slot.asked)
            && !life.placed()
        {
            slot.asked = true;
            lookups.ask((slot.service, slot.backend), name, *port);
        }
    }

    /// Moves back ends whose names have other addresses now.
    fn take_addresses(&mut self) {
        while let Some((whose, found)) = self.lookups.as_ref().and_then(Lookups::next) {
            let mut slots = self.slots.iter_mut();
            let Some(slot) = slots.find(|slot| (slot.service, slot.backend) == whose) else {
                continue;
            };
            slot.asked = false;
            let state = &self.shared.services[slot.service];
            let life = &state.backends[slot.backend];
            let who = format!("service {}, back end {}", state.name, life.name);
            let present = life.address();
            let failed = match found {
                Ok(found) => match lookups::choose(present, &found) {
                    Some(address) => {
                        if address != present && !life.placed() {
                            life.move_to(address);
                            let notice = format!("{who} has moved from {present} to {address}");
                            self.shared.notices.say(notice);
                        }
                        None
                    }
                    None => Some("the name has no address".to_owned()),
                },
                Err(error) => Some(error.to_string()),
            };
            let lost = std::mem::replace(&mut slot.lost, failed.is_some());
            if let (Some(why), false) = (failed, lost) {
                let notice = format!("{who} stays at {present}: cannot look it up: {why}");
                self.shared.notices.say(notice);
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
        backends[1].set_placed(true);
        let often = Duration::from_millis(1);
        let health_checker =
            HealthChecker::start_with(Arc::new(config), shared.clone(), elsewhere, often);
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
        let health_checker = HealthChecker::start(Arc::new(config), shared);
        // Nothing is ever due, so only the alarm can end its sleep.
        drop(health_checker);
    }
}
