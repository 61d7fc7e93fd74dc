//! The PROXY protocol, versions 1 and 2: who the client of a relayed connection is.
//!
//! A header at the start of a connection, before the first byte of data. The form and its limits
//! are those of HAProxy's `doc/proxy-protocol.txt`; the numbers of its sections stand below.
//! Extensions (TLV, 2.2) are skipped and not judged.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header that is read, bytes. Addresses take at most 232; extensions of version 2, such as
/// a client's certificate, may take more than the 536 of the smallest TCP segment (2).
pub const HEADER_BYTES_MAX: usize = 4096;
/// The longest line of version 1, bytes, with its end (2.1).
const LINE_BYTES_MAX: usize = 107;
/// How a header of version 2 begins (2.2).
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Length of version 2's fixed part, bytes.
const FIXED_BYTES: usize = 16;
const LINE_START: &[u8] = b"PROXY ";
/// `len` of version 2 for the addresses of each family, bytes.
const INET_BYTES: usize = 12;
const INET6_BYTES: usize = 36;
const UNIX_BYTES: usize = 216;

/// What a header says about the connection that it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The sender speaks for itself, as in a health check: the connection's own addresses hold.
    Local,
    /// The sender relays a TCP connection.
    Proxied {
        /// The client.
        src: SocketAddr,
        /// What the client had connected to.
        dst: SocketAddr,
    },
    /// The sender relays something that it cannot or may not describe, or that is no TCP over IP:
    /// the connection's own addresses hold.
    Unknown,
}

/// How far [`parse`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The bytes so far may begin a header; more are needed.
    More,
    /// A header is complete.
    Done {
        /// Its length in bytes; data begins there. At most [`HEADER_BYTES_MAX`].
        taken: usize,
        /// What it says.
        header: Header,
    },
}

/// Why bytes are no header; the connection must be closed then (2.1, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyProtocolError {
    #[error("expected a PROXY protocol header, found something else; does the sender send one?")]
    NoHeader,
    #[error(
        "expected `PROXY TCP4|TCP6 source destination port port` or `PROXY UNKNOWN`, found \
         something else"
    )]
    Line,
    #[error("expected a PROXY protocol header of at most {max} bytes, found a longer one")]
    TooLong {
        /// What is read of this version.
        max: usize,
    },
    #[error("expected version 2 of the PROXY protocol, found version {0}")]
    Version(u8),
    #[error("expected the PROXY protocol's command 0 or 1, found {0}")]
    Command(u8),
    #[error("expected an address family and a transport of the PROXY protocol, found {0:#04x}")]
    Family(u8),
    #[error("expected at least {expected} bytes of addresses, found {found}")]
    TooShort {
        /// What the family needs.
        expected: usize,
        /// What the header has.
        found: usize,
    },
}

/// The addresses as both versions need them: of one family. Addresses that IPv6 sockets show for
/// IPv4 peers are turned back; a pair of two families is written as IPv6.
enum Pair {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl Pair {
    fn of(src: SocketAddr, dst: SocketAddr) -> Pair {
        let six = |address: IpAddr| match address {
            IpAddr::V4(four) => four.to_ipv6_mapped(),
            IpAddr::V6(six) => six,
        };
        match (src.ip().to_canonical(), dst.ip().to_canonical()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Pair::V4(src, dst),
            (src, dst) => Pair::V6(six(src), six(dst)),
        }
    }
}

/// Appends a header of version 1 for a client `src` that connected to `dst`.
///
/// Flow labels and scopes of IPv6 are dropped.
pub fn encode_v1(src: SocketAddr, dst: SocketAddr, out: &mut Vec<u8>) {
    out.extend_from_slice(LINE_START);
    match Pair::of(src, dst) {
        Pair::V4(from, to) => {
            // Writing into a vector cannot fail, here and below.
            let _ = write!(out, "TCP4 {from} {to}");
        }
        Pair::V6(from, to) => {
            out.extend_from_slice(b"TCP6 ");
            six(from, out);
            out.push(b' ');
            six(to, out);
        }
    }
    let _ = write!(out, " {} {}\r\n", src.port(), dst.port());
}

/// Only hexadecimal groups are allowed (2.1), while `Display` ends a mapped address in IPv4's
/// form.
fn six(address: Ipv6Addr, out: &mut Vec<u8>) {
    let _ = match address.to_ipv4_mapped() {
        Some(_) => {
            let [.., high, low] = address.segments();
            write!(out, "::ffff:{high:x}:{low:x}")
        }
        None => write!(out, "{address}"),
    };
}

/// Appends a header of version 2 for a client `src` that connected to `dst`.
///
/// Flow labels and scopes of IPv6 are dropped.
pub fn encode_v2(src: SocketAddr, dst: SocketAddr, out: &mut Vec<u8>) {
    out.extend_from_slice(&SIGNATURE);
    // Version 2, command PROXY; then the family over a stream, and the length of the rest.
    match Pair::of(src, dst) {
        Pair::V4(from, to) => {
            out.extend_from_slice(&[0x21, 0x11, 0, INET_BYTES as u8]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        Pair::V6(from, to) => {
            out.extend_from_slice(&[0x21, 0x21, 0, INET6_BYTES as u8]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
    }
    out.extend_from_slice(&src.port().to_be_bytes());
    out.extend_from_slice(&dst.port().to_be_bytes());
}

/// Reads the header that `input`, all bytes of a connection so far, begins with.
///
/// Both versions are read. The answer for a longer input never takes back that for a shorter one:
/// what is an error stays one, and what is done stays done. Allocates nothing.
///
/// # Errors
/// As soon as the bytes can no longer become a header.
pub fn parse(input: &[u8]) -> Result<Parsed, ProxyProtocolError> {
    if begins(input, LINE_START) {
        return parse_v1(input);
    }
    if begins(input, &SIGNATURE) {
        return parse_v2(input);
    }
    Err(ProxyProtocolError::NoHeader)
}

/// Whether `input` begins with `start` as far as it goes.
fn begins(input: &[u8], start: &[u8]) -> bool {
    let common = input.len().min(start.len());
    input[..common] == start[..common]
}

fn parse_v1(input: &[u8]) -> Result<Parsed, ProxyProtocolError> {
    let seen = &input[..input.len().min(LINE_BYTES_MAX)];
    // A lone CR or LF must not end the line (2.1).
    let Some(at) = seen.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        return if seen.len() == LINE_BYTES_MAX {
            Err(ProxyProtocolError::TooLong {
                max: LINE_BYTES_MAX,
            })
        } else {
            Ok(Parsed::More)
        };
    };
    match (seen[at], seen.get(at + 1)) {
        (b'\r', Some(b'\n')) => {}
        (b'\r', None) if seen.len() == LINE_BYTES_MAX => {
            return Err(ProxyProtocolError::TooLong {
                max: LINE_BYTES_MAX,
            });
        }
        (b'\r', None) => return Ok(Parsed::More),
        _ => return Err(ProxyProtocolError::Line),
    }
    let rest = &seen[LINE_START.len().min(at)..at];
    // What follows UNKNOWN is ignored, whatever it is.
    let header = if rest == b"UNKNOWN" || rest.starts_with(b"UNKNOWN ") {
        Some(Header::Unknown)
    } else {
        std::str::from_utf8(rest).ok().and_then(addresses)
    }
    .ok_or(ProxyProtocolError::Line)?;
    Ok(Parsed::Done {
        taken: at + 2,
        header,
    })
}

fn addresses(line: &str) -> Option<Header> {
    let mut words = line.split(' ');
    let family = words.next()?;
    let mut address = || -> Option<IpAddr> {
        let word = words.next()?;
        match family {
            "TCP4" => word.parse().ok().map(IpAddr::V4),
            "TCP6" => word.parse().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (from, to) = (address()?, address()?);
    let mut port = || {
        words.next().filter(|word| {
            word.bytes().all(|byte| byte.is_ascii_digit())
                && (*word == "0" || !word.starts_with('0'))
        })
    };
    let (from_port, to_port) = (port()?.parse().ok()?, port()?.parse().ok()?);
    words.next().is_none().then_some(Header::Proxied {
        src: SocketAddr::new(from, from_port),
        dst: SocketAddr::new(to, to_port),
    })
}

fn parse_v2(input: &[u8]) -> Result<Parsed, ProxyProtocolError> {
    let Some(&version_command) = input.get(12) else {
        return Ok(Parsed::More);
    };
    let (version, command) = (version_command >> 4, version_command & 0xf);
    if version != 2 {
        return Err(ProxyProtocolError::Version(version));
    }
    if command > 1 {
        return Err(ProxyProtocolError::Command(command));
    }
    let Some(&family) = input.get(13) else {
        return Ok(Parsed::More);
    };
    // LOCAL's family is ignored (2.2).
    let local = command == 0;
    if !local && (family >> 4 > 3 || family & 0xf > 2) {
        return Err(ProxyProtocolError::Family(family));
    }
    let Some(&[high, low]) = input.get(14..FIXED_BYTES) else {
        return Ok(Parsed::More);
    };
    let found = usize::from(u16::from_be_bytes([high, low]));
    if FIXED_BYTES + found > HEADER_BYTES_MAX {
        return Err(ProxyProtocolError::TooLong {
            max: HEADER_BYTES_MAX,
        });
    }
    let expected = match family {
        _ if local => 0,
        0x11 | 0x12 => INET_BYTES,
        0x21 | 0x22 => INET6_BYTES,
        0x31 | 0x32 => UNIX_BYTES,
        _ => 0,
    };
    if found < expected {
        return Err(ProxyProtocolError::TooShort { expected, found });
    }
    let Some(block) = input.get(FIXED_BYTES..FIXED_BYTES + found) else {
        return Ok(Parsed::More);
    };
    let header = match family {
        _ if local => Header::Local,
        0x11 => pair::<4, Ipv4Addr>(block),
        0x21 => pair::<16, Ipv6Addr>(block),
        _ => Header::Unknown,
    };
    Ok(Parsed::Done {
        taken: FIXED_BYTES + found,
        header,
    })
}

/// Two addresses of N bytes and their ports. The block's length was checked; a shorter one reads
/// as zeroes.
fn pair<const N: usize, A: From<[u8; N]> + Into<IpAddr>>(block: &[u8]) -> Header {
    let address = |at: usize| -> IpAddr {
        let mut octets = [0; N];
        for (octet, byte) in octets.iter_mut().zip(block.iter().skip(at)) {
            *octet = *byte;
        }
        A::from(octets).into()
    };
    let port = |at: usize| match block.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    };
    Header::Proxied {
        src: SocketAddr::new(address(0), port(2 * N)),
        dst: SocketAddr::new(address(N), port(2 * N + 2)),
    }
}

#[cfg(test)]
mod tests;
