use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;

use super::*;

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn v1(src: &str, dst: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_v1(socket(src), socket(dst), &mut out);
    out
}

fn proxied(src: &str, dst: &str) -> Header {
    Header::Proxied {
        src: socket(src),
        dst: socket(dst),
    }
}

fn header(input: &[u8]) -> Header {
    match parse(input) {
        Ok(Parsed::Done { taken, header }) => {
            assert_eq!(taken, input.len());
            header
        }
        other => panic!("expected a header, found {other:?}"),
    }
}

/// A header of version 2 as bytes.
fn v2(version_command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let mut out = b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a".to_vec();
    out.extend_from_slice(&[version_command, family]);
    out.extend_from_slice(&(block.len() as u16).to_be_bytes());
    out.extend_from_slice(block);
    out
}

#[test]
fn version_1_is_the_line_of_the_specification() {
    assert_eq!(
        v1("192.168.0.1:56324", "192.168.0.11:443"),
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"
    );
    assert_eq!(
        v1("[2001:db8::1]:1", "[2001:db8::2]:65535"),
        b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"
    );
}

#[test]
fn version_2_is_the_block_of_the_specification() {
    let mut out = Vec::new();
    encode_v2(socket("192.168.0.1:258"), socket("10.0.0.2:443"), &mut out);
    assert_eq!(
        out,
        v2(0x21, 0x11, &[192, 168, 0, 1, 10, 0, 0, 2, 1, 2, 1, 187])
    );
}

#[test]
fn addresses_of_ipv4_peers_of_an_ipv6_socket_are_told_as_ipv4() {
    assert_eq!(
        v1("[::ffff:10.0.0.1]:5", "[::ffff:10.0.0.2]:6"),
        b"PROXY TCP4 10.0.0.1 10.0.0.2 5 6\r\n"
    );
}

#[test]
fn a_pair_of_two_families_is_told_as_ipv6_in_hexadecimal_groups() {
    assert_eq!(
        v1("10.0.0.1:5", "[2001:db8::2]:6"),
        b"PROXY TCP6 ::ffff:a00:1 2001:db8::2 5 6\r\n"
    );
}

#[test]
fn unknown_needs_no_addresses_and_ignores_those_that_come() {
    assert_eq!(header(b"PROXY UNKNOWN\r\n"), Header::Unknown);
    assert_eq!(header(b"PROXY UNKNOWN \xff what 7\r\n"), Header::Unknown);
    assert_eq!(parse(b"PROXY UNKNOWNS\r\n"), Err(ProxyProtocolError::Line));
}

#[test]
fn local_holds_whatever_family_and_block_it_has() {
    assert_eq!(header(&v2(0x20, 0x00, &[])), Header::Local);
    assert_eq!(header(&v2(0x20, 0xff, &[1, 2, 3])), Header::Local);
}

#[test]
fn what_is_no_tcp_over_ip_is_unknown() {
    for (family, length) in [(0x00, 0), (0x12, 12), (0x22, 36), (0x31, 216), (0x10, 0)] {
        let bytes = v2(0x21, family, &vec![0; length]);
        assert_eq!(header(&bytes), Header::Unknown, "{family:#x}");
    }
}

#[test]
fn extensions_are_skipped() {
    let mut block = vec![10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 8];
    block.extend_from_slice(&[0x04, 0, 2, 9, 9]);
    assert_eq!(
        header(&v2(0x21, 0x11, &block)),
        proxied("10.0.0.1:7", "10.0.0.2:8")
    );
}

#[test]
fn malformed_headers_are_refused() {
    use ProxyProtocolError as E;
    let too_long = E::TooLong { max: 107 };
    let cases: [(&[u8], E); 14] = [
        (b"GET / HTTP/1.1\r\n", E::NoHeader),
        (b"PROXY\tTCP4", E::NoHeader),
        (b"\r\n\r\n\0\r\nQUIT\r", E::NoHeader),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", E::Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r ", E::Line),
        (b"PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n", E::Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", E::Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", E::Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", E::Line),
        (b"PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n", E::Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", E::Line),
        (b"PROXY TCP4 ::1 ::1 1 2\r\n", E::Line),
        (b"PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n", E::Line),
        (
            &[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 93]].concat(),
            too_long,
        ),
    ];
    for (input, error) in cases {
        assert_eq!(
            parse(input),
            Err(error),
            "{}",
            String::from_utf8_lossy(input)
        );
    }
    assert_eq!(parse(&v2(0x11, 0x11, &[0; 12])), Err(E::Version(1)));
    assert_eq!(parse(&v2(0x22, 0x11, &[0; 12])), Err(E::Command(2)));
    assert_eq!(parse(&v2(0x21, 0x41, &[0; 12])), Err(E::Family(0x41)));
    assert_eq!(parse(&v2(0x21, 0x13, &[0; 12])), Err(E::Family(0x13)));
    let short = E::TooShort {
        expected: 36,
        found: 35,
    };
    assert_eq!(parse(&v2(0x21, 0x21, &[0; 35])), Err(short));
    assert_eq!(
        parse(&v2(0x21, 0x11, &[0; 4081])),
        Err(E::TooLong { max: 4096 })
    );
}

#[test]
fn the_longest_headers_are_read() {
    let long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 91], b"\r\n"].concat();
    assert_eq!((long.len(), header(&long)), (107, Header::Unknown));
    let bytes = v2(0x21, 0x11, &[0; 4080]);
    assert_eq!(bytes.len(), HEADER_BYTES_MAX);
    assert_eq!(header(&bytes), proxied("0.0.0.0:0", "0.0.0.0:0"));
}

fn ip() -> impl Strategy<Value = std::net::IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().into()),
    ]
}

fn pairs() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    (ip(), ip(), any::<u16>(), any::<u16>())
        .prop_map(|(a, b, p, q)| (SocketAddr::new(a, p), SocketAddr::new(b, q)))
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

proptest! {
    #[test]
    fn what_is_written_is_read_again_in_any_split((src, dst) in pairs(), second in any::<bool>(),
            data in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut bytes = Vec::new();
        if second { encode_v2(src, dst, &mut bytes) } else { encode_v1(src, dst, &mut bytes) }
        let length = bytes.len();
        let longest = if second { 52 } else { 104 };
        prop_assert!(length <= longest);
        bytes.extend_from_slice(&data);
        for end in 0..length {
            prop_assert_eq!(parse(&bytes[..end]), Ok(Parsed::More));
        }
        for end in length..=bytes.len() {
            let Ok(Parsed::Done { taken, header: Header::Proxied { src: from, dst: to } }) =
                parse(&bytes[..end]) else { panic!("no header") };
            prop_assert_eq!(taken, length);
            prop_assert_eq!((canonical(from), canonical(to)), (canonical(src), canonical(dst)));
        }
    }

    #[test]
    fn no_answer_is_taken_back(start in 0..4usize,
            rest in proptest::collection::vec(any::<u8>(), 0..700),
            line in "[A-Z0-9:. \r\n]{0,120}") {
        let start: &[u8] = [b"".as_slice(), b"PROXY TCP4 ", b"\r\n\r\n\0\r\nQUIT\n",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00"][start];
        for bytes in [[start, &rest].concat(), [start, line.as_bytes()].concat()] {
            let mut settled = None;
            for end in 0..=bytes.len() {
                let now = parse(&bytes[..end]);
                if let Some(before) = settled {
                    prop_assert_eq!(now, before);
                } else if now != Ok(Parsed::More) {
                    settled = Some(now);
                } else {
                    prop_assert!(end < HEADER_BYTES_MAX);
                }
                if let Ok(Parsed::Done { taken, .. }) = now {
                    prop_assert!(taken <= end && taken <= HEADER_BYTES_MAX);
                }
            }
        }
    }
}
