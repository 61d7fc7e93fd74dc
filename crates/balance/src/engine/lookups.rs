//! Looking up where back ends are, again and again, beside the thread that probes: the system's
//! resolver blocks for as long as it likes.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::waker::Waker;

/// Answers what addresses a name has.
pub(super) type LookupFn = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The places of a service and of a back end of it.
type BackendIndex = (usize, usize);

/// What a lookup found for a back end: its addresses.
pub(super) type LookupResult = (BackendIndex, io::Result<Vec<SocketAddr>>);

/// What is to be looked up.
struct Job {
    index: BackendIndex,
    name: String,
    port: u16,
}

/// The system's resolver.
pub(super) fn by_system(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((name, port).to_socket_addrs()?.collect())
}

/// Lookups; at most one is under way.
pub(super) struct Lookups {
    asked: Option<Sender<Job>>,
    found: Receiver<LookupResult>,
}

impl Lookups {
    /// Starts the thread that looks up. It ends once this is dropped and its last lookup has
    /// ended; nobody waits for it.
    pub fn start(look_up: LookupFn, waker: &Arc<Waker>) -> Lookups {
        let (asked, jobs) = channel::<Job>();
        let (sender, found) = channel();
        let waker = waker.clone();
        let thread = std::thread::Builder::new().name("lookups".to_owned());
        let started = thread.spawn(move || {
            for job in jobs {
                let found = look_up(&job.name, job.port);
                if sender.send((job.index, found)).is_err() {
                    return;
                }
                waker.wake();
            }
        });
        Lookups {
            asked: started.is_ok().then_some(asked),
            found,
        }
    }

    /// Asks for a back end's addresses; the answer comes by [`Lookups::next`].
    pub fn ask(&self, index: BackendIndex, name: &str, port: u16) {
        if let Some(asked) = &self.asked {
            let name = name.to_owned();
            let _ = asked.send(Job { index, name, port });
        }
    }

    /// The next answer, if there is one.
    pub fn next(&self) -> Option<LookupResult> {
        self.found.try_recv().ok()
    }
}

/// The address to use of those that a name has now: the present one, if it is among them.
pub(super) fn choose(present: SocketAddr, found: &[SocketAddr]) -> Option<SocketAddr> {
    match found.contains(&present) {
        true => Some(present),
        false => found.first().copied(),
    }
}
