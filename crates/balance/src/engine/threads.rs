//! The balancer's threads and their listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use net::{Epoll, Io, IoKind, IoOptions, Uring, os};

use super::BalancerError;
use super::counters::be_worker;
use super::external::Mouth;
use super::http::{HttpPost, IDLE_MAX};
use super::post::Post;
use super::shared::Shared;
use super::worker::{Parts, Worker};
use crate::access::AccessRules;
use crate::config::model::{Config, Kind};

/// Connections beyond those of clients that a worker has room for: some that are being closed.
const SPARE: u32 = 64;

/// Receive buffers that a worker begins with: few enough that what is in them stays in the
/// processor's cache.
const BUFFERS: u16 = 128;
/// Their size: large transfers cost less per byte the larger the pieces are, up to about this.
const BUFFER_BYTES: u32 = 32 * 1024;

/// The most receive buffers: more than there are connections, which may each hold one for as long
/// as its peer takes nothing; as far as can be.
fn buffers_max(connections: u32) -> u16 {
    let more = connections.saturating_add(SPARE).saturating_mul(2) + 1;
    let most = more.clamp(1024, 1 << 15).next_power_of_two();
    u16::try_from(most).unwrap_or(1 << 15)
}

/// A listening socket of a service.
pub(super) struct Ear {
    /// The service's place.
    pub service: usize,
    /// The address as the configuration has it.
    pub wanted: SocketAddr,
    pub socket: TcpListener,
}

impl Ear {
    fn new(service: usize, wanted: SocketAddr, socket: TcpListener) -> Ear {
        Ear {
            service,
            wanted,
            socket,
        }
    }

    /// Another descriptor of the same socket.
    pub fn copy(&self) -> io::Result<Ear> {
        let socket = self.socket.try_clone()?;
        Ok(Ear::new(self.service, self.wanted, socket))
    }

    pub fn bound(&self) -> Result<SocketAddr, BalancerError> {
        let address = self.wanted;
        let bound = self.socket.local_addr();
        bound.map_err(|source| BalancerError::Listen { address, source })
    }
}

/// Opens the listening sockets, service after service: for each address those that a balancer
/// before this one has there (`old`, and by their places the names of its services), and so many
/// more that each thread has one.
///
/// Sockets that are taken over stay open all the time, so that no client that waits there to be
/// accepted is lost.
pub(super) fn listen(
    config: &Config,
    old: &[Ear],
    names: &[&str],
) -> Result<Vec<Ear>, BalancerError> {
    let mut ears: Vec<Ear> = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        let backlog = i32::try_from(service.backlog).unwrap_or(i32::MAX);
        for &wanted in &service.listen {
            let failed = |source| BalancerError::Listen {
                address: wanted,
                source,
            };
            let mut address = wanted;
            let mut have = 0;
            // Several services may have asked for a free port, and got different ones.
            let free = |ear: &&Ear| {
                wanted.port() != 0 || names.get(ear.service) == Some(&service.name.as_str())
            };
            for ear in old.iter().filter(|ear| ear.wanted == wanted).filter(free) {
                let mut ear = ear.copy().map_err(failed)?;
                ear.service = number;
                address = ear.bound()?;
                ears.push(ear);
                have += 1;
            }
            if have == 0 {
                // Sockets that share a port would take one that is in use without a word.
                os::listen(address, backlog, false).map_err(failed)?;
            }
            for _ in have..config.threads {
                let socket = os::listen(address, backlog, true).map_err(failed)?;
                // All threads take the port that the first was given.
                address = socket.local_addr().map_err(failed)?;
                ears.push(Ear::new(number, wanted, socket));
            }
        }
    }
    Ok(ears)
}

/// Deals the sockets out to threads, so that each has about as many of each address; gives back
/// copies, which keep them open for a balancer that comes after this one.
pub(super) fn deal(ears: Vec<Ear>, threads: usize) -> io::Result<(Vec<Vec<Ear>>, Vec<Ear>)> {
    let copies = ears.iter().map(Ear::copy).collect::<io::Result<_>>()?;
    let mut dealt: Vec<Vec<Ear>> = Vec::new();
    dealt.resize_with(threads, Vec::new);
    let mut place = 0;
    let mut last = None;
    for ear in ears {
        let next = Some((ear.service, ear.wanted));
        place = if last == next { place + 1 } else { 0 };
        last = next;
        if let Some(thread) = dealt.get_mut(place % threads.max(1)) {
            thread.push(ear);
        }
    }
    Ok((dealt, copies))
}

/// Each service's name with each address that it listens on.
pub(super) fn bound(
    config: &Config,
    ears: &[Ear],
) -> Result<Vec<(String, SocketAddr)>, BalancerError> {
    let mut all = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        for &wanted in &service.listen {
            let same = |ear: &&Ear| ear.service == number && ear.wanted == wanted;
            if let Some(ear) = ears.iter().find(same) {
                all.push((service.name.clone(), ear.bound()?));
            }
        }
    }
    Ok(all)
}

/// What a thread is given.
pub(super) struct Spawn {
    pub number: usize,
    pub config: Arc<Config>,
    pub shared: Arc<Shared>,
    pub rules: Vec<AccessRules>,
    pub ears: Vec<Ear>,
    /// Where a service has its back ends chosen by a program.
    pub mouth: Option<Mouth>,
    pub opened: Sender<io::Result<()>>,
}

/// Starts a thread. It says by `opened` whether it could open its event loop.
pub(super) fn spawn(kind: IoKind, given: Spawn) -> JoinHandle<()> {
    given.shared.listening.fetch_add(1, Ordering::Release);
    std::thread::spawn(move || match kind {
        IoKind::Uring => work::<Uring>(given),
        IoKind::Epoll => work::<Epoll>(given),
    })
}

fn work<I: Io>(given: Spawn) {
    be_worker(given.number);
    let http = given.config.services.iter();
    let http = http.filter(|service| service.kind != Kind::Tcp);
    let backends: usize = http.map(|service| service.backends.len()).sum();
    // Each keeps one connection at least.
    let idle = if backends > 0 {
        IDLE_MAX.max(backends) as u32
    } else {
        0
    };
    let options = IoOptions {
        outgoing: given.config.connections_per_thread + SPARE + idle,
        accepted: given.config.connections_per_thread + SPARE,
        buffers: BUFFERS,
        buffers_max: buffers_max(given.config.connections_per_thread),
        buffer_size: BUFFER_BYTES,
        files: true,
        stamps: false,
    };
    let services = given.ears.iter().map(|ear| ear.service).collect();
    let opened = I::open(options).and_then(|mut io| {
        for ear in given.ears {
            io.listen(ear.socket)?;
        }
        Ok(io)
    });
    let mut io = match opened {
        Ok(io) => io,
        Err(e) => return drop(given.opened.send(Err(e))),
    };
    let posts = given
        .config
        .services
        .iter()
        .zip(given.rules)
        .zip(&given.shared.services)
        .map(|((service, rules), state)| {
            let http = HttpPost::new(service, state, backends);
            Post::new(service, state, rules, http, &mut io)
        })
        .collect();
    let parts = Parts {
        shared: given.shared,
        clients_max: given.config.connections_per_thread,
        listeners: services,
        slots: options.slots(),
        mouth: given.mouth,
    };
    let _ = given.opened.send(Ok(()));
    Worker::new(io, posts, parts).run();
}
