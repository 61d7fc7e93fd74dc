//! The TLS of all services and back ends, opened once for all threads.

use std::path::Path;

use tls::{ClientSettings, ClientTls, Identity, ServerSettings, ServerTls, TlsError, Trust};

use crate::config::model::{Backend, Config, Host, Service};
use crate::config::tls::{BackendTls, ServiceTls};
use crate::engine::error::BalancerError;

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
                .map(|one| server(one, service))
                .transpose();
            servers.push(server.map_err(|e| failed(service, e))?);
            for backend in &service.backends {
                let client = backend.tls.as_ref().map(|one| client(one, backend));
                clients.push(client.transpose().map_err(|e| failed(service, e))?);
            }
        }
        Ok(WorkerTls { servers, clients })
    }

    pub fn for_listeners(&self, services: &[usize]) -> Vec<Option<ServerTls>> {
        services
            .iter()
            .map(|&service| self.servers[service].clone())
            .collect()
    }

    pub fn for_backends(&self) -> Vec<Option<ClientTls>> {
        self.clients.clone()
    }
}

/// Reads the files of a service.
fn server(tls: &ServiceTls, service: &Service) -> Result<ServerTls, TlsError> {
    let versions = service.http_versions();
    let mut alpn = Vec::new();
    if versions.two {
        alpn.push("h2".into());
    }
    // Of a TCP service nothing else is known either.
    if versions.one || !versions.two {
        alpn.push("http/1.1".into());
    }
    let settings = ServerSettings {
        version: tls.version,
        suites: tls.suites.clone(),
        groups: tls.groups.clone(),
        tickets: tls.tickets,
        client_authorities: tls.client_ca.as_deref().map(read).transpose()?,
        alpn,
        ..ServerSettings::new(Identity {
            chain: read(&tls.certificate)?,
            key: read(&tls.key)?,
        })
    };
    ServerTls::with_key(
        &settings,
        &tls.certificate.to_string_lossy(),
        &tls.key.to_string_lossy(),
    )
}

/// Reads the files of a back end.
fn client(tls: &BackendTls, backend: &Backend) -> Result<ClientTls, TlsError> {
    let name = match (&tls.name, &backend.address.host) {
        (Some(name), _) => name.clone(),
        (None, Host::Ip(ip)) => ip.to_string(),
        (None, Host::Name(name)) => name.clone(),
    };
    ClientTls::new(&ClientSettings {
        trust: match &tls.ca {
            _ if tls.insecure => Trust::Anything,
            None => Trust::Platform,
            Some(path) => Trust::Authorities(read(path)?),
        },
        alpn: vec![match backend.speaks_http_2() {
            true => "h2".into(),
            false => "http/1.1".into(),
        }],
        // Connections to back ends are kept; those that are opened again cost less.
        resumption: true,
        ..ClientSettings::new(name)
    })
}

fn read(path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|source| TlsError::File {
        path: path.to_owned(),
        source,
    })
}
