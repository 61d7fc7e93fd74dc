//! What is asked for, as plain data: it crosses to agents on other hosts.

use serde::{Deserialize, Serialize};

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    #[serde(rename = "1.2")]
    Tls12,
    #[serde(rename = "1.3")]
    Tls13,
}

impl Version {
    /// `1.2` or `1.3`.
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "1.2",
            Version::Tls13 => "1.3",
        }
    }
}

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "1.2" => Ok(Version::Tls12),
            "1.3" => Ok(Version::Tls13),
            other => Err(format!("expected `1.2` or `1.3`, found `{other}`")),
        }
    }
}

/// Whose certificates a client accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Those of the authorities that this machine trusts.
    #[default]
    Platform,
    /// Those of these authorities only; certificates in PEM form.
    Authorities(String),
    /// Any, also expired ones and those of other names.
    Anything,
}

/// A certificate chain and its private key, both in PEM form.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The certificate first, then those that it depends on.
    pub chain: String,
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("chain", &self.chain)
            .field("key", &"(secret)")
            .finish()
    }
}

/// How a client speaks TLS to one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientSettings {
    /// The host name or IP address that the server's certificate must bear; a host name is sent as
    /// SNI.
    pub server_name: String,
    /// The only version to offer; `None` offers 1.3 and 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Cipher suites by their IANA names, in order of preference; empty for the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<String>,
    /// Key exchange groups, in order of preference; empty for the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Protocols to offer by ALPN, in order of preference; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alpn: Vec<String>,
    /// Whether later connections resume the session of an earlier one.
    #[serde(default)]
    pub resumption: bool,
    #[serde(default)]
    pub trust: Trust,
    /// The client's own certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

impl ClientSettings {
    /// The defaults for a server of this name.
    pub fn new(server_name: impl Into<String>) -> Self {
        Self {
            server_name: server_name.into(),
            ..Self::default()
        }
    }
}

/// How a server speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    pub identity: Identity,
    /// As in [`ClientSettings::version`].
    pub version: Option<Version>,
    /// As in [`ClientSettings::suites`].
    pub suites: Vec<String>,
    /// As in [`ClientSettings::groups`].
    pub groups: Vec<String>,
    /// Protocols that it speaks, in order of preference; empty for none.
    pub alpn: Vec<String>,
    /// Whether clients get tickets to resume their sessions with.
    pub tickets: bool,
    /// Certificates of authorities, in PEM form: clients need a certificate that one of them has
    /// issued. `None`: clients are asked for no certificate.
    pub client_authorities: Option<String>,
}

impl ServerSettings {
    /// The defaults, with a certificate.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            version: None,
            suites: Vec::new(),
            groups: Vec::new(),
            alpn: Vec::new(),
            tickets: true,
            client_authorities: None,
        }
    }
}
