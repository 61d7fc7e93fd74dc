//! Addresses, as both syntaxes write them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    pub host: Host,
    /// The port, from 1.
    pub port: u16,
}

/// An address, or a name that is resolved when the balancer starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Ip(IpAddr),
    Name(String),
}

impl Address {
    /// The socket address, unless the host is a name.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::new(ip, self.port)),
            Host::Name(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address {
            host: Host::Ip(address.ip()),
            port: address.port(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// An IP address, with or without brackets for IPv6, or a host name.
pub(super) fn host(text: &str) -> Option<Host> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(six) = bare {
        return six.parse().ok().map(|six| Host::Ip(IpAddr::V6(six)));
    }
    if let Ok(ip) = text.parse() {
        return Some(Host::Ip(ip));
    }
    is_host_name(text).then(|| Host::Name(text.to_owned()))
}

/// `HOST:PORT`; an IPv6 address stands in brackets.
pub(super) fn with_port(text: &str) -> Option<Address> {
    let (name, digits) = text.rsplit_once(':')?;
    // An IPv6 address without brackets.
    if name.contains(':') && !name.starts_with('[') {
        return None;
    }
    Some(Address {
        host: host(name)?,
        port: port(digits)?,
    })
}

/// A port from 1, in decimal.
pub(super) fn port(digits: &str) -> Option<u16> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain
        .then(|| digits.parse().ok())
        .flatten()
        .filter(|port| *port > 0)
}

/// A valid host name: labels of letters, digits, `-` and `_`, at most 253 bytes.
fn is_host_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.strip_suffix('.').unwrap_or(text);
    // A malformed IPv4 address is not a name.
    text.len() <= 253
        && last.split('.').all(label)
        && !last
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_addresses_or_names() {
        for good in [
            "10.0.0.1:80",
            "[2001:db8::1]:80",
            "web-1.example.org:8080",
            "localhost:1",
        ] {
            assert_eq!(with_port(good).unwrap().to_string(), good);
        }
        for wrong in "10.0.0.1~10.0.0.1:0~10.0.0.1:65536~10.0.0.300:80~2001:db8::1:80~:80~a b:80~\
            -a:80~a..b:80~a:+8~a:~[::1:80~10.1:80"
            .split('~')
        {
            assert_eq!(with_port(wrong), None, "{wrong}");
        }
        assert_eq!(host("::1"), host("[::1]"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z0-9:.\\[\\]-]{0,20}|\\PC{0,12}") {
            if let Some(address) = with_port(&text) {
                prop_assert_eq!(with_port(&address.to_string()), Some(address));
            }
        }
    }
}
