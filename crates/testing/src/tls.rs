//! TLS between a server and a client that trusts it.

use ::tls::{Authority, ClientSettings, KeyType, ServerSettings, ServerTls, Trust};

/// A server called `localhost` that offers these protocols by ALPN, and a client of it that offers
/// none.
pub fn localhost(alpn: &[&str]) -> (ServerTls, ClientSettings) {
    let authority = Authority::new().unwrap();
    let issued = authority.issue(&["localhost".into()], KeyType::EcdsaP256);
    let server = ServerSettings {
        alpn: alpn.iter().map(|one| one.to_string()).collect(),
        ..ServerSettings::new(issued.unwrap().identity)
    };
    let client = ClientSettings {
        trust: Trust::Authorities(authority.certificate()),
        ..ClientSettings::new("localhost")
    };
    (ServerTls::new(&server, "the test").unwrap(), client)
}
