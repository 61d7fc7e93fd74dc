//! The TLS of all services and back ends, opened once for all threads.

use tls::{ClientTls, ServerTls, TlsError};

use crate::config::model::{Config, Service};
use crate::engine::BalancerError;

/// What each worker's event loop needs. Threads share the keys of tickets, and the sessions with
/// back ends.
pub(in crate::engine) struct WorkerTls {
    /// One per service.
    servers: Vec<Option<ServerTls>>,
    /// One per back end, over all services.
    clients: Vec<Option<ClientTls>>,
}

impl Config {
    /// Reads the certificates and keys of all services and back ends.
    ///
    /// # Errors
    /// [`BalancerError::Tls`] for the first that cannot be used.
    pub fn check_tls(&self) -> Result<(), BalancerError> {
        WorkerTls::open(self).map(drop)
    }
}

impl WorkerTls {
    /// Reads certificates and keys.
    pub fn open(config: &Config) -> Result<WorkerTls, BalancerError> {
        let failed = |service: &Service, source: TlsError| BalancerError::Tls {
            service: service.name.clone(),
            source,
        };
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for service in &config.services {
            let server = service
                .tls
                .as_ref()
                .map(|one| one.open(service))
                .transpose();
            servers.push(server.map_err(|e| failed(service, e))?);
            for backend in &service.backends {
                let client = backend.tls.as_ref().map(|one| one.open(backend));
                clients.push(client.transpose().map_err(|e| failed(service, e))?);
            }
        }
        Ok(WorkerTls { servers, clients })
    }

    /// The TLS of listeners of these services.
    pub fn of_listeners(&self, services: &[usize]) -> Vec<Option<ServerTls>> {
        services
            .iter()
            .map(|&service| self.servers[service].clone())
            .collect()
    }

    /// The TLS of all back ends.
    pub fn of_backends(&self) -> Vec<Option<ClientTls>> {
        self.clients.clone()
    }
}
