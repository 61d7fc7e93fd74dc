//! TLS inside QUIC (RFC 9001) for quinn-proto. The session is our own, as quinn-proto's does not
//! say what was negotiated.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, KeyChange, Secrets, ServerConnection, Suite, Version};
use rustls::{ClientConfig, HandshakeKind};

use crate::client::ClientTls;
use crate::error::TlsError;
use crate::provider::{group_name, suite_name};
use crate::secure::session::{alpn_name, key_of};
use crate::server::ServerTls;
use crate::words::words;

/// RFC 9001 section 5.8.
const RETRY_KEY: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const RETRY_NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];
const RETRY_TAG: usize = 16;
/// The version of QUIC, RFC 9000.
const V1: u32 = 1;

/// What a client's session has negotiated; the handshake data of its [`quinn_proto::Connection`].
#[derive(Clone, Copy, Debug)]
pub struct QuicNegotiated {
    pub is_resumed: bool,
    /// The cipher suite's IANA name.
    pub suite: &'static str,
    pub group: Option<&'static str>,
    pub alpn: Option<&'static str>,
    /// The key type of the server's certificate.
    pub key: Option<&'static str>,
}

impl ClientTls {
    /// The settings for QUIC connections, which need TLS 1.3.
    ///
    /// # Errors
    /// When only TLS 1.2 is offered.
    pub fn quic(&self) -> Result<Arc<dyn crypto::ClientConfig>, TlsError> {
        let unsupported = || TlsError::NoSuite("QUIC, which needs TLS 1.3".into());
        let initial = initial_suite().ok_or_else(unsupported)?;
        // It says whether the versions allow it.
        let config = self.config.clone();
        ClientConnection::new(config.clone(), Version::V1, self.name.clone(), Vec::new())
            .map_err(|_| unsupported())?;
        Ok(Arc::new(QuicClient {
            config,
            name: self.name.clone(),
            initial,
        }))
    }
}

impl ServerTls {
    /// The settings for QUIC connections with this protocol in ALPN.
    ///
    /// # Errors
    /// When TLS 1.3 with TLS_AES_128_GCM_SHA256 is not accepted.
    pub fn quic(&self, alpn: &str) -> Result<Arc<dyn ServerConfig>, TlsError> {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        // 0-RTT stays off: its requests can be replayed.
        config.max_early_data_size = 0;
        let unsupported = || TlsError::NoSuite("QUIC, which needs TLS 1.3".into());
        let initial = initial_suite().ok_or_else(unsupported)?;
        let config = Arc::new(config);
        // It says whether the versions allow it.
        ServerConnection::new(config.clone(), Version::V1, Vec::new())
            .map_err(|_| unsupported())?;
        let config = QuicServerConfig::with_initial(config, initial);
        Ok(Arc::new(config.map_err(|_| unsupported())?))
    }
}

/// The cipher suite of the first packets, whatever is negotiated later.
fn initial_suite() -> Option<Suite> {
    TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()
}

struct QuicClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    initial: Suite,
}

impl crypto::ClientConfig for QuicClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != V1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let mut own = Vec::new();
        params.write(&mut own);
        let name = self.name.clone();
        let tls = ClientConnection::new(self.config.clone(), Version::V1, name, own)
            .map_err(|_| ConnectError::EndpointStopping)?;
        Ok(Box::new(QuicSession {
            tls,
            initial: self.initial,
            secrets: None,
            is_told: false,
        }))
    }
}

struct QuicSession {
    tls: ClientConnection,
    initial: Suite,
    /// The secrets of the next keys.
    secrets: Option<Secrets>,
    /// Whether the protocol's name was reported.
    is_told: bool,
}

fn keys_of(keys: rustls::quic::Keys) -> Keys {
    let header = |key| Box::new(key) as Box<dyn HeaderKey>;
    let packet = |key| Box::new(key) as Box<dyn PacketKey>;
    Keys {
        header: KeyPair {
            local: header(keys.local.header),
            remote: header(keys.remote.header),
        },
        packet: KeyPair {
            local: packet(keys.local.packet),
            remote: packet(keys.remote.packet),
        },
    }
}

impl crypto::Session for QuicSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        keys_of(self.initial.keys(id, side.into(), Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let certificate = self.tls.peer_certificates().and_then(<[_]>::first);
        let negotiated = QuicNegotiated {
            is_resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            suite: self
                .tls
                .negotiated_cipher_suite()
                .map_or("unknown", suite_name),
            group: self.tls.negotiated_key_exchange_group().map(group_name),
            alpn: self.tls.alpn_protocol().map(alpn_name),
            key: certificate.map(|one| key_of(one)),
        };
        Some(Box::new(negotiated))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Err(error) = self.tls.read_hs(bytes) {
            let code = match self.tls.alert() {
                Some(alert) => TransportErrorCode::crypto(alert.into()),
                None => TransportErrorCode::PROTOCOL_VIOLATION,
            };
            return Err(TransportError {
                code,
                frame: None,
                reason: words(&error),
            });
        }
        let is_news = !self.is_told && self.tls.alpn_protocol().is_some();
        self.is_told |= is_news;
        Ok(is_news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(bytes) = self.tls.quic_transport_parameters() else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(
            Side::Client,
            &mut Cursor::new(bytes),
        )?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        Some(match self.tls.write_hs(out)? {
            KeyChange::Handshake { keys } => keys_of(keys),
            KeyChange::OneRtt { keys, next } => {
                self.secrets = Some(next);
                keys_of(keys)
            }
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    /// RFC 9001 section 5.8: the tag covers the first connection ID and the packet.
    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(tag_at) = payload.len().checked_sub(RETRY_TAG) else {
            return false;
        };
        let (token, tag) = payload.split_at(tag_at);
        // A connection ID has at most 20 bytes.
        let covered = [&[id.len() as u8], &id[..], header, token].concat();
        let Ok(key) = UnboundKey::new(&AES_128_GCM, &RETRY_KEY) else {
            return false;
        };
        let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
        let mut tag = tag.to_vec();
        let opened = LessSafeKey::new(key).open_in_place(nonce, Aad::from(covered), &mut tag);
        opened.is_ok()
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // Nothing here uses it.
        Err(ExportKeyingMaterialError)
    }
}
