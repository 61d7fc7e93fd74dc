//! TLS to clients and to back ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use balance::config::model::{BackendTls, Inspect, ServiceKind, ServiceTls};
use balance::{Balancer, BalancerError, Config};
use net::IoKind;
use net::fetch::{Answer, FetchError};
use tls::{Authority, ClientSettings, ClientTls, Identity, KeyType, Trust};

use crate::support::control::{Folder, start};
use crate::support::http::{BackEnd, get, ok};
use crate::support::{config, echo, on_both, service};

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

fn http(io: IoKind, back: SocketAddr, change: impl Fn(&mut Config)) -> Balancer {
    let mut service = service(&[back]);
    service.kind = ServiceKind::Http {
        inspect: Inspect::EveryMessage,
    };
    let mut config = config(service);
    change(&mut config);
    Balancer::start(&config, io).unwrap()
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
        let inner = http(io, back.address, |config| {
            config.services[0].tls = Some(ServiceTls::new(behind.clone()));
        });
        let outer = http(io, inner.address(), |config| {
            config.services[0].tls = Some(ServiceTls::new(front.clone()));
            config.services[0].backends[0].tls = Some(BackendTls {
                name: Some("behind".into()),
                ca: Some(certificates.ca.clone()),
                insecure: false,
            });
        });
        let client = certificates.client("front");
        for (path, length) in [("/short", 5), ("/long", 300_000), ("/short", 5)] {
            let answer = fetch(outer.address(), &client, path).unwrap();
            assert_eq!((answer.status, answer.body.len()), (200, length), "{path}");
        }
        // Another name than the certificate's is refused by the client.
        let other = fetch(outer.address(), &certificates.client("behind"), "/short");
        assert!(matches!(other, Err(FetchError::Io(_))), "{other:?}");
    });
}

#[test]
fn a_back_end_with_another_certificate_is_no_back_end() {
    let certificates = Certificates::new();
    let behind = certificates.file("behind");
    let back = BackEnd::named("one");
    on_both(|io| {
        let inner = http(io, back.address, |config| {
            config.services[0].tls = Some(ServiceTls::new(behind.clone()));
        });
        let status = |tls: BackendTls| {
            let outer = http(io, inner.address(), |config| {
                config.services[0].backends[0].tls = Some(tls.clone());
            });
            let request = get("/");
            let answer = net::fetch::fetch(&outer.address().into(), request.as_bytes(), LIMIT, 100);
            answer.unwrap().status
        };
        let wrong = BackendTls {
            name: Some("elsewhere".into()),
            ca: Some(certificates.ca.clone()),
            insecure: false,
        };
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
    // A certificate without a key.
    let keyless = started(ca.clone()).to_string();
    assert!(keyless.contains("expected a private key"), "{keyless}");
    assert!(keyless.contains(&ca.display().to_string()), "{keyless}");
}
