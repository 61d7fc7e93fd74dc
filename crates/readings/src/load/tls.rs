//! The TLS sessions of a load: handshakes, what was negotiated, bytes over the network.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// The TLS sessions of a load on one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsReading {
    /// Full handshakes inside the measured windows, ns: from the open connection to the session.
    pub handshake: Histogram,
    /// Handshakes inside the measured windows that resumed an earlier session, ns.
    pub resumed_handshake: Histogram,
    pub handshakes: u64,
    /// Those of them that resumed an earlier session.
    pub resumed: u64,
    /// What client and server negotiated, the most frequent first.
    pub negotiated: Vec<Negotiated>,
    /// Bytes that passed over the network inside the measured windows, TLS included.
    pub wire_bytes_read: u64,
    /// As above, towards the server.
    pub wire_bytes_sent: u64,
}

/// What the sessions of a load negotiated, and how many of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Negotiated {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite's IANA name.
    pub suite: String,
    /// The key exchange group; none where a session was resumed without a new exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpn: Option<String>,
    /// The key type of the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub sessions: u64,
}

impl Negotiated {
    /// Whether another has the same values, whatever the counts.
    pub fn is_like(&self, other: &Self) -> bool {
        let values = |one: &Self| {
            let Self {
                version,
                suite,
                group,
                alpn,
                key,
                ..
            } = one.clone();
            (version, suite, group, alpn, key)
        };
        values(self) == values(other)
    }

    /// In one line: `TLS 1.3, TLS_AES_128_GCM_SHA256, x25519, ecdsa-p256`.
    pub fn words(&self) -> String {
        let version = format!("TLS {}", self.version);
        let parts = [
            Some(&version),
            Some(&self.suite),
            self.group.as_ref(),
            self.key.as_ref(),
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join(", ")
    }
}
