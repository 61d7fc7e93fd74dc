//! The balancer's threads and their listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use net::{Epoll, Io, IoKind, IoOptions, Uring, os};

use super::BalancerError;
use super::post::Post;
use super::state::Shared;
use super::tell::Teller;
use super::worker::{Parts, Worker};
use crate::access::AccessRules;
use crate::config::model::Config;

/// Connections beyond those of clients that a worker has room for: some that are being closed.
const SPARE: u32 = 64;

/// Opens the listening sockets: for each thread, one per address of each service, in order.
pub(super) fn listen(config: &Config) -> Result<Vec<Vec<TcpListener>>, BalancerError> {
    let share = config.threads > 1;
    let mut threads: Vec<Vec<TcpListener>> = Vec::new();
    threads.resize_with(config.threads, Vec::new);
    for service in &config.services {
        let backlog = i32::try_from(service.backlog).unwrap_or(i32::MAX);
        for &address in &service.listen {
            let failed = |source| BalancerError::Listen { address, source };
            if share {
                // Sockets that share a port would take one that is in use without a word.
                os::listen(address, backlog, false).map_err(failed)?;
            }
            let mut address = address;
            for thread in &mut threads {
                let listener = os::listen(address, backlog, share).map_err(failed)?;
                // All threads take the port that the first was given.
                address = listener.local_addr().map_err(failed)?;
                thread.push(listener);
            }
        }
    }
    Ok(threads)
}

/// Each service's name with each address that it listens on.
pub(super) fn bound(
    config: &Config,
    threads: &[Vec<TcpListener>],
) -> Result<Vec<(String, SocketAddr)>, BalancerError> {
    let wanted = config.services.iter().flat_map(|service| {
        service
            .listen
            .iter()
            .map(|address| (&service.name, *address))
    });
    let Some(first) = threads.first() else {
        return Ok(Vec::new());
    };
    wanted
        .zip(first)
        .map(|((name, address), listener)| {
            let bound = listener
                .local_addr()
                .map_err(|source| BalancerError::Listen { address, source })?;
            Ok((name.clone(), bound))
        })
        .collect()
}

/// What a thread is given.
pub(super) struct Spawn {
    pub config: Arc<Config>,
    pub shared: Arc<Shared>,
    pub addresses: Arc<Vec<Vec<SocketAddr>>>,
    pub rules: Vec<AccessRules>,
    pub teller: Teller,
    pub listeners: Vec<TcpListener>,
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
    let options = IoOptions {
        outgoing: given.config.connections_per_thread + SPARE,
        accepted: given.config.connections_per_thread + SPARE,
        buffers: 1024,
        buffer_size: 16 * 1024,
        files: true,
    };
    let opened = I::open(options).and_then(|mut io| {
        for listener in given.listeners {
            io.listen(listener)?;
        }
        Ok(io)
    });
    let mut io = match opened {
        Ok(io) => io,
        Err(e) => return drop(given.opened.send(Err(e))),
    };
    let services = given.config.services.iter();
    let posts = services
        .clone()
        .zip(given.rules)
        .zip(given.addresses.iter())
        .map(|((service, rules), addresses)| Post::new(service, addresses, rules, &mut io))
        .collect();
    let listeners = services
        .enumerate()
        .flat_map(|(number, service)| service.listen.iter().map(move |_| number))
        .collect();
    let parts = Parts {
        shared: given.shared,
        clients_max: given.config.connections_per_thread,
        listeners,
        teller: given.teller,
        slots: options.slots(),
    };
    let _ = given.opened.send(Ok(()));
    Worker::new(io, posts, parts).run();
}
