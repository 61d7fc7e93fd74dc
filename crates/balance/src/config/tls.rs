//! TLS towards clients and towards back ends.

use std::path::PathBuf;

use tls::Version;

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
