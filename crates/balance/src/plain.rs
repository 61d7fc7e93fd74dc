//! The part of a configuration that this version of the relay carries out.

use std::net::SocketAddr;
use std::time::Duration;

use crate::config::model::{Backend, Config, Service};

/// What a relay of TCP connections does: one service, round robin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where clients are sent, in turn.
    pub upstreams: Vec<SocketAddr>,
    /// Number of threads.
    pub threads: usize,
    /// Length of the queue of connections that wait to be accepted.
    pub backlog: i32,
    /// Most clients at one time, per thread.
    pub connections: u32,
    /// How long an upstream may take to accept a connection.
    pub connect_timeout: Duration,
}

/// A configuration that asks for more than the relay does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the relay of this version does one TCP service, round robin over IP addresses: {0} asks for \
     more"
)]
pub struct Unsupported(String);

impl BalancerConfig {
    /// The relay that a configuration describes.
    ///
    /// # Errors
    /// When it describes more than the relay does: nothing is left out silently.
    pub fn of(config: &Config) -> Result<BalancerConfig, Unsupported> {
        let [service] = config.services.as_slice() else {
            return Err(Unsupported(format!("{} services", config.services.len())));
        };
        let [listen] = service.listen.as_slice() else {
            return Err(Unsupported(format!("{} addresses", service.listen.len())));
        };
        let mut plain = Service::new(&service.name);
        plain.listen.clone_from(&service.listen);
        plain.backlog = service.backlog;
        plain.timeouts.connect = service.timeouts.connect;
        plain.reviving_interval = service.reviving_interval;
        plain.verbosity = service.verbosity;
        for backend in &service.backends {
            plain
                .backends
                .push(Backend::new(&backend.name, backend.address.clone()));
        }
        if plain != *service {
            return Err(Unsupported(format!("the service `{}`", service.name)));
        }
        let upstreams = service.backends.iter().map(|backend| {
            backend
                .address
                .socket()
                .ok_or_else(|| Unsupported(format!("the host `{}`", backend.address)))
        });
        Ok(BalancerConfig {
            listen: *listen,
            upstreams: upstreams.collect::<Result<_, _>>()?,
            threads: config.threads,
            backlog: i32::try_from(service.backlog).unwrap_or(i32::MAX),
            connections: config.connections_per_thread,
            connect_timeout: service.timeouts.connect,
        })
    }
}
