//! One TLS session over a connection of an event loop.

use std::io::{Read, Write};

use net::proxy_protocol::{HEADER_BYTES_MAX, Parsed, parse};
use net::{ConnId, Handshake};
use rustls::{Connection, HandshakeKind, ProtocolVersion};

use crate::provider::{group_name, suite_name};
use crate::words::words;

/// A session, and how far it is.
pub(crate) struct Session {
    pub(crate) conn: ConnId,
    pub(crate) tls: Connection,
    pub(crate) is_client: bool,
    /// When the connection below was open, ns of the loop's clock; 0 before.
    pub(crate) opened_ns: u64,
    /// Bytes to send before the handshake: a PROXY protocol header.
    pub(crate) before_handshake: Vec<u8>,
    /// The PROXY protocol header that a client sends before its handshake, so far; `None` when none is
    /// awaited.
    pub(crate) header: Option<Vec<u8>>,
    pub(crate) handshake: Option<Handshake>,
    /// Number of sends that wait for the end of the handshake.
    pub(crate) held_sends: usize,
    /// Whether the sending side ends once the handshake is done.
    pub(crate) finish_pending: bool,
    /// Whether reading is paused once the handshake is done; the handshake itself has to be read.
    pub(crate) pause_pending: bool,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Whether the peer's end of data was reported, or a failure.
    pub(crate) is_ended: bool,
    /// Whether a failure was reported.
    pub(crate) has_failed: bool,
    /// Closed by its user; the loop's connection is closed once everything is sent.
    pub(crate) is_lingering: bool,
}

impl Session {
    pub(crate) fn new(conn: ConnId, mut tls: Connection, opened_ns: u64) -> Self {
        // All that is written is encrypted and handed to the loop at once.
        tls.set_buffer_limit(None);
        Self {
            conn,
            is_client: matches!(tls, Connection::Client(_)),
            tls,
            opened_ns,
            before_handshake: Vec::new(),
            header: None,
            handshake: None,
            held_sends: 0,
            finish_pending: false,
            pause_pending: false,
            failure: None,
            is_ended: false,
            has_failed: false,
            is_lingering: false,
        }
    }

    /// Whether the handshake is complete.
    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        self.handshake.is_some()
    }

    /// Takes the PROXY protocol header at the front of received bytes, if one is awaited: how many of
    /// them belong to it, and all of it once it is complete or malformed.
    pub(crate) fn take_header(&mut self, input: &[u8]) -> (usize, Option<Vec<u8>>) {
        let Some(header) = &mut self.header else {
            return (0, None);
        };
        let before = header.len();
        // A longer header is an error, and need not be seen whole.
        header.extend_from_slice(&input[..input.len().min(HEADER_BYTES_MAX)]);
        match parse(header) {
            Ok(Parsed::More) => (input.len(), None),
            Ok(Parsed::Done { taken, .. }) => {
                header.truncate(taken);
                (taken - before, self.header.take())
            }
            // Whoever reads it refuses it.
            Err(_) => (input.len(), self.header.take()),
        }
    }

    /// Reads received bytes. Returns whether the peer has sent `close_notify`.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Result<bool, String> {
        self.tls.read_tls(input).map_err(|e| e.to_string())?;
        match self.tls.process_new_packets() {
            Ok(state) => Ok(state.peer_has_closed()),
            Err(e) => Err(words(&e)),
        }
    }

    /// Records the handshake if it has just ended; true only then.
    #[inline]
    pub(crate) fn notes_handshake(&mut self, now_ns: u64) -> bool {
        if self.handshake.is_some() || self.tls.is_handshaking() {
            return false;
        }
        self.handshake = Some(Handshake {
            opened_ns: self.opened_ns,
            established_ns: now_ns,
            is_resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            version: match self.tls.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "1.2",
                Some(ProtocolVersion::TLSv1_3) => "1.3",
                _ => "unknown",
            },
            suite: self
                .tls
                .negotiated_cipher_suite()
                .map_or("unknown", suite_name),
            group: self.tls.negotiated_key_exchange_group().map(group_name),
            alpn: self.tls.alpn_protocol().map(alpn_name),
            key: self.peer_key(),
        });
        true
    }

    /// Reads plaintext; 0 bytes where there is none.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        // `WouldBlock`, and a connection that ended without `close_notify`: no plaintext either way.
        self.tls.reader().read(buffer).unwrap_or(0)
    }

    /// Encrypts bytes; they are sent with the next [`Session::collect`].
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.held_sends += usize::from(!self.is_established());
        // Without a limit of the buffer all is taken, and memory does not fail.
        let _ = self.tls.writer().write_all(bytes);
    }

    pub(crate) fn collect(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() {
            // A vector takes everything.
            if self.tls.write_tls(out).is_err() {
                return;
            }
        }
    }

    /// The key type of the peer's certificate.
    fn peer_key(&self) -> Option<&'static str> {
        let certificate = self.tls.peer_certificates()?.first()?;
        Some(key_of(certificate))
    }
}

pub(crate) fn alpn_name(name: &[u8]) -> &'static str {
    match name {
        b"h3" => "h3",
        b"h2" => "h2",
        b"http/1.1" => "http/1.1",
        b"http/1.0" => "http/1.0",
        _ => "another",
    }
}

/// DER of the object identifiers that name the algorithm of a public key.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21];

/// The key type of a certificate in DER form, by the identifiers in it: reading the certificate in
/// full would take a library of its own.
pub(crate) fn key_of(certificate: &[u8]) -> &'static str {
    let has = |oid: &[u8]| certificate.windows(oid.len()).position(|part| part == oid);
    if has(P256).is_some() {
        return "ecdsa-p256";
    }
    if has(P384).is_some() {
        return "ecdsa-p384";
    }
    if has(ED25519).is_some() {
        return "ed25519";
    }
    let Some(at) = has(RSA) else {
        return "another";
    };
    // After the identifier: NULL, then the BIT STRING whose length follows its tag.
    match certificate.get(at + RSA.len() + 2..at + RSA.len() + 6) {
        Some([0x03, 0x82, high, low]) => match u16::from_be_bytes([*high, *low]) {
            0..=300 => "rsa-2048",
            301..=450 => "rsa-3072",
            _ => "rsa-4096",
        },
        _ => "rsa",
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::{Authority, KeyType};

    #[test]
    fn the_key_type_of_a_certificate_is_known() {
        let authority = Authority::new().unwrap();
        for key_type in KeyType::ALL {
            let issued = authority.issue(&["localhost".into()], key_type).unwrap();
            let der = CertificateDer::from_pem_slice(issued.identity.chain.as_bytes()).unwrap();
            assert_eq!(key_of(&der), key_type.name());
        }
    }
}
