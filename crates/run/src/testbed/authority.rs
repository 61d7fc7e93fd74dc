//! The certificates of a run: an authority of its own, trusted by its loads and servers only.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tls::{Authority, ClientSettings, Identity, KeyType, TlsError, Trust};

use crate::testbed::copies::original;
use experiment::recipe::{Certificates, certificate_name};
use experiment::{LoadSpec, SubjectSpec, Target};

/// Makes the authority and the certificates when they are first needed, and keeps them for the
/// whole run: making an RSA key takes longer than starting most servers.
#[derive(Default)]
pub(crate) struct RunAuthority {
    authority: RefCell<Option<Authority>>,
    issued: RefCell<BTreeMap<(String, &'static str, IpAddr), Identity>>,
    /// The load's client certificates, by key type.
    clients: RefCell<BTreeMap<&'static str, Identity>>,
}

impl RunAuthority {
    fn with<T>(&self, act: impl FnOnce(&Authority) -> Result<T, TlsError>) -> Result<T, TlsError> {
        let mut authority = self.authority.borrow_mut();
        let authority = match &mut *authority {
            Some(made) => made,
            none => none.insert(Authority::new()?),
        };
        act(authority)
    }

    fn certificate(&self) -> Result<String, TlsError> {
        self.with(|authority| Ok(authority.certificate()))
    }

    /// The authority's certificate, for a server that speaks TLS or whose upstreams do, and with a key
    /// type the server's own certificate, and so many extra ones.
    pub(crate) fn certificates(
        &self,
        server: &str,
        address: SocketAddr,
        key_type: Option<KeyType>,
        extra: usize,
    ) -> Result<Certificates, TlsError> {
        let extra = key_type.map_or(0..0, |_| 0..extra).map(|at| {
            let key_type = key_type.unwrap_or_default();
            self.issue(&certificate_name(at + 1), address.ip(), key_type)
        });
        let extra = extra.collect::<Result<Vec<Identity>, TlsError>>()?;
        let own = key_type.map(|key_type| self.issue(original(server), address.ip(), key_type));
        Ok(Certificates {
            authority: self.certificate()?,
            own: own.transpose()?,
            extra,
        })
    }

    fn issue(&self, server: &str, ip: IpAddr, key_type: KeyType) -> Result<Identity, TlsError> {
        let key = (server.to_owned(), key_type.name(), ip);
        if let Some(identity) = self.issued.borrow().get(&key) {
            return Ok(identity.clone());
        }
        let names = [server.to_owned(), "localhost".into(), ip.to_string()];
        let issued = self.with(|authority| authority.issue(&names, key_type))?;
        let identity = issued.identity;
        self.issued.borrow_mut().insert(key, identity.clone());
        Ok(identity)
    }

    /// The client certificate that a load presents.
    pub(crate) fn client_identity(&self, key_type: KeyType) -> Result<Identity, TlsError> {
        if let Some(identity) = self.clients.borrow().get(key_type.name()) {
            return Ok(identity.clone());
        }
        let issued = self.with(|authority| authority.issue_client("weigh", key_type))?;
        let identity = issued.identity;
        let mut clients = self.clients.borrow_mut();
        clients.insert(key_type.name(), identity.clone());
        Ok(identity)
    }

    /// The client settings for one of the run's servers.
    pub(crate) fn client_of_server(&self, server: &str) -> Result<ClientSettings, TlsError> {
        Ok(ClientSettings {
            trust: Trust::Authorities(self.certificate()?),
            alpn: vec!["http/1.1".into()],
            ..ClientSettings::new(original(server))
        })
    }

    /// The client settings of a load on a subject; `None` for one without TLS.
    ///
    /// # Errors
    /// When an authority's file cannot be read, or no certificate can be made.
    pub(crate) fn client(
        &self,
        load: &LoadSpec,
        subject: &SubjectSpec,
    ) -> Result<Option<ClientSettings>, String> {
        if subject.scheme != "https" {
            return Ok(None);
        }
        let spec = &load.tls;
        let identity = spec.client_key.map(|key| self.client_identity(key));
        let settings = match &subject.target {
            Target::Server(name) => self.client_of_server(name).map_err(|e| e.to_string())?,
            Target::Address(_) if identity.is_some() => {
                return Err(
                    "load.tls_client_key is for servers of the experiment: others do not trust the \
                     run's certificate authority"
                        .into(),
                );
            }
            Target::Address(text) => {
                let host = text
                    .rsplit_once(':')
                    .map_or(text.as_str(), |(host, _)| host);
                ClientSettings {
                    trust: outside_trust(load)?,
                    alpn: vec!["http/1.1".into()],
                    ..ClientSettings::new(host)
                }
            }
        };
        Ok(Some(ClientSettings {
            version: spec.version,
            suites: spec.suites.clone(),
            groups: spec.groups.clone(),
            resumption: spec.resumption,
            identity: identity.transpose().map_err(|e| e.to_string())?,
            alpn: vec![subject.http.alpn().into()],
            ..settings
        }))
    }
}

/// Which certificates are accepted from a server that the run did not start.
fn outside_trust(load: &LoadSpec) -> Result<Trust, String> {
    match &load.tls.ca {
        _ if load.tls.insecure => Ok(Trust::Anything),
        None => Ok(Trust::Platform),
        Some(path) => match std::fs::read_to_string(path) {
            Ok(pem) => Ok(Trust::Authorities(pem)),
            Err(e) => Err(format!("load.tls_ca: {path}: {e}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_certificate_is_the_same_for_the_whole_run() {
        let authority = RunAuthority::default();
        let address = "127.0.0.1:443".parse().unwrap();
        let of = |name, key| authority.certificates(name, address, key, 0).unwrap();
        let first = of("front", Some(KeyType::EcdsaP256));
        assert_eq!(first, of("front.copy", Some(KeyType::EcdsaP256)));
        assert_ne!(first, of("other", Some(KeyType::EcdsaP256)));
        assert_ne!(first, of("front", Some(KeyType::EcdsaP384)));
        let client = |key| authority.client_identity(key).unwrap();
        assert_eq!(client(KeyType::EcdsaP256), client(KeyType::EcdsaP256));
        assert_ne!(client(KeyType::EcdsaP256), client(KeyType::Rsa2048));
        let without = of("plain", None);
        assert_eq!((without.own, without.authority), (None, first.authority));
    }
}
