//! Versions of HTTP.

use serde::{Deserialize, Serialize};

/// A version of HTTP that requests are made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    #[default]
    #[serde(rename = "1.1")]
    Http1,
    #[serde(rename = "2")]
    Http2,
    /// Over QUIC, so with TLS.
    #[serde(rename = "3")]
    Http3,
}

impl HttpVersion {
    /// All of them.
    pub const ALL: [HttpVersion; 3] = [Self::Http1, Self::Http2, Self::Http3];

    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            HttpVersion::Http1 => "1.1",
            HttpVersion::Http2 => "2",
            HttpVersion::Http3 => "3",
        }
    }

    /// The version of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The protocol's name in ALPN.
    pub fn alpn(self) -> &'static str {
        match self {
            HttpVersion::Http1 => "http/1.1",
            HttpVersion::Http2 => "h2",
            HttpVersion::Http3 => "h3",
        }
    }
}
