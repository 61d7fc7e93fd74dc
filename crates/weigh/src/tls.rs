//! From the options for TLS to settings.

use std::path::Path;

use experiment::Experiment;
use tls::{
    Authority, CA_CERTIFICATE, CLIENT_CERTIFICATE, ClientSettings, Identity, ServerSettings,
    ServerTls, TlsError, Trust,
};

use crate::cli::{HttpVersion, OriginTlsArgs, TlsArgs};
use crate::failure::Failure;

fn read(option: &str, path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|e| Failure::words(format!("{option} {}: {e}", path.display())))
}

fn identity(chain: Option<&Path>, key: Option<&Path>) -> Result<Option<Identity>, Failure> {
    let (Some(chain), Some(key)) = (chain, key) else {
        return Ok(None);
    };
    Ok(Some(Identity {
        chain: read("--tls-cert", chain)?,
        key: read("--tls-key", key)?,
    }))
}

/// The client's settings for a server of this host, which may have a port.
pub fn client(args: &TlsArgs, host: &str, http: HttpVersion) -> Result<ClientSettings, Failure> {
    let name = match &args.tls_name {
        Some(name) => name.clone(),
        None => without_port(host).to_string(),
    };
    let settings = ClientSettings {
        version: args.tls_version,
        suites: args.tls_suites.clone(),
        groups: args.tls_groups.clone(),
        alpn: vec![match http {
            HttpVersion::Http1 => "http/1.1".into(),
            HttpVersion::Http2 => "h2".into(),
            HttpVersion::Http3 => net::h3::ALPN.into(),
        }],
        resumption: args.tls_resume,
        trust: match &args.ca {
            _ if args.insecure => Trust::Anything,
            Some(file) => Trust::Authorities(read("--ca", file)?),
            None => Trust::Platform,
        },
        identity: identity(args.tls_cert.as_deref(), args.tls_key.as_deref())?,
        ..ClientSettings::new(name)
    };
    // Wrong names and certificates are shown before anything is measured.
    let client = tls::ClientTls::new(&settings);
    let client = client.map_err(|e| Failure::words(with_file(args, e)))?;
    if http == HttpVersion::Http3 {
        client.quic().map_err(Failure::words)?;
    }
    Ok(settings)
}

/// The error with the option and file of the certificate that it is about.
fn with_file(args: &TlsArgs, error: TlsError) -> String {
    let place = match &error {
        TlsError::Pem { place, .. } | TlsError::Refused { place, .. } => place.as_str(),
        _ => "",
    };
    let (option, file) = match place {
        CA_CERTIFICATE => ("--ca", &args.ca),
        CLIENT_CERTIFICATE => ("--tls-cert", &args.tls_cert),
        _ => return error.to_string(),
    };
    match file {
        Some(file) => format!("{option} {}: {error}", file.display()),
        None => error.to_string(),
    }
}

/// Reads the files of authorities that an experiment's loads trust, before anything is measured.
pub fn check_authorities(experiment: &Experiment) -> Result<(), Failure> {
    let loads = experiment.conditions().into_iter();
    let mut files: Vec<String> = loads
        .filter_map(|condition| experiment.under(&condition).load.tls.ca)
        .collect();
    files.sort_unstable();
    files.dedup();
    for file in files {
        let settings = ClientSettings {
            trust: Trust::Authorities(read("load.tls_ca (--ca)", Path::new(&file))?),
            ..ClientSettings::new("localhost")
        };
        tls::ClientTls::new(&settings)
            .map_err(|e| Failure::words(format!("load.tls_ca (--ca) {file}: {e}")))?;
    }
    Ok(())
}

fn without_port(host: &str) -> &str {
    match host.rfind(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or(host),
    }
}

/// The origin's TLS, and the certificate that clients have to trust if it was made here.
pub fn server(args: &OriginTlsArgs, ip: std::net::IpAddr) -> Result<Option<ServerTls>, Failure> {
    if !args.is_asked() {
        return Ok(None);
    }
    let given = identity(args.tls_cert.as_deref(), args.tls_key.as_deref())?;
    let place = args.tls_cert.as_deref().map_or_else(
        || "the certificate made at the start".to_string(),
        |path| format!("--tls-cert {}", path.display()),
    );
    let identity = match given {
        Some(identity) => identity,
        None => {
            let authority = Authority::new().map_err(Failure::failed)?;
            if let Some(path) = &args.tls_write_ca {
                std::fs::write(path, authority.certificate()).map_err(|e| {
                    Failure::words(format!("--tls-write-ca {}: {e}", path.display()))
                })?;
            }
            let mut names = vec!["localhost".to_string(), "127.0.0.1".into(), "::1".into()];
            if !names.contains(&ip.to_string()) {
                names.push(ip.to_string());
            }
            let key_type = args.tls_key_type.unwrap_or_default();
            authority
                .issue(&names, key_type)
                .map_err(Failure::failed)?
                .identity
        }
    };
    let client_authorities = args.tls_client_ca.as_deref().map(|path| {
        std::fs::read_to_string(path)
            .map_err(|e| Failure::words(format!("--tls-client-ca {}: {e}", path.display())))
    });
    let settings = ServerSettings {
        client_authorities: client_authorities.transpose()?,
        version: args.tls_version,
        suites: args.tls_suites.clone(),
        groups: args.tls_groups.clone(),
        alpn: vec!["h2".into(), "http/1.1".into()],
        ..ServerSettings::new(identity)
    };
    ServerTls::new(&settings, &place)
        .map(Some)
        .map_err(Failure::words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_certificate_has_no_port() {
        assert_eq!(without_port("[::1]:443"), "[::1]");
        assert_eq!(without_port("a.b:1"), "a.b");
        assert_eq!(without_port("a.b"), "a.b");
    }
}
