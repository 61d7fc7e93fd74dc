//! The cryptography: aws-lc, limited to the suites and groups that were asked for.

use std::sync::Arc;

use rustls::SupportedCipherSuite;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::version::{TLS12, TLS13};

use crate::error::TlsError;
use crate::settings::Version;

/// In the order that browsers prefer.
const SUITES: &[SupportedCipherSuite] = &[
    aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
    aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384,
    aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// Without the hybrid group unless it is asked for: its key shares are a kilobyte larger, and a
/// server that does not know it would make the comparison with one that does unequal.
const DEFAULT_GROUPS: &[&dyn SupportedKxGroup] = &[
    aws_lc_rs::kx_group::X25519,
    aws_lc_rs::kx_group::SECP256R1,
    aws_lc_rs::kx_group::SECP384R1,
];

/// The IANA name of a suite.
pub(crate) fn suite_name(suite: SupportedCipherSuite) -> &'static str {
    match suite.suite() {
        rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        rustls::CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown"),
    }
}

/// The name of a group as IANA has it.
pub(crate) fn group_name(group: &dyn SupportedKxGroup) -> &'static str {
    match group.name() {
        rustls::NamedGroup::X25519 => "x25519",
        other => other.as_str().unwrap_or("unknown"),
    }
}

/// All cipher suites that can be asked for.
pub fn suite_names() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite_name(*suite)).collect()
}

/// All key exchange groups that can be asked for.
pub fn group_names() -> Vec<&'static str> {
    let all = aws_lc_rs::ALL_KX_GROUPS;
    all.iter().map(|group| group_name(*group)).collect()
}

fn suite(name: &str) -> Result<SupportedCipherSuite, TlsError> {
    let mut all = SUITES.iter().copied();
    all.find(|suite| suite_name(*suite).eq_ignore_ascii_case(name))
        .ok_or_else(|| TlsError::Unknown {
            what: "cipher suite",
            name: name.into(),
            known: suite_names().join(", "),
        })
}

fn group(name: &str) -> Result<&'static dyn SupportedKxGroup, TlsError> {
    // OpenSSL's names for the same curves.
    let name = match name {
        "P-256" | "prime256v1" => "secp256r1",
        "P-384" => "secp384r1",
        other => other,
    };
    let mut all = aws_lc_rs::ALL_KX_GROUPS.iter().copied();
    all.find(|group| group_name(*group).eq_ignore_ascii_case(name))
        .ok_or_else(|| TlsError::Unknown {
            what: "key exchange group",
            name: name.into(),
            known: group_names().join(", "),
        })
}

/// The provider with these suites and groups; all that is usual where a list is empty.
pub(crate) fn provider(
    suites: &[String],
    groups: &[String],
) -> Result<Arc<CryptoProvider>, TlsError> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = match suites {
        [] => SUITES.to_vec(),
        names => names
            .iter()
            .map(|name| suite(name))
            .collect::<Result<_, _>>()?,
    };
    provider.kx_groups = match groups {
        [] => DEFAULT_GROUPS.to_vec(),
        names => names
            .iter()
            .map(|name| group(name))
            .collect::<Result<_, _>>()?,
    };
    Ok(Arc::new(provider))
}

/// What rustls calls the versions.
pub(crate) fn versions(
    only: Option<Version>,
) -> &'static [&'static rustls::SupportedProtocolVersion] {
    static BOTH: [&rustls::SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match only {
        None => &BOTH,
        Some(Version::Tls13) => &BOTH[..1],
        Some(Version::Tls12) => &BOTH[1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_and_groups_are_named_as_iana_and_openssl_do() {
        let names = ["TLS_AES_256_GCM_SHA384".to_string()];
        let groups = ["P-256".to_string(), "X25519MLKEM768".to_string()];
        let provider = provider(&names, &groups).unwrap();
        assert_eq!(provider.cipher_suites.len(), 1);
        let known: Vec<_> = provider
            .kx_groups
            .iter()
            .map(|one| group_name(*one))
            .collect();
        assert_eq!(known, ["secp256r1", "X25519MLKEM768"]);
        let unknown = super::provider(&["RC4".into()], &[])
            .unwrap_err()
            .to_string();
        assert!(
            unknown.contains("TLS_AES_128_GCM_SHA256, TLS_AES_256"),
            "{unknown}"
        );
    }
}
