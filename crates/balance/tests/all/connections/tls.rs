//! TLS to clients and to back ends.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use balance::config::model::{
    BackendTls, Check, HttpVersion, HttpVersions, ProxyVersion, Service, ServiceKind, ServiceTls,
};
use balance::{Balancer, BalancerError};
use net::IoKind;
use net::fetch::{Answer, FetchError};
use tls::{Authority, ClientSettings, ClientTls, Identity, KeyType, Trust};

use crate::support::control::{self, Folder, start};
use crate::support::http::{BackEnd, get, ok};
use crate::support::{config, dead, echo, on_both, service, until};
use testing::http2::client as http2;

const LIMIT: Duration = Duration::from_secs(20);

struct Certificates {
    folder: Folder,
    authority: Authority,
    ca: PathBuf,
}

impl Certificates {
    fn new() -> Self {
        let (folder, authority) = (Folder::new(), Authority::new().unwrap());
        let ca = folder.write("ca.pem", &authority.certificate());
        Self {
            folder,
            authority,
            ca,
        }
    }

    fn issue(&self, name: &str) -> Identity {
        let issued = self.authority.issue(&[name.into()], KeyType::EcdsaP256);
        issued.unwrap().identity
    }

    /// A file with a certificate of this name, and its key.
    fn file(&self, name: &str) -> PathBuf {
        let identity = self.issue(name);
        let both = format!("{}{}", identity.chain, identity.key);
        self.folder.write(&format!("{name}.pem"), &both)
    }

    fn backend(&self, name: &str) -> BackendTls {
        BackendTls {
            name: Some(name.into()),
            ca: Some(self.ca.clone()),
            insecure: false,
        }
    }

    fn client(&self, name: &str) -> ClientTls {
        let trust = Trust::Authorities(self.authority.certificate());
        let settings = ClientSettings::new(name);
        ClientTls::new(&ClientSettings { trust, ..settings }).unwrap()
    }
}

fn fetch(to: SocketAddr, client: &ClientTls, path: &str) -> Result<Answer, FetchError> {
    let request = get(path);
    tls::fetch(
        &to.into(),
        Some(client),
        &[],
        request.as_bytes(),
        LIMIT,
        1 << 20,
    )
}

fn http(io: IoKind, back: SocketAddr, change: impl Fn(&mut Service)) -> Balancer {
    let mut service = service(&[back]);
    service.kind = ServiceKind::HTTP;
    change(&mut service);
    Balancer::start(&config(service), io).unwrap()
}

/// One with this certificate.
fn secure(io: IoKind, back: SocketAddr, file: &Path) -> Balancer {
    http(io, back, |service| {
        service.tls = Some(ServiceTls::new(file.into()))
    })
}

/// The same, which offers only these versions.
fn offering(io: IoKind, back: SocketAddr, file: &Path, one: bool, two: bool) -> Balancer {
    http(io, back, |service| {
        service.tls = Some(ServiceTls::new(file.into()));
        service.offered_versions = Some(HttpVersions { one, two });
    })
}

/// A back end whose certificate is not looked at.
fn unchecked() -> BackendTls {
    BackendTls {
        insecure: true,
        ..BackendTls::default()
    }
}

/// Asks the back ends of a service often whether they are well.
fn check(service: &mut Service) {
    service.check_interval = Duration::from_millis(20);
    service.check = Check::Http {
        path: "/".into(),
        host: None,
        status: 200,
    };
}

#[test]
fn requests_pass_through_tls_on_both_sides() {
    let certificates = Certificates::new();
    let (front, behind) = (certificates.file("front"), certificates.file("behind"));
    let long = "x".repeat(300_000);
    let back = BackEnd::new(move |peer, _, all| {
        while let Some(request) = peer.request() {
            let body = if request.head.contains("/long") {
                &long
            } else {
                "short"
            };
            all.note(request);
            peer.say(ok(body));
        }
    });
    on_both(|io| {
        let inner = secure(io, back.address, &behind);
        let outer_of = |version, inner: &Balancer| {
            http(io, inner.address(), |service| {
                service.tls = Some(ServiceTls::new(front.clone()));
                service.backends[0].http = version;
                service.backends[0].tls = Some(certificates.backend("behind"));
            })
        };
        let outer = outer_of(HttpVersion::One, &inner);
        let only_two = offering(io, back.address, &behind, false, true);
        let client = certificates.client("front");
        let outer_of_two = outer_of(HttpVersion::Two, &only_two);
        for outer in [&outer, &outer_of_two] {
            for (path, length) in [("/short", 5), ("/long", 300_000), ("/short", 5)] {
                let answer = fetch(outer.address(), &client, path).unwrap();
                assert_eq!((answer.status, answer.body.len()), (200, length), "{path}");
            }
        }
        // A back end that does not choose HTTP/2 cannot be reached.
        let old = offering(io, back.address, &behind, true, false);
        let outer_of_old = outer_of(HttpVersion::Two, &old);
        let answer = fetch(outer_of_old.address(), &client, "/short").unwrap();
        assert_eq!(answer.status, 503);
        // Another name than the certificate's is refused by the client.
        let other = fetch(outer.address(), &certificates.client("behind"), "/short");
        assert!(matches!(other, Err(FetchError::Io(_))), "{other:?}");
    });
}

#[test]
fn clients_choose_the_version_of_http_by_alpn() {
    let certificates = Certificates::new();
    let (front, back) = (certificates.file("front"), BackEnd::named("one"));
    let client = |alpn: &[&str]| {
        let settings = ClientSettings::new("front");
        ClientTls::new(&ClientSettings {
            trust: Trust::Authorities(certificates.authority.certificate()),
            alpn: alpn.iter().map(|one| (*one).to_owned()).collect(),
            ..settings
        })
        .unwrap()
    };
    on_both(|io| {
        let balancer = secure(io, back.address, &front);
        let stream = client(&["h2", "http/1.1"])
            .connect(balancer.address())
            .unwrap();
        let mut h2 = http2::Client::over(stream, &[]);
        for stream in [1, 3, 5] {
            assert_eq!(h2.ask(stream, &http2::GET).body, b"one/");
        }
        for alpn in [&["http/1.1"][..], &[]] {
            let answer = fetch(balancer.address(), &client(alpn), "/a").unwrap();
            assert_eq!((answer.status, &answer.body[..]), (200, &b"one/a"[..]));
        }
        // Where only one is offered, it is chosen.
        let only = |one, two| offering(io, back.address, &front, one, two);
        let (old, new) = (only(true, false), only(false, true));
        let both = client(&["h2", "http/1.1"]);
        assert_eq!(fetch(old.address(), &both, "/a").unwrap().status, 200);
        assert!(fetch(new.address(), &client(&[]), "/a").is_err());
        assert!(fetch(new.address(), &client(&["http/1.1"]), "/a").is_err());
    });
}

#[test]
fn a_back_end_with_another_certificate_is_no_back_end() {
    let certificates = Certificates::new();
    let behind = certificates.file("behind");
    let back = BackEnd::named("one");
    on_both(|io| {
        let inner = secure(io, back.address, &behind);
        let status = |tls: BackendTls| {
            let outer = http(io, inner.address(), |service| {
                service.backends[0].tls = Some(tls.clone());
            });
            let request = get("/");
            let answer = net::fetch::fetch(&outer.address().into(), request.as_bytes(), LIMIT, 100);
            answer.unwrap().status
        };
        let wrong = certificates.backend("elsewhere");
        assert_eq!(status(wrong.clone()), 503);
        let any = BackendTls {
            insecure: true,
            ..wrong
        };
        assert_eq!(status(any), 200);
    });
}

#[test]
fn a_tcp_service_ends_tls_and_passes_bytes_on() {
    use std::io::{Read, Write};
    let certificates = Certificates::new();
    let (front, back) = (certificates.file("front"), echo(""));
    on_both(|io| {
        let mut config = config(service(&[back]));
        config.services[0].tls = Some(ServiceTls::new(front.clone()));
        let balancer = Balancer::start(&config, io).unwrap();
        let mut stream = certificates
            .client("front")
            .connect(balancer.address())
            .unwrap();
        let sent: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        stream.write_all(&sent).unwrap();
        let mut heard = vec![0; sent.len()];
        stream.read_exact(&mut heard).unwrap();
        assert!(heard == sent);
    });
}

#[test]
fn a_reload_takes_a_new_certificate_and_keeps_connections() {
    use std::io::{Read, Write};
    let certificates = Certificates::new();
    let back = BackEnd::named("one");
    on_both(|io| {
        let old = certificates.issue("old");
        let both = format!("{}{}", old.chain, old.key);
        let file = certificates.folder.write(&format!("{io}.pem"), &both);
        let running = start(
            &format!(
                "[services.web]\nlisten = \"127.0.0.1:0\"\nkind = \"http\"\n\
                 tls = {{ certificate = \"{}\" }}\n[services.web.backends]\nb = \"{}\"\n",
                file.display(),
                back.address
            ),
            io,
        );
        let to = running.address();
        let mut kept = certificates.client("old").connect(to).unwrap();
        let mut ask = || {
            kept.write_all(get("/").as_bytes()).unwrap();
            let mut bytes = [0; 4096];
            let n = kept.read(&mut bytes).unwrap();
            assert!(bytes[..n].starts_with(b"HTTP/1.1 200"), "{n}");
        };
        ask();
        assert!(fetch(to, &certificates.client("new"), "/").is_err());
        let new = certificates.issue("new");
        std::fs::write(&file, format!("{}{}", new.chain, new.key)).unwrap();
        running.done("reload");
        assert_eq!(
            fetch(to, &certificates.client("new"), "/").unwrap().status,
            200
        );
        assert!(fetch(to, &certificates.client("old"), "/").is_err());
        ask();
    });
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let certificates = Certificates::new();
    let ca = certificates.ca.clone();
    let started = |path: PathBuf| {
        let mut config = config(service(&[echo("")]));
        config.services[0].tls = Some(ServiceTls::new(path));
        Balancer::start(&config, IoKind::Epoll).err().unwrap()
    };
    let missing = started("/nowhere/at.pem".into());
    assert!(matches!(missing, BalancerError::Tls { .. }));
    assert!(missing.to_string().contains("/nowhere/at.pem"), "{missing}");
    // A key of its own file: no key, a key that cannot be read, and another one's.
    let certificate = certificates
        .folder
        .write("c.pem", &certificates.issue("a").chain);
    let broken = "-----BEGIN PRIVATE KEY-----\nYmFk\n-----END PRIVATE KEY-----\n";
    let other = certificates.issue("a").key;
    for (name, key, said) in [
        (
            "none.pem",
            "bad",
            "expected a private key in PEM form, found none",
        ),
        ("broken.pem", broken, "failed to parse private key"),
        (
            "other.pem",
            &other,
            "the key does not belong to the certificate of ",
        ),
    ] {
        let key = certificates.folder.write(name, key);
        let mut config = config(service(&[echo("")]));
        config.services[0].tls = Some(ServiceTls {
            key: key.clone(),
            ..ServiceTls::new(certificate.clone())
        });
        let refused = config.check_tls().unwrap_err().to_string();
        let said = format!("{}: {said}", key.display());
        assert!(refused.contains(&said), "{refused}");
    }
    // A certificate without a key.
    let keyless = started(ca.clone()).to_string();
    assert!(keyless.contains("expected a private key"), "{keyless}");
    assert!(keyless.contains(&ca.display().to_string()), "{keyless}");
}

#[test]
fn http_checks_of_back_ends_with_tls_do_the_handshake() {
    let certificates = Certificates::new();
    let behind = certificates.file("behind");
    let status = Arc::new(AtomicU32::new(200));
    let back = control::BackEnd::http(status.clone());
    on_both(|io| {
        let inner = secure(io, back.address, &behind);
        let checked = |name: &str| {
            http(io, inner.address(), |service| {
                service.backends[0].tls = Some(certificates.backend(name));
                service.probing.fall = 1;
                check(service);
            })
        };
        let (well, other) = (checked("behind"), checked("elsewhere"));
        let usable = |one: &Balancer| one.shared().services[0].backends[0].usable();
        until("it is so", || !usable(&other));
        std::thread::sleep(Duration::from_millis(200));
        assert!(usable(&well));
    });
    // A back end that answers wrongly is found.
    let inner = secure(IoKind::Epoll, dead(), &behind);
    let outer = http(IoKind::Epoll, inner.address(), |service| {
        service.backends[0].tls = Some(unchecked());
        check(service);
    });
    until("it is so", || {
        !outer.shared().services[0].backends[0].usable()
    });
}

#[test]
fn a_proxy_announces_clients_before_the_handshake() {
    use std::io::Write;
    let certificates = Certificates::new();
    let (front, back) = (certificates.file("front"), BackEnd::named("one"));
    on_both(|io| {
        let inner = http(io, back.address, |service| {
            service.tls = Some(ServiceTls::new(front.clone()));
            service.proxy_protocol_in = true;
            service.access.deny = vec!["192.0.2.66".parse().unwrap()];
        });
        let ask = |header: &str| {
            let request = get("/");
            let client = certificates.client("front");
            let answer = tls::fetch(
                &inner.address().into(),
                Some(&client),
                header.as_bytes(),
                request.as_bytes(),
                LIMIT,
                1 << 20,
            );
            answer.map(|answer| answer.status)
        };
        assert_eq!(
            ask("PROXY TCP4 192.0.2.7 192.0.2.1 5 443\r\n").unwrap(),
            200
        );
        assert!(ask("PROXY TCP4 192.0.2.66 192.0.2.1 5 443\r\n").is_err());
        assert!(ask("").is_err());
        let state = &inner.shared().services[0];
        assert_eq!((state.denied.get(), state.bad_requests.get()), (1, 1));
        // In pieces, and with the handshake in the same segment.
        let mut stream = std::net::TcpStream::connect(inner.address()).unwrap();
        stream.write_all(b"PROXY TCP4 192.").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stream
            .write_all(b"0.2.66 192.0.2.1 5 443\r\n\x16\x03\x01")
            .unwrap();
        until("it is so", || state.denied.get() == 2);
        // Another balancer announces its clients so.
        let outer = http(io, inner.address(), |service| {
            let backend = &mut service.backends[0];
            backend.proxy_protocol_out = Some(ProxyVersion::V2);
            backend.tls = Some(unchecked());
        });
        let request = get("/");
        let answer = net::fetch::fetch(&outer.address().into(), request.as_bytes(), LIMIT, 100);
        assert_eq!(answer.unwrap().status, 200);
    });
}
