//! What a server needs to accept sessions.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, ServerConfig, ServerConnection};

use crate::client::{authorities, no_suite, parse, refused};
use crate::error::{CLIENT_AUTHORITY, PRIVATE_KEY, TlsError};
use crate::provider::{provider, versions};
use crate::settings::ServerSettings;

/// Accepts sessions. Threads that share one know each other's tickets.
#[derive(Clone, Debug)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads settings; `place` is where the certificate comes from, for errors.
    ///
    /// # Errors
    /// Where a name is unknown, or a certificate or key cannot be used.
    pub fn new(settings: &ServerSettings, place: &str) -> Result<Self, TlsError> {
        Self::with_key(settings, place, place)
    }

    /// The same with a key from another place than the certificate.
    pub fn with_key(
        settings: &ServerSettings,
        place: &str,
        key_place: &str,
    ) -> Result<Self, TlsError> {
        let provider = provider(&settings.suites, &settings.groups)?;
        let (chain, key) = parse(&settings.identity, place).map_err(|error| match error {
            TlsError::Pem {
                wanted: PRIVATE_KEY,
                ..
            } => TlsError::Pem {
                place: key_place.into(),
                wanted: PRIVATE_KEY,
            },
            other => other,
        })?;
        provider
            .key_provider
            .load_private_key(key.clone_key())
            .map_err(|e| TlsError::Refused {
                place: key_place.into(),
                why: match e {
                    Error::General(why) => why,
                    other => other.to_string(),
                },
            })?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions(settings.version))
            .map_err(|_| no_suite(settings.version))?;
        let builder = match &settings.client_authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let roots = Arc::new(authorities(pem, CLIENT_AUTHORITY)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|e| TlsError::Refused {
                        place: CLIENT_AUTHORITY.into(),
                        why: e.to_string(),
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|e| match e {
            Error::InconsistentKeys(_) => TlsError::Refused {
                place: key_place.into(),
                why: format!("the key does not belong to the certificate of {place}"),
            },
            other => refused(place, &other),
        })?;
        config.alpn_protocols = settings.alpn.iter().map(|one| one.clone().into()).collect();
        // Tickets hold the session, so that no thread keeps any.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        match settings.tickets {
            true => config.ticketer = Ticketer::new().map_err(|e| refused(place, &e))?,
            false => config.send_tls13_tickets = 0,
        }
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// A new session.
    pub(crate) fn accept(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(self.config.clone())
    }
}
