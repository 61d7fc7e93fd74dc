//! Name resolution at the start.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use super::BalancerError;
use crate::config::model::{Backend, Config, Host};

/// The address of each back end, by service: the first that the system returns.
pub(super) fn backends(config: &Config) -> Result<Vec<Vec<SocketAddr>>, BalancerError> {
    let mut all = Vec::new();
    for service in &config.services {
        let mut own = Vec::new();
        for backend in &service.backends {
            own.push(look_up(backend).map_err(|source| BalancerError::Resolve {
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

fn look_up(backend: &Backend) -> io::Result<SocketAddr> {
    match &backend.address.host {
        Host::Ip(ip) => Ok(SocketAddr::new(*ip, backend.address.port)),
        Host::Name(name) => (name.as_str(), backend.address.port)
            .to_socket_addrs()?
            .next()
            .ok_or_else(|| io::Error::other("the name has no address")),
    }
}
