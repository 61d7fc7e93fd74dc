//! Back ends by the server name of TLS, which passes through.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use balance::Balancer;
use balance::config::model::{ServiceTls, SniRule};
use net::IoKind;
use tls::{Authority, ClientSettings, ClientTls, KeyType, Trust};

use crate::support::control::Folder;
use crate::support::http::{BackEnd, balancer_with, get};
use crate::support::{LONG, config, on_both, service, until};

struct Setup {
    authority: Authority,
    names: Vec<(Balancer, BackEnd)>,
    _folder: Folder,
}

/// Servers of TLS with certificates of these names.
fn servers(io: IoKind, names: &[&'static str]) -> Setup {
    let (folder, authority) = (Folder::new(), Authority::new().unwrap());
    let servers = names.iter().map(|name| {
        let issued = authority
            .issue(&[(*name).into()], KeyType::EcdsaP256)
            .unwrap();
        let both = format!("{}{}", issued.identity.chain, issued.identity.key);
        let file = folder.write(&format!("{}.pem", name.replace('*', "any")), &both);
        let back = BackEnd::named(name);
        let server = balancer_with(io, &[back.address], |one| {
            one.tls = Some(ServiceTls::new(file));
        });
        (server, back)
    });
    Setup {
        names: servers.collect(),
        authority,
        _folder: folder,
    }
}

fn front(io: IoKind, setup: &Setup, rules: &[(&[&str], &[&str])]) -> Balancer {
    let backs: Vec<SocketAddr> = setup.names.iter().map(|(one, _)| one.address()).collect();
    let mut one = service(&backs);
    for (backend, name) in one.backends.iter_mut().zip(["one", "two", "three"]) {
        backend.name = name.into();
    }
    let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
    one.sni = rules
        .iter()
        .map(|(names, back_ends)| SniRule {
            names: owned(names),
            back_ends: owned(back_ends),
        })
        .collect();
    one.timeouts.client_header = Duration::from_millis(500);
    Balancer::start(&config(one), io).unwrap()
}

fn ask(setup: &Setup, to: SocketAddr, name: &str) -> Option<String> {
    let client = ClientTls::new(&ClientSettings {
        trust: Trust::Authorities(setup.authority.certificate()),
        ..ClientSettings::new(name)
    });
    let request = get("/");
    let answer = tls::fetch(
        &to.into(),
        Some(&client.unwrap()),
        &[],
        request.as_bytes(),
        LONG,
        1 << 20,
    );
    answer
        .ok()
        .map(|answer| String::from_utf8(answer.body).unwrap())
}

#[test]
fn the_server_name_chooses_the_back_end() {
    on_both(|io| {
        let setup = servers(io, &["a.example", "*.b.example", "c.example"]);
        let rules: &[(&[&str], &[&str])] =
            &[(&["a.example"], &["one"]), (&["*.b.example"], &["two"])];
        let strict = front(io, &setup, rules);
        for _ in 0..3 {
            let body = ask(&setup, strict.address(), "a.example");
            assert_eq!(body.as_deref(), Some("a.example/"));
            let body = ask(&setup, strict.address(), "x.b.example");
            assert_eq!(body.as_deref(), Some("*.b.example/"));
        }
        // Others are refused, unless a rule takes them.
        assert_eq!(ask(&setup, strict.address(), "c.example"), None);
        assert_eq!(strict.shared().services[0].refused.get(), 1);
        let open = front(io, &setup, &[rules[0], (&["*"], &["three"])]);
        let body = ask(&setup, open.address(), "c.example");
        assert_eq!(body.as_deref(), Some("c.example/"));
        // The balancer passes the name on; the server shows what it has.
        assert_eq!(ask(&setup, open.address(), "x.b.example"), None);
    });
}

#[test]
fn a_hello_in_pieces_is_awaited_and_bounded_in_size_and_time() {
    on_both(|io| {
        let setup = servers(io, &["a.example"]);
        let front = front(io, &setup, &[(&["*"], &["one"])]);
        let counted = || front.shared().services[0].bad_requests.get();
        let mut stream = TcpStream::connect(front.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        // A message of 60,000 bytes in records of one byte.
        let _ = stream.write_all(&[22, 3, 1, 0, 4, 1, 0, 0xea, 0x60]);
        assert!(matches!(stream.read(&mut [0; 100]), Ok(0) | Err(_)));
        assert_eq!(counted(), 1);
        let mut stream = TcpStream::connect(front.address()).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        until("it is so", || counted() == 2);
        // One that stops half way.
        let mut stream = TcpStream::connect(front.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(&[22, 3, 1, 0]).unwrap();
        assert!(matches!(stream.read(&mut [0; 100]), Ok(0) | Err(_)));
        assert_eq!(front.shared().services[0].timeouts.get(), 1);
        // Byte by byte, through a relay that cuts everything.
        let to = front.address();
        let cutting = crate::support::serve(move |from| {
            let to = TcpStream::connect(to).unwrap();
            to.set_nodelay(true).unwrap();
            let (mut read, mut write) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let there = std::thread::spawn(move || {
                let mut byte = [0];
                while let Ok(1) = read.read(&mut byte) {
                    let _ = write.write_all(&byte);
                }
                let _ = write.shutdown(std::net::Shutdown::Write);
            });
            let (mut read, mut write) = (to, from);
            let _ = std::io::copy(&mut read, &mut write);
            let _ = write.shutdown(std::net::Shutdown::Both);
            let _ = there.join();
        });
        let body = ask(&setup, cutting, "a.example");
        assert_eq!(body.as_deref(), Some("a.example/"));
    });
}
