//! The options for TLS.

use std::path::PathBuf;

use clap::Args;
use tls::{KeyType, Version};

/// How `weigh load` and `weigh capacity` speak TLS to an https:// URL.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "TLS (https:// URLs)")]
pub struct TlsArgs {
    /// Trust only the authorities whose certificates are in this PEM file [default: those that this
    /// machine trusts].
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate.
    #[arg(long)]
    pub insecure: bool,
    /// The only version to offer: 1.2 or 1.3 [default: both].
    #[arg(long, value_name = "VERSION")]
    pub tls_version: Option<Version>,
    /// Cipher suites to offer by their IANA names, in order of preference.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub tls_suites: Vec<String>,
    /// Key exchange groups to offer, in order of preference, such as x25519,secp256r1.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub tls_groups: Vec<String>,
    /// Resume an earlier session when a connection is opened again [default: full handshakes].
    #[arg(long)]
    pub tls_resume: bool,
    /// The name that the server's certificate must bear; a host name is sent as SNI [default: the
    /// URL's host].
    #[arg(long, value_name = "NAME")]
    pub tls_name: Option<String>,
    /// The client's own certificate in PEM form, with those that it depends on.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert in PEM form.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("--ca", self.ca.is_some()),
            ("--insecure", self.insecure),
            ("--tls-version", self.tls_version.is_some()),
            ("--tls-suites", !self.tls_suites.is_empty()),
            ("--tls-groups", !self.tls_groups.is_empty()),
            ("--tls-resume", self.tls_resume),
            ("--tls-name", self.tls_name.is_some()),
            ("--tls-cert", self.tls_cert.is_some()),
        ];
        all.into_iter()
            .find_map(|(name, given)| given.then_some(name))
    }
}

/// How `weigh origin` speaks TLS.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "TLS")]
pub struct OriginTlsArgs {
    /// Speak TLS, with a certificate made at the start unless one is given.
    #[arg(long)]
    pub tls: bool,
    /// The certificate in PEM form, with those that it depends on.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert in PEM form.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The key type of a certificate made at the start: ecdsa-p256, ecdsa-p384, rsa-2048 or rsa-4096.
    #[arg(long, value_name = "TYPE", conflicts_with = "tls_cert")]
    pub tls_key_type: Option<KeyType>,
    /// Write the certificate made at the start to this file, for clients to trust (--ca).
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "tls_cert",
        requires = "tls"
    )]
    pub tls_write_ca: Option<PathBuf>,
    /// The only version to accept: 1.2 or 1.3 [default: both].
    #[arg(long, value_name = "VERSION")]
    pub tls_version: Option<Version>,
    /// Cipher suites to accept, in order of preference.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub tls_suites: Vec<String>,
    /// Key exchange groups to accept, in order of preference.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub tls_groups: Vec<String>,
    /// Ask clients for a certificate of the authorities in this PEM file, and refuse those without.
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
}

impl OriginTlsArgs {
    /// Whether --tls or --tls-cert was given.
    pub fn is_asked(&self) -> bool {
        self.tls || self.tls_cert.is_some()
    }
}
