//! rustls' errors, as messages for users.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// What was found in place of a session, or of its next record.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "a certificate by an authority that is not trusted (UnknownIssuer)".into()
        }
        // Another authority of the same name.
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "a certificate that the trusted authority has not signed (BadSignature)".into()
        }
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "an authority's own certificate (CA:TRUE), which no server may use \
             (CaUsedAsEndEntity)"
                .into()
        }
        Error::InvalidCertificate(_) => format!("an {error}"),
        Error::InvalidMessage(_) => format!("bytes that are not TLS ({error})"),
        Error::AlertReceived(alert) => match alert {
            // A server of TLS 1.2 has no alert of its own for the second (RFC 5246, 7.4.6).
            AlertDescription::HandshakeFailure => format!(
                "the alert {alert:?}: no version, cipher suite or group that both sides accept, or, in \
                 TLS 1.2, no certificate of the client, which the server demands"
            ),
            AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity => format!(
                "the alert {alert:?}: no version, cipher suite or group that both sides accept"
            ),
            AlertDescription::NoApplicationProtocol => format!(
                "the alert {alert:?}: the server does not speak the offered version of HTTP (ALPN)"
            ),
            AlertDescription::CertificateRequired => {
                format!("the alert {alert:?}: the server asks for a client's certificate")
            }
            _ => format!("the alert {alert:?}"),
        },
        _ => error.to_string(),
    }
}

/// The rustls error that an I/O error carries.
fn inner(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref::<Error>()
}

/// An I/O error of a blocking session with our words.
pub(crate) fn in_words(error: io::Error) -> io::Error {
    match inner(&error) {
        Some(cause) => io::Error::new(
            error.kind(),
            NoSession {
                certificate: certificate_fault_of(cause),
                found: words(cause),
            },
        ),
        None => error,
    }
}

/// A failed handshake, or a session that failed after it.
#[derive(Debug, thiserror::Error)]
#[error("expected a TLS session, found {found}")]
struct NoSession {
    found: String,
    certificate: Option<CertificateFault>,
}

/// Why a server's certificate is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// No trusted authority has signed it.
    Untrusted,
    /// It does not bear the expected name.
    WrongName,
    /// It is expired, not one for servers, or the like.
    Invalid,
}

fn certificate_fault_of(error: &Error) -> Option<CertificateFault> {
    let Error::InvalidCertificate(why) = error else {
        return None;
    };
    Some(match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            CertificateFault::Untrusted
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::WrongName
        }
        _ => CertificateFault::Invalid,
    })
}

/// Why the server's certificate is not accepted, if a request failed for that.
pub fn certificate_fault(error: &io::Error) -> Option<CertificateFault> {
    let cause = error.get_ref()?.downcast_ref::<NoSession>()?;
    cause.certificate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_was_found() {
        let untrusted = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = in_words(io::Error::other(untrusted));
        assert_eq!(certificate_fault(&error), Some(CertificateFault::Untrusted));
        assert_eq!(
            error.to_string(),
            "expected a TLS session, found a certificate by an authority that is not trusted \
             (UnknownIssuer)"
        );
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        assert!(words(&expired).starts_with("an invalid peer certificate: "));
        let refused = words(&Error::AlertReceived(AlertDescription::HandshakeFailure));
        assert!(refused.contains("that both sides accept"), "{refused}");
        assert!(
            refused.contains("no certificate of the client"),
            "{refused}"
        );
        let old = words(&Error::AlertReceived(AlertDescription::ProtocolVersion));
        assert!(!old.contains("certificate"), "{old}");
        let fault = |error| certificate_fault(&in_words(io::Error::other(error)));
        assert_eq!(fault(expired), Some(CertificateFault::Invalid));
        let name = Error::InvalidCertificate(CertificateError::NotValidForName);
        assert_eq!(fault(name), Some(CertificateFault::WrongName));
        assert_eq!(fault(Error::DecryptError), None);
        assert_eq!(certificate_fault(&io::ErrorKind::TimedOut.into()), None);
    }
}
