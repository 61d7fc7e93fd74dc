//! Where requests go, and what they say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use net::Address;
use readings::{HttpVersion, QuicCongestion};
use serde::{Deserialize, Serialize};

use crate::job::expect::Expect;
use crate::job::fields;
use crate::job::filling::Filling;
use crate::job::serde_as;
use crate::job::traffic::Traffic;

/// A request and the answers that count as good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Its name in results: method and path.
    pub name: String,
    /// Its bytes, sent as they are; of one with places ([`Filling`]) those of an example.
    #[serde(with = "serde_as::bytes")]
    pub bytes: Vec<u8>,
    /// The answers that count as good.
    pub expect: Expect,
    /// How often it is sent, relative to the other requests.
    pub weight: u32,
}

impl Request {
    /// A request of weight 1.
    pub fn new(bytes: Vec<u8>, expect: Expect) -> Self {
        let line = bytes.split(|&b| b == b'\r' || b == b'\n').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default());
        let name = line.strip_suffix(" HTTP/1.1").unwrap_or(&line).to_string();
        Self {
            name,
            bytes,
            expect,
            weight: 1,
        }
    }

    /// Whether its method is idempotent (RFC 9110, 9.2.2): a client may send it again without knowing
    /// whether the server has processed it.
    pub(crate) fn is_idempotent(&self) -> bool {
        let method = self.bytes.split(|&b| b == b' ').next();
        matches!(
            method,
            Some(b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
        )
    }

    /// Whether it is a HEAD request, whose answers have no body.
    pub fn is_head(&self) -> bool {
        fields::is_head(&self.bytes)
    }
}

/// How the next of several requests is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// At random, by weight.
    #[default]
    Weighted,
    /// In order, round and round; weights are ignored.
    InOrder,
}

/// The version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProxyVersion {
    /// Text.
    V1,
    /// Binary.
    V2,
}

/// A PROXY protocol header at the start of each connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyHeader {
    /// The PROXY protocol's version.
    pub version: ProxyVersion,
    /// Client addresses for the headers, in turn. If empty, clients are numbered through
    /// 198.18.0.0/15, the range that RFC 2544 reserves for benchmarks.
    pub clients: Vec<IpAddr>,
}

/// HTTP/2: negotiated by ALPN with TLS, spoken from the first byte without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2 {
    /// Streams that each connection has open at once, at most; at least 1.
    pub streams: u32,
}

/// HTTP/3: QUIC with TLS over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http3 {
    /// As [`Http2::streams`].
    pub streams: u32,
    /// The congestion control of its connections; `None` for the one that matches TCP's in the
    /// network namespace in which the load is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<QuicCongestion>,
}

impl Http3 {
    /// With this many streams, and the congestion control that matches TCP's.
    pub fn new(streams: u32) -> Self {
        Self {
            streams,
            congestion: None,
        }
    }
}

/// Connections that are held open without being used. They are open before the first segment begins,
/// and closed after the last one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Their number, over all threads; at least 1.
    pub connections: u32,
    /// Whether nothing is sent on them. Otherwise each has one request before, and its answer.
    pub is_silent: bool,
    /// The interval at which each sends a ping, over HTTP/2 or as a WebSocket.
    #[serde(default, with = "serde_as::option_ns")]
    pub ping_every: Option<Duration>,
}

/// A server, the connections to it and the requests on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The address to connect to.
    pub address: Address,
    /// Connections over all threads, which hold nearly equal shares.
    pub connections: u32,
    /// The requests, at least one.
    pub requests: Vec<Request>,
    /// How the next request is chosen.
    pub choice: Choice,
    /// A PROXY protocol header at the start of every connection.
    pub proxy_header: Option<ProxyHeader>,
    /// TLS on every connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<tls::ClientSettings>,
    /// HTTP/2 instead of HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2>,
    /// HTTP/3 instead of HTTP/1.1; needs TLS and an IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http3: Option<Http3>,
    /// Requests after which a connection is closed and opened anew; `None`: as the job says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<u64>,
    /// Further connections, which are held open without being used while the load goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// What is said on its connections.
    #[serde(default, skip_serializing_if = "Traffic::is_answers")]
    pub traffic: Traffic,
    /// Of requests that differ from one to the next, or have the times of a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filling: Option<Box<Filling>>,
}

impl Target {
    /// A target with one connection and one request.
    pub fn new(address: impl Into<Address>, request: Vec<u8>, expect: Expect) -> Self {
        Self {
            address: address.into(),
            connections: 1,
            requests: vec![Request::new(request, expect)],
            choice: Choice::default(),
            proxy_header: None,
            tls: None,
            http2: None,
            http3: None,
            requests_per_connection: None,
            idle: None,
            traffic: Traffic::Answers,
            filling: None,
        }
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.tls {
            Some(_) => "https",
            None => "http",
        }
    }

    /// The version of HTTP.
    pub(crate) fn http(&self) -> HttpVersion {
        match (self.http2, self.http3) {
            (Some(_), _) => HttpVersion::Http2,
            (None, Some(_)) => HttpVersion::Http3,
            (None, None) => HttpVersion::Http1,
        }
    }

    /// Streams of each connection; `None` with HTTP/1.1.
    pub(crate) fn streams(&self) -> Option<u32> {
        let http2 = self.http2.map(|http2| http2.streams);
        http2.or(self.http3.map(|http3| http3.streams))
    }

    /// Requests that each connection carries at once; `None` where it is one after the other.
    pub(crate) fn places(&self) -> Option<u32> {
        match self.traffic {
            Traffic::WebSocket(websocket) if websocket.is_one_way() => Some(1),
            Traffic::WebSocket(websocket) => Some(websocket.in_flight),
            _ => self.streams(),
        }
    }

    /// The most threads, of so many, among which its connections can be shared.
    pub fn threads(&self, threads: u32) -> u32 {
        match self.traffic.websocket() {
            Some(websocket) => websocket.threads(self.connections, threads),
            None => threads,
        }
    }

    /// With this number of connections.
    #[must_use]
    pub fn with_connections(self, connections: u32) -> Self {
        Self {
            connections,
            ..self
        }
    }

    /// Appends the PROXY protocol header of a connection, if there is one; `opening` numbers the
    /// connections.
    pub(crate) fn preamble(&self, opening: u64, out: &mut Vec<u8>) {
        let Some(header) = &self.proxy_header else {
            return;
        };
        let ip = match header.clients.as_slice() {
            [] => {
                let [a, b, c] = [opening >> 16, opening >> 8, opening].map(|n| n as u8);
                IpAddr::V4(Ipv4Addr::new(198, 18 + (a & 1), b, c))
            }
            clients => clients[(opening % clients.len() as u64) as usize],
        };
        let client = SocketAddr::new(ip, 1024 + (opening % 64_512) as u16);
        let server = self.address.inet().unwrap_or(match ip {
            IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 80)),
            IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, 80)),
        });
        match header.version {
            ProxyVersion::V1 => net::proxy_protocol::encode_v1(client, server, out),
            ProxyVersion::V2 => net::proxy_protocol::encode_v2(client, server, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preamble(header: ProxyHeader, opening: u64) -> String {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let mut target = Target::new(address, Vec::new(), Expect::default());
        target.proxy_header = Some(header);
        let mut out = Vec::new();
        target.preamble(opening, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn each_connection_claims_another_client() {
        let header = |clients| ProxyHeader {
            version: ProxyVersion::V1,
            clients,
        };
        assert_eq!(
            preamble(header(vec![]), 65_537),
            "PROXY TCP4 198.19.0.1 127.0.0.1 2049 80\r\n"
        );
        let own: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        assert!(preamble(header(own), 3).starts_with("PROXY TCP4 10.0.0.2 "));
    }

    #[test]
    fn a_request_is_named_by_its_line() {
        let request = Request::new(
            b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            Expect::default(),
        );
        assert_eq!(request.name, "GET /a?b");
    }
}
