//! Settings and certificates that cannot be used.

use std::path::PathBuf;

/// [`TlsError`]'s place of the certificates in [`crate::Trust::Authorities`].
pub const CA_CERTIFICATE: &str = "the authority's certificate";
/// [`TlsError`]'s place of the certificate in [`crate::ClientSettings::identity`].
pub const CLIENT_CERTIFICATE: &str = "the client's certificate";

/// [`TlsError`]'s place of the certificates in [`crate::ServerSettings::client_authorities`].
pub const CLIENT_AUTHORITY: &str = "the certificate of the clients' authority";

/// What [`TlsError::Pem`] wanted where a private key is missing.
pub(crate) const PRIVATE_KEY: &str = "a private key";

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("unknown {what} `{name}`; known are {known}")]
    Unknown {
        /// `cipher suite` or `key exchange group`.
        what: &'static str,
        name: String,
        /// All names, with commas.
        known: String,
    },
    #[error("none of the cipher suites can be used with {0}")]
    NoSuite(String),
    #[error("expected a host name or an IP address for the server's certificate, found `{0}`")]
    ServerName(String),
    #[error("{}: {source}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{place}: expected {wanted} in PEM form, found none")]
    Pem {
        /// The file or option that it comes from.
        place: String,
        /// `a certificate` or `a private key`.
        wanted: &'static str,
    },
    #[error(
        "this machine has no certificates of authorities (Debian's package is ca-certificates); \
         name one with --ca, or use --insecure"
    )]
    NoPlatformRoots,
    #[error("{place}: {why}")]
    Refused {
        /// The file or option that it comes from.
        place: String,
        why: String,
    },
    #[error("cannot make a certificate: {0}")]
    Make(String),
}
