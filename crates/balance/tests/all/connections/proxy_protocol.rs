//! Who a client is: lists that allow and deny, and the PROXY protocol on both sides.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::support::{
    LONG, ask, clients_now, connect, echo, ends, on_both, read, serve, service, start, until,
};
use balance::config::model::ProxyVersion;
use net::proxy_protocol::{self, Header, Parsed};

/// A back end that tells what header it was sent, and what came behind it in the first piece.
fn listening() -> (SocketAddr, Receiver<(Header, Vec<u8>)>) {
    let (sender, receiver) = channel();
    let address = serve(move |mut stream: TcpStream| {
        let mut got = Vec::new();
        let mut piece = [0; 512];
        loop {
            let count = stream.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..count]);
            match proxy_protocol::parse(&got) {
                Ok(Parsed::Done { taken, header }) => {
                    while got.len() < taken + 2 {
                        let count = stream.read(&mut piece).unwrap();
                        got.extend_from_slice(&piece[..count]);
                    }
                    sender.send((header, got.split_off(taken))).unwrap();
                    return;
                }
                Ok(Parsed::More) => assert!(count > 0),
                Err(e) => panic!("{e}"),
            }
        }
    });
    (address, receiver)
}

#[test]
fn a_back_end_is_told_who_the_client_is() {
    on_both(|io| {
        for version in [ProxyVersion::V1, ProxyVersion::V2] {
            let (address, told) = listening();
            let mut service = service(&[address]);
            service.backends[0].proxy_protocol_out = Some(version);
            let balancer = start(io, service);
            let mut stream = connect(&balancer);
            stream.write_all(b"hi").unwrap();
            let (src, dst) = (stream.local_addr().unwrap(), balancer.address());
            let expected = (Header::Proxied { src, dst }, b"hi".to_vec());
            assert_eq!(told.recv_timeout(LONG).unwrap(), expected);
        }
    });
}

#[test]
fn an_announced_client_is_the_client() {
    on_both(|io| {
        let (address, told) = listening();
        let mut service = service(&[address]);
        service.proxy_protocol_in = true;
        service.access.deny = vec!["10.9/16".parse().unwrap()];
        service.backends[0].proxy_protocol_out = Some(ProxyVersion::V2);
        let balancer = start(io, service);
        let dst: SocketAddr = "10.0.0.1:443".parse().unwrap();
        for v1 in [true, false] {
            let src: SocketAddr = "10.8.0.7:5555".parse().unwrap();
            let mut bytes = Vec::new();
            match v1 {
                true => proxy_protocol::encode_v1(src, dst, &mut bytes),
                false => proxy_protocol::encode_v2(src, dst, &mut bytes),
            }
            bytes.extend_from_slice(b"hi");
            let mut stream = connect(&balancer);
            stream.set_nodelay(true).unwrap();
            // In pieces, so that the header comes bit by bit.
            for piece in bytes.chunks(5) {
                stream.write_all(piece).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            let (header, behind) = told.recv_timeout(LONG).unwrap();
            assert_eq!(header, Header::Proxied { src, dst });
            assert_eq!(behind, b"hi");
        }
        let mut bytes = Vec::new();
        proxy_protocol::encode_v1("10.9.0.7:5555".parse().unwrap(), dst, &mut bytes);
        let mut denied = connect(&balancer);
        denied.write_all(&bytes).unwrap();
        assert!(ends(&mut denied));
        let state = balancer.shared();
        until("it is counted", || state.services[0].denied.get() == 1);
        let mut wrong = connect(&balancer);
        wrong.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert!(ends(&mut wrong));
        until("it is counted", || {
            state.services[0].bad_requests.get() == 1
        });
        // Nobody waits for a header for ever, nor keeps a place by ending at once.
        drop(connect(&balancer));
        until("places are given back", || clients_now(&balancer) <= 1);
    });
}

#[test]
fn a_header_that_does_not_come_is_not_waited_for() {
    on_both(|io| {
        let mut service = service(&[echo("x")]);
        service.proxy_protocol_in = true;
        service.timeouts.client_header = Duration::from_millis(100);
        let balancer = start(io, service);
        let mut stream = connect(&balancer);
        stream.write_all(b"PRO").unwrap();
        assert!(ends(&mut stream));
        assert_eq!(balancer.shared().services[0].timeouts.get(), 1);
    });
}

#[test]
fn lists_let_in_and_keep_out() {
    on_both(|io| {
        let mut denying = service(&[echo("x")]);
        denying.access.deny = vec!["127.0.0.1".parse().unwrap()];
        let balancer = start(io, denying);
        assert!(ends(&mut connect(&balancer)));
        assert_eq!(balancer.shared().services[0].denied.get(), 1);

        let mut other = service(&[echo("x")]);
        other.access.allow = vec!["10/8".parse().unwrap()];
        assert!(ends(&mut connect(&start(io, other))));

        let mut allowing = service(&[echo("x")]);
        allowing.access.allow = vec!["127.*.*.*".parse().unwrap()];
        let balancer = start(io, allowing);
        assert_eq!(ask(&balancer, b"y"), "xy");
        assert_eq!(read(&mut connect(&balancer), 1), "x");
    });
}

#[test]
fn a_header_with_long_extensions_is_read_in_whatever_pieces_it_comes() {
    on_both(|io| {
        let mut service = service(&[echo("x")]);
        service.proxy_protocol_in = true;
        let balancer = start(io, service);
        let mut header = Vec::new();
        let (from, to) = (
            "192.0.2.1:1".parse().unwrap(),
            "192.0.2.2:2".parse().unwrap(),
        );
        proxy_protocol::encode_v2(from, to, &mut header);
        // An extension that fills the header (2.2.5), which has to fit into 3,900 bytes at least.
        let fill = 3_900 - header.len() - 3;
        header.extend_from_slice(&[4, (fill >> 8) as u8, fill as u8]);
        header.resize(3_900, 0);
        let rest = ((header.len() - 16) as u16).to_be_bytes();
        header[14..16].copy_from_slice(&rest);
        for size in [header.len(), 700, 1_400] {
            let mut client = connect(&balancer);
            for piece in header.chunks(size) {
                client.write_all(piece).unwrap();
            }
            client.write_all(b"hello").unwrap();
            assert_eq!(read(&mut client, 6), "xhello");
        }
    });
}
