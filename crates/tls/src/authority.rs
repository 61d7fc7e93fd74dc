//! Certificates for the servers of a run, by an authority of the run's own.

use std::net::IpAddr;
use std::str::FromStr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, RsaKeySize, SanType,
};
use serde::{Deserialize, Serialize};

use crate::error::TlsError;
use crate::settings::Identity;

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyType {
    /// ECDSA on P-256.
    #[default]
    #[serde(rename = "ecdsa-p256")]
    EcdsaP256,
    /// ECDSA on P-384.
    #[serde(rename = "ecdsa-p384")]
    EcdsaP384,
    /// RSA with 2048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
    /// RSA with 4096 bits.
    #[serde(rename = "rsa-4096")]
    Rsa4096,
}

impl KeyType {
    /// All of them.
    pub const ALL: [KeyType; 4] = [
        KeyType::EcdsaP256,
        KeyType::EcdsaP384,
        KeyType::Rsa2048,
        KeyType::Rsa4096,
    ];

    /// Its name in experiments and results.
    pub fn name(self) -> &'static str {
        match self {
            KeyType::EcdsaP256 => "ecdsa-p256",
            KeyType::EcdsaP384 => "ecdsa-p384",
            KeyType::Rsa2048 => "rsa-2048",
            KeyType::Rsa4096 => "rsa-4096",
        }
    }

    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            KeyType::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
            KeyType::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
            KeyType::Rsa2048 => {
                KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048)
            }
            KeyType::Rsa4096 => {
                KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096)
            }
        }
    }
}

impl FromStr for KeyType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|one| one.name()).collect();
            format!("expected one of {}, found `{text}`", known.join(", "))
        })
    }
}

/// An authority that exists for one run. Its key never leaves the process.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Issued {
    pub identity: Identity,
    pub key_type: KeyType,
}

fn cannot_make(error: rcgen::Error) -> TlsError {
    TlsError::Make(error.to_string())
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// The part that certificates of servers and of clients have in common.
fn leaf(name: &str, usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// Where no key can be made.
    pub fn new() -> Result<Self, TlsError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyType::EcdsaP256.generate().map_err(cannot_make)?;
        // By its name a certificate of another run is told apart from one that was tampered with.
        let part = key.public_key_raw().iter().skip(1).take(4);
        let part: String = part.map(|byte| format!("{byte:02x}")).collect();
        params.distinguished_name = named(&format!("Weighstation's authority of one run, {part}"));
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, key).map_err(cannot_make)?,
        })
    }

    /// Its own certificate in PEM form, for clients to trust.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate of a server with these host names and IP addresses.
    ///
    /// # Errors
    /// When a name is not a DNS name, or no key can be made.
    pub fn issue(&self, names: &[String], key_type: KeyType) -> Result<Issued, TlsError> {
        let first = names.first().map_or("localhost", String::as_str);
        let mut params = leaf(first, ExtendedKeyUsagePurpose::ServerAuth);
        for name in names {
            let name = match name.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName(name.clone().try_into().map_err(cannot_make)?),
            };
            params.subject_alt_names.push(name);
        }
        self.sign(params, key_type)
    }

    /// A certificate of a client with this name.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn issue_client(&self, name: &str, key_type: KeyType) -> Result<Issued, TlsError> {
        self.sign(leaf(name, ExtendedKeyUsagePurpose::ClientAuth), key_type)
    }

    fn sign(&self, params: CertificateParams, key_type: KeyType) -> Result<Issued, TlsError> {
        let key = key_type.generate().map_err(cannot_make)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(cannot_make)?;
        Ok(Issued {
            identity: Identity {
                chain: certificate.pem(),
                key: key.serialize_pem(),
            },
            key_type,
        })
    }
}
