//! Name resolution: at the start, and later on its own thread, as the system's resolver blocks.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use net::os;

use crate::config::model::{Config, Host};
use crate::engine::error::BalancerError;
use crate::engine::restarts::restart_on_panic;
use crate::engine::shared::Shared;

/// Resolves a name.
pub(in crate::engine) type LookupFn = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Service and back end.
type BackendIndex = (usize, usize);

pub(in crate::engine) type LookupResult = (BackendIndex, io::Result<Vec<SocketAddr>>);

struct Job {
    index: BackendIndex,
    name: String,
    port: u16,
}

pub(in crate::engine) fn by_system(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((name, port).to_socket_addrs()?.collect())
}

/// The address of each back end, by service: the first that the system returns.
pub(in crate::engine) fn all_backends(
    config: &Config,
) -> Result<Vec<Vec<SocketAddr>>, BalancerError> {
    let mut all = Vec::new();
    for service in &config.services {
        let mut own = Vec::new();
        for backend in &service.backends {
            let found = match &backend.address.host {
                Host::Ip(ip) => Ok(SocketAddr::new(*ip, backend.address.port)),
                Host::Name(name) => first(by_system, name, backend.address.port),
            };
            own.push(found.map_err(|source| BalancerError::Resolve {
                service: service.name.clone(),
                backend: backend.name.clone(),
                address: backend.address.to_string(),
                source,
            })?);
        }
        all.push(own);
    }
    Ok(all)
}

fn first(look_up: LookupFn, name: &str, port: u16) -> io::Result<SocketAddr> {
    let found = look_up(name, port)?.first().copied();
    found.ok_or_else(|| io::Error::other("the name has no address"))
}

/// How long [`Config::check_names`] waits for the system's resolver.
const CHECK_LIMIT: Duration = Duration::from_secs(5);

impl Config {
    /// Looks up the host names of back ends, within 5 s. Returns why the balancer would not start
    /// here, for each name without an address.
    pub fn check_names(&self) -> Vec<String> {
        check_names(self, by_system, CHECK_LIMIT)
    }
}

fn check_names(config: &Config, look_up: LookupFn, limit: Duration) -> Vec<String> {
    let mut jobs = Vec::new();
    for service in &config.services {
        for backend in &service.backends {
            if let Host::Name(name) = &backend.address.host {
                let who = format!("service `{}`, back end `{}`", service.name, backend.name);
                jobs.push((who, name.clone(), backend.address.port));
            }
        }
    }
    let (sender, results) = channel();
    let asked: Vec<(String, u16)> = jobs
        .iter()
        .map(|(_, name, port)| (name.clone(), *port))
        .collect();
    // Not joined: the system's resolver has no limit.
    let started = os::start_thread("which looks names up", move || {
        for (name, port) in asked {
            if sender.send(first(look_up, &name, port)).is_err() {
                return;
            }
        }
    });
    if let Err(error) = started {
        return vec![error.to_string()];
    }
    let end = Instant::now() + limit;
    let mut found = Vec::new();
    for (who, name, port) in jobs {
        let left = end.saturating_duration_since(Instant::now());
        match results.recv_timeout(left) {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => found.push(format!("{who}: cannot look up `{name}:{port}`: {why}")),
            Err(_) => {
                let limit = limit.as_secs();
                found.push(format!(
                    "{who}: `{name}:{port}` was not looked up within {limit} s; names after it \
                     were not looked up either"
                ));
                break;
            }
        }
    }
    found
}

/// The lookup thread; it does one lookup at a time.
pub(in crate::engine) struct Lookups {
    asked: Option<Sender<Job>>,
    found: Receiver<LookupResult>,
}

impl Lookups {
    /// Starts the thread. It ends after the last lookup once this is dropped, and is not joined.
    pub fn start(look_up: LookupFn, shared: &Arc<Shared>) -> Lookups {
        let (asked, jobs) = channel::<Job>();
        let (sender, found) = channel();
        let shared = shared.clone();
        let notices = shared.clone();
        let started = os::start_thread("which looks names up", move || {
            // The back end of the lookup under way.
            let mut current = None;
            restart_on_panic("the lookup thread", &shared, || {
                if let Some(index) = current.take() {
                    let failure = io::Error::other("the lookup thread failed");
                    let _ = sender.send((index, Err(failure)));
                    shared.waker.wake();
                }
                for job in &jobs {
                    current = Some(job.index);
                    let found = look_up(&job.name, job.port);
                    current = None;
                    if sender.send((job.index, found)).is_err() {
                        return;
                    }
                    shared.waker.wake();
                }
            });
        });
        if let Err(error) = &started {
            let notice = format!("names of back ends are not looked up again: {error}");
            notices.notices.push(notice);
        }
        Lookups {
            asked: started.is_ok().then_some(asked),
            found,
        }
    }

    /// Queues a lookup; [`Lookups::next`] returns the result.
    pub fn ask(&self, index: BackendIndex, name: &str, port: u16) {
        if let Some(asked) = &self.asked {
            let name = name.to_owned();
            let _ = asked.send(Job { index, name, port });
        }
    }

    pub fn next(&self) -> Option<LookupResult> {
        self.found.try_recv().ok()
    }
}

/// Keeps the current address if the name still has it, else takes the first.
pub(in crate::engine) fn choose(present: SocketAddr, found: &[SocketAddr]) -> Option<SocketAddr> {
    match found.contains(&present) {
        true => Some(present),
        false => found.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use testing::Text as _;

    use super::*;
    use crate::config::model::{Address, Backend, Service};

    #[test]
    fn a_check_names_back_ends_without_an_address_and_waits_for_so_long_only() {
        fn look_up(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            match name {
                "good.example" => Ok(vec![SocketAddr::from(([127, 0, 0, 9], port))]),
                "empty.example" => Ok(Vec::new()),
                "slow.example" => {
                    std::thread::sleep(Duration::from_secs(20));
                    Ok(Vec::new())
                }
                _ => Err(io::Error::other("unknown")),
            }
        }
        let mut service = Service::new("web");
        let at = SocketAddr::from(([127, 0, 0, 1], 80));
        service.backends.push(Backend::new("fixed", at.into()));
        for name in ["good", "bad", "empty", "slow", "after"] {
            let address = Address {
                host: Host::Name(format!("{name}.example")),
                port: 80,
            };
            service.backends.push(Backend::new(name, address));
        }
        let mut config = Config::new();
        config.services.push(service);
        let began = Instant::now();
        let found = check_names(&config, look_up, Duration::from_secs(1));
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(
            found,
            [
                "service `web`, back end `bad`: cannot look up `bad.example:80`: unknown",
                "service `web`, back end `empty`: cannot look up `empty.example:80`: the name has \
                 no address",
                "service `web`, back end `slow`: `slow.example:80` was not looked up within 1 s; \
                 names after it were not looked up either",
            ]
        );
    }

    fn fails_once(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        static FAILED: AtomicBool = AtomicBool::new(false);
        assert!(FAILED.swap(true, Ordering::SeqCst), "injected");
        Ok(vec![SocketAddr::from(([127, 0, 0, 9], port))])
    }

    #[test]
    fn a_thread_that_panics_is_restarted_and_its_lookup_has_failed() {
        let shared = Arc::new(Shared::new(&Config::new(), &[], 0));
        let lookups = Lookups::start(fails_once, &shared);
        let result = |number| {
            lookups.ask((0, number), "back.example", 80);
            let end = Instant::now() + Duration::from_secs(20);
            while Instant::now() < end {
                if let Some(result) = lookups.next() {
                    return result;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("no result");
        };
        let (index, found) = result(1);
        assert!(index == (0, 1) && found.is_err());
        let (index, found) = result(2);
        assert!(index == (0, 2) && found.is_ok());
        let said = shared.notices.take();
        said[0].begins("the lookup thread failed and is restarted: ");
    }
}
