//! What a client needs to open sessions with one server.

mod kept_sessions;

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::error::{CA_CERTIFICATE, CLIENT_CERTIFICATE, TlsError};
use crate::provider::{provider, versions};
use crate::settings::{ClientSettings, Identity, Trust};
use kept_sessions::KeptSessions;

/// Opens sessions with one server. Each server needs one of its own: it keeps that server's
/// sessions, to resume them.
#[derive(Clone, Debug)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl ClientTls {
    /// Reads settings.
    ///
    /// # Errors
    /// Where a name is unknown, or a certificate cannot be used.
    pub fn new(settings: &ClientSettings) -> Result<Self, TlsError> {
        let provider = provider(&settings.suites, &settings.groups)?;
        let name = settings.server_name.trim_matches(['[', ']']).to_string();
        let name = ServerName::try_from(name)
            .map_err(|_| TlsError::ServerName(settings.server_name.clone()))?;
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions(settings.version))
            .map_err(|_| no_suite(settings.version))?;
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier(&settings.trust, provider)?);
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = parse(identity, CLIENT_CERTIFICATE)?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|e| refused(CLIENT_CERTIFICATE, &e))?
            }
        };
        config.resumption = match settings.resumption {
            true => Resumption::store(Arc::new(KeptSessions::default())),
            false => Resumption::disabled(),
        };
        config.alpn_protocols = settings.alpn.iter().map(|one| one.clone().into()).collect();
        Ok(Self {
            config: Arc::new(config),
            name,
        })
    }

    /// A new session.
    pub(crate) fn open(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(self.config.clone(), self.name.clone())
    }
}

pub(crate) fn no_suite(version: Option<crate::Version>) -> TlsError {
    TlsError::NoSuite(version.map_or("TLS".into(), |one| format!("TLS {}", one.name())))
}

pub(crate) fn refused(place: &str, error: &rustls::Error) -> TlsError {
    TlsError::Refused {
        place: place.into(),
        why: error.to_string(),
    }
}

fn certificates(pem: &str, place: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .filter_map(Result::ok)
        .collect();
    match all.is_empty() {
        true => Err(TlsError::Pem {
            place: place.into(),
            wanted: "a certificate",
        }),
        false => Ok(all),
    }
}

/// The authorities in a PEM text that comes from `place`.
pub(crate) fn authorities(pem: &str, place: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for one in certificates(pem, place)? {
        roots.add(one).map_err(|e| refused(place, &e))?;
    }
    Ok(roots)
}

/// The certificates and the key of an identity that comes from `place`.
pub(crate) fn parse(
    identity: &Identity,
    place: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(&identity.chain, place)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
    let key = key.map_err(|_| TlsError::Pem {
        place: place.into(),
        wanted: crate::error::PRIVATE_KEY,
    })?;
    Ok((chain, key))
}

fn verifier(
    trust: &Trust,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let roots = match trust {
        Trust::Anything => return Ok(Arc::new(NoVerification(provider))),
        Trust::Authorities(pem) => authorities(pem, CA_CERTIFICATE)?,
        Trust::Platform => {
            let mut roots = RootCertStore::empty();
            // Some machines have certificates that rustls cannot read; the others count.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(TlsError::NoPlatformRoots);
            }
            roots
        }
    };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|e| TlsError::Refused {
            place: CA_CERTIFICATE.into(),
            why: e.to_string(),
        })?;
    Ok(verifier)
}

/// Accepts every certificate; that the server has its key is still checked.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
