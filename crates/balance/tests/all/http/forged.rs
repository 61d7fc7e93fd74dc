//! Clients that claim to be someone else: forwarded fields and announced addresses.

use std::io::Write as _;
use std::net::SocketAddr;

use balance::config::Template;
use balance::config::model::{EditKind, HeaderEdit, Recipient, Service};
use net::proxy_protocol;

use crate::support::http::*;
use crate::support::{connect, echo, ends, read, service, start};

/// Adds an edit of requests to every back end.
fn edits(service: &mut Service, how: EditKind) {
    for backend in &mut service.backends {
        backend.header_edits.push(HeaderEdit {
            recipient: Recipient::Server,
            how,
            name: "X-Forwarded-For".to_owned(),
            value: Template::parse("%r").unwrap(),
        });
    }
}

/// A chunked request with a trailer.
fn with_trailer(trailer: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nhi\r\n0\r\n{trailer}\r\n\r\n"
    )
}

#[test]
fn a_field_that_the_configuration_sets_is_refused_as_a_trailer() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer_with(io, &[back.address], |service| {
            edits(service, EditKind::Set);
        });
        for name in ["X-Forwarded-For", "x_forwarded_for", "X.Forwarded-For"] {
            let mut client = Peer::connect(balancer.address());
            let answer = client.ask(with_trailer(&format!("{name}: 10.0.0.1")));
            assert_eq!(answer.status(), 400, "{name}");
        }
        assert_eq!(back.connections(), 0, "nothing of it reaches the back end");
    });
}

#[test]
fn a_field_that_the_configuration_sets_comes_once_however_it_is_spelt() {
    on_both(|io| {
        for how in [EditKind::Set, EditKind::Append, EditKind::Add] {
            let back = BackEnd::named("a");
            let (_balancer, mut client) =
                client_with(io, &[back.address], |service| edits(service, how));
            let forged = "X_Forwarded_For: 10.0.0.1\r\nx-forwarded_for: 10.0.0.2\r\n\
                          X.Forwarded.For: 10.0.0.3\r\nX-Forwarded-Fox: 4\r\n";
            client.ask(format!("GET / HTTP/1.1\r\nHost: a\r\n{forged}\r\n"));
            let head = back.requests()[0].head.clone();
            assert!(head.contains("X-Forwarded-For: 127.0.0.1\r\n"), "{head}");
            assert!(head.contains("X-Forwarded-Fox: 4\r\n"), "{head}");
            assert!(!head.contains("10.0.0."), "{how:?}: {head}");
        }
    });
}

/// A PROXY protocol header that announces a client.
fn announced(client: &str) -> Vec<u8> {
    let src: SocketAddr = format!("{client}:5555").parse().unwrap();
    let mut bytes = Vec::new();
    proxy_protocol::encode_v2(src, "10.0.0.1:443".parse().unwrap(), &mut bytes);
    bytes.extend_from_slice(b"hi");
    bytes
}

#[test]
fn a_denied_client_cannot_name_itself_an_allowed_one() {
    on_both(|io| {
        let mut service = service(&[echo("x")]);
        service.proxy_protocol_in = true;
        service.access.deny = vec!["127/8".parse().unwrap()];
        let balancer = start(io, service);
        let mut stream = connect(&balancer);
        let _ = stream.write_all(&announced("10.8.0.7"));
        assert!(ends(&mut stream), "{io}");
        let state = balancer.shared();
        until("it is counted", || state.services[0].denied.get() == 1);
    });
}

#[test]
fn only_proxies_that_were_named_announce_clients() {
    on_both(|io| {
        let proxied = |proxies: &str| {
            let mut service = service(&[echo("x")]);
            service.proxy_protocol_in = true;
            service.trusted_proxies = vec![proxies.parse().unwrap()];
            service.access.allow = vec!["10/8".parse().unwrap()];
            start(io, service)
        };
        // The access lists need not allow the proxy itself.
        let balancer = proxied("127/8");
        let mut stream = connect(&balancer);
        stream.write_all(&announced("10.8.0.7")).unwrap();
        assert_eq!(read(&mut stream, 3), "xhi", "{io}");
        let mut stream = connect(&balancer);
        stream.write_all(&announced("11.8.0.7")).unwrap();
        assert!(ends(&mut stream), "{io}");

        let balancer = proxied("10/8");
        let mut stream = connect(&balancer);
        let _ = stream.write_all(&announced("10.8.0.7"));
        assert!(ends(&mut stream), "{io}");
        assert_eq!(balancer.shared().services[0].denied.get(), 1);
    });
}

#[test]
fn only_proxies_that_were_named_forward_for_others() {
    const FIELDS: &str = "X-Forwarded-For: 10.0.0.1\r\nforwarded: for=10.0.0.2\r\n\
                          X_Real_IP: 10.0.0.3\r\nAccept: */*\r\n";
    on_both(|io| {
        for (proxies, forwarded) in [(None, true), (Some("127/8"), true), (Some("10/8"), false)] {
            for edited in [false, true] {
                let back = BackEnd::named("a");
                let (_balancer, mut client) = client_with(io, &[back.address], |service| {
                    service.trusted_proxies =
                        proxies.iter().map(|one| one.parse().unwrap()).collect();
                    if edited {
                        edits(service, EditKind::Append);
                    }
                });
                client.ask(format!("GET / HTTP/1.1\r\nHost: a\r\n{FIELDS}\r\n"));
                let request = back.requests()[0].clone();
                let told = request.values("x-forwarded-for");
                let expected = match (forwarded, edited) {
                    (true, true) => vec!["10.0.0.1, 127.0.0.1"],
                    (true, false) => vec!["10.0.0.1"],
                    (false, true) => vec!["127.0.0.1"],
                    (false, false) => vec![],
                };
                assert_eq!(told, expected, "{io}, {proxies:?}: {}", request.head);
                assert_eq!(request.values("forwarded").len(), usize::from(forwarded));
                assert_eq!(request.values("x_real_ip").len(), usize::from(forwarded));
                assert_eq!(request.values("accept"), ["*/*"]);
            }
        }
    });
}

#[test]
fn a_trailer_says_nothing_about_the_client() {
    on_both(|io| {
        let back = BackEnd::named("a");
        let balancer = balancer(io, &[back.address]);
        for name in ["Forwarded", "X-Forwarded-Proto", "x_real_ip"] {
            let mut client = Peer::connect(balancer.address());
            let answer = client.ask(with_trailer(&format!("{name}: 10.0.0.1")));
            assert_eq!(answer.status(), 400, "{name}");
        }
    });
}
