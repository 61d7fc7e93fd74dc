//! Name resolution: at the start, and later on its own thread, as the system's resolver blocks.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::BalancerError;
use super::restarts::restart_on_panic;
use super::shared::Shared;
use crate::config::model::{Config, Host};

/// Resolves a name.
pub(super) type LookupFn = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Service and back end.
type BackendIndex = (usize, usize);

pub(super) type LookupResult = (BackendIndex, io::Result<Vec<SocketAddr>>);

struct Job {
    index: BackendIndex,
    name: String,
    port: u16,
}

pub(super) fn by_system(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((name, port).to_socket_addrs()?.collect())
}

/// The address of each back end, by service: the first that the system returns.
pub(super) fn all_backends(config: &Config) -> Result<Vec<Vec<SocketAddr>>, BalancerError> {
    let mut all = Vec::new();
    for service in &config.services {
        let mut own = Vec::new();
        for backend in &service.backends {
            let found = match &backend.address.host {
                Host::Ip(ip) => Ok(SocketAddr::new(*ip, backend.address.port)),
                Host::Name(name) => first(name, backend.address.port),
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

fn first(name: &str, port: u16) -> io::Result<SocketAddr> {
    let found = by_system(name, port)?.first().copied();
    found.ok_or_else(|| io::Error::other("the name has no address"))
}

/// The lookup thread; it does one lookup at a time.
pub(super) struct Lookups {
    asked: Option<Sender<Job>>,
    found: Receiver<LookupResult>,
}

impl Lookups {
    /// Starts the thread. It ends after the last lookup once this is dropped, and is not joined.
    pub fn start(look_up: LookupFn, shared: &Arc<Shared>) -> Lookups {
        let (asked, jobs) = channel::<Job>();
        let (sender, found) = channel();
        let shared = shared.clone();
        let thread = std::thread::Builder::new().name("lookups".to_owned());
        let started = thread.spawn(move || {
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
pub(super) fn choose(present: SocketAddr, found: &[SocketAddr]) -> Option<SocketAddr> {
    match found.contains(&present) {
        true => Some(present),
        false => found.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

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
        assert!(
            said[0].starts_with("the lookup thread failed and is restarted: "),
            "{said:?}"
        );
    }
}
