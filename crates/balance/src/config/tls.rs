//! TLS towards clients and towards back ends.

use std::path::{Path, PathBuf};

use tls::{
    ClientSettings, ClientTls, Identity, ServerSettings, ServerTls, TlsError, Trust, Version,
};

use super::model::{Backend, Host, Service};

/// TLS on a service's connections with its clients. The files are read when the balancer starts and when it
/// reloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTls {
    /// The certificate in PEM form, with those that it depends on.
    pub certificate: PathBuf,
    /// Its private key in PEM form. Default: in the same file.
    pub key: PathBuf,
    /// The only version to accept. Default: 1.2 and 1.3.
    pub version: Option<Version>,
    /// Cipher suites, in order of preference. Default: as browsers prefer them.
    pub suites: Vec<String>,
    /// Key exchange groups, in order of preference.
    pub groups: Vec<String>,
    /// Whether clients get tickets to resume their sessions with; all threads know them. Default
    /// yes: a resumed handshake costs a fraction of a full one.
    pub tickets: bool,
    /// A PEM file with authorities: clients need a certificate that one of them has issued.
    /// Default: clients are asked for no certificate.
    pub client_ca: Option<PathBuf>,
}

impl ServiceTls {
    /// A certificate and key of one file, with every default.
    pub fn new(certificate: PathBuf) -> ServiceTls {
        ServiceTls {
            key: certificate.clone(),
            certificate,
            version: None,
            suites: Vec::new(),
            groups: Vec::new(),
            tickets: true,
            client_ca: None,
        }
    }

    /// Reads the files, for a service.
    ///
    /// # Errors
    /// When a file cannot be read, or holds nothing that can be used.
    pub fn open(&self, service: &Service) -> Result<ServerTls, TlsError> {
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
            version: self.version,
            suites: self.suites.clone(),
            groups: self.groups.clone(),
            tickets: self.tickets,
            client_authorities: self.client_ca.as_deref().map(read).transpose()?,
            alpn,
            ..ServerSettings::new(Identity {
                chain: read(&self.certificate)?,
                key: read(&self.key)?,
            })
        };
        ServerTls::with_key(
            &settings,
            &self.certificate.to_string_lossy(),
            &self.key.to_string_lossy(),
        )
    }
}

/// TLS on the connections to a back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendTls {
    /// The name that its certificate must bear. Default: the host of its address.
    pub name: Option<String>,
    /// The certificates of the authorities to trust, in PEM form. Default: those that the machine
    /// trusts.
    pub ca: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
}

impl BackendTls {
    /// Reads the files.
    ///
    /// # Errors
    /// When a file cannot be read, or holds nothing that can be used.
    pub fn open(&self, backend: &Backend) -> Result<ClientTls, TlsError> {
        let name = match (&self.name, &backend.address.host) {
            (Some(name), _) => name.clone(),
            (None, Host::Ip(ip)) => ip.to_string(),
            (None, Host::Name(name)) => name.clone(),
        };
        ClientTls::new(&ClientSettings {
            trust: match &self.ca {
                _ if self.insecure => Trust::Anything,
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
}

fn read(path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|source| TlsError::File {
        path: path.to_owned(),
        source,
    })
}
